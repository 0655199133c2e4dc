#include "pipeline/io_pool.h"

#include <system_error>

namespace spk {

IoPool::IoPool(uint32_t threads) {
  threads_.reserve(threads);
  try {
    for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // No more threads to be had (ulimit -u, cgroup); those that are there do the work.
  }
}

IoPool::~IoPool() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void IoPool::submit(std::function<void()> task) {
  if (threads_.empty()) return task();
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void IoPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace spk
