#include "picture/pixels.h"

#include <algorithm>
#include <cstring>

#include "picture/vector_target.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace spk::picture {

namespace {

#if SPK_HAVE_AVX2_TARGET

constexpr uint32_t kGroup = 16;  // pixels

// Where byte `i` of 16 interleaved pixels comes from, for each of the three vectors that they fill
// and each channel; bytes of other channels are 0x80, which gives zero.
struct InterleaveMasks {
  alignas(16) uint8_t bytes[3][3][16];
};
constexpr InterleaveMasks interleave_masks(bool backwards) {
  InterleaveMasks masks = {};
  for (uint32_t i = 0; i < 3 * kGroup; ++i) {
    const uint32_t pixel = backwards ? kGroup - 1 - i / 3 : i / 3;
    for (uint32_t channel = 0; channel < 3; ++channel) {
      masks.bytes[i / kGroup][channel][i % kGroup] =
          static_cast<uint8_t>(i % 3 == channel ? pixel : 0x80);
    }
  }
  return masks;
}
constexpr InterleaveMasks kForwards = interleave_masks(false);
constexpr InterleaveMasks kBackwards = interleave_masks(true);

SPK_BEGIN_AVX2
// As many pixels as whole groups have. `step` is 3, or -3 where they go down from `to`.
uint32_t interleave_groups(const uint8_t* red, const uint8_t* green, const uint8_t* blue,
                           uint32_t width, uint8_t* to, ptrdiff_t step) {
  const InterleaveMasks& masks = step > 0 ? kForwards : kBackwards;
  const auto load = [](const uint8_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  };
  if (step < 0) to -= 3 * (kGroup - 1);  // the lowest of a group
  uint32_t x = 0;
  for (; x + kGroup <= width; x += kGroup, to += step * ptrdiff_t{kGroup}) {
    const __m128i from[3] = {load(red + x), load(green + x), load(blue + x)};
    for (uint32_t part = 0; part < 3; ++part) {
      __m128i bytes = _mm_setzero_si128();
      for (uint32_t channel = 0; channel < 3; ++channel) {
        bytes =
            _mm_or_si128(bytes, _mm_shuffle_epi8(from[channel], load(masks.bytes[part][channel])));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + kGroup * part), bytes);
    }
  }
  return x;
}
SPK_END_AVX2

#else

uint32_t interleave_groups(const uint8_t*, const uint8_t*, const uint8_t*, uint32_t, uint8_t*,
                           ptrdiff_t) {
  return 0;
}

#endif

}  // namespace

Canvas Canvas::make(uint8_t* out, uint32_t width, uint32_t height, const Turn& turn, bool planar) {
  const uint32_t shown_width = turn.transpose ? height : width;
  const auto pixel = static_cast<ptrdiff_t>(planar ? 1 : 3);
  const auto row = static_cast<ptrdiff_t>(shown_width) * pixel;
  Canvas canvas;
  canvas.step_x = turn.transpose ? row : pixel;
  canvas.step_y = turn.transpose ? pixel : row;
  canvas.step_channel = planar ? static_cast<ptrdiff_t>(width) * static_cast<ptrdiff_t>(height) : 1;
  canvas.out = out;
  if (turn.flip_x) {
    canvas.out += static_cast<ptrdiff_t>(width - 1) * canvas.step_x;
    canvas.step_x = -canvas.step_x;
  }
  if (turn.flip_y) {
    canvas.out += static_cast<ptrdiff_t>(height - 1) * canvas.step_y;
    canvas.step_y = -canvas.step_y;
  }
  return canvas;
}

void Canvas::write_planar(uint32_t y, const uint8_t* red, const uint8_t* green, const uint8_t* blue,
                          uint32_t width) const noexcept {
  uint8_t* to = out + static_cast<ptrdiff_t>(y) * step_y;
  if (step_x == 1) {
    std::memcpy(to, red, width);
    std::memcpy(to + step_channel, green, width);
    std::memcpy(to + 2 * step_channel, blue, width);
    return;
  }
  uint32_t x = 0;
  if (step_channel == 1 && (step_x == 3 || step_x == -3) && have_avx2()) {
    x = interleave_groups(red, green, blue, width, to, step_x);
  }
  for (to += static_cast<ptrdiff_t>(x) * step_x; x < width; ++x, to += step_x) {
    to[0] = red[x];
    to[step_channel] = green[x];
    to[2 * step_channel] = blue[x];
  }
}

