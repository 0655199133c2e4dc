// Which sizes a transform goes through: arithmetic on the options and a picture's size.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "pipeline/transform_options.h"

namespace spk {

constexpr uint32_t kMostSide = 65535;  // of what comes out

struct Size2 {
  uint32_t width = 0;
  uint32_t height = 0;
  bool operator==(const Size2&) const = default;
};

struct PictureGeometry {
  Size2 stored;              // the picture as it is
  uint32_t orientation = 1;  // EXIF's, where it is applied
  Size2 shown;               // after the turn
  Size2 inner;               // after resizing and cropping, before the border
  Size2 made;                // what comes out
  bool crops = false;        // `inner` is the middle of something larger
  uint32_t short_side = 0;   // where it crops by one number: what the shorter side becomes before

  // Left and top of what is inside the border.
  Size2 border() const {
    return {(made.width - inner.width) / 2, (made.height - inner.height) / 2};
  }
  // Every pixel stays where it is.
  bool keeps_places() const {
    return orientation == 1 && stored == made && inner == made && (!crops || shown == inner);
  }
};

// kUnsupported where what comes out would have a side of more than kMostSide or more than
// MAX_PIXELS. REQUIRES a stored width and height of at least 1.
Result<PictureGeometry> plan_geometry(const TransformOptions& options, Size2 stored,
                                      uint32_t orientation, uint64_t max_pixels);

// The least that every picture becomes which is resized: known from the options where the mode says
// both sides, or that W x H is covered. A side of 0: not known.
struct LeastSize {
  uint64_t width = 0;
  uint64_t height = 0;
};
LeastSize least_size(const TransformOptions& options);

}  // namespace spk
