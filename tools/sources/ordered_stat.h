// Looks at listed files with many threads and hands the entries on in the order they came.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "sources/source.h"

namespace spk {

class OrderedStat {
 public:
  // Paths are relative to `root_fd`. With `needed` false nothing is looked at. All outlive this.
  OrderedStat(int root_fd, unsigned threads, bool needed, const Source::Sink& sink);
  ~OrderedStat();
  OrderedStat(const OrderedStat&) = delete;
  OrderedStat& operator=(const OrderedStat&) = delete;

  // One batch is looked at while the caller collects the next. The error is that of the earliest
  // entry that failed.
  Status add(SampleEntry&& entry);
  Status finish();

 private:
  void work();
  void look_at_share();
  void start_batch();
  Status end_batch();

  int root_fd_;
  unsigned wanted_threads_;
  bool needed_;
  const Source::Sink& sink_;
  std::vector<SampleEntry> collecting_;

  // The batch being looked at. Threads take entries by `next_`.
  std::vector<SampleEntry> batch_;
  std::atomic<size_t> next_{0};
  bool batch_open_ = false;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
  uint64_t generation_ = 0;
  size_t working_ = 0;
  bool stop_ = false;
  size_t error_index_ = SIZE_MAX;
  Status error_;
};

}  // namespace spk
