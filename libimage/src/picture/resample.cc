#include "picture/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "picture/vector_target.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace spk::picture {
namespace {

constexpr int kOne = 1 << kWeightBits;
constexpr uint32_t kGroup = 8;      // weights are taken in groups,
constexpr uint32_t kHalfGroup = 4;  // or, where they are few, two pixels' in one
// Between the two passes values have 6 bits behind the point.
constexpr int kDownShift = kWeightBits - 6;
constexpr int kAcrossShift = kWeightBits + 6;

struct Extent {
  uint32_t first;
  uint32_t taps;
};

Extent extent(const Axis& axis, double centre, double reach) {
  const double low = std::max(std::floor(centre - reach + 0.5), static_cast<double>(axis.begin));
  const double high = std::min(std::floor(centre + reach + 0.5), static_cast<double>(axis.end));
  // Never empty: rounding at the rim must not leave an output pixel without a source.
  const auto first = std::min(static_cast<uint32_t>(std::max(low, 0.0)), axis.end - 1);
  const auto behind = static_cast<uint32_t>(std::max(high, 0.0));
  return {first, behind > first ? behind - first : 1};
}

// Of `x` half-turns, with |x| <= 3: the sine's series after folding to a quarter turn. Only exactly
// rounded operations in a fixed order, so that all machines weigh pixels alike.
double sine_of_half_turns(double x) {
  const double whole = std::nearbyint(x);
  constexpr double kPi = 3.14159265358979323846;
  const double angle = (x - whole) * kPi;  // within a quarter turn
  const double square = angle * angle;
  double term = angle;
  double sum = angle;
  for (int i = 1; i <= 11; ++i) {
    term *= -square / ((2 * i) * (2 * i + 1));
    sum += term;
  }
  return static_cast<int>(whole) % 2 == 0 ? sum : -sum;
}

constexpr double kLobes = 3;

double lanczos(double x) {
  if (x == 0) return 1;
  if (!(std::abs(x) < kLobes)) return 0;
  constexpr double kPi = 3.14159265358979323846;
  return kLobes * sine_of_half_turns(x) * sine_of_half_turns(x / kLobes) / (kPi * kPi * x * x);
}

// Of a triangle with a foot of one pixel a side, the part to the left of `x`.
double triangle_left_of(double x) {
  if (x <= -1) return 0;
  if (x >= 1) return 1;
  return x < 0 ? (1 + x) * (1 + x) / 2 : 1 - (1 - x) * (1 - x) / 2;
}

Interpolation effective(Interpolation asked, double scale) {
  return asked == Interpolation::kArea && scale < 1 ? Interpolation::kBilinear : asked;
}

// Of source pixel `k` in an output pixel whose middle is `centre`.
double height_of(Interpolation kind, uint32_t k, double centre, double scale) {
  switch (kind) {
    case Interpolation::kBilinear:
      return std::max(0.0, 1 - std::abs((k + 0.5 - centre) / std::max(scale, 1.0)));
    case Interpolation::kArea:
      return std::max(0.0, std::min(k + 1.0, centre + scale / 2) -
                               std::max(static_cast<double>(k), centre - scale / 2));
    case Interpolation::kAreaOfSlopes: {
      const double left = centre - scale / 2 - (k + 0.5);
      return triangle_left_of(left + scale) - triangle_left_of(left);
    }
    case Interpolation::kLanczos: return lanczos((k + 0.5 - centre) / std::max(scale, 1.0));
  }
  return 0;
}

}  // namespace

double filter_reach(Interpolation interpolation, double scale) noexcept {
  const double wide = std::max(scale, 1.0);
  switch (effective(interpolation, scale)) {
    case Interpolation::kBilinear: return wide;
    // Half an output pixel, and the pixels that it covers in part.
    case Interpolation::kArea: return wide / 2 + 0.5;
    case Interpolation::kAreaOfSlopes: return scale / 2 + 1;
    case Interpolation::kLanczos: return kLobes * wide;
  }
  return wide;
}

