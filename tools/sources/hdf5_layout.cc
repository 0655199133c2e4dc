#include "sources/hdf5_layout.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.h"

namespace spk {

namespace {

bool can_be_channels(uint64_t size) { return size == 1 || size == 3 || size == 4; }

std::string sizes_text(const std::vector<uint64_t>& sizes) {
  std::string text = "(N";
  for (const uint64_t size : sizes) text += str_cat(", ", size);
  return text + ")";
}

template <typename T>
T load(const uint8_t* from, bool big_endian) {
  return big_endian ? load_be<T>(from) : load_le<T>(from);
}

double value_at(const uint8_t* from, const ArrayElement& element) {
  const bool big = element.big_endian;
  if (element.kind == ArrayElement::Kind::kFloat) {
    if (element.bytes == 8) return std::bit_cast<double>(load<uint64_t>(from, big));
    return double{std::bit_cast<float>(load<uint32_t>(from, big))};
  }
  uint64_t bits = 0;
  switch (element.bytes) {
    case 1: bits = from[0]; break;
    case 2: bits = load<uint16_t>(from, big); break;
    case 4: bits = load<uint32_t>(from, big); break;
    default: bits = load<uint64_t>(from, big); break;
  }
  if (element.kind == ArrayElement::Kind::kUnsigned) return static_cast<double>(bits);
  const unsigned unused = 64 - 8 * element.bytes;
  return static_cast<double>(static_cast<int64_t>(bits << unused) >> unused);
}

double top_of(ArrayScale scale) {
  return scale == ArrayScale::kUnit ? 1.0 : scale == ArrayScale::kWord ? 65535.0 : 255.0;
}

// Not a number becomes 0.
uint8_t to_byte(double value, double top) {
  if (!(value > 0)) return 0;
  if (value >= top) return 255;
  return static_cast<uint8_t>(std::lround(value * (255.0 / top)));
}

// What is asked for must not be what the sizes plainly are not: 32 channels and pictures 3 wide,
// where the last size can be channels and the one that is said to be them cannot.
Status check_channels(const std::vector<uint64_t>& sizes, const std::string& order,
                      const std::string& asked) {
  const size_t said = order.find('c');
  if (sizes.size() != 3 || said == order.npos || can_be_channels(sizes[said])) return {};
  if (can_be_channels(sizes[0]) == can_be_channels(sizes[2])) return {};
  const bool last = can_be_channels(sizes[2]);
  if (said == (last ? 2 : 0)) return {};
  return invalid_argument(str_cat("--array-layout ", asked, " makes sizes ", sizes_text(sizes),
                                  " pictures of ", sizes[said], " channels, but they are plainly ",
                                  last ? "N,H,W,C" : "N,C,H,W"))
      .with_hint(str_cat("--array-layout ", last ? "nhwc or nwhc" : "nchw or ncwh",
                         ", or none: then the sizes tell"));
}

}  // namespace

Result<ArrayLayout> resolve_layout(const std::vector<uint64_t>& sizes, const std::string& asked) {
  ArrayLayout layout;
  if (sizes.size() != 2 && sizes.size() != 3) {
    return invalid_argument(str_cat("an array of sizes ", sizes_text(sizes), " holds no pictures"));
  }
  if (std::any_of(sizes.begin(), sizes.end(),
                  [](uint64_t size) { return size == 0 || size > UINT32_MAX; })) {
    return invalid_argument(str_cat("no pictures have the sizes ", sizes_text(sizes)));
  }
  if (!asked.empty()) {
    std::string sorted = asked;
    std::sort(sorted.begin(), sorted.end());
    if ((sorted != "chnw" && sorted != "hnw") || asked[0] != 'n') {
      return invalid_argument(str_cat("--array-layout ", escape_bytes(asked),
                                      " is none that is read: n, h, w and perhaps c, n first"));
    }
    if (asked.size() != sizes.size() + 1) {
      return invalid_argument(
          str_cat("--array-layout ", asked, " does not go with the sizes ", sizes_text(sizes)));
    }
    layout.order = asked.substr(1);
    SPK_TRY(check_channels(sizes, layout.order, asked));
  } else if (sizes.size() == 2) {
    layout.order = "hw";
  } else {
    const bool first = can_be_channels(sizes[0]);
    const bool last = can_be_channels(sizes[2]);
    if (first == last) {
      return invalid_argument(str_cat("sizes ", sizes_text(sizes), " can be ",
                                      first
                                          ? "N,H,W,C as well as N,C,H,W"
                                          : "neither N,H,W,C nor N,C,H,W with 1, 3 or 4 channels"))
          .with_hint("--array-layout nhwc or nchw says which it is");
    }
    layout.order = last ? "hwc" : "chw";
  }
  layout.pixels.channels = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto size = static_cast<uint32_t>(sizes[i]);
    (layout.order[i] == 'h'   ? layout.pixels.height
     : layout.order[i] == 'w' ? layout.pixels.width
                              : layout.pixels.channels) = size;
  }
  return layout;
}

const char* scale_name(ArrayScale scale) noexcept {
  switch (scale) {
    case ArrayScale::kUnsaid: return "unsaid";
    case ArrayScale::kUnit: return "unit";
    case ArrayScale::kByte: return "byte";
    case ArrayScale::kWord: return "word";
  }
  return "unknown";
}

Status check_scale(const ArrayElement& element, ArrayScale scale) {
  if (element.is_byte() || scale != ArrayScale::kUnsaid) return {};
  const char* const kind = element.kind == ArrayElement::Kind::kFloat    ? "float"
                           : element.kind == ArrayElement::Kind::kSigned ? "int"
                                                                         : "uint";
  return invalid_argument(str_cat("pictures of ", kind, 8 * element.bytes,
                                  ": what their values stand for is not said"))
      .with_hint(
          "--array-scale unit (0 to 1), byte (0 to 255) or word (0 to 65535) says it; they become "
          "bytes");
}

void to_pixels(ByteSpan raw, const ArrayElement& element, const ArrayLayout& layout,
               ArrayScale scale, MutableByteSpan pixels) {
  const uint64_t height = layout.pixels.height, width = layout.pixels.width;
  const uint64_t channels = layout.pixels.channels;
  // How far apart neighbours lie in RAW.
  uint64_t step_h = 0, step_w = 0, step_c = 0, step = element.bytes;
  for (size_t i = layout.order.size(); i-- > 0;) {
    const char size = layout.order[i];
    (size == 'h' ? step_h : size == 'w' ? step_w : step_c) = step;
    step *= size == 'h' ? height : size == 'w' ? width : channels;
  }
  const double top = top_of(scale);
  const bool plain =
      element.is_byte() && (scale == ArrayScale::kUnsaid || scale == ArrayScale::kByte);
  uint8_t* to = pixels.data();
  for (uint64_t y = 0; y < height; ++y) {
    for (uint64_t x = 0; x < width; ++x) {
      const uint8_t* from = raw.data() + y * step_h + x * step_w;
      for (uint64_t c = 0; c < channels; ++c, from += step_c) {
        *to++ = plain ? *from : to_byte(value_at(from, element), top);
      }
    }
  }
}

bool fits_scale(ByteSpan raw, const ArrayElement& element, ArrayScale scale) {
  const double top = top_of(scale);
  for (uint64_t at = 0; at + element.bytes <= raw.size(); at += element.bytes) {
    const double value = value_at(raw.data() + at, element);
    if (!(value >= 0 && value <= top)) return false;
  }
  return true;
}

}  // namespace spk
