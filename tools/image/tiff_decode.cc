#include "image/tiff_decode.h"

#if SPK_HAVE_TIFF

#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/text.h"

namespace spk::image {
namespace {

#if TIFFLIB_VERSION >= 20221213
constexpr tmsize_t kMaxAllocation = tmsize_t{512} << 20;
#endif
constexpr tmsize_t kMaxUnitBytes = tmsize_t{256} << 20;  // of a decoded strip or tile

struct Input {
  ByteView* view;
  uint64_t position = 0;
  Status io;
  char message[200] = {};
};

tmsize_t on_read(thandle_t handle, void* to, tmsize_t want) {
  Input& in = *static_cast<Input*>(handle);
  tmsize_t got = 0;
  while (got < want) {
    Result<ByteSpan> piece = in.view->at(in.position, static_cast<size_t>(want - got));
    if (!piece.ok()) {
      in.io = std::move(piece).status();
      return -1;
    }
    if (piece->empty()) break;
    std::memcpy(static_cast<uint8_t*>(to) + got, piece->data(), piece->size());
    got += static_cast<tmsize_t>(piece->size());
    in.position += piece->size();
  }
  return got;
}

tmsize_t on_write(thandle_t, void*, tmsize_t) { return -1; }

toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
  Input& in = *static_cast<Input*>(handle);
  switch (whence) {
    case SEEK_SET: in.position = offset; break;
    case SEEK_CUR: in.position += offset; break;
    case SEEK_END: in.position = in.view->size() + offset; break;
    default: return static_cast<toff_t>(-1);
  }
  return in.position;
}

int on_close(thandle_t) { return 0; }
toff_t on_size(thandle_t handle) { return static_cast<Input*>(handle)->view->size(); }

void keep_first_message(Input& in, const char* format, va_list arguments) {
  if (in.message[0] == '\0') {  // the first is nearest to the cause
    (void)std::vsnprintf(in.message, sizeof in.message, format, arguments);
  }
}

#if TIFFLIB_VERSION >= 20221213  // 4.5.0

int on_error(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  keep_first_message(*static_cast<Input*>(user), format, arguments);
  return 1;  // handled: nothing is printed
}
int on_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

// m: no mapping; O: values of tags are read when asked for.
TIFF* open_tiff(Input& in) {
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return nullptr;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, kMaxAllocation);
  TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, &in);
  TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, &in);
  TIFF* tiff = TIFFClientOpenExt("picture", "rmO", &in, on_read, on_write, on_seek, on_close,
                                 on_size, nullptr, nullptr, options);
  TIFFOpenOptionsFree(options);
  return tiff;
}

#else

// Older releases have handlers for the whole process; the handle tells whose message it is.
void on_any_error(thandle_t handle, const char*, const char* format, va_list arguments) {
  if (handle != nullptr) keep_first_message(*static_cast<Input*>(handle), format, arguments);
}

TIFF* open_tiff(Input& in) {
  static const bool handlers_set = [] {
    TIFFSetErrorHandler(nullptr);
    TIFFSetErrorHandlerExt(on_any_error);
    TIFFSetWarningHandler(nullptr);
    return true;
  }();
  static_cast<void>(handlers_set);
  return TIFFClientOpen("picture", "rm", &in, on_read, on_write, on_seek, on_close, on_size,
                        nullptr, nullptr);
}

#endif

// True where every strip or tile came out whole.
bool decode_units(TIFF* tiff, Input& in) {
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
  Input in{&view, 0, Status(), {}};
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
