// Which sizes of an array of pictures are which, and how its elements become pixels. Pure
// arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "pipeline/pack_options.h"
#include "sources/source.h"

namespace spk {

// One element as it lies in the file.
struct ArrayElement {
  enum class Kind { kUnsigned, kSigned, kFloat };
  Kind kind = Kind::kUnsigned;
  uint32_t bytes = 1;
  bool big_endian = false;
  bool operator==(const ArrayElement&) const = default;
  bool is_byte() const noexcept { return kind == Kind::kUnsigned && bytes == 1; }
};

// How one picture lies: the order of its sizes, slowest first, out of 'h', 'w' and 'c'.
struct ArrayLayout {
  std::string order;
  PixelDimensions pixels;
  uint64_t elements() const noexcept {
    return uint64_t{pixels.height} * pixels.width * pixels.channels;
  }
};

// SIZES are those of one picture: two (grey), or three. ASKED is --array-layout: "nhwc", "nchw",
// "nhw" and the like, the n first; empty: told by the size that can be a number of channels (1, 3
// or 4). kInvalidArgument, naming the option, where both ends or neither can be.
Result<ArrayLayout> resolve_layout(const std::vector<uint64_t>& sizes, const std::string& asked);

// kInvalidArgument, naming --array-scale, where it is not said what the elements stand for and they
// are no bytes.
Status check_scale(const ArrayElement& element, ArrayScale scale);
const char* scale_name(ArrayScale scale) noexcept;

// RAW holds the elements of one picture. Into height x width x channels bytes; values outside what
// the scale says become its ends.
void to_pixels(ByteSpan raw, const ArrayElement& element, const ArrayLayout& layout,
               ArrayScale scale, MutableByteSpan pixels);
// Whether all values lie within what the scale says (and are numbers).
bool fits_scale(ByteSpan raw, const ArrayElement& element, ArrayScale scale);

}  // namespace spk
