// The first page of a TIFF: grey, RGB, palettes and CMYK of up to 16 bits, in strips or tiles,
// chunky or by planes, and YCbCr where it is JPEG inside.
#include "image/still.h"

#if SPK_HAVE_TIFF

#include <algorithm>
#include <array>
#include <memory>

#include "base/checked.h"
#include "base/text.h"
#include "image/tiff_open.h"

namespace spk::image {
namespace {

constexpr uint64_t kMostUnitBytes = uint64_t{256} << 20;  // of a decoded strip or tile
constexpr uint32_t kMostSamples = 16;

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};

// An open file and what its first directory says.
struct Page {
  explicit Page(ByteSpan data) : view(data), in{&view, 0, Status(), {}}, tiff(open_tiff(in)) {}

  MemoryView view;
  TiffInput in;
  std::unique_ptr<TIFF, Close> tiff;
  uint32_t width = 0;
  uint32_t height = 0;
  uint16_t bits = 1;
  uint16_t samples = 1;
  uint16_t photometric = PHOTOMETRIC_MINISBLACK;
  uint16_t planar = PLANARCONFIG_CONTIG;
  uint16_t compression = COMPRESSION_NONE;
  uint32_t colours = 1;  // samples of a pixel that are looked at, but for alpha
  bool alpha = false;
  bool alpha_in_colours = false;  // they are multiplied by it
  bool tiled = false;
  uint32_t unit_width = 0;  // of a strip or tile
  uint32_t unit_height = 0;
  uint64_t unit_bytes = 0;

  Status failed() const {
    return damaged(str_cat("libtiff: ",
                           in.message[0] != '\0' ? escape_bytes(in.message) : "cannot be opened"));
  }
  uint32_t taken() const { return colours + (alpha ? 1 : 0); }
  bool by_planes() const { return planar == PLANARCONFIG_SEPARATE && samples > 1; }
};

const char* photometric_name(uint16_t photometric) {
  switch (photometric) {
    case PHOTOMETRIC_MASK: return "a transparency mask";
    case PHOTOMETRIC_YCBCR: return "YCbCr that is not JPEG";
    case PHOTOMETRIC_CIELAB:
    case PHOTOMETRIC_ICCLAB:
    case PHOTOMETRIC_ITULAB: return "Lab colours";
    case PHOTOMETRIC_LOGL:
    case PHOTOMETRIC_LOGLUV: return "logarithmic colours";
    case PHOTOMETRIC_CFA: return "a colour filter array";
    default: return "unknown colours";
  }
}

Status set_colours(Page& page) {
  TIFF* const tiff = page.tiff.get();
  switch (page.photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_PALETTE: page.colours = 1; break;
    case PHOTOMETRIC_RGB: page.colours = 3; break;
    case PHOTOMETRIC_SEPARATED: {
      uint16_t inks = INKSET_CMYK;
      TIFFGetFieldDefaulted(tiff, TIFFTAG_INKSET, &inks);
      if (inks != INKSET_CMYK) return unsupported("tiff: inks that are not CMYK");
      page.colours = 4;
      break;
    }
    case PHOTOMETRIC_YCBCR:
      if (page.compression == COMPRESSION_JPEG && page.planar == PLANARCONFIG_CONTIG) {
        TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
        page.colours = 3;
        break;
      }
      [[fallthrough]];
    default: return unsupported(str_cat("tiff: ", photometric_name(page.photometric)));
  }
  if (page.samples < page.colours || page.samples > kMostSamples) {
    return unsupported(str_cat("tiff: ", page.samples, " samples a pixel"));
  }
  uint16_t extras = 0;
  uint16_t* kinds = nullptr;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extras, &kinds);
  const bool can_have_alpha =
      page.colours != 4 && page.photometric != PHOTOMETRIC_PALETTE && page.samples > page.colours;
  if (can_have_alpha && extras > 0 && kinds != nullptr) {
    page.alpha = kinds[0] == EXTRASAMPLE_ASSOCALPHA || kinds[0] == EXTRASAMPLE_UNASSALPHA;
    page.alpha_in_colours = kinds[0] == EXTRASAMPLE_ASSOCALPHA;
  }
  return {};
}

