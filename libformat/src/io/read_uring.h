// Reads by io_uring. Internal to io/; see read_engine.h. Compiled only where SPK_HAVE_URING.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "io/read_engine.h"

namespace spk {

class UringQueue;  // one ring

// Rings of one process (PerProcess): each call borrows one for itself, so that there are as many as
// there were calls at a time.
class UringPool {
 public:
  UringPool();
  ~UringPool();
  UringPool(const UringPool&) = delete;
  UringPool& operator=(const UringPool&) = delete;

  // Fills every op, and is true; or touches none and is false where no ring can be had.
  bool run(std::span<ReadOp> ops);

 private:
  std::mutex mutex_;  // guards idle_
  std::vector<std::unique_ptr<UringQueue>> idle_;
};

// Tries a ring, and closes it again. False where the kernel is too old (before 5.6), or forbids it
// (containers, kernel.io_uring_disabled), or lacks lockable memory.
bool uring_works();

}  // namespace spk
