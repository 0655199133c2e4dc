#pragma once

#include <memory>

#include "commands/command.h"

namespace spk {

// `stripepack ls`; docs/commands/ls.md says what it does.
std::unique_ptr<Command> make_ls_command();

}  // namespace spk
