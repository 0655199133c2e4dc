#include "pipeline/build.h"

#include <malloc.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// The program itself, stacks, and what the libraries take.
constexpr uint64_t kFixedBytes = 46 * kMiB;
// A shard's part of the index in memory: columns, the footer made of them, and what a resumed shard
// keeps of its samples. Keys come on top.
constexpr uint64_t kIndexBytesPerSample = 260;
constexpr uint64_t kLeastPayloadBytes = 4 * kMiB;
constexpr uint32_t kMostShardsAtOnce = 8;
constexpr uint32_t kLeastIoThreads = 16;
constexpr uint32_t kMostIoThreads = 128;

// Millions of short-lived names leave holes in the heap; without this the next shard would come on
// top of them, and many shards would exceed --memory. A sanitizer's heap is another one.
void give_back_heap() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  (void)malloc_trim(0);
#endif
}

struct MemoryShare {
  uint32_t shards_at_once = 1;
  uint64_t payload_bytes = 0;  // a shard
};

Result<MemoryShare> share_memory(const PlanInfo& info, const PackOptions& options, uint32_t jobs) {
  const uint64_t samples =
      divide_up(std::max<uint64_t>(info.sample_count, 1), info.geometry.shard_count);
  // What a shard needs beside its payloads.
  const uint64_t shard_bytes = samples * kIndexBytesPerSample + ShardWriter::kBufferBytes;
  const uint64_t need = kFixedBytes + shard_bytes + kLeastPayloadBytes;
  if (options.memory_bytes < need) {
    return invalid_argument(str_cat("--memory ", format_size(options.memory_bytes),
                                    " is too small: shards of ", samples, " samples need ",
                                    format_size(need)))
        .with_hint(samples > 1 ? "allow more --memory or use more --shards"
                               : "allow more --memory");
  }
  MemoryShare share;
  const uint64_t rest = options.memory_bytes - kFixedBytes;
  uint64_t at_once = std::min<uint64_t>({jobs, kMostShardsAtOnce, info.geometry.shard_count});
  // Two shards at a time let one write its end to disk while the other goes on, but each needs room
  // to read ahead.
  while (at_once > 1 && rest / at_once < shard_bytes + 16 * kLeastPayloadBytes) --at_once;
  share.shards_at_once = static_cast<uint32_t>(std::max<uint64_t>(at_once, 1));
  share.payload_bytes = rest / share.shards_at_once - shard_bytes;
  return share;
}

}  // namespace

Status check_least_memory(const PackOptions& options) {
  constexpr uint64_t kLeast = kFixedBytes + ShardWriter::kBufferBytes + kLeastPayloadBytes + kMiB;
  if (options.memory_bytes >= kLeast) return {};
  return invalid_argument(str_cat("--memory ", format_size(options.memory_bytes),
                                  " is too little: it takes at least ", format_size(kLeast)))
      .with_hint("allow more --memory; the default is 512 MiB");
}

Status check_memory(const PlanInfo& info, const PackOptions& options) {
  return share_memory(info, options, 1).status();
}

Result<BuildResult> build_pack(const Directory& dir, const std::string& attempt, const Plan& plan,
                               const Source& source, const PackOptions& options,
                               const ShardDeal& deal, ShardFileMaker& files, BuildShared& shared) {
  const PlanInfo& info = plan.info();
  BuildResult result;
  result.jobs = std::max<uint32_t>(options.jobs, 1);
  result.io_threads = options.io_threads != 0
                          ? options.io_threads
                          : std::clamp(4 * result.jobs, kLeastIoThreads, kMostIoThreads);
  SPK_ASSIGN(const MemoryShare memory, share_memory(info, options, result.jobs));

  const PackSchema schema = make_pack_schema(info);
  tbb::task_arena arena(static_cast<int>(result.jobs), result.jobs);
  ShardJob job;
  job.memory_bytes = memory.payload_bytes;
  job.group_bytes = std::clamp(memory.payload_bytes / 128, kMiB / 16, kMiB);
  const uint64_t in_memory_limit = std::max(job.group_bytes, memory.payload_bytes / 16);
  BufferPool buffers(job.group_bytes, memory.payload_bytes / job.group_bytes);
  const uint64_t made_limit = memory.payload_bytes * memory.shards_at_once / 2;
  const Preparer preparer(source, schema, options, arena, buffers, in_memory_limit, made_limit,
                          [&shared] { return shared.stopping(); });
  IoPool io(result.io_threads);
  job.dir = &dir;
  job.attempt = attempt;
  job.plan = &plan;
  job.preparer = &preparer;
  job.io = &io;
  job.files = &files;
  job.shared = &shared;

  const uint32_t shard_count = info.geometry.shard_count;
  std::atomic<uint64_t> next_shard{deal.first};
  std::mutex mutex;
  Status first_error;
  uint32_t first_error_shard = UINT32_MAX;
  const auto work = [&] {
    for (;;) {
      const uint64_t next = next_shard.fetch_add(deal.step);
      if (next >= shard_count || shared.stopping()) return;
      const auto shard = static_cast<uint32_t>(next);
      Result<ShardResult> built = build_shard(job, shard);
      give_back_heap();
      const std::lock_guard lock(mutex);
      if (!built.ok()) {
        const bool only_stopped = built.status().code() == Code::kCancelled;
        if (!only_stopped) shared.stop = true;
        if (first_error.ok() || (!only_stopped && shard < first_error_shard) ||
            first_error.code() == Code::kCancelled) {
          first_error_shard = shard;
          first_error = std::move(built).status();
        }
        return;
      }
      result.shards_taken_over += built->taken_over ? 1 : 0;
      result.shards_built += built->taken_over ? 0 : 1;
      result.samples += built->samples;
      result.rejects += built->rejects;
      result.payload_bytes += built->payload_bytes;
      result.shard_bytes += built->file_bytes;
      result.shards_found_complete += built->was_complete ? 1 : 0;
      result.kept_samples += built->kept_samples;
    }
  };
  std::vector<std::thread> workers;
  try {
    for (uint32_t i = 1; i < memory.shards_at_once; ++i) workers.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads to be had; those that are there do the work.
  }
  work();
  for (std::thread& worker : workers) worker.join();
  if (!first_error.ok()) return first_error;
  if (shared.stopping()) return Status(Code::kCancelled, "stopped");
  return result;
}

}  // namespace spk
