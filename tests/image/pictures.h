// Pictures for tests of libstripepack-image: something like a photograph (slopes, edges, noise),
// and what a plain and slow program makes of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stripepack/image.h"

namespace spk::test {

// Rows of pixels of `channels` bytes.
struct Pixels {
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 3;
  std::vector<uint8_t> bytes;
  const uint8_t* at(uint32_t x, uint32_t y) const {
    return &bytes[(size_t{y} * width + x) * channels];
  }
};
Pixels photograph(uint32_t width, uint32_t height, uint32_t channels = 3, uint64_t seed = 1);

struct JpegOptions {
  int quality = 90;
  int across = 1;  // sampling factors of the first component
  int down = 1;
  bool progressive = false;
  bool arithmetic = false;
  bool own_tables = false;  // optimised codes
  int restart_mcus = 0;
  bool ycck = false;         // of 4 channels: YCCK, otherwise CMYK
  bool rgb = false;          // of 3 channels: not converted to YCbCr
  uint32_t orientation = 0;  // not 0: an EXIF segment says so
};
std::string encode_jpeg(const Pixels& pixels, const JpegOptions& options = {});

// libjpeg's decoding of all, with its defaults: 1 or 3 channels.
Pixels decode_whole(const std::string& jpeg);

// `crop` of the pixels, resized by a triangle filter in double precision, unrounded.
std::vector<double> resized(const Pixels& pixels, const spk_image_crop& crop, bool inside_only);

struct Difference {
  double max = 0;
  double mean = 0;
};
Difference difference(const std::vector<double>& wanted, const std::vector<uint8_t>& got);

spk_image_ops make_ops(uint32_t kind, uint32_t width = 0, uint32_t height = 0);

struct Decoded {
  int32_t code = 0;
  uint32_t width = 0;
  uint32_t height = 0;
  std::vector<uint8_t> bytes;
  std::string message;
};
// With exactly the room that is needed.
Decoded decode(const std::string& picture, const spk_image_ops& ops, uint64_t sample = 0);

}  // namespace spk::test