void Canvas::write_interleaved(uint32_t y, const uint8_t* rgb, uint32_t width) const noexcept {
  uint8_t* to = out + static_cast<ptrdiff_t>(y) * step_y;
  if (step_x == 3 && step_channel == 1) {
    std::memcpy(to, rgb, size_t{3} * width);
    return;
  }
  for (uint32_t x = 0; x < width; ++x, to += step_x, rgb += 3) {
    to[0] = rgb[0];
    to[step_channel] = rgb[1];
    to[2 * step_channel] = rgb[2];
  }
}

namespace {

// Of full-range YCbCr, as JFIF has it, times 2^14.
constexpr int kColourBits = 14;
constexpr int kRedFromCr = 22970;     // 1.402
constexpr int kGreenFromCb = -5638;   // -0.344136
constexpr int kGreenFromCr = -11700;  // -0.714136
constexpr int kBlueFromCb = 29032;    // 1.772
constexpr int kHalf = 1 << (kColourBits - 1);

uint8_t clamped(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

#if defined(__SSE2__)

// luma + (cb * a + cr * b) / 2^14 for 8 pixels, as bytes in the low half.
inline __m128i mix(__m128i luma, __m128i pairs_low, __m128i pairs_high, __m128i factors) {
  const __m128i half = _mm_set1_epi32(kHalf);
  const __m128i low =
      _mm_srai_epi32(_mm_add_epi32(_mm_madd_epi16(pairs_low, factors), half), kColourBits);
  const __m128i high =
      _mm_srai_epi32(_mm_add_epi32(_mm_madd_epi16(pairs_high, factors), half), kColourBits);
  const __m128i sum = _mm_add_epi16(luma, _mm_packs_epi32(low, high));
  return _mm_packus_epi16(sum, sum);
}

inline __m128i factor_pair(int of_cb, int of_cr) {
  return _mm_set1_epi32(static_cast<int>((static_cast<uint32_t>(of_cr) << 16) |
                                         (static_cast<uint32_t>(of_cb) & 0xffff)));
}

// As many pixels as whole groups of 8 have.
uint32_t ycc_groups(const uint8_t* luma, const uint8_t* cb, const uint8_t* cr, uint8_t* red,
                    uint8_t* green, uint8_t* blue, uint32_t width) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i middle = _mm_set1_epi16(128);
  const __m128i for_red = factor_pair(0, kRedFromCr);
  const __m128i for_green = factor_pair(kGreenFromCb, kGreenFromCr);
  const __m128i for_blue = factor_pair(kBlueFromCb, 0);
  uint32_t x = 0;
  const auto load = [&](const uint8_t* from) {
    return _mm_unpacklo_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), zero);
  };
  for (; x + 8 <= width; x += 8) {
    const __m128i y8 = load(luma + x);
    const __m128i cb8 = _mm_sub_epi16(load(cb + x), middle);
    const __m128i cr8 = _mm_sub_epi16(load(cr + x), middle);
    const __m128i low = _mm_unpacklo_epi16(cb8, cr8);
    const __m128i high = _mm_unpackhi_epi16(cb8, cr8);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(red + x), mix(y8, low, high, for_red));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(green + x), mix(y8, low, high, for_green));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(blue + x), mix(y8, low, high, for_blue));
  }
  return x;
}

#else

uint32_t ycc_groups(const uint8_t*, const uint8_t*, const uint8_t*, uint8_t*, uint8_t*, uint8_t*,
                    uint32_t) {
  return 0;
}

#endif

}  // namespace

void ycc_to_rgb(const uint8_t* luma, const uint8_t* cb, const uint8_t* cr, uint8_t* red,
                uint8_t* green, uint8_t* blue, uint32_t width) noexcept {
  for (uint32_t x = ycc_groups(luma, cb, cr, red, green, blue, width); x < width; ++x) {
    const int b = cb[x] - 128;
    const int r = cr[x] - 128;
    red[x] = clamped(luma[x] + ((r * kRedFromCr + kHalf) >> kColourBits));
    green[x] = clamped(luma[x] + ((b * kGreenFromCb + r * kGreenFromCr + kHalf) >> kColourBits));
    blue[x] = clamped(luma[x] + ((b * kBlueFromCb + kHalf) >> kColourBits));
  }
}

void cmyk_to_rgb(uint8_t* pixels, uint32_t width) noexcept {
  const uint8_t* from = pixels;
  for (uint32_t x = 0; x < width; ++x, from += 4, pixels += 3) {
    const uint32_t black = from[3];
    const uint8_t cyan = from[0];
    const uint8_t magenta = from[1];
    const uint8_t yellow = from[2];
    pixels[0] = static_cast<uint8_t>((cyan * black + 127) / 255);
    pixels[1] = static_cast<uint8_t>((magenta * black + 127) / 255);
    pixels[2] = static_cast<uint8_t>((yellow * black + 127) / 255);
  }
}

}  // namespace spk::picture
