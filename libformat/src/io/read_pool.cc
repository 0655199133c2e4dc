#include "io/read_pool.h"

#include <algorithm>
#include <csignal>
#include <system_error>

#include "io/posix_calls.h"

namespace spk {

namespace {

void read_each(std::span<ReadOp> ops) {
  for (ReadOp& op : ops) op.status = pread_exact(op.fd, op.offset, op.into);
}

}  // namespace

ReadPool::~ReadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_waits_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReadPool::start_threads(size_t wanted) {
  wanted = std::min<size_t>(wanted, max_threads_);
  if (threads_.size() >= wanted) return;
  // New threads inherit the mask: the signals of the process are for its own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    while (threads_.size() < wanted) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // The limit of threads is reached (ulimit -u, cgroup): those that run do the work, slower.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::span<ReadOp> ReadPool::take(Batch& batch) {
  const size_t count = std::min(batch.grain, batch.ops.size() - batch.next);
  const auto taken = batch.ops.subspan(batch.next, count);
  batch.next += count;
  waiting_ops_ -= count;
  if (batch.next == batch.ops.size()) queue_.erase(std::find(queue_.begin(), queue_.end(), &batch));
  return taken;
}

void ReadPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_waits_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Batch& batch = *queue_.front();
    const std::span<ReadOp> ops = take(batch);
    lock.unlock();
    read_each(ops);
    lock.lock();
    batch.finished += ops.size();
    // Under the lock, for the caller may destroy the batch as soon as it can see the number.
    if (batch.finished == batch.ops.size()) batch.all_finished.notify_one();
  }
}

void ReadPool::run(std::span<ReadOp> ops) {
  if (ops.size() <= 1) return read_each(ops);
  Batch batch;
  batch.ops = ops;
  // Several at a time where there are many, so that small reads do not queue for the lock; few
  // enough that all threads end together.
  batch.grain = std::clamp<size_t>(ops.size() / (4 * (size_t{max_threads_} + 1)), 1, 16);
  std::unique_lock lock(mutex_);
  queue_.push_back(&batch);
  waiting_ops_ += ops.size();
  start_threads(waiting_ops_ - 1);
  work_waits_.notify_all();
  while (batch.next < ops.size()) {
    const std::span<ReadOp> own = take(batch);
    lock.unlock();
    read_each(own);
    lock.lock();
    batch.finished += own.size();
  }
  batch.all_finished.wait(lock, [&] { return batch.finished == ops.size(); });
}

}  // namespace spk
