// What libpng says of a PNG.
#pragma once

#include "image/formats.h"

namespace spk::image {

// Whether this build can decode PNGs.
bool png_decoder_present() noexcept;
// Decodes row by row; bytes from `end` on are not shown to the decoder.
// REQUIRES png_decoder_present().
Result<Decoded> decode_png(ByteView& view, uint64_t end);

}  // namespace spk::image
