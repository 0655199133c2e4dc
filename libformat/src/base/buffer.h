// Page-aligned memory: fit for O_DIRECT and for whole-chunk reads. Contents are uninitialised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"

namespace spk {

// The system's page size (asked for once, never assumed).
size_t page_bytes() noexcept;

class AlignedBuffer {
 public:
  AlignedBuffer() noexcept = default;
  // At least `size` bytes, aligned to the page; kNoMemory where the allocator refuses.
  static Result<AlignedBuffer> allocate(uint64_t size);
  // The same for large buffers that are used again and again: of huge pages, where the system gives
  // them.
  static Result<AlignedBuffer> allocate_huge(uint64_t size);
  AlignedBuffer(AlignedBuffer&& other) noexcept { swap(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    AlignedBuffer taken(std::move(other));
    swap(taken);
    return *this;
  }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer();

  uint8_t* data() noexcept { return data_; }
  const uint8_t* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  MutableByteSpan span() noexcept { return {data_, size_}; }
  ByteSpan span() const noexcept { return {data_, size_}; }

 private:
  static Result<AlignedBuffer> allocate_aligned(uint64_t size, size_t alignment);
  void swap(AlignedBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace spk
