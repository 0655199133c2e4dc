#pragma once

#include <memory>

#include "commands/command.h"

namespace spk {

// `stripepack cat`; docs/commands/cat.md says what it does.
std::unique_ptr<Command> make_cat_command();

}  // namespace spk