void Filter::make(const Axis& axis, Interpolation interpolation) {
  const Interpolation kind = effective(interpolation, axis.scale);
  if (axis == made_for_ && kind == made_as_) return;
  made_for_ = {};  // should memory run out
  const double reach = filter_reach(kind, axis.scale);
  first.resize(axis.count);
  taps.resize(axis.count);
  uint32_t most = 1;
  for (uint32_t i = 0; i < axis.count; ++i) {
    const Extent found = extent(axis, axis.origin + (i + 0.5) * axis.scale, reach);
    first[i] = found.first;
    taps[i] = found.taps;
    most = std::max(most, found.taps);
  }
  stride = most <= kHalfGroup ? kHalfGroup : static_cast<uint32_t>(round_up(most, kGroup));
  weights.assign(size_t{stride} * axis.count, 0);
  for (uint32_t i = 0; i < axis.count; ++i) {
    const double centre = axis.origin + (i + 0.5) * axis.scale;
    const auto height = [&](uint32_t tap) {
      return height_of(kind, first[i] + tap, centre, axis.scale);
    };
    double total = 0;
    for (uint32_t tap = 0; tap < taps[i]; ++tap) total += height(tap);
    int16_t* row = &weights[size_t{stride} * i];
    if (!(total > 0)) {
      row[0] = kOne;
      continue;
    }
    // The running sum is rounded, not each weight, so that the sum is exact.
    double sum = 0;
    int given = 0;
    for (uint32_t tap = 0; tap < taps[i]; ++tap) {
      sum += height(tap);
      const int up_to =
          tap + 1 == taps[i] ? kOne : static_cast<int>(std::lround(sum / total * kOne));
      row[tap] = static_cast<int16_t>(up_to - given);
      given = up_to;
    }
  }
  made_for_ = axis;
  made_as_ = kind;
}

Axis in_plane(const Axis& axis, uint32_t per, uint32_t origin, uint32_t size) noexcept {
  Axis own;
  own.count = axis.count;
  own.scale = axis.scale / per;
  own.origin = axis.origin / per - origin;
  const uint64_t begin = axis.begin / per;
  const uint64_t end = divide_up(axis.end, per);
  own.begin = static_cast<uint32_t>(begin > origin ? begin - origin : 0);
  own.end = static_cast<uint32_t>(std::min<uint64_t>(end - std::min<uint64_t>(end, origin), size));
  own.begin = std::min(own.begin, size - 1);
  own.end = std::max(own.end, own.begin + 1);
  return own;
}

namespace {

#if defined(__SSE2__)

// Two weights for the multiply-and-add of two rows.
inline int weight_pair(const int16_t* weights) {
  return static_cast<int>((static_cast<uint32_t>(weights[1]) << 16) |
                          static_cast<uint16_t>(weights[0]));
}

#if SPK_HAVE_AVX2_TARGET
SPK_BEGIN_AVX2
// Groups of 32; both sides have slack.
void blend_rows_avx2(const uint8_t* const* rows, const int16_t* weights, uint32_t taps,
                     uint32_t width, int16_t* out) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i half = _mm256_set1_epi32(1 << (kDownShift - 1));
  for (uint32_t x = 0; x < width; x += 32) {
    __m256i sum0 = half;
    __m256i sum1 = half;
    __m256i sum2 = half;
    __m256i sum3 = half;
    for (uint32_t tap = 0; tap < taps; tap += 2) {
      const uint8_t* next = rows[tap + 1 < taps ? tap + 1 : tap];
      const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[tap] + x));
      const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(next + x));
      const __m256i weight = _mm256_set1_epi32(weight_pair(weights + tap));
      const __m256i low = _mm256_unpacklo_epi8(a, b);
      const __m256i high = _mm256_unpackhi_epi8(a, b);
      sum0 = _mm256_add_epi32(sum0, _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), weight));
      sum1 = _mm256_add_epi32(sum1, _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), weight));
      sum2 = _mm256_add_epi32(sum2, _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), weight));
      sum3 = _mm256_add_epi32(sum3, _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), weight));
    }
    // Values 0 to 7 and 16 to 23; 8 to 15 and 24 to 31.
    const __m256i first = _mm256_packs_epi32(_mm256_srai_epi32(sum0, kDownShift),
                                             _mm256_srai_epi32(sum1, kDownShift));
    const __m256i second = _mm256_packs_epi32(_mm256_srai_epi32(sum2, kDownShift),
                                              _mm256_srai_epi32(sum3, kDownShift));
    auto* to = reinterpret_cast<__m256i*>(out + x);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(first, second, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(first, second, 0x31));
  }
}
SPK_END_AVX2
#endif

