// Arithmetic on numbers that come from a file: an overflow is an answer, never a wrap-around.
#pragma once

#include <cstdint>

namespace spk {

[[nodiscard]] inline bool checked_add(uint64_t a, uint64_t b, uint64_t* sum) noexcept {
  return !__builtin_add_overflow(a, b, sum);
}
[[nodiscard]] inline bool checked_mul(uint64_t a, uint64_t b, uint64_t* product) noexcept {
  return !__builtin_mul_overflow(a, b, product);
}
// True if [offset, offset + length) lies within [0, size).
[[nodiscard]] inline bool range_fits(uint64_t offset, uint64_t length, uint64_t size) noexcept {
  return offset <= size && length <= size - offset;
}

}  // namespace spk
