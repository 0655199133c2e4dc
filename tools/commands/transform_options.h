// The options of `pack` and `repack` that make pictures anew.
#pragma once

#include <CLI/App.hpp>

#include "base/result.h"
#include "pipeline/pack_options.h"

namespace spk {

void add_transform_options(CLI::App& sub, TransformOptions* options);
// What the options contradict each other in: to be called once they are parsed.
Status check_transform_options(const CLI::App& sub, const PackOptions& pack);

}  // namespace spk
