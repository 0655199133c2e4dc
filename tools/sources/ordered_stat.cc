#include "sources/ordered_stat.h"

#include <system_error>
#include <utility>

#include "sources/file_sample.h"

namespace spk {

namespace {

constexpr size_t kBatchEntries = 4096;

}  // namespace

OrderedStat::OrderedStat(int root_fd, unsigned threads, bool needed, const Source::Sink& sink)
    : root_fd_(root_fd), wanted_threads_(threads), needed_(needed), sink_(sink) {}

OrderedStat::~OrderedStat() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

Status OrderedStat::add(SampleEntry&& entry) {
  if (!needed_) return sink_(std::move(entry));
  collecting_.push_back(std::move(entry));
  if (collecting_.size() < kBatchEntries) return {};
  SPK_TRY(end_batch());
  start_batch();
  return {};
}

Status OrderedStat::finish() {
  SPK_TRY(end_batch());
  if (collecting_.empty()) return {};
  start_batch();
  return end_batch();
}

void OrderedStat::start_batch() {
  batch_.clear();
  batch_.swap(collecting_);
  batch_open_ = true;
  const std::lock_guard lock(mutex_);
  next_ = 0;
  try {
    while (threads_.size() < wanted_threads_) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // No more threads to be had; end_batch() works through what is left.
  }
  ++generation_;
  working_ = threads_.size();
  changed_.notify_all();
}

Status OrderedStat::end_batch() {
  if (!batch_open_) return {};
  batch_open_ = false;
  look_at_share();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return working_ == 0; });
    if (!error_.ok()) return error_;
  }
  for (SampleEntry& entry : batch_) SPK_TRY(sink_(std::move(entry)));
  return {};
}

void OrderedStat::look_at_share() {
  for (;;) {
    const size_t index = next_.fetch_add(1);
    if (index >= batch_.size()) return;
    Status status = stat_entry(root_fd_, &batch_[index]);
    if (status.ok()) continue;
    const std::lock_guard lock(mutex_);
    if (index >= error_index_) continue;
    error_index_ = index;
    error_ = std::move(status);
  }
}

void OrderedStat::work() {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || generation_ != seen; });
    if (stop_) return;
    seen = generation_;
    lock.unlock();
    look_at_share();
    lock.lock();
    if (--working_ == 0) changed_.notify_all();
  }
}

}  // namespace spk
