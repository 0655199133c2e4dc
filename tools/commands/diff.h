#pragma once

#include <memory>

#include "commands/command.h"

namespace spk {

// `stripepack diff`; docs/commands/diff.md says what it does.
std::unique_ptr<Command> make_diff_command();

}  // namespace spk
