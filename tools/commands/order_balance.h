// Simulates how evenly an epoch's reads load the storage targets (docs/ORDER.md, section 10), for
// sample sizes drawn from a list.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace spk {

struct BalanceSettings {
  uint64_t lanes = 64;
  uint64_t window = 1;
  uint64_t targets = 56;
  uint64_t chunks_per_lane = 48;
  uint64_t chunk_bytes = uint64_t{4} << 20;
  uint64_t seed = 0;
  // 0: chunk u lies on target u mod targets. Otherwise so many shards of equal size, each of which
  // begins on a random target and has `stripe_count` stripes, on neighbouring targets.
  uint64_t random_shards = 0;
  uint64_t stripe_count = 1;
};

// Heaviest target / mean of all targets.
struct TargetLoad {
  double mean = 0;   // over time slots
  double worst = 0;  // slot
};

struct Balance {
  uint64_t chunks = 0;
  uint64_t samples = 0;
  uint64_t slots = 0;  // that were counted
  double ideal = 0;    // what no order can go below
  TargetLoad balanced;
  TargetLoad plain;  // chunks shuffled as a whole, then cut into lanes of equal samples
};

// Draws sizes with replacement and fills chunks one after the other (a sample that no longer fits
// begins the next; one larger than a chunk owns a run). Time is rows; a time slot is the rows of
// one mean window; what a window reads is counted in the slot in which it begins. The first two and
// the last two slots are left out. kInvalidArgument where the settings leave nothing to count.
Result<Balance> simulate_balance(std::span<const uint64_t> sample_bytes,
                                 const BalanceSettings& settings);

}  // namespace spk
