#pragma once

#include <memory>

#include "commands/command.h"

namespace spk {

// `stripepack export`; docs/commands/export.md says what it does.
std::unique_ptr<Command> make_export_command();

}  // namespace spk
