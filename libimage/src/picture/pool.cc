#include "picture/pool.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace spk::picture {

uint32_t usable_cpus() noexcept {
  // The kernel refuses a set smaller than its own.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    const bool got = sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !got && errno == EINVAL;
    const int count = got ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return static_cast<uint32_t>(count);
    if (!too_small) break;
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

DecodePool::Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_waits_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void DecodePool::Crew::start_threads(uint64_t wanted) {
  if (threads_.size() >= wanted) return;
  // New threads inherit the mask: the signals of the process are for its own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    while (threads_.size() < wanted) {
      threads_.emplace_back([this, scratch = std::make_unique<Scratch>()] { work(*scratch); });
    }
  } catch (const std::exception&) {
    // No more threads or memory to be had: those that run do the work, slower.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void DecodePool::Crew::take_one(Loop& loop, Scratch& scratch, std::unique_lock<std::mutex>& lock) {
  const uint64_t index = loop.next++;
  if (loop.next == loop.count) queue_.erase(std::find(queue_.begin(), queue_.end(), &loop));
  lock.unlock();
  loop.body(index, scratch, heavy_);
  lock.lock();
  // Under the lock, for the caller may destroy the loop as soon as it can see the number.
  if (++loop.finished == loop.count) loop.all_finished.notify_one();
}

void DecodePool::Crew::work(Scratch& scratch) {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_waits_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    take_one(*queue_.front(), scratch, lock);
  }
}

std::unique_ptr<Scratch> DecodePool::Crew::borrow() {
  if (spare_.empty()) return std::make_unique<Scratch>();
  auto scratch = std::move(spare_.back());
  spare_.pop_back();
  return scratch;
}

void DecodePool::Crew::run(Loop& loop, uint32_t threads) {
  if (loop.count == 0) return;
  std::unique_lock lock(mutex_);
  spare_.reserve(spare_.size() + 1);  // so that giving back cannot fail
  auto scratch = borrow();
  queue_.push_back(&loop);
  start_threads(std::min<uint64_t>(threads, loop.count) - 1);
  if (loop.count > 1) work_waits_.notify_all();
  while (loop.next < loop.count) take_one(loop, *scratch, lock);
  loop.all_finished.wait(lock, [&] { return loop.finished == loop.count; });
  if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(scratch));
}

void DecodePool::run(uint64_t count, const Body& body) {
  Loop loop{count, body, 0, 0, {}};
  crew_.get([] { return std::make_unique<Crew>(); }).run(loop, threads());
}

}  // namespace spk::picture
