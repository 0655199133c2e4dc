// The work behind verify and the first half of repair.
#pragma once

#include <vector>

#include "container/pack_facts.h"
#include "container/shard_load.h"
#include "container/verify.h"

namespace spk {

struct PackCheckResult {
  VerifyReport report;
  PackFacts facts;
  std::vector<bool> shard_whole;  // nothing is wrong with this shard's file
  std::vector<ShardSummary> shards;
};

// As verify_pack on an open directory, which need not have a manifest.json: then its absence is no
// damage either, where `need_manifest` is false.
Result<PackCheckResult> check_pack(const Directory& dir, bool need_manifest,
                                   const VerifyOptions& options, const DamageSink& sink,
                                   const VerifyHooks& hooks);

// Checks one shard whole, all its chunks by this thread.
void check_shard(const PackFacts& facts, const LoadedShard& shard, ChunkBytes& buffer,
                 std::vector<Damage>& damages);

// No larger footer is loaded with this much memory.
uint64_t max_footer_bytes(uint64_t memory_bytes) noexcept;

}  // namespace spk
