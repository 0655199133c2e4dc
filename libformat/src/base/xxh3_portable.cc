#include "base/xxh3_portable.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace spk::portable {

namespace {

constexpr uint64_t kPrime32_1 = 0x9E3779B1;
constexpr uint64_t kPrime32_2 = 0x85EBCA77;
constexpr uint64_t kPrime32_3 = 0xC2B2AE3D;
constexpr uint64_t kPrime64_1 = 0x9E3779B185EBCA87;
constexpr uint64_t kPrime64_2 = 0xC2B2AE3D27D4EB4F;
constexpr uint64_t kPrime64_3 = 0x165667B19E3779F9;
constexpr uint64_t kPrime64_4 = 0x85EBCA77C2B2AE63;
constexpr uint64_t kPrime64_5 = 0x27D4EB2F165667C5;
constexpr uint64_t kPrimeMix1 = 0x165667919E3779F9;
constexpr uint64_t kPrimeMix2 = 0x9FB21C651E98DF25;

// The default secret of the specification.
constexpr size_t kSecretBytes = 192;
alignas(64) constexpr uint8_t kSecret[kSecretBytes] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

constexpr size_t kStripeBytes = 64;
constexpr size_t kBlockBytes = kStripeBytes * ((kSecretBytes - kStripeBytes) / 8);
constexpr size_t kMaxMediumBytes = 240;  // from here on the lanes are used
static_assert(kBlockBytes == 1024);

struct Product {
  uint64_t low;
  uint64_t high;
};

Product multiply(uint64_t a, uint64_t b) noexcept {
#if defined(__SIZEOF_INT128__)
  __extension__ typedef unsigned __int128 uint128;
  const uint128 product = static_cast<uint128>(a) * b;
  return {static_cast<uint64_t>(product), static_cast<uint64_t>(product >> 64)};
#else
  // By halves of 32 bits; `middle` cannot overflow, as (2^32-1)^2 + 2 (2^32-1) = 2^64 - 1.
  const uint64_t a_low = a & 0xffffffff, a_high = a >> 32;
  const uint64_t b_low = b & 0xffffffff, b_high = b >> 32;
  const uint64_t low = a_low * b_low;
  const uint64_t cross = a_high * b_low + (low >> 32);
  const uint64_t middle = a_low * b_high + (cross & 0xffffffff);
  return {(middle << 32) | (low & 0xffffffff), a_high * b_high + (cross >> 32) + (middle >> 32)};
#endif
}

uint64_t fold(uint64_t a, uint64_t b) noexcept {
  const Product product = multiply(a, b);
  return product.low ^ product.high;
}

uint64_t avalanche(uint64_t x) noexcept {
  x ^= x >> 37;
  x *= kPrimeMix1;
  return x ^ (x >> 32);
}

uint64_t avalanche_xxh64(uint64_t x) noexcept {
  x ^= x >> 33;
  x *= kPrime64_2;
  x ^= x >> 29;
  x *= kPrime64_3;
  return x ^ (x >> 32);
}

uint64_t read_64(const uint8_t* from) noexcept { return load_le<uint64_t>(from); }
uint32_t read_32(const uint8_t* from) noexcept { return load_le<uint32_t>(from); }
uint64_t secret_64(size_t offset) noexcept { return read_64(kSecret + offset); }
uint32_t secret_32(size_t offset) noexcept { return read_32(kSecret + offset); }

// --- up to 16 bytes ----------------------------------------------------------------------------

uint32_t combine_1_to_3(ByteSpan in) noexcept {
  const size_t size = in.size();
  return uint32_t{in[size - 1]} | static_cast<uint32_t>(size << 8) | uint32_t{in[0]} << 16 |
         uint32_t{in[size >> 1]} << 24;
}

uint64_t small_64(ByteSpan in) noexcept {
  const size_t size = in.size();
  if (size == 0) return avalanche_xxh64(secret_64(56) ^ secret_64(64));
  if (size <= 3) return avalanche_xxh64((secret_32(0) ^ secret_32(4)) ^ combine_1_to_3(in));
  if (size <= 8) {
    const uint64_t combined = read_32(in.data() + size - 4) | uint64_t{read_32(in.data())} << 32;
    uint64_t value = (secret_64(8) ^ secret_64(16)) ^ combined;
    value ^= std::rotl(value, 49) ^ std::rotl(value, 24);
    value *= kPrimeMix2;
    value ^= (value >> 35) + size;
    value *= kPrimeMix2;
    return value ^ (value >> 28);
  }
  const uint64_t low = secret_64(24) ^ secret_64(32) ^ read_64(in.data());
  const uint64_t high = secret_64(40) ^ secret_64(48) ^ read_64(in.data() + size - 8);
  return avalanche(size + byte_swap(low) + high + fold(low, high));
}

Hash128 small_128(ByteSpan in) noexcept {
  const size_t size = in.size();
  if (size == 0) {
    return {avalanche_xxh64(secret_64(64) ^ secret_64(72)),
            avalanche_xxh64(secret_64(80) ^ secret_64(88))};
  }
  if (size <= 3) {
    const uint32_t combined = combine_1_to_3(in);
    const uint32_t turned = std::rotl(byte_swap(combined), 13);
    return {avalanche_xxh64((secret_32(0) ^ secret_32(4)) ^ combined),
            avalanche_xxh64((secret_32(8) ^ secret_32(12)) ^ turned)};
  }
  if (size <= 8) {
    const uint64_t combined = read_32(in.data()) | uint64_t{read_32(in.data() + size - 4)} << 32;
    const uint64_t value = (secret_64(16) ^ secret_64(24)) ^ combined;
    auto [low, high] = multiply(value, kPrime64_1 + (size << 2));
    high += low << 1;
    low ^= high >> 3;
    low ^= low >> 35;
    low *= kPrimeMix2;
    low ^= low >> 28;
    return {low, avalanche(high)};
  }
  const uint64_t first = read_64(in.data());
  const uint64_t last = read_64(in.data() + size - 8);
  const uint64_t mixed = secret_64(32) ^ secret_64(40) ^ first ^ last;
  const uint64_t keyed = secret_64(48) ^ secret_64(56) ^ last;
  auto [low, high] = multiply(mixed, kPrime64_1);
  low += uint64_t{size - 1} << 54;
  high += (keyed >> 32 << 32) + (keyed & 0xffffffff) * kPrime32_2;
  low ^= byte_swap(high);
  const Product last_product = multiply(low, kPrime64_2);
  return {avalanche(last_product.low), avalanche(last_product.high + high * kPrime64_2)};
}

// --- 17 to 240 bytes ---------------------------------------------------------------------------

uint64_t mix(const uint8_t* data, size_t secret_offset) noexcept {
  return fold(read_64(data) ^ secret_64(secret_offset),
              read_64(data + 8) ^ secret_64(secret_offset + 8));
}

uint64_t medium_64(ByteSpan in) noexcept {
  const uint8_t* data = in.data();
  const size_t size = in.size();
  uint64_t sum = size * kPrime64_1;
  if (size <= 128) {
    for (size_t i = (size - 1) / 32 + 1; i-- > 0;) {
      sum += mix(data + 16 * i, 32 * i);
      sum += mix(data + size - 16 * i - 16, 32 * i + 16);
    }
    return avalanche(sum);
  }
  for (size_t i = 0; i < 8; ++i) sum += mix(data + 16 * i, 16 * i);
  sum = avalanche(sum);
  for (size_t i = 8; i < size / 16; ++i) sum += mix(data + 16 * i, 16 * (i - 8) + 3);
  sum += mix(data + size - 16, 119);
  return avalanche(sum);
}

void mix_two(uint64_t (&sums)[2], const uint8_t* a, const uint8_t* b,
             size_t secret_offset) noexcept {
  sums[0] += mix(a, secret_offset);
  sums[1] += mix(b, secret_offset + 16);
  sums[0] ^= read_64(b) + read_64(b + 8);
  sums[1] ^= read_64(a) + read_64(a + 8);
}

Hash128 medium_128(ByteSpan in) noexcept {
  const uint8_t* data = in.data();
  const size_t size = in.size();
  uint64_t sums[2] = {size * kPrime64_1, 0};
  if (size <= 128) {
    for (size_t i = (size - 1) / 32 + 1; i-- > 0;) {
      mix_two(sums, data + 16 * i, data + size - 16 * i - 16, 32 * i);
    }
  } else {
    for (size_t i = 0; i < 4; ++i) mix_two(sums, data + 32 * i, data + 32 * i + 16, 32 * i);
    sums[0] = avalanche(sums[0]);
    sums[1] = avalanche(sums[1]);
    for (size_t i = 4; i < size / 32; ++i) {
      mix_two(sums, data + 32 * i, data + 32 * i + 16, 32 * (i - 4) + 3);
    }
    mix_two(sums, data + size - 16, data + size - 32, 103);
  }
  const uint64_t high = sums[0] * kPrime64_1 + sums[1] * kPrime64_4 + size * kPrime64_2;
  return {avalanche(sums[0] + sums[1]), uint64_t{0} - avalanche(high)};
}

// --- above 240 bytes: eight lanes --------------------------------------------------------------

constexpr uint64_t kInitialLanes[8] = {kPrime32_3, kPrime64_1, kPrime64_2, kPrime64_3,
                                       kPrime64_4, kPrime32_2, kPrime64_5, kPrime32_1};

// Written so that compilers turn the loops over lanes into vector code: no lane waits for another.
inline void accumulate(uint64_t* __restrict lanes, const uint8_t* __restrict stripe,
                       const uint8_t* __restrict secret) noexcept {
  for (size_t i = 0; i < 8; i += 2) {
    const uint64_t even = read_64(stripe + 8 * i);
    const uint64_t odd = read_64(stripe + 8 * i + 8);
    const uint64_t keyed_even = even ^ read_64(secret + 8 * i);
    const uint64_t keyed_odd = odd ^ read_64(secret + 8 * i + 8);
    lanes[i] += odd + (keyed_even & 0xffffffff) * (keyed_even >> 32);
    lanes[i + 1] += even + (keyed_odd & 0xffffffff) * (keyed_odd >> 32);
  }
}

void accumulate_stripes(uint64_t* lanes, const uint8_t* data, size_t stripes) noexcept {
  for (size_t n = 0; n < stripes; ++n) {
    accumulate(lanes, data + kStripeBytes * n, kSecret + 8 * n);
  }
}

void scramble(uint64_t* lanes) noexcept {
  for (size_t i = 0; i < 8; ++i) {
    lanes[i] ^= lanes[i] >> 47;
    lanes[i] ^= secret_64(kSecretBytes - 64 + 8 * i);
    lanes[i] *= kPrime32_1;
  }
}

void consume_blocks(uint64_t* lanes, const uint8_t* data, size_t blocks) noexcept {
  // On a copy that the compiler can hold in registers: `lanes` could alias anything.
  uint64_t local[8];
  std::memcpy(local, lanes, sizeof local);
  for (size_t block = 0; block < blocks; ++block) {
    accumulate_stripes(local, data + block * kBlockBytes, kBlockBytes / kStripeBytes);
    scramble(local);
  }
  std::memcpy(lanes, local, sizeof local);
}

// DATA is the last block, of 1 to kBlockBytes bytes, and the stripe before its end must be readable
// even where it begins before DATA.
void consume_last(uint64_t* lanes, const uint8_t* data, size_t size) noexcept {
  accumulate_stripes(lanes, data, (size - 1) / kStripeBytes);
  accumulate(lanes, data + size - kStripeBytes, kSecret + kSecretBytes - 71);
}

uint64_t merge(const uint64_t* lanes, uint64_t initial, size_t secret_offset) noexcept {
  uint64_t sum = initial;
  for (size_t i = 0; i < 8; i += 2) {
    sum += fold(lanes[i] ^ secret_64(secret_offset + 8 * i),
                lanes[i + 1] ^ secret_64(secret_offset + 8 * i + 8));
  }
  return avalanche(sum);
}

uint64_t merge_low(const uint64_t* lanes, uint64_t total_bytes) noexcept {
  return merge(lanes, total_bytes * kPrime64_1, 11);
}

Hash128 merge_both(const uint64_t* lanes, uint64_t total_bytes) noexcept {
  return {merge_low(lanes, total_bytes),
          merge(lanes, ~(total_bytes * kPrime64_2), kSecretBytes - 75)};
}

void consume_all(uint64_t (&lanes)[8], ByteSpan in) noexcept {
  std::copy(std::begin(kInitialLanes), std::end(kInitialLanes), lanes);
  const size_t blocks = (in.size() - 1) / kBlockBytes;
  consume_blocks(lanes, in.data(), blocks);
  consume_last(lanes, in.data() + blocks * kBlockBytes, in.size() - blocks * kBlockBytes);
}

}  // namespace

