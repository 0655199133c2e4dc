// The markers of a JPEG up to its first scan.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"

namespace spk::picture {

struct JpegComponent {
  uint8_t id = 0;
  uint8_t h = 0;  // sampling factors
  uint8_t v = 0;
  uint8_t quant = 0;  // numbers of tables
  uint8_t dc = 0;
  uint8_t ac = 0;
};

struct JpegHuffman {
  bool defined = false;
  std::array<uint8_t, 16> counts{};  // codes of 1 to 16 bits
  std::array<uint8_t, 256> symbols{};
};

struct JpegMarkers {
  uint8_t frame = 0;  // the marker of the frame header; 0: there was none
  uint8_t precision = 0;
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t component_count = 0;
  std::array<JpegComponent, 4> components{};  // of the first four
  uint32_t restart_interval = 0;
  bool jfif = false;
  bool adobe = false;
  uint8_t adobe_transform = 0;
  uint32_t orientation = 1;

  // Of what follows only the last definition before the scan counts. All values are as in the
  // file, in zigzag order, and have been checked against nothing but the file's end.
  std::array<std::array<uint16_t, 64>, 4> quant{};
  std::array<bool, 4> quant_defined{};
  std::array<JpegHuffman, 4> dc{};
  std::array<JpegHuffman, 4> ac{};
  bool odd = false;         // more than one frame header
  bool plain_scan = false;  // one sequential scan header over all components, in their order
  uint64_t scan = 0;        // where the first scan's data begin; 0: the file ends before
};

// REQUIRES the SOI marker to be there. kDamaged where a segment is cut before a frame header was
// seen, or there is none.
Result<JpegMarkers> read_jpeg_markers(ByteSpan data);

}  // namespace spk::picture
