// Shares the chunks of all shards among threads, shard by shard, and hands the findings on in the
// order of shards and chunks.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "container/shard_load.h"
#include "container/verify.h"

namespace spk {

class ShardQueue {
 public:
  // Loads the shard; called by several threads at once.
  using Load = std::function<void(uint32_t shard, std::vector<Damage>&, LoadedShard&)>;
  // Takes what is left of a shard that is done, and all its findings; shard by shard in order, by
  // one thread at a time.
  using Done = std::function<void(ShardSummary&, std::vector<Damage>&)>;

  // `facts` and `hooks` must outlive the queue.
  ShardQueue(const PackFacts& facts, const VerifyOptions& options, const VerifyHooks& hooks,
             Load load, Done done);
  // kCancelled, kNoMemory.
  Status run();

 private:
  struct Job {
    LoadedShard data;
    ShardSummary summary;
    std::vector<size_t> tasks;  // task t: chunks tasks[t] .. tasks[t + 1] - 1
    size_t next_task = 0;
    size_t finished_tasks = 0;
    uint64_t memory_bytes = 0;
    std::vector<Damage> damages;               // of the shard itself
    std::vector<std::vector<Damage>> results;  // of each task
    size_t task_count() const noexcept { return tasks.empty() ? 0 : tasks.size() - 1; }
  };

  void work();
  std::unique_ptr<Job> load(uint32_t shard);
  void check(Job& job, size_t task, ChunkBytes& buffer);
  void finish(std::unique_ptr<Job> job);
  std::unique_ptr<Job> take_finished(Job* job);
  bool cancelled() const noexcept { return hooks_.cancel != nullptr && hooks_.cancel->load(); }

  const PackFacts& facts_;
  const VerifyOptions options_;
  const VerifyHooks& hooks_;
  const Load load_;
  const Done done_;
  uint64_t buffer_bytes_;

  std::mutex mutex_;  // guards all below, and the jobs' counters
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> active_;
  // Those that wait for the shards before them.
  std::map<uint32_t, std::pair<ShardSummary, std::vector<Damage>>> finished_;
  uint64_t active_bytes_ = 0;
  uint32_t next_shard_ = 0;
  uint32_t next_done_ = 0;
  uint32_t loading_ = 0;
  Status status_;
};

}  // namespace spk
