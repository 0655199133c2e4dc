#include "commands/bench_run.h"

#include <sys/resource.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "ui/signals.h"

namespace spk {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Of the process, all threads and the kernel's work for them.
double cpu_seconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

uint64_t sum_of(ByteSpan bytes) {
  uint64_t sum = 0;
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    sum += word;
  }
  for (; at < bytes.size(); ++at) sum += bytes[at];
  return sum;
}

}  // namespace

// What a rank measures in an epoch.
struct BenchRun::Rank {
  uint64_t steps = 0;
  uint64_t undecoded = 0;
  uint64_t sum = 0;  // of the bytes, so that looking at them is not left out
  double first_batch_seconds = 0;
  std::vector<double> waits;
};

// Where the ranks meet at each step.
class BenchRun::Together {
 public:
  explicit Together(size_t count)
      : ranks(count), begin(Clock::now()), barrier_(static_cast<ptrdiff_t>(count)) {}

  void meet() { barrier_.arrive_and_wait(); }
  // The others go on without this rank.
  void leave() { barrier_.arrive_and_drop(); }
  // The first error counts.
  void fail(Status status) {
    const std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
    stop_ = true;
  }
  bool stopped() const noexcept { return stop_; }
  Status status() {
    const std::lock_guard lock(mutex_);
    return status_;
  }

  std::vector<Rank> ranks;  // each is its own thread's
  const Clock::time_point begin;

 private:
  std::barrier<> barrier_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards what follows
  Status status_;
};

Result<std::unique_ptr<BenchRun>> BenchRun::open(const std::shared_ptr<const Pack>& pack,
                                                 const BenchSettings& settings) {
  std::unique_ptr<BenchRun> run(new BenchRun());
  run->settings_ = settings;
  for (uint64_t i = 0; i < settings.rank_count; ++i) {
    LoaderOptions options = settings.loader;
    options.rank = settings.first_rank + i;
    SPK_ASSIGN(std::unique_ptr<Loader> loader, Loader::open(pack, options));
    run->loaders_.push_back(std::move(loader));
    if (!settings.decode) continue;
    SPK_ASSIGN(std::unique_ptr<BatchDecoder> decoder,
               BatchDecoder::make(*pack, settings.decode_threads));
    run->decoders_.push_back(std::move(decoder));
  }
  return run;
}

uint64_t BenchRun::memory_limit_bytes() const {
  uint64_t sum = 0;
  for (const auto& loader : loaders_) sum += loader->stats().ring_limit_bytes;
  return sum;
}

uint64_t BenchRun::memory_peak_bytes() const {
  uint64_t sum = 0;
  for (const auto& loader : loaders_) sum += loader->stats().ring_peak_bytes;
  return sum;
}

// Gets a rank's next batch ready for its accelerator; false at the end.
Result<bool> BenchRun::prepare(size_t number, Rank& rank, Progress& progress) {
  SPK_ASSIGN(const std::shared_ptr<const Batch> batch, loaders_[number]->next());
  if (batch == nullptr) return false;
  uint64_t bytes = 0;
  for (size_t i = 0; i < batch->size(); ++i) {
    for (size_t field = 0; field < batch->blob_fields().size(); ++field) {
      const ByteSpan blob = batch->blob(i, field);
      bytes += blob.size();
      if (!settings_.decode) rank.sum += sum_of(blob);
    }
  }
  if (settings_.decode) {
    SPK_ASSIGN(const uint64_t undecoded,
               decoders_[number]->decode(*batch, loaders_[number]->order().epoch));
    rank.undecoded += undecoded;
  }
  progress.add(batch->size(), bytes);
  return true;
}

void BenchRun::run_rank(size_t number, Together& together, Progress& progress) {
  Rank& rank = together.ranks[number];
  const std::chrono::nanoseconds step(settings_.step_ns);
  Clock::time_point free_at = together.begin;  // when the accelerator has done its last batch
  for (;;) {
    if (settings_.stop->load()) together.fail(cancel_status());
    if (together.stopped()) break;
    const Result<bool> more = prepare(number, rank, progress);
    if (!more.ok()) together.fail(more.status());
    if (!more.ok() || !*more) break;
    const Clock::time_point ready = Clock::now();
    const double wait = std::max(seconds_between(free_at, ready), 0.0);
    if (rank.steps++ == 0) {
      rank.first_batch_seconds = wait;
    } else {
      rank.waits.push_back(wait);
    }
    std::this_thread::sleep_until(free_at);
    together.meet();
    free_at = Clock::now() + step;
  }
  std::this_thread::sleep_until(free_at);
  together.leave();
}

Result<BenchEpoch> BenchRun::run_epoch(uint64_t epoch, Progress& progress) {
  std::vector<LoaderStats> before;
  for (const auto& loader : loaders_) before.push_back(loader->stats());
  const double cpu_before = cpu_seconds();
  Together together(loaders_.size());
  for (const auto& loader : loaders_) SPK_TRY(loader->start_epoch(epoch));
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < loaders_.size(); ++i) {
      threads.emplace_back([&, i] { run_rank(i, together, progress); });
    }
  }
  SPK_TRY(together.status());

  BenchEpoch found;
  found.epoch = epoch;
  found.seconds = seconds_between(together.begin, Clock::now());
  found.cpu_seconds = cpu_seconds() - cpu_before;
  for (size_t i = 0; i < loaders_.size(); ++i) {
    const Rank& rank = together.ranks[i];
    const LoaderStats after = loaders_[i]->stats();
    found.steps = std::max(found.steps, rank.steps);
    found.batches += rank.steps;
    found.undecoded += rank.undecoded;
    sum_ += rank.sum;
    found.samples += after.samples - before[i].samples;
    found.payload_bytes += after.payload_bytes - before[i].payload_bytes;
    found.reads += after.reads - before[i].reads;
    found.read_bytes += after.read_bytes - before[i].read_bytes;
    found.shared_reads += after.shared_reads - before[i].shared_reads;
    found.shared_hits += after.shared_hits - before[i].shared_hits;
    found.first_batch_seconds = std::max(found.first_batch_seconds, rank.first_batch_seconds);
    found.waits.insert(found.waits.end(), rank.waits.begin(), rank.waits.end());
  }
  return found;
}

}  // namespace spk
