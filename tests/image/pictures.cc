#include "image/pictures.h"
// jpeglib.h needs what that includes.
#include <jpeglib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "layout/permutation.h"

namespace spk::test {

Pixels photograph(uint32_t width, uint32_t height, uint32_t channels, uint64_t seed) {
  Pixels pixels{width, height, channels, std::vector<uint8_t>(size_t{width} * height * channels)};
  const double turn = static_cast<double>(mix64(seed) % 628) / 100;
  uint8_t* to = pixels.bytes.data();
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      const uint64_t noise = mix64(seed ^ (uint64_t{y} << 32 | x));
      const bool inside = std::hypot(x - width * 0.4, y - height * 0.6) < height * 0.25;
      for (uint32_t c = 0; c < channels; ++c) {
        double value = 128 + 70 * std::sin(x * 0.03 * (c + 1) + turn) + 40 * std::cos(y * 0.05 + c);
        if (inside) value = 255 - value * 0.7;
        value += static_cast<double>(noise >> (8 * c) & 15) - 7.5;
        *to++ = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
  return pixels;
}

namespace {

// An APP1 segment with one entry.
std::string exif_segment(uint32_t orientation) {
  std::string body("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 24 + 1);
  body += static_cast<char>(orientation);
  body += std::string(2 + 4, '\0');
  return body;
}

}  // namespace

std::string encode_jpeg(const Pixels& pixels, const JpegOptions& options) {
  jpeg_compress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's type
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = pixels.width;
  jpeg.image_height = pixels.height;
  jpeg.input_components = static_cast<int>(pixels.channels);
  jpeg.in_color_space = pixels.channels == 1   ? JCS_GRAYSCALE
                        : pixels.channels == 3 ? JCS_RGB
                                               : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  if (options.ycck) jpeg_set_colorspace(&jpeg, JCS_YCCK);
  if (options.rgb) jpeg_set_colorspace(&jpeg, JCS_RGB);
  for (int i = 0; i < jpeg.num_components; ++i) {
    jpeg.comp_info[i].h_samp_factor = i == 0 ? options.across : 1;
    jpeg.comp_info[i].v_samp_factor = i == 0 ? options.down : 1;
  }
  if (options.progressive) jpeg_simple_progression(&jpeg);
  jpeg.arith_code = options.arithmetic ? TRUE : FALSE;
  jpeg.optimize_coding = options.own_tables ? TRUE : FALSE;
  jpeg.restart_interval = static_cast<unsigned>(options.restart_mcus);
  jpeg_start_compress(&jpeg, TRUE);
  if (options.orientation != 0) {
    const std::string body = exif_segment(options.orientation);
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(body.data()),
                      static_cast<unsigned>(body.size()));
  }
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(pixels.at(0, jpeg.next_scanline));
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string out(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return out;
}

Pixels decode_whole(const std::string& data) {
  jpeg_decompress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(data.data()), data.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg_start_decompress(&jpeg);
  Pixels pixels{
      jpeg.output_width, jpeg.output_height, static_cast<uint32_t>(jpeg.output_components), {}};
  pixels.bytes.resize(size_t{pixels.width} * pixels.height * pixels.channels);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = const_cast<JSAMPROW>(pixels.at(0, jpeg.output_scanline));
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return pixels;
}

std::vector<double> resized(const Pixels& pixels, const spk_image_crop& crop, bool inside_only) {
  // Weights of all source pixels for each output pixel: slow, and as the definition says.
  const auto weights = [](double from, double to, uint32_t count, double low, double high,
                          uint32_t size) {
    const double scale = (to - from) / count;
    const double reach = std::max(scale, 1.0);
    std::vector<std::vector<double>> out(count, std::vector<double>(size));
    for (uint32_t i = 0; i < count; ++i) {
      const double centre = from + (i + 0.5) * scale;
      double total = 0;
      for (uint32_t k = 0; k < size; ++k) {
        if (k < low || k >= high) continue;
        out[i][k] = std::max(0.0, 1 - std::abs(k + 0.5 - centre) / reach);
        total += out[i][k];
      }
      for (double& weight : out[i]) weight /= total;
    }
    return out;
  };
  const auto across = weights(crop.left, crop.right, crop.width, inside_only ? crop.left : 0,
                              inside_only ? crop.right : pixels.width, pixels.width);
  const auto down = weights(crop.top, crop.bottom, crop.height, inside_only ? crop.top : 0,
                            inside_only ? crop.bottom : pixels.height, pixels.height);
  std::vector<double> middle(size_t{crop.width} * pixels.height * 3);
  for (uint32_t y = 0; y < pixels.height; ++y) {
    for (uint32_t x = 0; x < crop.width; ++x) {
      for (uint32_t k = 0; k < pixels.width; ++k) {
        const double weight = across[x][k];
        if (weight == 0) continue;
        for (uint32_t c = 0; c < 3; ++c) {
          middle[(size_t{y} * crop.width + x) * 3 + c] +=
              weight * pixels.at(k, y)[pixels.channels == 1 ? 0 : c];
        }
      }
    }
  }
  std::vector<double> out(size_t{crop.width} * crop.height * 3);
  const size_t row = size_t{crop.width} * 3;
  for (uint32_t y = 0; y < crop.height; ++y) {
    for (uint32_t k = 0; k < pixels.height; ++k) {
      const double weight = down[y][k];
      if (weight == 0) continue;
      for (size_t i = 0; i < row; ++i) out[y * row + i] += weight * middle[k * row + i];
    }
    if (crop.flipped == 0) continue;
    for (uint32_t x = 0; x < crop.width / 2; ++x) {
      std::swap_ranges(&out[y * row + size_t{3} * x], &out[y * row + size_t{3} * x + 3],
                       &out[y * row + size_t{3} * (crop.width - 1 - x)]);
    }
  }
  return out;
}

Difference difference(const std::vector<double>& wanted, const std::vector<uint8_t>& got) {
  Difference found;
  if (wanted.size() != got.size()) return {1e9, 1e9};
  for (size_t i = 0; i < got.size(); ++i) {
    const double apart = std::abs(wanted[i] - got[i]);
    found.max = std::max(found.max, apart);
    found.mean += apart / static_cast<double>(got.size());
  }
  return found;
}

spk_image_ops make_ops(uint32_t kind, uint32_t width, uint32_t height) {
  spk_image_ops ops = {};
  ops.struct_size = sizeof ops;
  ops.kind = kind;
  ops.width = width;
  ops.height = height;
  return ops;
}

Decoded decode(const std::string& picture, const spk_image_ops& ops, uint64_t sample) {
  Decoded out;
  spk_error error = {};
  error.struct_size = sizeof error;
  spk_image_item item = {};
  item.data = picture.data();
  item.size = picture.size();
  item.sample = sample;
  spk_image_decode(&item, &ops, nullptr);  // for the size
  out.bytes.resize(size_t{3} * item.width * item.height);
  item.out = out.bytes.data();
  item.capacity = out.bytes.size();
  out.code = spk_image_decode(&item, &ops, &error);
  out.width = item.width;
  out.height = item.height;
  if (out.code != SPK_OK) out.message = error.message;
  return out;
}

}  // namespace spk::test
