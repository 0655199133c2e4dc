#include "sources/proto_wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace spk {

namespace {

constexpr uint64_t kMostVarintBytes = 10;
constexpr uint64_t kMostFieldNumber = (uint64_t{1} << 29) - 1;

}  // namespace

WireWalk::WireWalk(ByteSpan bytes)
    : read_([bytes](uint64_t offset, MutableByteSpan into) -> Status {
        std::memcpy(into.data(), bytes.data() + offset, into.size());
        return {};
      }),
      at_(0),
      end_(bytes.size()) {}

Status WireWalk::bad(const char* what) const { return damaged(what).at_offset(at_); }

// So many bytes at the present place, or as many as there are before the end.
Result<ByteSpan> WireWalk::peek(uint64_t bytes) {
  bytes = std::min(bytes, end_ - at_);
  if (at_ < window_begin_ || at_ + bytes > window_begin_ + window_bytes_) {
    window_begin_ = at_;
    window_bytes_ = std::min<uint64_t>(window_.size(), end_ - at_);
    SPK_TRY(read_(at_, MutableByteSpan(window_).first(window_bytes_)));
  }
  return ByteSpan(window_).subspan(at_ - window_begin_, bytes);
}

Status WireWalk::take_varint(uint64_t* value) {
  SPK_ASSIGN(const ByteSpan bytes, peek(kMostVarintBytes));
  *value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint64_t bits = bytes[i] & 0x7f;
    if (i == kMostVarintBytes - 1 && bits > 1) break;
    *value |= bits << (7 * i);
    if (bytes[i] < 0x80) {
      at_ += i + 1;
      return {};
    }
  }
  return bad(bytes.size() < kMostVarintBytes ? "a number is cut"
                                             : "a number has more than 64 bits");
}

Result<bool> WireWalk::next_packed_varint(uint64_t* value) {
  if (at_ == end_) return false;
  SPK_TRY(take_varint(value));
  return true;
}

Result<bool> WireWalk::next(WireField* field) {
  if (at_ == end_) return false;
  const uint64_t start = at_;
  uint64_t tag = 0;
  SPK_TRY(take_varint(&tag));
  const uint64_t number = tag >> 3;
  if (number == 0 || number > kMostFieldNumber) {
    at_ = start;
    return bad("no field has such a number");
  }
  *field = {};
  field->number = static_cast<uint32_t>(number);
  const auto fixed = [&](uint64_t bytes) -> Status {
    SPK_ASSIGN(const ByteSpan found, peek(bytes));
    if (found.size() < bytes) return bad("a number is cut");
    field->value = bytes == 8 ? load_le<uint64_t>(found.data()) : load_le<uint32_t>(found.data());
    at_ += bytes;
    return {};
  };
  switch (tag & 7) {
    case 0:
      field->type = WireType::kVarint;
      SPK_TRY(take_varint(&field->value));
      return true;
    case 1:
      field->type = WireType::kFixed64;
      SPK_TRY(fixed(8));
      return true;
    case 2:
      field->type = WireType::kBytes;
      SPK_TRY(take_varint(&field->bytes));
      if (field->bytes > end_ - at_) return bad("a field reaches beyond the end");
      field->offset = at_;
      at_ += field->bytes;
      return true;
    case 5:
      field->type = WireType::kFixed32;
      SPK_TRY(fixed(4));
      return true;
    default: at_ = start; return bad("no field has such a type");
  }
}

}  // namespace spk
