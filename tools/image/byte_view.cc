#include "image/byte_view.h"

#include <algorithm>

namespace spk {

Result<ByteSpan> MemoryView::at(uint64_t offset, size_t want) {
  if (offset >= bytes_.size()) return ByteSpan();
  const size_t begin = static_cast<size_t>(offset);
  return bytes_.subspan(begin, std::min(want, bytes_.size() - begin));
}

Result<ByteSpan> CallbackView::at(uint64_t offset, size_t want) {
  if (offset >= size_) return ByteSpan();
  const uint64_t rest = size_ - offset;
  const size_t give = static_cast<size_t>(std::min<uint64_t>({want, kWindowBytes, rest}));
  const bool held = offset >= window_offset_ && offset - window_offset_ <= window_bytes_ &&
                    window_bytes_ - static_cast<size_t>(offset - window_offset_) >= give;
  if (!held) {
    if (!window_)
      window_ = std::make_unique_for_overwrite<uint8_t[]>(
          static_cast<size_t>(std::min<uint64_t>(kWindowBytes, size_)));
    window_bytes_ = 0;  // stays so if the read fails
    const size_t fill = static_cast<size_t>(std::min<uint64_t>(kWindowBytes, rest));
    SPK_TRY(read_(offset, {window_.get(), fill}));
    window_offset_ = offset;
    window_bytes_ = fill;
  }
  const size_t begin = static_cast<size_t>(offset - window_offset_);
  // All that the window holds is on offer: a large `want` then costs no second read.
  const size_t have = window_bytes_ - begin;
  return ByteSpan(window_.get() + begin, std::min(want, have));
}

}  // namespace spk
