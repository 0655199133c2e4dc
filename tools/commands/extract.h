#pragma once

#include <memory>

#include "commands/command.h"

namespace spk {

// `stripepack extract`; docs/commands/extract.md says what it does.
std::unique_ptr<Command> make_extract_command();

}  // namespace spk