Status set_unit(Page& page) {
  TIFF* const tiff = page.tiff.get();
  page.tiled = TIFFIsTiled(tiff) != 0;
  tmsize_t bytes = 0;
  if (page.tiled) {
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &page.unit_width);
    TIFFGetField(tiff, TIFFTAG_TILELENGTH, &page.unit_height);
    bytes = TIFFTileSize(tiff);
  } else {
    page.unit_width = page.width;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &page.unit_height);
    page.unit_height = std::min(page.unit_height, page.height);
    bytes = TIFFStripSize(tiff);
  }
  if (bytes <= 0 || page.unit_width == 0 || page.unit_height == 0) {
    return damaged("tiff: a strip or tile without size");
  }
  page.unit_bytes = static_cast<uint64_t>(bytes);
  if (page.unit_bytes > kMostUnitBytes) {
    return unsupported(
        str_cat("tiff: a strip or tile of ", format_count(page.unit_bytes), " bytes"));
  }
  return {};
}

Status look(Page& page) {
  TIFF* const tiff = page.tiff.get();
  if (tiff == nullptr) return page.failed();
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &page.width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &page.height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &page.bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &page.samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &page.planar);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &page.compression);
  if (TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &page.photometric) == 0) {
    return unsupported("tiff: it does not say what its samples are");
  }
  uint16_t format = SAMPLEFORMAT_UINT;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &format);
  if (page.width == 0 || page.height == 0) return damaged("tiff: a page without pixels");
  if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID) {
    return unsupported(str_cat("tiff: samples that are ",
                               format == SAMPLEFORMAT_IEEEFP ? "floats" : "no plain numbers"));
  }
  if (!TIFFIsCODECConfigured(page.compression)) {
    return unsupported(str_cat("tiff: compression ", page.compression));
  }
  SPK_TRY(set_colours(page));
  const bool few = page.bits == 1 || page.bits == 2 || page.bits == 4;
  const bool palette = page.photometric == PHOTOMETRIC_PALETTE;
  if (!(page.bits == 8 || (page.bits == 16 && !palette) || (few && page.samples == 1))) {
    return unsupported(str_cat("tiff: ", page.samples, " samples of ", page.bits, " bits"));
  }
  return set_unit(page);
}

// One sample in 8 bits; of a palette, the index.
uint8_t sample_at(const Page& page, const uint8_t* row, size_t index) {
  if (page.bits == 8) return row[index];
  if (page.bits == 16) {
    uint16_t value = 0;  // in this machine's order: libtiff has seen to that
    std::copy_n(row + 2 * index, 2, reinterpret_cast<uint8_t*>(&value));
    return scaled_to_8(value);
  }
  const size_t bit = index * page.bits;
  const uint32_t most = (1u << page.bits) - 1;
  const uint32_t value = row[bit / 8] >> (8 - page.bits - bit % 8) & most;
  return static_cast<uint8_t>(page.photometric == PHOTOMETRIC_PALETTE ? value : value * 255 / most);
}

// Of the samples of all pixels, taken() each: those in one strip or tile. Where they lie by planes,
// PLANE says which one it has.
void take_unit(const Page& page, const uint8_t* unit, size_t row_bytes, uint32_t left, uint32_t top,
               uint32_t plane, std::vector<uint8_t>* samples) {
  const uint32_t right = std::min(left + page.unit_width, page.width);
  const uint32_t bottom = std::min(top + page.unit_height, page.height);
  const size_t taken = page.taken();
  for (uint32_t y = top; y < bottom; ++y) {
    const uint8_t* const row = unit + row_bytes * (y - top);
    uint8_t* to = &(*samples)[(size_t{y} * page.width + left) * taken];
    for (uint32_t x = left; x < right; ++x, to += taken) {
      if (page.by_planes()) {
        to[plane] = sample_at(page, row, x - left);
        continue;
      }
      const size_t first = size_t{x - left} * page.samples;
      for (size_t i = 0; i < taken; ++i) to[i] = sample_at(page, row, first + i);
    }
  }
}

