// Proves a pack: that every byte of it is what was written, and that shards, index, rejects.tsv and
// manifest.json say the same. Needs none of them to be whole: what one has lost the others tell.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "container/damage.h"

namespace spk {

enum class VerifyLevel {
  kQuick,  // names, sizes, footers, index, rejects.tsv, manifest.json
  kFull,   // and every byte of every chunk
};

struct VerifyOptions {
  VerifyLevel level = VerifyLevel::kFull;
  uint32_t threads = 1;
  uint64_t memory_bytes = uint64_t{512} << 20;
  // kFull: reads the chunks of these shards only, of the others what kQuick does. Empty: all. For
  // several processes that share the work; the report counts as if all chunks had been read.
  std::function<bool(uint32_t shard)> reads_chunks;
};

// All may be empty. `begin` is called once, with 0 where a total is not known; `advance` from any
// thread, `samples` and `bytes` since its last call; once `cancel` is true the call ends soon, with
// kCancelled.
struct VerifyHooks {
  std::function<void(uint64_t samples, uint64_t bytes)> begin;
  std::function<void(uint64_t samples, uint64_t bytes)> advance;
  const std::atomic<bool>* cancel = nullptr;
};

struct VerifyReport {
  Hash128 plan_id;
  Hash128 content_id;  // as the shards give it; zero where a shard's rows are lost
  uint64_t shards = 0;
  uint64_t chunks = 0;  // known of; kFull: checked
  uint64_t samples = 0;
  uint64_t rejects = 0;
  uint64_t bytes_checked = 0;
  uint64_t damages = 0;
  uint64_t samples_lost = 0;
  std::vector<std::string> warnings;  // nothing is wrong, but worth telling: files of no use here

  bool ok() const noexcept { return damages == 0; }
};

// `sink` is called with everything that is wrong, in an order that does not depend on the threads:
// file names, shard by shard and chunk by chunk, index, rejects.tsv, manifest.json. A Status is an
// error of the whole call: kNotFound, kNotThisFormat where there is no manifest.json, kCancelled,
// kDamaged where nothing at all tells what the pack is.
Result<VerifyReport> verify_pack(const std::string& path, const VerifyOptions& options,
                                 const DamageSink& sink, const VerifyHooks& hooks = {});

}  // namespace spk
