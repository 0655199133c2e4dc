// BMP to pixels: palettes of 1, 4 and 8 bits, and 16, 24 and 32 bits with the usual masks or those
// that the file gives, from either end. Run lengths and what else the name stands for are refused.
#include <algorithm>
#include <array>
#include <bit>

#include "base/checked.h"
#include "base/text.h"
#include "image/still.h"

namespace spk::image {
namespace {

constexpr size_t kFileHeaderBytes = 14;
constexpr size_t kOldHeaderBytes = 12;
constexpr size_t kMasksAt = 54;                    // in the file, within the header or behind it
constexpr uint32_t kEmbeddedProfile = 0x4d424544;  // "MBED"

enum Coding : uint32_t { kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3, kAlphaMasks = 6 };

// One channel of a pixel of 16 or 32 bits.
struct Channel {
  uint32_t shift = 0;
  uint32_t most = 0;  // 0: the pixels have no such channel

  uint8_t of(uint32_t pixel) const {
    if (most == 0) return 0;
    return static_cast<uint8_t>((uint64_t{pixel >> shift & most} * 255 + most / 2) / most);
  }
};

struct Layout {
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t depth = 0;
  bool top_down = false;
  size_t pixels_at = 0;
  size_t row_bytes = 0;
  std::array<Channel, 4> channels = {};  // red, green, blue, alpha
  std::vector<std::array<uint8_t, 3>> palette;
};

Result<Channel> channel_of(uint32_t mask) {
  Channel channel;
  if (mask == 0) return channel;
  channel.shift = static_cast<uint32_t>(std::countr_zero(mask));
  channel.most = mask >> channel.shift;
  if ((channel.most & (channel.most + uint64_t{1})) != 0) {
    return unsupported("bmp: a colour's bits do not stand side by side");
  }
  return channel;
}

Status set_masks(ByteSpan data, size_t header_bytes, uint32_t coding, Layout* layout) {
  std::array<uint32_t, 4> masks = {0xff0000, 0xff00, 0xff, 0};
  if (layout->depth == 16) masks = {0x7c00, 0x3e0, 0x1f, 0};
  if (coding != kPlain) {
    const bool with_alpha = coding == kAlphaMasks || header_bytes >= 56;
    const size_t count = with_alpha ? 4 : 3;
    if (!range_fits(kMasksAt, 4 * count, data.size())) return damaged("bmp: the masks are cut");
    masks[3] = 0;
    for (size_t i = 0; i < count; ++i) masks[i] = load_le<uint32_t>(&data[kMasksAt + 4 * i]);
    if (layout->depth == 16) masks[3] = 0;
  }
  for (size_t i = 0; i < masks.size(); ++i) {
    SPK_ASSIGN(layout->channels[i], channel_of(masks[i]));
  }
  return {};
}

// Colours that are cut off, or that a pixel asks for without their being there, are black.
void set_palette(ByteSpan data, size_t header_bytes, uint32_t colours, Layout* layout) {
  const uint32_t most = 1u << layout->depth;
  const size_t step = header_bytes == kOldHeaderBytes ? 3 : 4;
  const size_t count = colours == 0 ? most : std::min(colours, most);
  layout->palette.resize(most);
  const size_t end = std::min<size_t>(layout->pixels_at, data.size());
  for (size_t i = 0; i < count; ++i) {
    const size_t at = kFileHeaderBytes + header_bytes + i * step;
    if (!range_fits(at, 3, end)) break;
    layout->palette[i] = {data[at + 2], data[at + 1], data[at]};
  }
}

Result<Layout> layout_of(ByteSpan data) {
  if (data.size() < kFileHeaderBytes + kOldHeaderBytes) return damaged("bmp: the header is cut");
  const size_t header_bytes = load_le<uint32_t>(&data[kFileHeaderBytes]);
  const bool old = header_bytes == kOldHeaderBytes;
  if (!old && (header_bytes < 40 || header_bytes == 64)) {
    return unsupported(str_cat("bmp: a header of ", header_bytes, " bytes"));
  }
  if (!range_fits(kFileHeaderBytes, header_bytes, data.size())) {
    return damaged("bmp: the header is cut");
  }
  const uint8_t* const info = &data[kFileHeaderBytes];
  Layout layout;
  layout.pixels_at = load_le<uint32_t>(&data[10]);
  int64_t width = 0;
  int64_t height = 0;
  uint32_t coding = kPlain;
  uint32_t colours = 0;
  if (old) {
    width = load_le<uint16_t>(info + 4);
    height = load_le<uint16_t>(info + 6);
    layout.depth = load_le<uint16_t>(info + 10);
  } else {
    width = static_cast<int32_t>(load_le<uint32_t>(info + 4));
    height = static_cast<int32_t>(load_le<uint32_t>(info + 8));
    layout.depth = load_le<uint16_t>(info + 14);
    coding = load_le<uint32_t>(info + 16);
    colours = load_le<uint32_t>(info + 32);
  }
  if (width <= 0 || height == 0) {
    return damaged(str_cat("bmp: the header says ", width, " x ", height, " pixels"));
  }
  layout.top_down = height < 0;
  layout.width = static_cast<uint32_t>(width);
  layout.height = static_cast<uint32_t>(std::abs(height));
  const uint32_t depth = layout.depth;
  if (coding == kRuns8 || coding == kRuns4) return unsupported("bmp: run lengths");
  const bool masked = coding == kMasks || coding == kAlphaMasks;
  const bool deep = depth == 16 || depth == 32;
  if ((coding != kPlain && !(masked && deep)) ||
      (depth != 1 && depth != 4 && depth != 8 && depth != 24 && !deep)) {
    return unsupported(str_cat("bmp: ", depth, " bits a pixel, compression ", coding));
  }
  layout.row_bytes = (size_t{layout.width} * depth + 31) / 32 * 4;
  if (deep) SPK_TRY(set_masks(data, header_bytes, coding, &layout));
  if (depth <= 8) set_palette(data, header_bytes, colours, &layout);
  return layout;
}

// RGBA of each pixel of a row.
template <typename Put>
void for_each_pixel(const Layout& layout, const uint8_t* row, Put put) {
  for (size_t x = 0; x < layout.width; ++x) {
    if (layout.depth <= 8) {
      const size_t bit = x * layout.depth;
      const size_t index =
          row[bit / 8] >> (8 - layout.depth - bit % 8) & ((1u << layout.depth) - 1);
      const std::array<uint8_t, 3>& colour = layout.palette[index];
      put(x, colour[0], colour[1], colour[2], uint8_t{255});
    } else if (layout.depth == 24) {
      put(x, row[3 * x + 2], row[3 * x + 1], row[3 * x], uint8_t{255});
    } else {
      const uint32_t pixel =
          layout.depth == 16 ? load_le<uint16_t>(row + 2 * x) : load_le<uint32_t>(row + 4 * x);
      const auto& channels = layout.channels;
      const uint8_t alpha = channels[3].most == 0 ? uint8_t{255} : channels[3].of(pixel);
      put(x, channels[0].of(pixel), channels[1].of(pixel), channels[2].of(pixel), alpha);
    }
  }
}

}  // namespace

Result<StillInfo> look_at_bmp(ByteSpan data) {
  SPK_ASSIGN(const Layout layout, layout_of(data));
  StillInfo info;
  info.width = layout.width;
  info.height = layout.height;
  info.alpha = layout.channels[3].most != 0;
  return info;
}

Result<Still> read_bmp(ByteSpan data, const StillInfo&, const StillRequest& request) {
  SPK_ASSIGN(const Layout layout, layout_of(data));
  const uint64_t need = uint64_t{layout.row_bytes} * layout.height;
  if (!range_fits(layout.pixels_at, need, data.size())) {
    return damaged(str_cat("bmp: the pixels at offset ", layout.pixels_at, " need ", need,
                           " bytes, the file ends at ", data.size()));
  }
  Still still;
  still.pixels.resize(size_t{3} * layout.width * layout.height);
  const bool lays = request.background && layout.channels[3].most != 0;
  const uint32_t ground = request.background.value_or(0);
  for (size_t y = 0; y < layout.height; ++y) {
    const size_t from = layout.top_down ? y : layout.height - 1 - y;
    uint8_t* const to = &still.pixels[3 * layout.width * y];
    for_each_pixel(layout, &data[layout.pixels_at + layout.row_bytes * from],
                   [&](size_t x, uint8_t red, uint8_t green, uint8_t blue, uint8_t alpha) {
                     uint8_t* const pixel = to + 3 * x;
                     pixel[0] = red;
                     pixel[1] = green;
                     pixel[2] = blue;
                     if (!lays) return;
                     pixel[0] = laid_over(red, ground >> 16 & 255, alpha);
                     pixel[1] = laid_over(green, ground >> 8 & 255, alpha);
                     pixel[2] = laid_over(blue, ground & 255, alpha);
                   });
  }
  return still;
}

std::vector<uint8_t> bmp_profile(ByteSpan data) {
  constexpr size_t kLongHeaderBytes = 124;
  if (data.size() < kFileHeaderBytes + kLongHeaderBytes) return {};
  const uint8_t* const info = &data[kFileHeaderBytes];
  if (load_le<uint32_t>(info) != kLongHeaderBytes ||
      load_le<uint32_t>(info + 56) != kEmbeddedProfile) {
    return {};
  }
  const size_t at = kFileHeaderBytes + size_t{load_le<uint32_t>(info + 112)};
  const size_t bytes = load_le<uint32_t>(info + 116);
  if (!range_fits(at, bytes, data.size())) return {};
  const ByteSpan profile = data.subspan(at, bytes);
  return {profile.begin(), profile.end()};
}

}  // namespace spk::image
