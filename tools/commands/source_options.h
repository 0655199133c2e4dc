// Options that say what a source is and means. `pack` and `repack` take them, and `verify
// --against`, which must understand the source as they did.
#pragma once

#include <CLI/App.hpp>
#include <vector>

#include "pipeline/pack_options.h"

namespace spk {

// Gives the options that were added.
std::vector<CLI::Option*> add_source_options(CLI::App& sub, PackOptions* options);

// --select, which is all that a pack as source needs.
CLI::Option* add_select_option(CLI::App& sub, PackOptions* options);

}  // namespace spk
