// Options that say what a source is and means. `pack` and `repack` take them, and `verify
// --against`, which must understand the source as they did.
#pragma once

#include <CLI/App.hpp>
#include <vector>

#include "pipeline/pack_options.h"

namespace spk {

// Gives the options that were added.
std::vector<CLI::Option*> add_source_options(CLI::App& sub, PackOptions* options);

// Those of them that a pack as source needs: --select and --join with what belongs to it.
std::vector<CLI::Option*> add_pack_source_options(CLI::App& sub, PackOptions* options);

}  // namespace spk
