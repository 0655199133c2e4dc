#include "loader/ring.h"

namespace spk {

RingShare::~RingShare() {
  if (ring_ != nullptr) ring_->give_back(bytes_, std::move(buffer_));
}

Result<MutableByteSpan> RingShare::buffer() {
  if (buffer_.size() < bytes_) {
    SPK_ASSIGN(buffer_, ring_->take(bytes_));
  }
  return buffer_.span();
}

uint64_t Ring::reserved_bytes() const {
  const std::lock_guard lock(mutex_);
  return reserved_bytes_;
}

uint64_t Ring::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

bool Ring::reserve(uint64_t bytes, RingShare& share) {
  {
    const std::lock_guard lock(mutex_);
    if (bytes > limit_bytes_ || reserved_bytes_ > limit_bytes_ - bytes) return false;
    reserved_bytes_ += bytes;
  }
  share = RingShare(shared_from_this(), bytes);
  return true;
}

Result<AlignedBuffer> Ring::take(uint64_t bytes) {
  std::list<AlignedBuffer> dropped;  // freed after the lock is
  {
    const std::lock_guard lock(mutex_);
    for (auto it = idle_.begin(); it != idle_.end(); ++it) {
      if (it->size() != bytes) continue;
      AlignedBuffer found = std::move(*it);
      idle_.erase(it);
      return found;
    }
    while (!idle_.empty() && allocated_bytes_ + bytes > limit_bytes_) {
      allocated_bytes_ -= idle_.back().size();
      dropped.splice(dropped.end(), idle_, std::prev(idle_.end()));
    }
    allocated_bytes_ += bytes;
    peak_bytes_ = std::max(peak_bytes_, allocated_bytes_);
  }
  dropped.clear();
  auto buffer = AlignedBuffer::allocate_huge(bytes);
  if (!buffer.ok()) {
    const std::lock_guard lock(mutex_);
    allocated_bytes_ -= bytes;
  }
  return buffer;
}

void Ring::give_back(uint64_t bytes, AlignedBuffer buffer) {
  const std::lock_guard lock(mutex_);
  reserved_bytes_ -= bytes;
  if (buffer.size() > 0) idle_.push_front(std::move(buffer));
}

}  // namespace spk
