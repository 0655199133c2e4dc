#include "loader/unit_pool.h"

#include <chrono>
#include <csignal>
#include <system_error>

namespace spk {

UnitPool::~UnitPool() {
  clear();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_waits_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// Signals of the process are for its own threads: a new one inherits the mask.
void UnitPool::start_thread() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // The limit of threads is reached: those that run do the work, or wait() does it itself.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void UnitPool::submit(std::shared_ptr<ReadUnit> unit) {
  bool more_threads = false;
  {
    const std::lock_guard lock(mutex_);
    unfinished_.insert(unit.get());
    unit->set_loaded(false);
    queue_.push_back(std::move(unit));
    more_threads = queue_.size() > idle_threads_ && threads_.size() < max_threads_;
  }
  if (more_threads) start_thread();
  work_waits_.notify_one();
}

uint64_t UnitPool::wait(const ReadUnit& unit) {
  if (unit.is_loaded()) return 0;
  std::unique_lock lock(mutex_);
  if (!unfinished_.contains(&unit)) return 0;
  const auto start = std::chrono::steady_clock::now();
  if (threads_.empty()) {  // none could be started
    while (unfinished_.contains(&unit)) {
      const std::shared_ptr<ReadUnit> first = queue_.front();
      queue_.pop_front();
      lock.unlock();
      load_units({&first, 1});
      lock.lock();
      unfinished_.erase(first.get());
      first->set_loaded(true);
    }
  }
  unit_done_.wait(lock, [&] { return !unfinished_.contains(&unit); });
  const auto waited = std::chrono::steady_clock::now() - start;
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(waited).count());
}

void UnitPool::settle() {
  std::unique_lock lock(mutex_);
  if (threads_.empty()) return;
  units_dropped_.wait(lock, [this] { return queue_.empty() && holding_threads_ == 0; });
}

void UnitPool::clear() {
  std::deque<std::shared_ptr<ReadUnit>> dropped;
  std::unique_lock lock(mutex_);
  dropped.swap(queue_);
  for (const auto& unit : dropped) unfinished_.erase(unit.get());
  unit_done_.wait(lock, [this] { return unfinished_.empty(); });
}

void UnitPool::load_units(std::span<const std::shared_ptr<ReadUnit>> units) {
  std::vector<ReadOp> ops;
  std::vector<size_t> op_of(units.size());
  for (size_t i = 0; i < units.size(); ++i) {
    op_of[i] = ops.size();
    if (units[i]->begin_load()) ops.push_back(units[i]->read_op());
  }
  (void)engine_.read(ops);         // each has its own status
  std::vector<ReadUnit*> waiting;  // for other loaders, which may wait for the rest of these
  for (size_t i = 0; i < units.size(); ++i) {
    if (units[i]->waits_for_other()) {
      waiting.push_back(units[i].get());
      continue;
    }
    const bool was_read =
        op_of[i] < ops.size() && (i + 1 == units.size() || op_of[i + 1] > op_of[i]);
    units[i]->finish_load(was_read ? std::move(ops[op_of[i]].status) : Status());
  }
  for (ReadUnit* const unit : waiting) unit->finish_load({});
}

void UnitPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_threads_;
    work_waits_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    --idle_threads_;
    if (queue_.empty()) return;
    std::vector<std::shared_ptr<ReadUnit>> units;
    for (; !queue_.empty() && units.size() < at_once_; queue_.pop_front()) {
      units.push_back(std::move(queue_.front()));
    }
    ++holding_threads_;
    lock.unlock();
    load_units(units);
    lock.lock();
    for (const auto& unit : units) {
      unfinished_.erase(unit.get());
      unit->set_loaded(true);
    }
    unit_done_.notify_all();
    // This may be their last owner. Not under the lock; and not before they are erased, for a new
    // one may get the address of an old one.
    lock.unlock();
    units.clear();
    lock.lock();
    if (--holding_threads_ == 0) units_dropped_.notify_all();
  }
}

}  // namespace spk