Status read_samples(Page& page, std::vector<uint8_t>* samples) {
  TIFF* const tiff = page.tiff.get();
  samples->resize(size_t{page.width} * page.height * page.taken());
  std::vector<uint8_t> unit(page.unit_bytes);
  const auto row_bytes =
      static_cast<size_t>(page.tiled ? TIFFTileRowSize(tiff) : TIFFScanlineSize(tiff));
  const uint32_t across = static_cast<uint32_t>(divide_up(page.width, page.unit_width));
  const uint32_t down = static_cast<uint32_t>(divide_up(page.height, page.unit_height));
  const uint32_t planes = page.by_planes() ? page.taken() : 1;
  const auto size = static_cast<tmsize_t>(page.unit_bytes);
  uint32_t number = 0;
  for (uint32_t plane = 0; plane < planes; ++plane) {
    for (uint32_t i = 0; i < across * down; ++i, ++number) {
      const uint32_t left = i % across * page.unit_width;
      const uint32_t top = i / across * page.unit_height;
      const uint32_t rows =
          page.tiled ? page.unit_height : std::min(page.unit_height, page.height - top);
      const tmsize_t got = page.tiled ? TIFFReadEncodedTile(tiff, number, unit.data(), size)
                                      : TIFFReadEncodedStrip(tiff, number, unit.data(), size);
      if (got < 0 || page.in.message[0] != '\0') return page.failed();
      if (static_cast<uint64_t>(got) < uint64_t{rows} * row_bytes ||
          uint64_t{page.unit_height} * row_bytes > page.unit_bytes) {
        return damaged(str_cat("tiff: strip or tile ", number, " is too short"));
      }
      take_unit(page, unit.data(), row_bytes, left, top, plane, samples);
    }
  }
  return {};
}

// In place of the samples: colours that were multiplied by alpha, as they were before.
void undo_alpha(uint8_t* pixel, uint32_t colours) {
  const uint32_t alpha = pixel[colours];
  for (uint32_t i = 0; i < colours; ++i) {
    pixel[i] = alpha == 0
                   ? uint8_t{0}
                   : static_cast<uint8_t>(std::min((pixel[i] * 255 + alpha / 2) / alpha, 255u));
  }
}

Result<std::vector<uint8_t>> looked_up(const Page& page, const std::vector<uint8_t>& indices) {
  uint16_t* maps[3] = {};
  if (TIFFGetField(page.tiff.get(), TIFFTAG_COLORMAP, &maps[0], &maps[1], &maps[2]) == 0) {
    return damaged("tiff: a palette is missing");
  }
  const size_t count = size_t{1} << page.bits;
  // Some writers fill in bytes where words are meant.
  bool words = false;
  for (const uint16_t* map : maps) {
    words = words || std::any_of(map, map + count, [](uint16_t value) { return value > 255; });
  }
  const size_t taken = page.taken();
  std::vector<uint8_t> pixels(indices.size() / taken * 3);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const uint16_t value = maps[i % 3][indices[i / 3 * taken]];
    pixels[i] = static_cast<uint8_t>(words ? value >> 8 : value);
  }
  return pixels;
}

void ink_to_rgb(const uint8_t* ink, uint8_t* rgb) {
  const uint32_t light = 255u - ink[3];
  for (int i = 0; i < 3; ++i) rgb[i] = static_cast<uint8_t>(((255u - ink[i]) * light + 127) / 255);
}

