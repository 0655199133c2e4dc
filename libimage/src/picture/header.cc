#include "picture/header.h"

#include <cstring>

#include "base/checked.h"
#include "base/text.h"
#include "picture/jpeg_markers.h"
#include "picture/orientation.h"
#include "picture/pixels.h"

namespace spk::picture {
namespace {

bool has(ByteSpan data, size_t at, std::string_view text) {
  return range_fits(at, text.size(), data.size()) &&
         std::memcmp(data.data() + at, text.data(), text.size()) == 0;
}

Result<Header> jpeg_header(ByteSpan data) {
  SPK_ASSIGN(const JpegMarkers markers, read_jpeg_markers(data));
  Header header;
  header.format = Format::kJpeg;
  header.width = markers.width;
  header.height = markers.height;
  header.channels = markers.component_count;
  header.depth = markers.precision;
  header.orientation = markers.orientation;
  if (markers.height == 0 && markers.width != 0) {
    return unsupported("a JPEG that states its height behind its first scan");
  }
  return header;
}

// The EXIF block lies before or behind the pixels.
uint32_t png_orientation(ByteSpan data) {
  for (size_t at = 8; range_fits(at, 12, data.size());) {
    const size_t length = load_be<uint32_t>(&data[at]);
    if (!range_fits(at + 8, length, data.size())) break;
    if (has(data, at + 4, "eXIf")) return exif_orientation(data.subspan(at + 8, length));
    at += 12 + length;
  }
  return 1;
}

Result<Header> png_header(ByteSpan data) {
  if (data.size() < 33 || !has(data, 12, "IHDR") || load_be<uint32_t>(&data[8]) != 13) {
    return damaged("a PNG without a whole IHDR chunk");
  }
  Header header;
  header.format = Format::kPng;
  header.width = load_be<uint32_t>(&data[16]);
  header.height = load_be<uint32_t>(&data[20]);
  header.depth = data[24];
  switch (data[25]) {
    case 0: header.channels = 1; break;
    case 2:
    case 3: header.channels = 3; break;
    case 4: header.channels = 2; break;
    case 6: header.channels = 4; break;
    default: return damaged(str_cat("a PNG of colour type ", data[25], ", which there is not"));
  }
  if (data[25] == 3) header.depth = 8;
  header.orientation = png_orientation(data);
  return header;
}

uint32_t webp_orientation(ByteSpan data) {
  for (size_t at = 12; range_fits(at, 8, data.size());) {
    const size_t length = load_le<uint32_t>(&data[at + 4]);
    if (!range_fits(at + 8, length, data.size())) break;
    if (has(data, at, "EXIF")) {
      ByteSpan block = data.subspan(at + 8, length);
      if (has(block, 0, std::string_view("Exif\0\0", 6))) block = block.subspan(6);
      return exif_orientation(block);
    }
    at += 8 + length + (length & 1);
  }
  return 1;
}

Result<Header> webp_header(ByteSpan data) {
  Header header;
  header.format = Format::kWebp;
  header.channels = 3;
  const auto u24 = [&](size_t at) { return load_le<uint16_t>(&data[at]) | data[at + 2] << 16; };
  if (data.size() < 30) return damaged("a WebP that is cut within its first chunk");
  if (has(data, 12, "VP8X")) {
    if ((data[20] & 2) != 0) {
      return unsupported("an animated WebP; only still pictures are decoded");
    }
    if ((data[20] & 16) != 0) header.channels = 4;
    header.width = 1 + static_cast<uint32_t>(u24(24));
    header.height = 1 + static_cast<uint32_t>(u24(27));
    header.orientation = webp_orientation(data);
  } else if (has(data, 12, "VP8L")) {
    const uint32_t word = load_le<uint32_t>(&data[21]);
    header.width = 1 + (word & 0x3fff);
    header.height = 1 + (word >> 14 & 0x3fff);
    if ((word >> 28 & 1) != 0) header.channels = 4;
  } else if (has(data, 12, "VP8 ")) {
    header.width = load_le<uint16_t>(&data[26]) & 0x3fff;
    header.height = load_le<uint16_t>(&data[28]) & 0x3fff;
  } else {
    return damaged("a WebP that begins with no picture");
  }
  return header;
}

Status no_picture(ByteSpan data) {
  const struct {
    size_t at;
    std::string_view text;
    const char* name;
  } others[] = {{0, "GIF8", "GIF"},
                {0, "BM", "BMP"},
                {0, std::string_view("II*\0", 4), "TIFF"},
                {0, std::string_view("MM\0*", 4), "TIFF"},
                {4, "ftyp", "HEIF, AVIF or video"},
                {0, std::string_view("\xff\x0a", 2), "JPEG XL"},
                {4, "jP  ", "JPEG 2000"}};
  for (const auto& other : others) {
    if (has(data, other.at, other.text)) {
      return unsupported(str_cat("a picture in the format ", other.name))
          .with_hint("JPEG, PNG and WebP are decoded");
    }
  }
  if (data.empty()) return Status(Code::kNotThisFormat, "no picture: 0 bytes");
  return Status(Code::kNotThisFormat,
                str_cat("no picture: ", data.size(), " bytes that begin with 0x",
                        to_hex(data[0]).substr(14)));
}

Result<Header> any_header(ByteSpan data) {
  if (has(data, 0, "\xff\xd8\xff")) return jpeg_header(data);
  if (has(data, 0, "\x89PNG\r\n\x1a\n")) return png_header(data);
  if (has(data, 0, "RIFF") && has(data, 8, "WEBP")) return webp_header(data);
  return no_picture(data);
}

}  // namespace

bool can_decode(Format format) noexcept {
  switch (format) {
    case Format::kJpeg: return true;
    case Format::kPng:
#if SPK_HAVE_PNG
      return true;
#else
      return false;
#endif
    case Format::kWebp:
#if SPK_HAVE_WEBP
      return true;
#else
      return false;
#endif
  }
  return false;
}

Result<Header> read_header(ByteSpan data) {
  SPK_ASSIGN(const Header header, any_header(data));
  if (header.width == 0 || header.height == 0) {
    return damaged(str_cat("a picture of ", header.width, " x ", header.height, " pixels"));
  }
  if (header.width > kMaxSide || header.height > kMaxSide) {
    return unsupported(str_cat("a picture of ", header.width, " x ", header.height,
                               " pixels; a side may have ", kMaxSide));
  }
  return header;
}

}  // namespace spk::picture
