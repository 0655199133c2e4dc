// Threads that read. Internal to io/; see read_engine.h.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "io/read_engine.h"

namespace spk {

// Belongs to one process (PerProcess). The calling thread takes its share of its own ops, so that a
// call ends even where no thread could be started, and a single op costs no hand-over.
class ReadPool {
 public:
  explicit ReadPool(uint32_t max_threads) : max_threads_(max_threads) {}
  ~ReadPool();  // REQUIRES that no run() is active
  ReadPool(const ReadPool&) = delete;
  ReadPool& operator=(const ReadPool&) = delete;

  // Fills every op. Any number of threads at once.
  void run(std::span<ReadOp> ops);

 private:
  // One call's ops; lives on the caller's stack until all are finished.
  struct Batch {
    std::span<ReadOp> ops;
    size_t grain;     // ops taken at a time
    size_t next = 0;  // first that nobody has taken
    size_t finished = 0;
    std::condition_variable all_finished;
  };

  void start_threads(size_t wanted);
  void work();
  // The next ops of BATCH, which leaves the queue with its last one. Needs the lock.
  std::span<ReadOp> take(Batch& batch);

  const uint32_t max_threads_;
  std::mutex mutex_;  // guards all below and the counters of each Batch
  std::condition_variable work_waits_;
  std::deque<Batch*> queue_;  // those with ops that nobody has taken
  std::vector<std::thread> threads_;
  size_t waiting_ops_ = 0;
  bool stop_ = false;
};

}  // namespace spk
