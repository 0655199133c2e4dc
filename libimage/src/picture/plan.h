// Which part of a picture becomes which output: pure arithmetic on sizes.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"

namespace spk::picture {

enum class Kind : uint32_t {
  kFull = 0,
  kResize = 1,
  kResizeShort = 2,
  kCenterCrop = 3,
  kRandomResizedCrop = 4,
  kCoverCrop = 5,  // so large that width x height is covered, of which the middle; not in the API
};

// How source pixels are weighed. kAreaOfSlopes: as kArea, of what lies on straight lines between
// the middles of pixels; for chroma that is coarser than luma, which decoders spread so. kBilinear:
// a triangle as wide as two output pixels. kArea: the part of each pixel that the output pixel
// covers; where it enlarges, as kBilinear. kLanczos: sinc windowed by sinc, three lobes a side.
// Where they enlarge, all are as wide as for the same size.
enum class Interpolation : uint32_t { kBilinear = 0, kArea = 1, kLanczos = 2, kAreaOfSlopes = 3 };

constexpr uint64_t kDefaultMaxPixels = 178956970;  // as the packing tools, and as Pillow
constexpr uint32_t kMaxOutputSide = 65535;

struct Ops {
  Kind kind = Kind::kFull;
  bool planar = false;  // CHW
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t short_side = 0;
  bool exif_orientation = false;
  Interpolation interpolation = Interpolation::kBilinear;
  // A JPEG may be reduced while it is decoded as long as so many of its pixels a side are left for
  // each that is made.
  double pixels_left = 1;
  std::optional<uint32_t> background;  // 0xRRGGBB that alpha lies over; otherwise alpha is dropped
  double flip_probability = 0;
  double scale_min = 0.08;
  double scale_max = 1;
  double ratio_min = 3.0 / 4;
  double ratio_max = 4.0 / 3;
  uint64_t max_pixels = kDefaultMaxPixels;
  uint64_t seed = 0;
  uint64_t epoch = 0;
};

// kInvalidArgument where a number is out of its range.
Status check_ops(const Ops& ops);

// One axis of a resampling. Output pixel i covers [origin + i * scale, origin + (i + 1) * scale) of
// the source, whose pixel k covers [k, k + 1); nothing outside of [begin, end) is looked at.
struct Axis {
  double origin = 0;
  double scale = 1;
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t count = 0;  // of output pixels

  bool operator==(const Axis&) const = default;
  // Output pixels are source pixels.
  bool is_copy() const noexcept {
    return scale == 1 && origin == static_cast<double>(begin) && count == end - begin;
  }
};

struct Plan {
  Axis x;
  Axis y;
  bool flip = false;
};

// REQUIRES check_ops(ops) and width, height > 0.
Plan make_plan(uint32_t width, uint32_t height, const Ops& ops, uint64_t sample);

}  // namespace spk::picture
