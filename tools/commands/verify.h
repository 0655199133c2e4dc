#pragma once

#include <memory>

#include "commands/command.h"

namespace spk {

// `stripepack verify`; docs/commands/verify.md says what it does.
std::unique_ptr<Command> make_verify_command();

}  // namespace spk
