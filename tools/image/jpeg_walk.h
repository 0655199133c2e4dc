// The structure of a JPEG, walked marker by marker without decoding a pixel.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "image/byte_view.h"

namespace spk::image {

struct JpegComponent {
  uint8_t id = 0;
  uint8_t h = 0;  // sampling factors, 1 to 4
  uint8_t v = 0;
  uint8_t quant_table = 0;
  // Bits still missing of each of the 64 coefficients; kNeverSent before any scan had it.
  static constexpr int8_t kNeverSent = -1;
  std::array<int8_t, 64> missing_bits{};
};

struct JpegWalk {
  uint32_t height = 0;
  uint32_t width = 0;
  uint8_t component_count = 0;
  bool progressive = false;
  std::array<JpegComponent, 4> components{};
  uint32_t scans = 0;

  uint64_t end = 0;       // behind EOI; 0: the walk did not get there
  bool cut = false;       // the file ended behind a scan where a marker was due
  uint64_t cut_at = 0;    // where the last scan's data began
  std::string reject;     // not empty: no decoder need be asked
  std::string suspicion;  // not empty: only a decoder can tell

  // Every component has had a scan that carries its mean values; without one there is no picture.
  bool has_all_components() const;
  // Every bit of every coefficient has been sent.
  bool has_all_bits() const;
};

// Stops behind the frame header where `header_only`, and where it loses its way.
Result<JpegWalk> walk_jpeg(ByteView& view, bool header_only);

// The first i with bytes[i] == 0xFF and bytes[i + 1] != 0, or bytes.size() where there is none.
// The last byte is never the answer.
size_t find_jpeg_marker(ByteSpan bytes) noexcept;

// Whether there is a run of zeros that entropy-coded data hardly ever has; finds all of 640 bytes
// and more.
bool has_zero_hole(ByteSpan bytes) noexcept;

}  // namespace spk::image
