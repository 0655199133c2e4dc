// The random numbers of one sample (docs/IMAGES.md, "Random numbers").
#pragma once

#include <cstdint>

#include "layout/permutation.h"

namespace spk::picture {

// A stream that is a function of (seed, epoch, sample) alone.
class SampleRandom {
 public:
  SampleRandom(uint64_t seed, uint64_t epoch, uint64_t sample) noexcept
      : state_(mix64(mix64(mix64(mix64(kDomain) ^ seed) ^ epoch) ^ sample)) {}

  uint64_t next() noexcept {
    const uint64_t value = mix64(state_);
    state_ += 0x9e3779b97f4a7c15ull;
    return value;
  }
  // 0 <= u < 1, a multiple of 2^-53.
  double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // 0 .. count - 1. REQUIRES 0 < count.
  uint32_t below(uint32_t count) noexcept {
    return static_cast<uint32_t>(((next() >> 32) * count) >> 32);
  }

 private:
  static constexpr uint64_t kDomain = 0x696d616765;  // "image": apart from the order's streams
  uint64_t state_;
};

}  // namespace spk::picture
