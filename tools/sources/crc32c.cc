#include "sources/crc32c.h"

#include <array>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace spk {

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // bits reversed
constexpr size_t kSlices = 8;
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

#if defined(__x86_64__)
// Three runs at once hide that each step waits for the one before; their CRCs are joined by what a
// CRC becomes over kRunBytes zeros.
constexpr size_t kRunBytes = 1024;
using Shift = std::array<std::array<uint32_t, 256>, 4>;

Shift make_shift() {
  Shift shift{};
  const std::array<uint8_t, kRunBytes> zeros{};
  std::array<uint32_t, 32> of_bit{};
  for (size_t bit = 0; bit < 32; ++bit) {
    // crc32c_portable() inverts before and after; what is wanted is linear.
    of_bit[bit] = ~crc32c_portable(~(uint32_t{1} << bit), zeros);
  }
  for (size_t byte = 0; byte < 4; ++byte) {
    for (uint32_t value = 0; value < 256; ++value) {
      uint32_t sum = 0;
      for (size_t bit = 0; bit < 8; ++bit) {
        if ((value >> bit & 1) != 0) sum ^= of_bit[byte * 8 + bit];
      }
      shift[byte][value] = sum;
    }
  }
  return shift;
}

uint64_t over_run(const Shift& shift, uint64_t crc) {
  return shift[0][crc & 0xff] ^ shift[1][crc >> 8 & 0xff] ^ shift[2][crc >> 16 & 0xff] ^
         shift[3][crc >> 24 & 0xff];
}

__attribute__((target("sse4.2"))) uint32_t crc32c_sse42(uint32_t start, ByteSpan bytes) noexcept {
  static const Shift shift = make_shift();
  uint64_t crc = ~start;
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 3 * kRunBytes; left -= 3 * kRunBytes, at += 3 * kRunBytes) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kRunBytes; i += 8) {
      crc = _mm_crc32_u64(crc, load_le<uint64_t>(at + i));
      second = _mm_crc32_u64(second, load_le<uint64_t>(at + kRunBytes + i));
      third = _mm_crc32_u64(third, load_le<uint64_t>(at + 2 * kRunBytes + i));
    }
    crc = over_run(shift, over_run(shift, crc) ^ second) ^ third;
  }
  for (; left >= 8; left -= 8, at += 8) crc = _mm_crc32_u64(crc, load_le<uint64_t>(at));
  auto low = static_cast<uint32_t>(crc);
  for (; left != 0; --left, ++at) low = _mm_crc32_u8(low, *at);
  return ~low;
}
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
uint32_t crc32c_arm(uint32_t start, ByteSpan bytes) noexcept {
  uint32_t crc = ~start;
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) crc = __crc32cd(crc, load_le<uint64_t>(at));
  for (; left != 0; --left, ++at) crc = __crc32cb(crc, *at);
  return ~crc;
}
#endif

}  // namespace

uint32_t crc32c_portable(uint32_t start, ByteSpan bytes) noexcept {
  uint32_t crc = ~start;
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    const uint64_t word = load_le<uint64_t>(at) ^ crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][word >> (8 * i) & 0xff];
  }
  for (; left != 0; --left, ++at) crc = crc >> 8 ^ kTables[0][(crc ^ *at) & 0xff];
  return ~crc;
}

uint32_t crc32c(uint32_t crc, ByteSpan bytes) noexcept {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_sse42(crc, bytes);
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
  return crc32c_arm(crc, bytes);
#endif
  return crc32c_portable(crc, bytes);
}

}  // namespace spk