// Groups of 16; both sides have slack.
void blend_rows(const uint8_t* const* rows, const int16_t* weights, uint32_t taps, uint32_t width,
                int16_t* out) {
#if SPK_HAVE_AVX2_TARGET
  if (have_avx2()) return blend_rows_avx2(rows, weights, taps, width, out);
#endif
  const __m128i zero = _mm_setzero_si128();
  const __m128i half = _mm_set1_epi32(1 << (kDownShift - 1));
  for (uint32_t x = 0; x < width; x += 16) {
    __m128i sum[4] = {half, half, half, half};
    for (uint32_t tap = 0; tap < taps; tap += 2) {
      // Behind the last tap the weight is zero and the row any.
      const uint8_t* next = rows[tap + 1 < taps ? tap + 1 : tap];
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[tap] + x));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(next + x));
      const __m128i weight = _mm_set1_epi32(weight_pair(weights + tap));
      const __m128i low = _mm_unpacklo_epi8(a, b);
      const __m128i high = _mm_unpackhi_epi8(a, b);
      sum[0] = _mm_add_epi32(sum[0], _mm_madd_epi16(_mm_unpacklo_epi8(low, zero), weight));
      sum[1] = _mm_add_epi32(sum[1], _mm_madd_epi16(_mm_unpackhi_epi8(low, zero), weight));
      sum[2] = _mm_add_epi32(sum[2], _mm_madd_epi16(_mm_unpacklo_epi8(high, zero), weight));
      sum[3] = _mm_add_epi32(sum[3], _mm_madd_epi16(_mm_unpackhi_epi8(high, zero), weight));
    }
    for (__m128i& part : sum) part = _mm_srai_epi32(part, kDownShift);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + x), _mm_packs_epi32(sum[0], sum[1]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + x + 8), _mm_packs_epi32(sum[2], sum[3]));
  }
}

inline __m128i dot(const int16_t* values, const int16_t* weights, uint32_t stride) {
  __m128i sum = _mm_setzero_si128();
  for (uint32_t tap = 0; tap < stride; tap += kGroup) {
    sum = _mm_add_epi32(
        sum, _mm_madd_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values + tap)),
                            _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights + tap))));
  }
  return sum;
}

// The four sums of all values in a pair of two-pixel products, or of four one-pixel ones.
inline __m128i sums_of_pairs(__m128i first, __m128i second) {
  const __m128 a = _mm_castsi128_ps(first);
  const __m128 b = _mm_castsi128_ps(second);
  return _mm_add_epi32(_mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0))),
                       _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1))));
}

inline void store_four(__m128i sum, uint8_t* out) {
  const __m128i half = _mm_set1_epi32(1 << (kAcrossShift - 1));
  __m128i pixels = _mm_srai_epi32(_mm_add_epi32(sum, half), kAcrossShift);
  pixels = _mm_packs_epi32(pixels, pixels);
  pixels = _mm_packus_epi16(pixels, pixels);
  const int bytes = _mm_cvtsi128_si32(pixels);
  std::memcpy(out, &bytes, sizeof bytes);
}

