// A seeded permutation of 0 .. size-1 that needs no table: a keyed Feistel network over the next
// even power of two, walked until the value falls inside the range ("cycle walking"). Any element
// and its inverse cost O(1), so a part of a job computes only its own slice.
#pragma once

#include <cstdint>

namespace spk {

// The pseudo-random function below everything that is shuffled: splitmix64's finaliser.
constexpr uint64_t mix64(uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

class KeyedPermutation {
 public:
  // Streams of one seed are independent of each other. size may be 0 or 1.
  KeyedPermutation(uint64_t seed, uint64_t stream, uint64_t size) noexcept;
  uint64_t size() const noexcept { return size_; }
  // REQUIRES index < size(). A bijection of 0 .. size-1.
  uint64_t operator()(uint64_t index) const noexcept;
  uint64_t inverse(uint64_t image) const noexcept;

 private:
  static constexpr int kRounds = 6;
  uint64_t round(uint64_t half, int number) const noexcept;
  uint64_t size_;
  int half_bits_;
  uint64_t half_mask_;
  uint64_t keys_[kRounds];
};

}  // namespace spk
