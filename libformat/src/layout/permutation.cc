#include "layout/permutation.h"

namespace spk {

KeyedPermutation::KeyedPermutation(uint64_t seed, uint64_t stream, uint64_t size) noexcept
    : size_(size), half_bits_(1) {
  while (half_bits_ < 32 && (uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
  half_mask_ = (uint64_t{1} << half_bits_) - 1;
  uint64_t state = mix64(seed) ^ mix64(mix64(stream) + 1);
  for (uint64_t& key : keys_) key = state = mix64(state);
}

uint64_t KeyedPermutation::round(uint64_t half, int number) const noexcept {
  return mix64(half ^ keys_[number]) & half_mask_;
}

uint64_t KeyedPermutation::operator()(uint64_t index) const noexcept {
  do {
    uint64_t left = index >> half_bits_;
    uint64_t right = index & half_mask_;
    for (int i = 0; i < kRounds; ++i) {
      const uint64_t next = left ^ round(right, i);
      left = right;
      right = next;
    }
    index = (left << half_bits_) | right;
  } while (index >= size_);
  return index;
}

uint64_t KeyedPermutation::inverse(uint64_t image) const noexcept {
  do {
    uint64_t left = image >> half_bits_;
    uint64_t right = image & half_mask_;
    for (int i = kRounds - 1; i >= 0; --i) {
      const uint64_t previous = right ^ round(left, i);
      right = left;
      left = previous;
    }
    image = (left << half_bits_) | right;
  } while (image >= size_);
  return image;
}

}  // namespace spk
