#include "image/tiff_decode.h"

#if SPK_HAVE_TIFF

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/text.h"
#include "image/tiff_open.h"

namespace spk::image {
namespace {

constexpr tmsize_t kMaxUnitBytes = tmsize_t{256} << 20;  // of a decoded strip or tile

// True where every strip or tile came out whole.
bool decode_units(TIFF* tiff, TiffInput& in) {
  const bool tiled = TIFFIsTiled(tiff) != 0;
  const tmsize_t unit_bytes = tiled ? TIFFTileSize(tiff) : TIFFStripSize(tiff);
  if (unit_bytes <= 0) {
    if (in.message[0] == '\0') std::strcpy(in.message, "a strip or tile without size");
    return false;
  }
  const uint32_t units = tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
  if (unit_bytes <= kMaxUnitBytes) {
    std::vector<uint8_t> unit(static_cast<size_t>(unit_bytes));
    for (uint32_t i = 0; i < units; ++i) {
      const tmsize_t got = tiled ? TIFFReadEncodedTile(tiff, i, unit.data(), unit_bytes)
                                 : TIFFReadEncodedStrip(tiff, i, unit.data(), unit_bytes);
      if (got < 0 || in.message[0] != '\0') return false;
    }
    return true;
  }
  if (tiled) {
    (void)std::snprintf(in.message, sizeof in.message, "tiles of %lld bytes are too large",
                        static_cast<long long>(unit_bytes));
    return false;
  }
  // A picture in one large strip: row by row.
  uint32_t height = 0;
  uint16_t samples = 1, planar = PLANARCONFIG_CONTIG;
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planar);
  const tmsize_t row_bytes = TIFFScanlineSize(tiff);
  if (row_bytes <= 0 || row_bytes > kMaxUnitBytes) {
    std::strcpy(in.message, "a row is too long");
    return false;
  }
  std::vector<uint8_t> row(static_cast<size_t>(row_bytes));
  const uint16_t planes = planar == PLANARCONFIG_SEPARATE ? samples : 1;
  for (uint16_t plane = 0; plane < planes; ++plane) {
    for (uint32_t y = 0; y < height; ++y) {
      if (TIFFReadScanline(tiff, row.data(), y, plane) < 0 || in.message[0] != '\0') return false;
    }
  }
  return true;
}

}  // namespace

Result<Decoded> decode_tiff(ByteView& view) {
  TiffInput in{&view, 0, Status(), {}};
  Decoded result;
  TIFF* tiff = open_tiff(in);
  if (tiff != nullptr) {
    uint32_t width = 0, height = 0;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
    const auto lock = heavy_decode_lock(uint64_t{width} * height);
    result.whole = decode_units(tiff, in);
    TIFFClose(tiff);
  }
  if (!in.io.ok()) return std::move(in.io);
  if (!result.whole) {
    result.complaint = in.message[0] != '\0' ? escape_bytes(in.message) : "cannot be opened";
  }
  return result;
}

}  // namespace spk::image

#else

namespace spk::image {

Result<Decoded> decode_tiff(ByteView&) {
  return internal_error("a TIFF decoder was asked for in a build without libtiff");
}

}  // namespace spk::image

#endif
