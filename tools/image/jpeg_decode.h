// What libjpeg says of a JPEG.
#pragma once

#include "image/formats.h"

namespace spk::image {

struct JpegDecodeRequest {
  uint64_t end = 0;         // bytes from here on are not shown to the decoder
  bool append_eoi = false;  // an EOI marker is put behind `end`
  uint64_t max_pixels = 0;
  uint64_t max_scans = 0;
};

// Whether this build can decode JPEGs.
bool jpeg_decoder_present() noexcept;
// Decodes all entropy-coded data of the first picture; stops at the first sign of damage.
// REQUIRES jpeg_decoder_present().
Result<Decoded> decode_jpeg(ByteView& view, const JpegDecodeRequest& request);

}  // namespace spk::image
