// `stripepack layout`: how a pack's shards are striped, as recorded; and recording it anew.
#pragma once

#include <memory>

#include "commands/command.h"

namespace spk {

std::unique_ptr<Command> make_layout_command();

}  // namespace spk
