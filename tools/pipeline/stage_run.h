// Copies what a StageTask names to its directory, each byte checked as it passes.
//
// A shard is read chunk by chunk, judged as verify does (header, table, each blob's checksum, zero
// padding), and written from the very memory that was judged. A thread copies a shard at a time, so
// that both files are gone through front to back. Several processes may fill one directory at once:
// they divide the shards among them, and each returns when all that it wants is there.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "container/damage.h"
#include "container/index_check.h"
#include "container/pack_facts.h"
#include "pipeline/stage_plan.h"

namespace spk {

class StagedFile;

struct StageHooks {
  std::function<void(uint64_t samples, uint64_t bytes)> advance;  // from any thread
  const std::atomic<bool>* cancel = nullptr;
};

struct StageCounts {
  uint64_t shards_copied = 0;
  uint64_t bytes_copied = 0;
  uint64_t shards_by_others = 0;  // that another process copied meanwhile
  uint64_t shards_mended = 0;     // of those copied: were there and damaged (verify)
  uint64_t damages = 0;           // of the pack: its shards were not copied
};

class StageRun {
 public:
  // TASK, which look_at_place() has looked at, must outlive it.
  StageRun(const StageRequest& request, StageTask& task, const StageHooks& hooks)
      : request_(request), task_(task), hooks_(hooks) {}

  // SINK is called with what is damaged in the pack, in the order of its shards; the rest is staged
  // all the same, but the directory does not become a pack. Once only.
  Result<StageCounts> run(const DamageSink& sink);

 private:
  enum class Outcome { kDone, kBusy };
  struct Worker;

  Status clear_place();
  Status copy_shards(const DamageSink& sink);
  void work(std::vector<uint32_t>& busy);
  Result<Outcome> stage_shard(uint32_t shard, Worker& worker);
  Result<bool> is_whole(uint32_t shard, Worker& worker);
  Status copy_shard(uint32_t shard, StagedFile& target, Worker& worker, std::vector<Damage>& bad);
  Status refresh_layout();
  Status finish_pack(const DamageSink& sink);
  Status copy_file(const std::string& name);
  Status write_manifest(const DamageSink& sink);
  Status write_whole(const std::string& name, const std::function<Status(const File&)>& write);
  uint32_t thread_count() const;
  bool stopping() const { return failed_ || (hooks_.cancel != nullptr && hooks_.cancel->load()); }
  void report(const DamageSink& sink, const Damage& damage);

  const StageRequest& request_;
  StageTask& task_;
  const StageHooks& hooks_;
  Directory dir_;
  std::unique_ptr<IndexCheck> index_;
  PackFacts facts_;
  std::vector<uint32_t> queue_;  // shards to be staged
  std::atomic<size_t> next_{0};  // in queue_
  std::atomic<bool> failed_{false};
  std::mutex mutex_;  // guards what follows
  StageCounts counts_;
  std::map<uint32_t, std::vector<Damage>> damages_;  // by shard
  Status error_;
  uint32_t error_shard_ = 0;
};

// Makes the directory and those above it, as far as they are not there.
Result<Directory> make_directories(const std::string& path);

}  // namespace spk
