// Protobuf's wire format, field by field, from bytes that are read where they lie: a large field is
// told by its place and never held. For messages whose few fields are known beforehand.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "base/bytes.h"
#include "base/result.h"

namespace spk {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;   // of kVarint, kFixed64, kFixed32
  uint64_t offset = 0;  // of kBytes: where its bytes begin, in what is read
  uint64_t bytes = 0;
};

// Walks the fields of the message at [begin, end) of what READ reads; a message within it is walked
// by another one over the field's bytes. Not thread-safe.
class WireWalk {
 public:
  // Exactly into.size() bytes at OFFSET; never called beyond `end`.
  using Read = std::function<Status(uint64_t offset, MutableByteSpan into)>;

  WireWalk(Read read, uint64_t begin, uint64_t end)
      : read_(std::move(read)), at_(begin), end_(end) {}
  // Over bytes in memory, which outlive this; offsets are those in BYTES.
  explicit WireWalk(ByteSpan bytes);

  // False at the end. kDamaged, with the offset, where the bytes are no message: what stands there
  // is no field of protobuf 3 (groups are none), or reaches beyond the end.
  Result<bool> next(WireField* field);
  // The next number of a field of packed varints, which is a WireWalk of its own over its bytes.
  Result<bool> next_packed_varint(uint64_t* value);
  uint64_t offset() const noexcept { return at_; }

 private:
  Status bad(const char* what) const;
  Result<ByteSpan> peek(uint64_t bytes);
  Status take_varint(uint64_t* value);

  Read read_;
  uint64_t at_;
  uint64_t end_;
  std::array<uint8_t, 512> window_{};
  uint64_t window_begin_ = 0;
  uint64_t window_bytes_ = 0;
};

}  // namespace spk
