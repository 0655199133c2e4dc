#include "layout/block_order.h"

#include <algorithm>

namespace spk {

void BlockOrder::add(uint64_t size_bytes) {
  if (open_run_bytes_ >= kRunBytes) {
    starts_.push_back(samples_);
    open_run_bytes_ = 0;
  }
  ++samples_;
  // Saturating: sizes come from a list and may be absurd.
  open_run_bytes_ =
      size_bytes >= kRunBytes - open_run_bytes_ ? kRunBytes : open_run_bytes_ + size_bytes;
}

uint64_t BlockOrder::run_samples(uint64_t run) const noexcept {
  const uint64_t end = run + 1 < starts_.size() ? starts_[run + 1] : samples_;
  return end - starts_[run];
}

void BlockOrder::finish(uint64_t seed, uint64_t stream) {
  seed_ = seed;
  stream_ = stream;
  const uint64_t runs = starts_.size();
  const KeyedPermutation permutation(seed, mix64(stream), runs);
  places_.resize(runs);
  offsets_.resize(runs);
  for (uint64_t run = 0; run < runs; ++run) {
    places_[run] = permutation(run);
    offsets_[places_[run]] = run_samples(run);
  }
  uint64_t before = 0;
  for (uint64_t& offset : offsets_) {
    const uint64_t here = offset;
    offset = before;
    before += here;
  }
}

uint64_t BlockOrder::Cursor::next() noexcept {
  const BlockOrder& order = order_;
  if (run_ + 1 < order.starts_.size() && ordinal_ == order.starts_[run_ + 1]) ++run_;
  const uint64_t place = order.places_[run_];
  const uint64_t group = place / kRunsMixed;
  const uint64_t base = order.offsets_[group * kRunsMixed];
  if (group != group_ || !mix_) {
    const uint64_t after = std::min<uint64_t>((group + 1) * kRunsMixed, order.run_count());
    const uint64_t end = after < order.run_count() ? order.offsets_[after] : order.samples_;
    mix_.emplace(order.seed_, mix64(order.stream_ + 1 + group), end - base);
    group_ = group;
  }
  const uint64_t within = order.offsets_[place] - base + (ordinal_ - order.starts_[run_]);
  ++ordinal_;
  return base + (*mix_)(within);
}

}  // namespace spk
