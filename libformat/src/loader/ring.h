// The memory of a loader: page-aligned buffers that are used again and again, never more bytes of
// them than the limit. A share is reserved when a read is planned and taken when it starts, so that
// planning stops where memory would.
//
// Thread safety: all members may be called by several threads at once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include "base/buffer.h"
#include "base/result.h"

namespace spk {

class Ring;

// Bytes reserved in a ring, and after buffer() the memory itself; given back at the end of its
// life.
class RingShare {
 public:
  RingShare() noexcept = default;
  RingShare(RingShare&& other) noexcept { swap(other); }
  RingShare& operator=(RingShare&& other) noexcept {
    RingShare taken(std::move(other));
    swap(taken);
    return *this;
  }
  RingShare(const RingShare&) = delete;
  RingShare& operator=(const RingShare&) = delete;
  ~RingShare();

  // As many bytes as were reserved. kNoMemory where the system has none.
  Result<MutableByteSpan> buffer();

 private:
  friend class Ring;
  RingShare(std::shared_ptr<Ring> ring, uint64_t bytes) noexcept
      : ring_(std::move(ring)), bytes_(bytes) {}
  void swap(RingShare& other) noexcept {
    std::swap(ring_, other.ring_);
    std::swap(bytes_, other.bytes_);
    std::swap(buffer_, other.buffer_);
  }
  std::shared_ptr<Ring> ring_;
  uint64_t bytes_ = 0;
  AlignedBuffer buffer_;
};

class Ring : public std::enable_shared_from_this<Ring> {
 public:
  explicit Ring(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  uint64_t limit_bytes() const noexcept { return limit_bytes_; }
  uint64_t reserved_bytes() const;
  // The most that buffers have taken at once, idle ones included.
  uint64_t peak_bytes() const;
  // False where the limit would be exceeded.
  bool reserve(uint64_t bytes, RingShare& share);

 private:
  friend class RingShare;
  Result<AlignedBuffer> take(uint64_t bytes);
  void give_back(uint64_t bytes, AlignedBuffer buffer);

  const uint64_t limit_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  uint64_t reserved_bytes_ = 0;
  uint64_t allocated_bytes_ = 0;  // in buffers, idle ones included
  uint64_t peak_bytes_ = 0;
  std::list<AlignedBuffer> idle_;  // used last first
};

}  // namespace spk
