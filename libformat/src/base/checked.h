// Arithmetic on numbers that come from a file: an overflow is an answer, never a wrap-around. And
// the two rounding functions; which numbers are rounded to what is decided in layout/ and format/.
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

// REQUIRES align > 0 and value + align - 1 < 2^64.
constexpr uint64_t round_up(uint64_t value, uint64_t align) noexcept {
  return (value + align - 1) / align * align;
}
constexpr uint64_t divide_up(uint64_t value, uint64_t by) noexcept { return (value + by - 1) / by; }

}  // namespace spk
