#pragma once

#include <memory>

#include "commands/command.h"

namespace spk {

// `stripepack info`; docs/commands/info.md says what it does.
std::unique_ptr<Command> make_info_command();

}  // namespace spk
