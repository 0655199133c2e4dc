// The storage targets of a pack's chunks, from the maps that are recorded beside it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "container/pack.h"

namespace spk {

// By the current map; empty where none is recorded, or the targets are not known. kDamaged where
// layout.json makes no sense: an order that silently rested on no map would be another one.
Result<std::vector<uint32_t>> current_targets(const Pack& pack);

// By the map with this digest, which a run began with. 0 is the digest of no map. kMismatch where
// it is not recorded.
Result<std::vector<uint32_t>> targets_of_digest(const Pack& pack, uint64_t digest);

}  // namespace spk
