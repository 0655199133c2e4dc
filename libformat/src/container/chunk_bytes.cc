#include "container/chunk_bytes.h"

#include <algorithm>

#include "base/checked.h"
#include "base/hash.h"
#include "base/text.h"

namespace spk {

namespace {
constexpr uint64_t kStepBytes = uint64_t{1} << 20;
}  // namespace

Result<ChunkBytes> ChunkBytes::make(uint64_t capacity) {
  ChunkBytes bytes;
  SPK_ASSIGN(bytes.buffer_, AlignedBuffer::allocate(capacity));
  return bytes;
}

void ChunkBytes::open(const File& file, uint64_t start, uint64_t available) noexcept {
  file_ = &file;
  start_ = start;
  available_ = available;
  loaded_ = 0;
  exact_ = available > buffer_.size();
}

Status ChunkBytes::load(uint64_t end) {
  while (loaded_ < end) {
    const uint64_t bytes = std::min(kStepBytes, available_ - loaded_);
    SPK_TRY(file_->read_exact(start_ + loaded_, buffer_.span().subspan(loaded_, bytes)));
    loaded_ += bytes;
  }
  return {};
}

Result<ByteSpan> ChunkBytes::span(uint64_t offset, uint64_t bytes) {
  if (bytes == 0) return ByteSpan();
  if (!range_fits(offset, bytes, available_)) {
    return damaged(str_cat("the file ends at ", start_ + available_, ", expected ", bytes,
                           " bytes at ", start_ + offset));
  }
  if (!exact_) {
    if (load(offset + bytes).ok()) return ByteSpan(buffer_.span().subspan(offset, bytes));
    exact_ = true;
  }
  MutableByteSpan into = buffer_.span();
  if (available_ <= buffer_.size()) {
    into = into.subspan(offset);  // what was given out before stays as it is
  } else if (bytes > into.size()) {
    SPK_ASSIGN(large_, AlignedBuffer::allocate(bytes));
    into = large_.span();
  }
  SPK_TRY(file_->read_exact(start_ + offset, into.first(bytes)));
  return ByteSpan(into.first(bytes));
}

template <typename Use>
Status ChunkBytes::each_piece(uint64_t offset, uint64_t bytes, Use&& use) {
  if (!range_fits(offset, bytes, available_)) return span(offset, bytes).status();
  while (bytes > 0) {
    const uint64_t piece_bytes = std::min(bytes, exact_ ? kStepBytes : bytes);
    SPK_ASSIGN(const ByteSpan piece, span(offset, std::min<uint64_t>(piece_bytes, buffer_.size())));
    if (!use(piece, offset)) return {};
    offset += piece.size();
    bytes -= piece.size();
  }
  return {};
}

Result<uint64_t> ChunkBytes::hash(uint64_t offset, uint64_t bytes) {
  if (!exact_ || bytes <= kStepBytes) {
    SPK_ASSIGN(const ByteSpan all, span(offset, bytes));
    return xxh3_64(all);
  }
  Xxh3Stream hash;
  SPK_TRY(each_piece(offset, bytes, [&](ByteSpan piece, uint64_t) {
    hash.update(piece);
    return true;
  }));
  return hash.digest_64();
}

Result<std::optional<uint64_t>> ChunkBytes::first_nonzero(uint64_t offset, uint64_t bytes) {
  std::optional<uint64_t> found;
  SPK_TRY(each_piece(offset, bytes, [&](ByteSpan piece, uint64_t at) {
    if (is_all_zero(piece)) return true;
    const auto byte = std::find_if(piece.begin(), piece.end(), [](uint8_t b) { return b != 0; });
    found = at + static_cast<uint64_t>(byte - piece.begin());
    return false;
  }));
  return found;
}

}  // namespace spk
