// Small pictures for tests, made on the spot. PNG, GIF, BMP and TIFF are written by hand, so that
// they exist in every build.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spk::test {

using Bytes = std::vector<uint8_t>;

struct JpegRecipe {
  int width = 60;
  int height = 44;
  int channels = 3;  // 1, 3, 4 (CMYK)
  int quality = 80;
  bool progressive = false;
  bool separate_scans = false;  // sequential, one scan a component
  int restart_mcus = 0;
  bool full_chroma = false;  // 4:4:4, otherwise 4:2:0
  bool flat = false;         // one colour
};
// Empty in builds without libjpeg.
Bytes make_jpeg(const JpegRecipe& recipe);

// `colour` as in IHDR; stored without compression.
Bytes make_png(uint32_t width, uint32_t height, uint8_t colour, uint8_t depth,
               bool interlaced = false);
// With the checksum.
Bytes png_chunk(const std::string& type, const Bytes& body);

Bytes make_gif(uint32_t width, uint32_t height, int frames = 1);
Bytes make_bmp(int32_t width, int32_t height, uint16_t depth);
Bytes make_bmp_rle8(int32_t width, int32_t height);
Bytes make_tiff(uint32_t width, uint32_t height, bool big_endian);
// Empty in builds without libwebp.
Bytes make_webp(int width, int height, bool lossless);

void append(Bytes& to, const Bytes& bytes);
Bytes operator+(const Bytes& a, const Bytes& b);

}  // namespace spk::test
