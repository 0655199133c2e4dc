// Builds all shards of a planned pack that are not finished yet: several at a time, sharing the I/O
// threads, the CPU arena and the memory.
#pragma once

#include "pipeline/shard_build.h"

namespace spk {

struct BuildResult {
  uint64_t samples = 0;
  uint64_t rejects = 0;
  uint64_t payload_bytes = 0;
  uint64_t shard_bytes = 0;
  uint32_t shards_found_complete = 0;
  uint64_t kept_samples = 0;       // in shards that an earlier run had begun
  uint32_t shards_built = 0;       // of those dealt; the counts are of these
  uint32_t shards_taken_over = 0;  // by another run, which has not finished them yet
  uint32_t jobs = 0;
  uint32_t io_threads = 0;
};

// The shards of a pack that one process builds: `first`, and each `step`th from there on.
struct ShardDeal {
  uint64_t first = 0;
  uint32_t step = 1;
};

// kInvalidArgument, naming --memory and its floor, where it is too small for any plan.
Status check_least_memory(const PackOptions& options);
// kInvalidArgument, naming --memory, where it is too small for the plan.
Status check_memory(const PlanInfo& info, const PackOptions& options);

// `dir` is the pack's unfinished directory. The first error is that of the lowest shard that
// failed. REQUIRES that check_memory is ok.
Result<BuildResult> build_pack(const Directory& dir, const std::string& attempt, const Plan& plan,
                               const Source& source, const PackOptions& options,
                               const ShardDeal& deal, ShardFileMaker& files, BuildShared& shared);

}  // namespace spk
