// Threads that decode.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "io/per_process.h"
#include "picture/decode.h"

namespace spk::picture {

// The CPUs that this process may run on; at least 1.
uint32_t usable_cpus() noexcept;

// Shares loops among a fixed number of threads, the caller's among them. Several callers may run
// loops at once. Threads start with the first loop that can use them, anew in each process.
class DecodePool {
 public:
  // Does part `index` of a loop. Must not throw. `heavy`: see decode().
  using Body = std::function<void(uint64_t index, Scratch& scratch, std::mutex& heavy)>;

  // THREADS 0: usable_cpus() in each process.
  explicit DecodePool(uint32_t threads) : threads_(threads) {}

  uint32_t threads() const noexcept { return threads_ != 0 ? threads_ : usable_cpus(); }
  // Calls body for 0 .. count - 1, in no order, and returns when all are done.
  void run(uint64_t count, const Body& body);

 private:
  struct Loop {
    uint64_t count;
    const Body& body;
    uint64_t next = 0;
    uint64_t finished = 0;
    std::condition_variable all_finished;
  };
  // What belongs to one process.
  class Crew {
   public:
    ~Crew();
    void run(Loop& loop, uint32_t threads);

   private:
    void start_threads(uint64_t wanted);
    void work(Scratch& scratch);
    // REQUIRES the lock; gives it up while the body runs.
    void take_one(Loop& loop, Scratch& scratch, std::unique_lock<std::mutex>& lock);
    std::unique_ptr<Scratch> borrow();

    std::mutex heavy_;
    std::mutex mutex_;
    std::condition_variable work_waits_;
    std::deque<Loop*> queue_;  // loops with parts that nobody has taken
    std::vector<std::unique_ptr<Scratch>> spare_;
    std::vector<std::thread> threads_;
    bool stop_ = false;
  };

  const uint32_t threads_;
  PerProcess<Crew> crew_;
};

}  // namespace spk::picture
