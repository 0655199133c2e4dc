// Threads that load units, in the order in which they were planned.
//
// Thread safety: submit(), wait() and the destructor are for one thread, the loader's. No thread
// exists before the first submit(). Belongs to the process that made it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_set>
#include <vector>

#include "io/read_engine.h"
#include "loader/read_unit.h"

namespace spk {

class UnitPool {
 public:
  // ENGINE, which must outlive it, reads up to AT_ONCE units in one call of each thread.
  UnitPool(ReadEngine& engine, uint32_t max_threads, uint32_t at_once)
      : engine_(engine), max_threads_(max_threads), at_once_(at_once) {}
  // Waits for the loads that run; drops those that have not begun.
  ~UnitPool();
  UnitPool(const UnitPool&) = delete;
  UnitPool& operator=(const UnitPool&) = delete;

  void submit(std::shared_ptr<ReadUnit> unit);
  // Until UNIT, which was submitted, is loaded. Returns how long that took, in nanoseconds.
  uint64_t wait(const ReadUnit& unit);
  // Until all that was submitted is loaded and no thread holds on to a unit.
  void settle();
  // Drops what has not begun, and waits for the rest.
  void clear();

 private:
  void start_thread();
  void work();
  void load_units(std::span<const std::shared_ptr<ReadUnit>> units);

  ReadEngine& engine_;
  const uint32_t max_threads_;
  const uint32_t at_once_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable work_waits_;
  std::condition_variable unit_done_;
  std::condition_variable units_dropped_;
  std::deque<std::shared_ptr<ReadUnit>> queue_;
  std::unordered_set<const ReadUnit*> unfinished_;  // in the queue or being loaded
  uint32_t idle_threads_ = 0;
  uint32_t holding_threads_ = 0;  // that own units
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace spk
