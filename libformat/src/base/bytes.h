// Spans of bytes and little-endian access. Every multi-byte number in every stripepack file is
// little-endian and is read and written through here, never by copying a host struct.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace spk {

using ByteSpan = std::span<const uint8_t>;
using MutableByteSpan = std::span<uint8_t>;

inline ByteSpan as_bytes(std::string_view text) noexcept {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteSpan bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename T>
constexpr T byte_swap(T value) noexcept {
  static_assert(std::is_unsigned_v<T>);
  if constexpr (sizeof(T) == 1) return value;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}

// Unaligned little-endian load and store of an unsigned integer.
template <typename T>
inline T load_le(const uint8_t* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof(T));
  if constexpr (std::endian::native == std::endian::big) value = byte_swap(value);
  return value;
}
template <typename T>
inline void store_le(uint8_t* to, T value) noexcept {
  if constexpr (std::endian::native == std::endian::big) value = byte_swap(value);
  std::memcpy(to, &value, sizeof(T));
}
template <typename T>
inline T load_be(const uint8_t* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof(T));
  if constexpr (std::endian::native == std::endian::little) value = byte_swap(value);
  return value;
}

// True if every byte is zero. Word-wise; padding is checked with it at memory speed.
bool is_all_zero(ByteSpan bytes) noexcept;

}  // namespace spk
