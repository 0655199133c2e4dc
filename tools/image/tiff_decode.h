// What libtiff says of a TIFF.
#pragma once

#include "image/formats.h"

namespace spk::image {

// Decodes the first page, strip by strip or tile by tile. REQUIRES
// picture_format_supported(PictureFormat::kTiff).
Result<Decoded> decode_tiff(ByteView& view);

}  // namespace spk::image
