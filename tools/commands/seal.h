// `stripepack seal OUT`: publishes what the parts of a job have built, or tells what is missing.
#pragma once

#include "commands/command.h"

namespace spk {

std::unique_ptr<Command> make_seal_command();

}  // namespace spk
