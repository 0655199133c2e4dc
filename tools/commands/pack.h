// `stripepack pack SRC OUT`
#pragma once

#include "commands/command.h"

namespace spk {

std::unique_ptr<Command> make_pack_command();
// `stripepack repack`; docs/commands/repack.md says what it does.
std::unique_ptr<Command> make_repack_command();

}  // namespace spk
