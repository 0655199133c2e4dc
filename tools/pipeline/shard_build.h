// Builds one shard: keeps what an earlier run left, reads ahead in plan order, fills chunks, writes
// them. The bytes depend on the plan and the samples alone; memory only decides what is read twice.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "container/shard_writer.h"
#include "pipeline/io_pool.h"
#include "pipeline/plan.h"
#include "pipeline/prepare.h"
#include "pipeline/stripe_plan.h"

namespace spk {

// What all shards of a run share. Counters are for people; nothing depends on them.
struct BuildShared {
  std::atomic<uint64_t> samples_done{0};  // accepted, rejected and kept
  std::atomic<uint64_t> accepted{0};
  std::atomic<uint64_t> rejects{0};
  std::atomic<bool> stop{false};            // another shard failed
  const std::atomic<bool>* told = nullptr;  // another process of this run failed
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(uint64_t samples, uint64_t bytes, uint64_t rejects)> on_progress;
  std::mutex mutex;  // guards what follows
  Warnings warnings;
  std::map<std::string, uint64_t> reject_reasons;  // by kind: the reason up to its first colon
  bool stopping() const {
    return stop.load() || (cancel != nullptr && cancel->load()) ||
           (told != nullptr && told->load());
  }
};

struct ShardJob {
  const Directory* dir = nullptr;  // where the shard's file goes
  std::string attempt;             // token of this run, for temporary names
  const Plan* plan = nullptr;
  const Preparer* preparer = nullptr;
  IoPool* io = nullptr;
  ShardFileMaker* files = nullptr;
  BuildShared* shared = nullptr;
  uint64_t memory_bytes = 0;  // for payloads: half read ahead, half held until they are placed
  uint64_t group_bytes = 0;
};

struct ShardResult {
  uint64_t samples = 0;
  uint64_t rejects = 0;
  uint64_t payload_bytes = 0;
  uint64_t file_bytes = 0;
  bool was_complete = false;  // an earlier run had finished it
  uint64_t kept_samples = 0;  // of a part that an earlier run had written
  // Another run took the file over and has not finished it yet; the counts are 0.
  bool taken_over = false;
};

// "corrupt scan" of "corrupt scan: restart marker ... at offset 1677": what is counted together.
std::string reject_kind(const std::string& reason);

// kCancelled where shared->stopping(); the temporary file then stays for the next run.
Result<ShardResult> build_shard(const ShardJob& job, uint32_t shard);

}  // namespace spk
