#include "image/transform_geometry.h"

#include <algorithm>

#include "base/text.h"

namespace spk {

namespace {

struct Wide {
  uint64_t width = 0;
  uint64_t height = 0;
};

// Rounds half up, exactly.
uint64_t in_proportion(uint64_t side, uint64_t to, uint64_t of) {
  return std::max<uint64_t>((2 * side * to + of) / (2 * of), 1);
}

// The shape of FROM, so large that one side is that of the box: all of it inside, or all of the box
// covered.
Wide in_shape(Size2 from, Size2 box, bool covers) {
  const bool wider =
      uint64_t{from.width} * box.height >= uint64_t{from.height} * box.width;  // than the box
  if (wider == covers) {
    return {in_proportion(from.width, box.height, from.height), box.height};
  }
  return {box.width, in_proportion(from.height, box.width, from.width)};
}

// By one number: N is the shorter side or the longer one.
Wide by_side(Size2 from, uint32_t number, bool longer) {
  const uint64_t of =
      longer ? std::max(from.width, from.height) : std::min(from.width, from.height);
  return {in_proportion(from.width, number, of), in_proportion(from.height, number, of)};
}

bool by_longer(ResizeMode mode) {
  return mode == ResizeMode::kKeepRatioLargest || mode == ResizeMode::kBorder;
}

bool gets_smaller(const TransformOptions& options, Size2 from) {
  if (options.box) {
    const bool wider = from.width > options.width;
    const bool higher = from.height > options.height;
    const bool covers =
        options.mode == ResizeMode::kKeepRatioLargest || options.mode == ResizeMode::kCenterCrop;
    return covers ? wider && higher : wider || higher;
  }
  const uint32_t shorter = std::min(from.width, from.height);
  const uint32_t longer = std::max(from.width, from.height);
  const bool of_longer = options.mode == ResizeMode::kExact || by_longer(options.mode);
  return (of_longer ? longer : shorter) > options.width;
}

Wide resized(const TransformOptions& options, Size2 from) {
  const Size2 box = {options.width, options.height};
  switch (options.mode) {
    case ResizeMode::kExact:
    case ResizeMode::kCenterCrop: return {box.width, box.height};
    case ResizeMode::kKeepRatio:
      return options.box ? in_shape(from, box, false) : by_side(from, options.width, false);
    case ResizeMode::kKeepRatioLargest:
      return options.box ? in_shape(from, box, true) : by_side(from, options.width, true);
    case ResizeMode::kBorder:
      return options.box ? in_shape(from, box, false) : by_side(from, options.width, true);
  }
  return {};
}

}  // namespace

Result<PictureGeometry> plan_geometry(const TransformOptions& options, Size2 stored,
                                      uint32_t orientation, uint64_t max_pixels) {
  PictureGeometry geometry;
  geometry.stored = geometry.shown = stored;
  if (options.orient && orientation >= 2 && orientation <= 8) geometry.orientation = orientation;
  if (geometry.orientation >= 5) std::swap(geometry.shown.width, geometry.shown.height);
  geometry.inner = geometry.made = geometry.shown;
  if (!options.resizes()) return geometry;
  if (options.only_if_bigger && !gets_smaller(options, geometry.shown)) return geometry;
  const Wide inner = resized(options, geometry.shown);
  Wide made = inner;
  if (options.mode == ResizeMode::kBorder) made = {options.width, options.height};
  if (std::max(made.width, made.height) > kMostSide || made.width * made.height > max_pixels) {
    return unsupported(str_cat("it would have ", made.width, " x ", made.height, " pixels"));
  }
  geometry.inner = {static_cast<uint32_t>(inner.width), static_cast<uint32_t>(inner.height)};
  geometry.made = {static_cast<uint32_t>(made.width), static_cast<uint32_t>(made.height)};
  geometry.crops = options.mode == ResizeMode::kCenterCrop;
  if (geometry.crops && !options.box) geometry.short_side = options.width;
  return geometry;
}

LeastSize least_size(const TransformOptions& options) {
  if (!options.resizes()) return {};
  const bool fits_inside =
      options.mode == (options.box ? ResizeMode::kKeepRatio : ResizeMode::kKeepRatioLargest);
  if (!fits_inside) return {options.width, options.height};
  // One of the sides becomes that of the box; the other one may be anything.
  return {0, 0};
}

}  // namespace spk
