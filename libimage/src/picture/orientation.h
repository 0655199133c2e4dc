// The turn that EXIF asks for.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace spk::picture {

// From a picture as stored to one as shown: pixel (X, Y) shown is pixel (x, y) stored, where x is X
// (Y if transposed), counted from the right if flip_x, and y the other one, likewise.
struct Turn {
  bool transpose = false;
  bool flip_x = false;
  bool flip_y = false;
};

// ORIENTATION is EXIF's, 1 to 8; any other number is taken for 1.
Turn turn_of(uint32_t orientation) noexcept;
// TURN, then left and right of what is shown exchanged.
Turn mirrored(Turn turn) noexcept;

// The orientation in an EXIF block, which begins with its TIFF header ("II" or "MM"). 1 where it
// has none, or is damaged: metadata never cost a picture.
uint32_t exif_orientation(ByteSpan tiff) noexcept;

}  // namespace spk::picture
