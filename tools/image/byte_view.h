// Random access to the bytes of one sample, which need not fit into memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/bytes.h"
#include "base/result.h"

namespace spk {

// Not thread-safe: a view belongs to one thread at a time.
class ByteView {
 public:
  // at() gives as many bytes as asked for up to this many; beyond, it may give fewer.
  static constexpr size_t kWindowBytes = size_t{1} << 20;

  virtual ~ByteView() = default;
  virtual uint64_t size() const = 0;
  // The bytes from `offset` on: min(want, size() - offset) of them, where `want` exceeds
  // kWindowBytes at least min(kWindowBytes, size() - offset); none at or behind the end. Valid
  // until the next call. An error is one of the medium, never of the content.
  virtual Result<ByteSpan> at(uint64_t offset, size_t want) = 0;
};

// Over bytes that the caller keeps alive. Copies nothing.
class MemoryView final : public ByteView {
 public:
  explicit MemoryView(ByteSpan bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  Result<ByteSpan> at(uint64_t offset, size_t want) override;

 private:
  ByteSpan bytes_;
};

// Over a function that fills exactly into.size() bytes from `offset` on. Holds one window.
class CallbackView final : public ByteView {
 public:
  using Read = std::function<Status(uint64_t offset, MutableByteSpan into)>;
  CallbackView(uint64_t size_bytes, Read read) : size_(size_bytes), read_(std::move(read)) {}
  uint64_t size() const override { return size_; }
  Result<ByteSpan> at(uint64_t offset, size_t want) override;

 private:
  uint64_t size_;
  Read read_;
  std::unique_ptr<uint8_t[]> window_;  // made at the first call
  uint64_t window_offset_ = 0;
  size_t window_bytes_ = 0;
};

}  // namespace spk
