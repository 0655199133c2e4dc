#include "sources/joined_handle.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace spk {

void JoinedHandle::add(std::unique_ptr<SampleHandle> handle) {
  starts_.push_back(size_bytes_);
  size_bytes_ += handle->size_bytes();
  handles_.push_back(std::move(handle));
}

Status JoinedHandle::read_at(uint64_t offset, MutableByteSpan into) {
  if (!range_fits(offset, into.size(), size_bytes_)) {
    return internal_error("read behind the end of a sample");
  }
  for (size_t i = 0; i < handles_.size() && !into.empty(); ++i) {
    const uint64_t end = starts_[i] + handles_[i]->size_bytes();
    if (offset >= end) continue;
    const MutableByteSpan now = into.first(std::min<uint64_t>(into.size(), end - offset));
    SPK_TRY(handles_[i]->read_at(offset - starts_[i], now));
    offset += now.size();
    into = into.subspan(now.size());
  }
  return {};
}

}  // namespace spk
