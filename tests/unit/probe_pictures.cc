#include "unit/probe_pictures.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/bytes.h"
#include "image/formats.h"

#if SPK_HAVE_JPEG
#include <jpeglib.h>
#endif
#if SPK_HAVE_WEBP
#include <webp/encode.h>
#endif

namespace spk::test {
namespace {

// Smooth with some noise, so that compressed data has all kinds of codes.
uint8_t pixel(int x, int y, int channel) {
  const auto at = static_cast<uint32_t>(x), row = static_cast<uint32_t>(y);
  const auto c = static_cast<uint32_t>(channel);
  const uint32_t noise = (at * 7919 + row * 104729 + c * 31) * 2654435761u;
  return static_cast<uint8_t>(at * 3 + row * 2 + c * 40 + (noise >> 27));
}

void put(Bytes& to, uint64_t value, int width, bool big_endian = false) {
  for (int i = 0; i < width; ++i) {
    const int shift = 8 * (big_endian ? width - 1 - i : i);
    to.push_back(static_cast<uint8_t>(value >> shift));
  }
}

}  // namespace

void append(Bytes& to, const Bytes& bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

Bytes operator+(const Bytes& a, const Bytes& b) {
  Bytes out = a;
  append(out, b);
  return out;
}

#if SPK_HAVE_JPEG
Bytes make_jpeg(const JpegRecipe& recipe) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(recipe.width);
  jpeg.image_height = static_cast<JDIMENSION>(recipe.height);
  jpeg.input_components = recipe.channels;
  jpeg.in_color_space = recipe.channels == 1   ? JCS_GRAYSCALE
                        : recipe.channels == 4 ? JCS_CMYK
                                               : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, recipe.quality, TRUE);
  jpeg.restart_interval = static_cast<unsigned>(recipe.restart_mcus);
  if (recipe.full_chroma) {
    for (int i = 0; i < jpeg.num_components; ++i) {
      jpeg.comp_info[i].h_samp_factor = jpeg.comp_info[i].v_samp_factor = 1;
    }
  }
  jpeg_scan_info scans[4] = {};
  if (recipe.separate_scans) {
    for (int i = 0; i < recipe.channels; ++i) {
      scans[i].comps_in_scan = 1;
      scans[i].component_index[0] = i;
      scans[i].Se = 63;
    }
    jpeg.scan_info = scans;
    jpeg.num_scans = recipe.channels;
  }
  if (recipe.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  Bytes row(static_cast<size_t>(recipe.width * recipe.channels), 90);
  for (int y = 0; y < recipe.height; ++y) {
    for (size_t i = 0; !recipe.flat && i < row.size(); ++i) {
      const int at = static_cast<int>(i);
      row[i] = pixel(at / recipe.channels, y, at % recipe.channels);
    }
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&jpeg, &rows, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  Bytes out(memory, memory + size);
  std::free(memory);
  return out;
}
#else
Bytes make_jpeg(const JpegRecipe&) { return {}; }
#endif

Bytes png_chunk(const std::string& type, const Bytes& body) {
  Bytes out;
  put(out, body.size(), 4, true);
  out.insert(out.end(), type.begin(), type.end());
  append(out, body);
  put(out, image::crc32_ieee(0, ByteSpan(out).subspan(4)), 4, true);
  return out;
}

Bytes make_png(uint32_t width, uint32_t height, uint8_t colour, uint8_t depth, bool interlaced) {
  const uint32_t samples = colour == 2 ? 3 : colour == 4 ? 2 : colour == 6 ? 4 : 1;
  Bytes raw;
  const auto pass = [&](uint32_t x0, uint32_t y0, uint32_t dx, uint32_t dy) {
    const uint32_t columns = (width + dx - 1 - x0) / dx;
    if (width <= x0 || columns == 0) return;
    for (uint32_t y = y0; y < height; y += dy) {
      raw.push_back(0);  // no filter
      for (uint32_t i = 0; i < (columns * samples * depth + 7) / 8; ++i) {
        const uint8_t byte = pixel(static_cast<int>(i), static_cast<int>(y), 0);
        raw.push_back(colour == 3 ? byte & 1 : byte);
      }
    }
  };
  if (interlaced) {
    pass(0, 0, 8, 8), pass(4, 0, 8, 8), pass(0, 4, 4, 8), pass(2, 0, 4, 4), pass(0, 2, 2, 4);
    pass(1, 0, 2, 2), pass(0, 1, 1, 2);
  } else {
    pass(0, 0, 1, 1);
  }
  Bytes stream = {0x78, 0x01};
  uint32_t a = 1, b = 0;
  for (uint8_t byte : raw) a = (a + byte) % 65521, b = (b + a) % 65521;
  for (size_t at = 0; at < raw.size();) {
    const size_t part = std::min<size_t>(65535, raw.size() - at);
    stream.push_back(at + part == raw.size());
    put(stream, part, 2);
    put(stream, ~part & 0xffff, 2);
    stream.insert(stream.end(), raw.begin() + static_cast<long>(at),
                  raw.begin() + static_cast<long>(at + part));
    at += part;
  }
  put(stream, b << 16 | a, 4, true);
  Bytes header;
  put(header, width, 4, true);
  put(header, height, 4, true);
  append(header, {depth, colour, 0, 0, interlaced});
  Bytes out = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  append(out, png_chunk("IHDR", header));
  append(out, png_chunk("tEXt", {'k', 0, 'v'}));
  if (colour == 3) append(out, png_chunk("PLTE", {1, 2, 3, 4, 5, 6}));
  const auto half = stream.begin() + static_cast<long>(stream.size() / 2);
  append(out, png_chunk("IDAT", Bytes(stream.begin(), half)));
  append(out, png_chunk("IDAT", Bytes(half, stream.end())));
  append(out, png_chunk("IEND", {}));
  return out;
}

Bytes make_gif(uint32_t width, uint32_t height, int frames) {
  Bytes out = {'G', 'I', 'F', '8', '9', 'a'};
  put(out, width, 2);
  put(out, height, 2);
  append(out, {0x80 | 6, 0, 0});
  for (int i = 0; i < 128 * 3; ++i) out.push_back(static_cast<uint8_t>(i));
  for (int frame = 0; frame < frames; ++frame) {
    append(out, {0x21, 0xf9, 4, 0, 10, 0, 0, 0});
    append(out, {0x2c, 0, 0, 0, 0});
    put(out, width, 2);
    put(out, height, 2);
    append(out, {0, 7});
    // Codes of 8 bits: a clear code comes before the table would need wider ones.
    Bytes codes;
    for (uint32_t i = 0; i < width * height; ++i) {
      if (i % 100 == 0) codes.push_back(0x80);
      codes.push_back(pixel(static_cast<int>(i % width), static_cast<int>(i / width), 0) & 0x7f);
    }
    codes.push_back(0x81);
    for (size_t at = 0; at < codes.size(); at += 255) {
      const size_t part = std::min<size_t>(255, codes.size() - at);
      out.push_back(static_cast<uint8_t>(part));
      out.insert(out.end(), codes.begin() + static_cast<long>(at),
                 codes.begin() + static_cast<long>(at + part));
    }
    out.push_back(0);
  }
  out.push_back(0x3b);
  return out;
}

namespace {

Bytes bmp_header(int32_t width, int32_t height, uint16_t depth, uint32_t compression,
                 size_t data_bytes) {
  const uint32_t table = depth <= 8 ? 4u << depth : 0;
  Bytes out = {'B', 'M'};
  put(out, 54 + table + data_bytes, 4);
  put(out, 0, 4);
  put(out, 54 + table, 4);
  put(out, 40, 4);
  put(out, static_cast<uint32_t>(width), 4);
  put(out, static_cast<uint32_t>(height), 4);
  put(out, 1, 2);
  put(out, depth, 2);
  put(out, compression, 4);
  for (int i = 0; i < 5; ++i) put(out, 0, 4);
  for (uint32_t i = 0; i < table; ++i) out.push_back(static_cast<uint8_t>(i));
  return out;
}

}  // namespace

Bytes make_bmp(int32_t width, int32_t height, uint16_t depth) {
  const size_t stride = static_cast<size_t>((width * depth + 31) / 32 * 4);
  const size_t bytes = stride * static_cast<size_t>(std::abs(height));
  Bytes out = bmp_header(width, height, depth, 0, bytes);
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<uint8_t>(i * 7));
  return out;
}

Bytes make_bmp_rle8(int32_t width, int32_t height) {
  Bytes data;
  for (int32_t y = 0; y < height; ++y) {
    append(data, {static_cast<uint8_t>(width - 3), static_cast<uint8_t>(y)});
    append(data, {0, 3, 1, 2, 3, 0});  // three literal pixels and padding
    if (y + 1 < height) append(data, {0, 0});
  }
  append(data, {0, 1});
  return bmp_header(width, height, 8, 1, data.size()) + data;
}

// Directory first, then its values, then two strips, so that every byte is needed.
Bytes make_tiff(uint32_t width, uint32_t height, bool big_endian) {
  const uint32_t rows = (height + 1) / 2;
  const uint32_t first = width * 3 * rows, second = width * 3 * (height - rows);
  constexpr uint32_t kEntries = 9, kValues = 8 + 2 + 12 * kEntries + 4, kData = kValues + 6 + 16;
  Bytes out;
  const auto number = [&](uint64_t value, int bytes) { put(out, value, bytes, big_endian); };
  const auto entry = [&](uint16_t tag, uint16_t type, uint32_t count, uint32_t value) {
    number(tag, 2), number(type, 2), number(count, 4);
    if (type == 3 && count == 1) {
      number(value, 2), number(0, 2);
    } else {
      number(value, 4);
    }
  };
  append(out, big_endian ? Bytes{'M', 'M', 0, 42} : Bytes{'I', 'I', 42, 0});
  number(8, 4);
  number(kEntries, 2);
  entry(256, 4, 1, width);
  entry(257, 4, 1, height);
  entry(258, 3, 3, kValues);
  entry(259, 3, 1, 1);
  entry(262, 3, 1, 2);
  entry(273, 4, 2, kValues + 6);
  entry(277, 3, 1, 3);
  entry(278, 4, 1, rows);
  entry(279, 4, 2, kValues + 14);
  number(0, 4);
  for (int i = 0; i < 3; ++i) number(8, 2);
  number(kData, 4), number(kData + first, 4);
  number(first, 4), number(second, 4);
  for (uint32_t i = 0; i < first + second; ++i) out.push_back(static_cast<uint8_t>(i * 5));
  return out;
}

#if SPK_HAVE_WEBP
Bytes make_webp(int width, int height, bool lossless) {
  Bytes pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) pixels.push_back(pixel(x, y, c));
    }
  }
  uint8_t* memory = nullptr;
  const size_t size = lossless
                          ? WebPEncodeLosslessRGB(pixels.data(), width, height, width * 3, &memory)
                          : WebPEncodeRGB(pixels.data(), width, height, width * 3, 70, &memory);
  Bytes out(memory, memory + size);
  WebPFree(memory);
  return out;
}
#else
Bytes make_webp(int, int, bool) { return {}; }
#endif

}  // namespace spk::test
