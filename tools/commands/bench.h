#pragma once

#include <memory>

#include "commands/command.h"

namespace spk {

// `stripepack bench`; docs/commands/bench.md says what it does.
std::unique_ptr<Command> make_bench_command();

}  // namespace spk
