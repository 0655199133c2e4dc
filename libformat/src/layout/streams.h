// Random numbers of an epoch's order (docs/ORDER.md, section 2). Pure functions: no state is kept
// between calls, so that any part of an order can be computed by itself.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "layout/permutation.h"

namespace spk {

enum class StreamKind : uint64_t { kUnits = 1, kTargets = 2, kWindow = 3, kRandom = 4 };

constexpr uint64_t stream_of(StreamKind kind, uint64_t epoch, uint64_t a = 0,
                             uint64_t b = 0) noexcept {
  return mix64(mix64(mix64(mix64(static_cast<uint64_t>(kind)) ^ epoch) ^ a) ^ b);
}

// Fisher-Yates, uniform up to 2^-64 times the size.
template <typename T>
void shuffle_table(uint64_t seed, uint64_t stream, std::span<T> table) noexcept {
  uint64_t counter = mix64(mix64(seed) ^ stream);
  for (uint64_t i = table.size(); i > 1; --i) {
    const uint64_t draw = mix64(counter);
    counter += 0x9e3779b97f4a7c15ull;
    const auto other = static_cast<uint64_t>((static_cast<unsigned __int128>(draw) * i) >> 64);
    std::swap(table[i - 1], table[other]);
  }
}

}  // namespace spk
