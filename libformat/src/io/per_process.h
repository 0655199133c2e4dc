// Something that must not be shared with a child made by fork(): threads, which do not exist there,
// or a ring, whose memory both would write.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <utility>

namespace spk {

// Holds a T that is made at the first get() of each process. What a parent made is abandoned in the
// child without its destructor: its mutexes may be held by threads that are not there.
//
// Thread safety: get() may be called by several threads at once, without a lock, for a lock could
// be held by another thread at the moment of the fork.
template <typename T>
class PerProcess {
 public:
  PerProcess() = default;
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;
  ~PerProcess() {
    Slot* slot = slot_.load(std::memory_order_acquire);
    if (slot == nullptr || slot->pid != ::getpid()) return;
    delete slot;
  }

  // MAKE yields a std::unique_ptr<T>; it may run in several threads at first, and all but one of
  // the results are destroyed, so that it should do nothing dear.
  template <typename Make>
  T& get(const Make& make) {
    const pid_t pid = ::getpid();
    Slot* found = slot_.load(std::memory_order_acquire);
    if (found != nullptr && found->pid == pid) return *found->value;
    Slot* const fresh = new Slot{pid, make(), found};
    if (slot_.compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) {
      return *fresh->value;
    }
    delete fresh;
    return *found->value;  // another thread of this process was faster
  }

 private:
  struct Slot {
    pid_t pid;
    std::unique_ptr<T> value;
    Slot* abandoned;  // the parent's: never touched, kept so that leak checkers find it
  };
  std::atomic<Slot*> slot_{nullptr};
};

}  // namespace spk
