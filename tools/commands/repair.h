#pragma once

#include <memory>

#include "commands/command.h"

namespace spk {

// `stripepack repair`; docs/commands/repair.md says what it does.
std::unique_ptr<Command> make_repair_command();

}  // namespace spk
