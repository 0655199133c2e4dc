// The hot loop of the structure check: most of a JPEG is entropy-coded data, in which 0xFF is
// followed by 0x00 unless it begins a marker.
#include <cstring>

#include "image/jpeg_walk.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace spk::image {
namespace {

size_t find_from(ByteSpan bytes, size_t from) noexcept {
  const uint8_t* data = bytes.data();
  while (from + 1 < bytes.size()) {
    const void* hit = std::memchr(data + from, 0xff, bytes.size() - 1 - from);
    if (hit == nullptr) break;
    const size_t at = static_cast<size_t>(static_cast<const uint8_t*>(hit) - data);
    if (data[at + 1] != 0) return at;
    from = at + 2;
  }
  return bytes.size();
}

}  // namespace

#if defined(__SSE2__)

size_t find_jpeg_marker(ByteSpan bytes) noexcept {
  // A stuffed FF 00 comes every 256 bytes or so. Testing for the pair keeps the loop free of
  // branches there, which a search for 0xFF alone would take each time.
  constexpr size_t kBlock = 64;
  const uint8_t* data = bytes.data();
  const __m128i ff = _mm_set1_epi8(-1);
  const __m128i zero = _mm_setzero_si128();
  const auto pair_at = [&](const uint8_t* at) {
    const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i next = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 1));
    return _mm_andnot_si128(_mm_cmpeq_epi8(next, zero), _mm_cmpeq_epi8(here, ff));
  };
  size_t from = 0;
  for (; from + kBlock + 1 <= bytes.size(); from += kBlock) {
    const uint8_t* at = data + from;
    const __m128i any = _mm_or_si128(_mm_or_si128(pair_at(at), pair_at(at + 16)),
                                     _mm_or_si128(pair_at(at + 32), pair_at(at + 48)));
    if (_mm_movemask_epi8(any) != 0) break;
  }
  return find_from(bytes, from);
}

#else

size_t find_jpeg_marker(ByteSpan bytes) noexcept { return find_from(bytes, 0); }

#endif

// A hole that a file system left after a crash is at least a sector; a look at every 512th byte
// then meets it.
bool has_zero_hole(ByteSpan bytes) noexcept {
  constexpr size_t kStride = 512, kZeroBytes = 64;
  for (size_t at = 0; at + kZeroBytes <= bytes.size(); at += kStride) {
    if (load_le<uint64_t>(bytes.data() + at) == 0 && is_all_zero(bytes.subspan(at, kZeroBytes))) {
      return true;
    }
  }
  return false;
}

}  // namespace spk::image