uint64_t xxh3_64(ByteSpan bytes) noexcept {
  if (bytes.size() <= 16) return small_64(bytes);
  if (bytes.size() <= kMaxMediumBytes) return medium_64(bytes);
  uint64_t lanes[8];
  consume_all(lanes, bytes);
  return merge_low(lanes, bytes.size());
}

Hash128 xxh3_128(ByteSpan bytes) noexcept {
  if (bytes.size() <= 16) return small_128(bytes);
  if (bytes.size() <= kMaxMediumBytes) return medium_128(bytes);
  uint64_t lanes[8];
  consume_all(lanes, bytes);
  return merge_both(lanes, bytes.size());
}

Xxh3State::Xxh3State() noexcept {
  std::copy(std::begin(kInitialLanes), std::end(kInitialLanes), lanes_.begin());
}

void Xxh3State::update(ByteSpan bytes) noexcept {
  static_assert(kBlockBytes == portable::kBlockBytes && kStripeBytes == portable::kStripeBytes);
  if (bytes.empty()) return;
  total_bytes_ += bytes.size();
  uint8_t* const held = buffer_.data() + kStripeBytes;
  const auto hold = [&](size_t count) {
    std::memcpy(held + held_bytes_, bytes.data(), count);
    held_bytes_ += count;
    bytes = bytes.subspan(count);
  };
  if (held_bytes_ != 0) {
    hold(std::min(bytes.size(), kBlockBytes - held_bytes_));
    if (bytes.empty()) return;
    consume_blocks(lanes_.data(), held, 1);
    std::memcpy(buffer_.data(), held + kBlockBytes - kStripeBytes, kStripeBytes);
    held_bytes_ = 0;
  }
  // Whole blocks straight from the caller, all but the last byte at least.
  const size_t blocks = (bytes.size() - 1) / kBlockBytes;
  if (blocks != 0) {
    consume_blocks(lanes_.data(), bytes.data(), blocks);
    bytes = bytes.subspan(blocks * kBlockBytes);
    std::memcpy(buffer_.data(), bytes.data() - kStripeBytes, kStripeBytes);
  }
  hold(bytes.size());
}

void Xxh3State::finish(uint64_t (&lanes)[8]) const noexcept {
  std::copy(lanes_.begin(), lanes_.end(), lanes);
  consume_last(lanes, buffer_.data() + kStripeBytes, held_bytes_);
}

uint64_t Xxh3State::digest_64() const noexcept {
  // All of a short input is still held.
  if (total_bytes_ <= kMaxMediumBytes) {
    return xxh3_64({buffer_.data() + kStripeBytes, held_bytes_});
  }
  uint64_t lanes[8];
  finish(lanes);
  return merge_low(lanes, total_bytes_);
}

Hash128 Xxh3State::digest_128() const noexcept {
  if (total_bytes_ <= kMaxMediumBytes) {
    return xxh3_128({buffer_.data() + kStripeBytes, held_bytes_});
  }
  uint64_t lanes[8];
  finish(lanes);
  return merge_both(lanes, total_bytes_);
}

}  // namespace spk::portable
