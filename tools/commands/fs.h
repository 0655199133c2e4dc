// `stripepack fs`: what is known of the file system at a place.
#pragma once

#include <memory>

#include "commands/command.h"

namespace spk {

std::unique_ptr<Command> make_fs_command();

}  // namespace spk
