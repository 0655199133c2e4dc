#pragma once

#include <memory>

#include "commands/command.h"

namespace spk {

// `stripepack order`; docs/commands/order.md says what it does.
std::unique_ptr<Command> make_order_command();

}  // namespace spk