// Samples to pixels; never writes beyond what it has read.
void to_pixels(const Page& page, const StillRequest& request, Still* still) {
  const size_t count = size_t{page.width} * page.height;
  const uint32_t taken = page.taken();
  std::vector<uint8_t>& all = still->pixels;
  const bool lays = page.alpha && request.background;
  const bool keeps_cmyk = page.colours == 4 && request.keep_cmyk;
  still->channels = keeps_cmyk ? 4 : page.colours == 1 && !lays ? 1 : 3;
  if (lays && page.colours == 1) {  // grey over a colour
    std::vector<uint8_t> wide(3 * count);
    for (size_t i = 0; i < count; ++i) {
      uint8_t* const pixel = &all[2 * i];
      if (page.photometric == PHOTOMETRIC_MINISWHITE)
        pixel[0] = static_cast<uint8_t>(255 - pixel[0]);
      if (page.alpha_in_colours) undo_alpha(pixel, 1);
      for (size_t c = 0; c < 3; ++c) {
        wide[3 * i + c] = laid_over(pixel[0], *request.background >> (16 - 8 * c) & 255, pixel[1]);
      }
    }
    all = std::move(wide);
    return;
  }
  const uint32_t made = still->channels;
  for (size_t i = 0; i < count; ++i) {
    uint8_t* const from = &all[i * taken];
    uint8_t pixel[4] = {};
    if (page.photometric == PHOTOMETRIC_MINISWHITE) from[0] = static_cast<uint8_t>(255 - from[0]);
    if (page.alpha_in_colours) undo_alpha(from, page.colours);
    if (page.colours == 4 && !keeps_cmyk) {
      ink_to_rgb(from, pixel);
    } else {
      std::copy_n(from, page.colours, pixel);
    }
    for (uint32_t c = 0; lays && c < 3; ++c) {
      pixel[c] = laid_over(pixel[c], *request.background >> (16 - 8 * c) & 255, from[page.colours]);
    }
    std::copy_n(pixel, made, &all[i * made]);
  }
  all.resize(count * made);
}

}  // namespace

Result<StillInfo> look_at_tiff(ByteSpan data) {
  Page page(data);
  SPK_TRY(look(page));
  StillInfo info;
  info.width = page.width;
  info.height = page.height;
  info.channels = page.photometric == PHOTOMETRIC_PALETTE ? 3 : page.colours;
  info.alpha = page.alpha;
  uint16_t orientation = 1;
  TIFFGetFieldDefaulted(page.tiff.get(), TIFFTAG_ORIENTATION, &orientation);
  if (orientation >= 1 && orientation <= 8) info.orientation = orientation;
  info.work_bytes = page.unit_bytes + uint64_t{page.taken()} * page.width * page.height;
  return info;
}

Result<Still> read_tiff(ByteSpan data, const StillInfo&, const StillRequest& request) {
  Page page(data);
  SPK_TRY(look(page));
  Still still;
  SPK_TRY(read_samples(page, &still.pixels));
  if (page.photometric == PHOTOMETRIC_PALETTE) {
    SPK_ASSIGN(still.pixels, looked_up(page, still.pixels));
  } else {
    to_pixels(page, request, &still);
  }
  still.has_more = TIFFLastDirectory(page.tiff.get()) == 0;
  return still;
}

std::vector<uint8_t> tiff_profile(ByteSpan data) {
  Page page(data);
  uint32_t bytes = 0;
  const void* profile = nullptr;
  if (page.tiff == nullptr ||
      TIFFGetField(page.tiff.get(), TIFFTAG_ICCPROFILE, &bytes, &profile) == 0) {
    return {};
  }
  const auto* const first = static_cast<const uint8_t*>(profile);
  return {first, first + bytes};
}

}  // namespace spk::image

#else

namespace spk::image {

Result<StillInfo> look_at_tiff(ByteSpan) {
  return unsupported("this build has no libtiff (libtiff-dev, SPK_WITH_TIFF)");
}
Result<Still> read_tiff(ByteSpan, const StillInfo&, const StillRequest&) {
  return unsupported("this build has no libtiff (libtiff-dev, SPK_WITH_TIFF)");
}
std::vector<uint8_t> tiff_profile(ByteSpan) { return {}; }

}  // namespace spk::image

#endif
