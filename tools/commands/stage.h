#pragma once

#include <memory>

#include "commands/command.h"

namespace spk {

// `stripepack stage`; docs/commands/stage.md says what it does.
std::unique_ptr<Command> make_stage_command();

}  // namespace spk
