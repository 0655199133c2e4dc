#include "container/shard_queue.h"

#include <algorithm>

#include "container/pack_check.h"
#include "container/parallel_for.h"

namespace spk {

namespace {
// Enough to make taking a task cost nothing, and little enough for all threads to end together.
constexpr uint64_t kTaskBytes = uint64_t{16} << 20;
constexpr uint64_t kLargestBuffer = kMaxChunkBytes;
}  // namespace

ShardQueue::ShardQueue(const PackFacts& facts, const VerifyOptions& options,
                       const VerifyHooks& hooks, Load load, Done done)
    : facts_(facts),
      options_(options),
      hooks_(hooks),
      load_(std::move(load)),
      done_(std::move(done)),
      buffer_bytes_(
          std::clamp<uint64_t>(facts.identity.chunk_bytes(), kMinChunkBytes, kLargestBuffer)) {}

Status ShardQueue::run() {
  const uint64_t by_memory = options_.memory_bytes / 2 / buffer_bytes_;
  const auto threads = static_cast<uint32_t>(
      std::clamp<uint64_t>(by_memory, 1, std::max<uint32_t>(1, options_.threads)));
  run_in_threads(threads, [this] { work(); });
  return status_;
}

void ShardQueue::work() {
  auto buffer = ChunkBytes::make(buffer_bytes_);
  std::unique_lock lock(mutex_);
  if (!buffer.ok() && status_.ok()) status_ = buffer.status();
  while (status_.ok()) {
    if (cancelled()) {
      status_ = Status(Code::kCancelled, "stopped on request");
      break;
    }
    const auto ready = std::find_if(active_.begin(), active_.end(), [](const auto& job) {
      return job->next_task < job->task_count();
    });
    if (ready != active_.end()) {
      Job* job = ready->get();
      const size_t task = job->next_task++;
      lock.unlock();
      check(*job, task, *buffer);
      lock.lock();
      job->finished_tasks += 1;
      if (job->finished_tasks == job->task_count()) finish(take_finished(job));
      continue;
    }
    const bool room = active_bytes_ < options_.memory_bytes / 2 || active_.empty();
    if (next_shard_ < facts_.shard_count && room) {
      const uint32_t shard = next_shard_++;
      loading_ += 1;
      lock.unlock();
      std::unique_ptr<Job> job = load(shard);
      lock.lock();
      loading_ -= 1;
      if (job->task_count() == 0) {
        finish(std::move(job));
      } else {
        active_bytes_ += job->memory_bytes;
        active_.push_back(std::move(job));
      }
      changed_.notify_all();
      continue;
    }
    if (loading_ == 0 && next_shard_ >= facts_.shard_count) break;
    changed_.wait(lock);
  }
  changed_.notify_all();
}

std::unique_ptr<ShardQueue::Job> ShardQueue::load(uint32_t shard) {
  auto job = std::make_unique<Job>();
  LoadedShard& data = job->data;
  load_(shard, job->damages, data);
  job->summary = data.summary();
  job->memory_bytes = data.footer.bytes.size() + data.index_samples.size() +
                      data.index_names.size() + data.chunks.size() * sizeof(ChunkRow);
  const bool reads = !options_.reads_chunks || options_.reads_chunks(shard);
  if (options_.level == VerifyLevel::kQuick || !reads || data.chunks.empty()) {
    if (hooks_.advance) hooks_.advance(data.rows.size(), data.file_bytes);
    return job;
  }
  if (hooks_.advance)
    hooks_.advance(0, data.file_bytes - std::min(data.file_bytes, data.data_bytes));
  uint64_t bytes = kTaskBytes;
  for (size_t i = 0; i < data.chunks.size(); ++i) {
    if (bytes >= kTaskBytes) {
      job->tasks.push_back(i);
      bytes = 0;
    }
    bytes += data.chunks[i].span_slots * facts_.identity.chunk_bytes();
  }
  job->tasks.push_back(data.chunks.size());
  job->results.resize(job->task_count());
  return job;
}

void ShardQueue::check(Job& job, size_t task, ChunkBytes& buffer) {
  const LoadedShard& data = job.data;
  const ShardExtent extent = data.extent(facts_);
  ChunkVerifier verifier(buffer);
  for (size_t i = job.tasks[task]; i < job.tasks[task + 1] && !cancelled(); ++i) {
    const uint64_t end = data.chunk_end(i, facts_.identity);
    verifier.verify(extent, data.chunk_number(i), data.chunks[i], end, job.results[task]);
    if (hooks_.advance) {
      const uint64_t start = uint64_t{data.chunks[i].slot} << facts_.identity.chunk_bytes_log2;
      hooks_.advance(data.chunks[i].sample_count, end - start);
    }
  }
}

std::unique_ptr<ShardQueue::Job> ShardQueue::take_finished(Job* job) {
  const auto at = std::find_if(active_.begin(), active_.end(),
                               [job](const auto& other) { return other.get() == job; });
  std::unique_ptr<Job> taken = std::move(*at);
  active_.erase(at);
  active_bytes_ -= taken->memory_bytes;
  changed_.notify_all();
  return taken;
}

// REQUIRES the lock.
void ShardQueue::finish(std::unique_ptr<Job> job) {
  for (std::vector<Damage>& result : job->results) {
    std::move(result.begin(), result.end(), std::back_inserter(job->damages));
  }
  finished_.emplace(job->data.shard, std::pair(std::move(job->summary), std::move(job->damages)));
  for (auto next = finished_.find(next_done_); next != finished_.end();
       next = finished_.find(next_done_)) {
    done_(next->second.first, next->second.second);
    finished_.erase(next);
    next_done_ += 1;
  }
}

}  // namespace spk