// Products of two pixels with four weights each.
inline __m128i two_products(const int16_t* first, const int16_t* second, const int16_t* weights) {
  const __m128i values =
      _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(first)),
                         _mm_loadl_epi64(reinterpret_cast<const __m128i*>(second)));
  return _mm_madd_epi16(values, _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights)));
}

// As many pixels as whole groups of 4 have.
uint32_t blend_columns(const int16_t* row, const Filter& filter, uint32_t count, uint8_t* out) {
  const uint32_t stride = filter.stride;
  const uint32_t* first = filter.first.data();
  const int16_t* weights = filter.weights.data();
  uint32_t i = 0;
  if (stride == kHalfGroup) {
    for (; i + 4 <= count; i += 4, weights += 4 * kHalfGroup) {
      store_four(
          sums_of_pairs(two_products(row + first[i], row + first[i + 1], weights),
                        two_products(row + first[i + 2], row + first[i + 3], weights + kGroup)),
          out + i);
    }
    return i;
  }
  for (; i + 4 <= count; i += 4) {
    __m128i part[4];
    for (uint32_t k = 0; k < 4; ++k, weights += stride) {
      part[k] = dot(row + first[i + k], weights, stride);
    }
    store_four(sums_of_pairs(sums_of_pairs(part[0], part[1]), sums_of_pairs(part[2], part[3])),
               out + i);
  }
  return i;
}

#else

void blend_rows(const uint8_t* const* rows, const int16_t* weights, uint32_t taps, uint32_t width,
                int16_t* out) {
  for (uint32_t x = 0; x < width; ++x) {
    int32_t sum = 1 << (kDownShift - 1);
    for (uint32_t tap = 0; tap < taps; ++tap) sum += rows[tap][x] * weights[tap];
    out[x] = static_cast<int16_t>(sum >> kDownShift);
  }
}

uint32_t blend_columns(const int16_t*, const Filter&, uint32_t, uint8_t*) { return 0; }

#endif

void blend_all_columns(const int16_t* row, const Filter& filter, uint32_t count, uint8_t* out) {
  for (uint32_t i = blend_columns(row, filter, count, out); i < count; ++i) {
    const int16_t* weights = &filter.weights[size_t{filter.stride} * i];
    int32_t sum = 1 << (kAcrossShift - 1);
    for (uint32_t tap = 0; tap < filter.taps[i]; ++tap) {
      sum += row[filter.first[i] + tap] * weights[tap];
    }
    out[i] = static_cast<uint8_t>(std::clamp(sum >> kAcrossShift, 0, 255));
  }
}

}  // namespace

void Resampler::run(const Plane& plane, const Axis& x, const Axis& y, uint8_t* out,
                    Interpolation x_kind, Interpolation y_kind) {
  const Axis across = in_plane(x, plane.per_x, plane.left, plane.width);
  const Axis down = in_plane(y, plane.per_y, plane.top, plane.height);
  if (across.is_copy() && down.is_copy()) {
    for (uint32_t i = 0; i < down.count; ++i) {
      std::memcpy(out + size_t{across.count} * i,
                  plane.data + plane.stride * (size_t{down.begin} + i) + across.begin,
                  across.count);
    }
    return;
  }
  across_.make(across, x_kind);
  down_.make(down, y_kind);
  // Groups may reach behind the last pixel, with weights of zero; hence zeros that are never
  // written over by more than the group in which the row ends.
  row_.assign(size_t{plane.width} + kPlaneSlack + across_.stride + kGroup, 0);
  rows_.resize(down_.stride);
  for (uint32_t i = 0; i < down.count; ++i) {
    for (uint32_t tap = 0; tap < down_.taps[i]; ++tap) {
      rows_[tap] = plane.data + plane.stride * (size_t{down_.first[i]} + tap);
    }
    blend_rows(rows_.data(), &down_.weights[size_t{down_.stride} * i], down_.taps[i], plane.width,
               row_.data());
    blend_all_columns(row_.data(), across_, across.count, out + size_t{across.count} * i);
  }
}

}  // namespace spk::picture
