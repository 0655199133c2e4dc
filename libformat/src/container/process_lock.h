// A lock for lazily made things in an open pack, which must go on working in a child made by
// fork(): there a std::mutex that another thread held at that moment would never be released.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace spk {

// Knows the process that holds it; one that a child finds held by its parent is free, for the
// thread that held it does not exist there. What it guards may then be half made, so that the
// holder publishes its work by one atomic store at the end, and the next holder starts afresh.
class ProcessLock {
 public:
  ProcessLock() = default;
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;

  void lock() noexcept {
    const auto self = static_cast<uint32_t>(::getpid());
    uint32_t owner = 0;
    while (!owner_.compare_exchange_strong(owner, self, std::memory_order_acquire)) {
      if (owner == self) {
        owner_.wait(self, std::memory_order_relaxed);
        owner = 0;
      }
      // Otherwise it is free or a parent's: the next exchange takes it from that owner.
    }
  }
  bool try_lock() noexcept {
    uint32_t owner = 0;
    return owner_.compare_exchange_strong(owner, static_cast<uint32_t>(::getpid()),
                                          std::memory_order_acquire);
  }
  void unlock() noexcept {
    owner_.store(0, std::memory_order_release);
    owner_.notify_one();
  }

 private:
  std::atomic<uint32_t> owner_{0};  // process id, 0 = free
};

}  // namespace spk
