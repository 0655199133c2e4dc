// The transform of Loeffler, Ligtenberg and Moschytz with 11 multiplications, which is libjpeg's
// too: factors have 13 bits behind the point, values between the passes 2. All factors of two that
// meet in a sum are taken together, so that each line is one multiply-and-add of pairs.
#include "picture/idct.h"

#include <algorithm>
#include <cstring>

#include "picture/vector_target.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace spk::picture {
namespace {

constexpr int kFactorBits = 13;
constexpr int kBetweenBits = 2;
constexpr int kFirstShift = kFactorBits - kBetweenBits;
constexpr int kSecondShift = kFactorBits + kBetweenBits + 3;

// round(x * 2^13) of the transform's constants.
constexpr int k0_298 = 2446;
constexpr int k0_390 = 3196;
constexpr int k0_541 = 4433;
constexpr int k0_765 = 6270;
constexpr int k0_899 = 7373;
constexpr int k1_175 = 9633;
constexpr int k1_501 = 12299;
constexpr int k1_847 = 15137;
constexpr int k1_961 = 16069;
constexpr int k2_053 = 16819;
constexpr int k2_562 = 20995;
constexpr int k3_072 = 25172;

// Sums wrap in unsigned numbers: what no sound picture has must not be undefined.
int32_t pair(int16_t a, int factor_a, int16_t b, int factor_b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a * factor_a) +
                              static_cast<uint32_t>(b * factor_b));
}
int32_t plus(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
int32_t minus(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}
int16_t sum16(int16_t a, int16_t b) { return static_cast<int16_t>(a + b); }

// Eight values that are `step` apart.
void one_pass(const int16_t* in, size_t step, int shift, int16_t* out) {
  const int16_t a[8] = {in[0],        in[step],     in[2 * step], in[3 * step],
                        in[4 * step], in[5 * step], in[6 * step], in[7 * step]};
  const int32_t e0 = sum16(a[0], a[4]) * (1 << kFactorBits);
  const int32_t e1 = sum16(a[0], static_cast<int16_t>(-a[4])) * (1 << kFactorBits);
  const int32_t e2 = pair(a[2], k0_541, a[6], k0_541 - k1_847);
  const int32_t e3 = pair(a[2], k0_541 + k0_765, a[6], k0_541);
  const int32_t even[4] = {plus(e0, e3), plus(e1, e2), minus(e1, e2), minus(e0, e3)};
  const int16_t s73 = sum16(a[7], a[3]);
  const int16_t s51 = sum16(a[5], a[1]);
  const int32_t z3 = pair(s73, k1_175 - k1_961, s51, k1_175);
  const int32_t z4 = pair(s73, k1_175, s51, k1_175 - k0_390);
  const int32_t odd[4] = {plus(pair(a[7], -k0_899, a[1], k1_501 - k0_899), z4),
                          plus(pair(a[5], -k2_562, a[3], k3_072 - k2_562), z3),
                          plus(pair(a[5], k2_053 - k2_562, a[3], -k2_562), z4),
                          plus(pair(a[7], k0_298 - k0_899, a[1], -k0_899), z3)};
  const auto scaled = [shift](int32_t value) {
    return static_cast<int16_t>(
        std::clamp(plus(value, 1 << (shift - 1)) >> shift, int{INT16_MIN}, int{INT16_MAX}));
  };
  for (size_t i = 0; i < 4; ++i) {
    out[i * step] = scaled(plus(even[i], odd[i]));
    out[(7 - i) * step] = scaled(minus(even[i], odd[i]));
  }
}

}  // namespace

void inverse_dct_portable(const int16_t* coefficients, const int16_t* quant,
                          const BlockPlace& place) noexcept {
  int16_t block[64];
  for (size_t i = 0; i < 64; ++i) block[i] = static_cast<int16_t>(coefficients[i] * quant[i]);
  int16_t between[64];
  for (size_t i = 0; i < 8; ++i) one_pass(block + i, 8, kFirstShift, between + i);
  for (size_t i = 0; i < 8; ++i) {
    int16_t row[8];
    one_pass(between + 8 * i, 1, kSecondShift, row);
    for (size_t k = 0; k < 8; ++k) {
      place.out[place.stride * i + k] =
          static_cast<uint8_t>(std::clamp<int>(row[k], -128, 127) + 128);
    }
  }
}

void inverse_dct_mean(int16_t mean, const BlockPlace& place) noexcept {
  const int value = std::clamp((mean + 4) >> 3, -128, 127) + 128;
  for (size_t i = 0; i < 8; ++i) std::memset(place.out + place.stride * i, value, 8);
}

#if defined(__SSE2__)

