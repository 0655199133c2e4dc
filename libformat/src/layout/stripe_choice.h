// Which stripe layout the files of a pack should get. The rules, and where they come from, are in
// docs/FILESYSTEMS.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/stripe_layout.h"

namespace spk {

struct StripeQuestion {
  StripeLayout directory;    // what new files get by themselves
  uint64_t chunk_bytes = 0;  // a stripe is a chunk, so that a chunk lies on one target
  uint64_t pack_bytes = 0;   // of all shards, about
  uint32_t shard_count = 1;
  uint32_t target_count = 0;  // 0: the file system does not tell
};

struct StripeChoice {
  // Zeros and "": as the directory has it. All of them: nothing is set.
  uint64_t stripe_bytes = 0;
  uint32_t stripe_count = 0;
  uint64_t object_bytes = 0;
  bool sets() const noexcept { return stripe_bytes != 0 || stripe_count != 0; }
  std::vector<std::string> reasons;  // a sentence each, for people
};

StripeChoice choose_stripes(const StripeQuestion& question);

// The target that the first stripe of a shard goes to, so that the shards' stripes are spread over
// all targets as evenly as can be. REQUIRES target_count > 0.
uint32_t start_target(uint32_t shard, uint32_t stripe_count, uint32_t target_count) noexcept;

}  // namespace spk
