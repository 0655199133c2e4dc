// `stripepack pack SRC OUT`
#pragma once

#include "commands/command.h"

namespace spk {

std::unique_ptr<Command> make_pack_command();

}  // namespace spk
