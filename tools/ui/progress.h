// How far long work is. Workers add to counters; a thread of its own prints: on a terminal one line
// rewritten at most 10 times a second, elsewhere a time-stamped line every 30 s, in JSON mode an
// object {"type": "progress", ...} as often. All on stderr.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "ui/ui.h"

namespace spk {

// kAuto: a live line on a terminal, timed lines elsewhere. kAlways: a live line in any case.
enum class ProgressMode { kAuto, kAlways, kNever };

// What a stage has to do and what of it was done before (by an earlier run, say). 0: not known.
struct StageTotals {
  uint64_t samples = 0;
  uint64_t bytes = 0;
  uint64_t samples_before = 0;
  uint64_t bytes_before = 0;
};

// One moment of a stage, as it is printed.
struct ProgressSnapshot {
  std::string stage;
  StageTotals totals;
  uint64_t samples = 0;  // done in this run, without those before
  uint64_t bytes = 0;
  uint64_t rejects = 0;
  double seconds = 0;  // since the stage began
};
// "packing  12,345/50,000  24 %  4,321 samples/s  465 MB/s  2 rejected  0:09 left", cut to `width`
// columns (0: not cut).
std::string progress_line(const ProgressSnapshot& snapshot, size_t width);

class Progress {
 public:
  // `ui` must outlive it. The thread starts with the first stage; with kNever there is none.
  Progress(Ui& ui, ProgressMode mode);
  // As above with other intervals, for tests.
  Progress(Ui& ui, ProgressMode mode, std::chrono::milliseconds live_interval,
           std::chrono::milliseconds timed_interval);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Ends the stage before and sets the counters to 0. Not from two threads at once.
  void stage(std::string_view name, const StageTotals& totals = {});
  // From any thread; two or three relaxed atomic additions.
  void add(uint64_t samples, uint64_t bytes) noexcept {
    samples_.fetch_add(samples, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void add_rejects(uint64_t count) noexcept {
    rejects_.fetch_add(count, std::memory_order_relaxed);
  }
  ProgressSnapshot snapshot() const;
  // Stops printing and removes the live line. Called by the destructor as well.
  void finish();

 private:
  void run();
  void print();

  Ui& ui_;
  const bool off_;
  const bool live_;
  const std::chrono::milliseconds interval_;
  std::atomic<uint64_t> samples_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> rejects_{0};
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::string stage_;
  StageTotals totals_;
  std::chrono::steady_clock::time_point stage_begin_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace spk