namespace {
namespace one_block {

using Vec = __m128i;
inline Vec zero() { return _mm_setzero_si128(); }
inline Vec all32(int value) { return _mm_set1_epi32(value); }
inline Vec add16(Vec a, Vec b) { return _mm_add_epi16(a, b); }
inline Vec subtract16(Vec a, Vec b) { return _mm_sub_epi16(a, b); }
inline Vec add32(Vec a, Vec b) { return _mm_add_epi32(a, b); }
inline Vec subtract32(Vec a, Vec b) { return _mm_sub_epi32(a, b); }
inline Vec multiply_add(Vec a, Vec b) { return _mm_madd_epi16(a, b); }
inline Vec pack32(Vec a, Vec b) { return _mm_packs_epi32(a, b); }
inline Vec low16(Vec a, Vec b) { return _mm_unpacklo_epi16(a, b); }
inline Vec high16(Vec a, Vec b) { return _mm_unpackhi_epi16(a, b); }
inline Vec low32(Vec a, Vec b) { return _mm_unpacklo_epi32(a, b); }
inline Vec high32(Vec a, Vec b) { return _mm_unpackhi_epi32(a, b); }
inline Vec low64(Vec a, Vec b) { return _mm_unpacklo_epi64(a, b); }
inline Vec high64(Vec a, Vec b) { return _mm_unpackhi_epi64(a, b); }
template <int kBits>
inline Vec shift_right32(Vec a) {
  return _mm_srai_epi32(a, kBits);
}
#include "picture/idct_kernel.h"

}  // namespace one_block

inline void store_half(uint8_t* to, __m128i bytes) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), bytes);
}

void transform_one(const int16_t* coefficients, const int16_t* quant, const BlockPlace& place) {
  const auto* from = reinterpret_cast<const __m128i*>(coefficients);
  const auto* by = reinterpret_cast<const __m128i*>(quant);
  __m128i a[8];
  for (int i = 0; i < 8; ++i)
    a[i] = _mm_mullo_epi16(_mm_load_si128(from + i), _mm_load_si128(by + i));
  one_block::transform(a);
  const __m128i middle = _mm_set1_epi8(static_cast<char>(-128));
  uint8_t* to = place.out;
  for (int i = 0; i < 8; i += 2, to += 2 * place.stride) {
    const __m128i rows = _mm_xor_si128(_mm_packs_epi16(a[i], a[i + 1]), middle);
    store_half(to, rows);
    store_half(to + place.stride, _mm_unpackhi_epi64(rows, rows));
  }
}

#if SPK_HAVE_AVX2_TARGET
SPK_BEGIN_AVX2
namespace two_blocks {

using Vec = __m256i;
inline Vec zero() { return _mm256_setzero_si256(); }
inline Vec all32(int value) { return _mm256_set1_epi32(value); }
inline Vec add16(Vec a, Vec b) { return _mm256_add_epi16(a, b); }
inline Vec subtract16(Vec a, Vec b) { return _mm256_sub_epi16(a, b); }
inline Vec add32(Vec a, Vec b) { return _mm256_add_epi32(a, b); }
inline Vec subtract32(Vec a, Vec b) { return _mm256_sub_epi32(a, b); }
inline Vec multiply_add(Vec a, Vec b) { return _mm256_madd_epi16(a, b); }
inline Vec pack32(Vec a, Vec b) { return _mm256_packs_epi32(a, b); }
inline Vec low16(Vec a, Vec b) { return _mm256_unpacklo_epi16(a, b); }
inline Vec high16(Vec a, Vec b) { return _mm256_unpackhi_epi16(a, b); }
inline Vec low32(Vec a, Vec b) { return _mm256_unpacklo_epi32(a, b); }
inline Vec high32(Vec a, Vec b) { return _mm256_unpackhi_epi32(a, b); }
inline Vec low64(Vec a, Vec b) { return _mm256_unpacklo_epi64(a, b); }
inline Vec high64(Vec a, Vec b) { return _mm256_unpackhi_epi64(a, b); }
template <int kBits>
inline Vec shift_right32(Vec a) {
  return _mm256_srai_epi32(a, kBits);
}
#include "picture/idct_kernel.h"

}  // namespace two_blocks

void transform_two(const int16_t* coefficients, const int16_t* quant, const BlockPlace* places) {
  const auto* from = reinterpret_cast<const __m128i*>(coefficients);
  const auto* by = reinterpret_cast<const __m128i*>(quant);
  __m256i a[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_load_si128(from + i)),
                                                 _mm_load_si128(from + 8 + i), 1);
    a[i] = _mm256_mullo_epi16(both, _mm256_broadcastsi128_si256(_mm_load_si128(by + i)));
  }
  two_blocks::transform(a);
  const __m256i middle = _mm256_set1_epi8(static_cast<char>(-128));
  uint8_t* first = places[0].out;
  uint8_t* second = places[1].out;
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    const __m256i rows = _mm256_xor_si256(_mm256_packs_epi16(a[i], a[i + 1]), middle);
    const __m128i of_first = _mm256_castsi256_si128(rows);
    const __m128i of_second = _mm256_extracti128_si256(rows, 1);
    store_half(first, of_first);
    store_half(first + places[0].stride, _mm_unpackhi_epi64(of_first, of_first));
    store_half(second, of_second);
    store_half(second + places[1].stride, _mm_unpackhi_epi64(of_second, of_second));
    first += 2 * places[0].stride;
    second += 2 * places[1].stride;
  }
}
SPK_END_AVX2
#endif

}  // namespace

void inverse_dct(const int16_t* coefficients, const int16_t* quant, size_t count,
                 const BlockPlace* places) noexcept {
#if SPK_HAVE_AVX2_TARGET
  if (count == 2 && have_avx2()) return transform_two(coefficients, quant, places);
#endif
  for (size_t i = 0; i < count; ++i) transform_one(coefficients + 64 * i, quant, places[i]);
}

#else

void inverse_dct(const int16_t* coefficients, const int16_t* quant, size_t count,
                 const BlockPlace* places) noexcept {
  for (size_t i = 0; i < count; ++i) {
    inverse_dct_portable(coefficients + 64 * i, quant, places[i]);
  }
}

#endif

}  // namespace spk::picture
