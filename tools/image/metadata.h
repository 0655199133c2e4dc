// What stands beside the pixels in JPEG, PNG and WebP files.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "image/probe.h"

namespace spk::image {

// The colour profile as it stands in the file, of whatever colours; empty where there is none, or
// it is cut or of more than 4 MiB.
std::vector<uint8_t> embedded_profile(ByteSpan data, PictureFormat format);

// The colour profile if it is whole, of a moderate size and for so many channels (1 or 3);
// otherwise empty. Metadata never cost a picture.
std::vector<uint8_t> icc_profile(ByteSpan data, PictureFormat format, uint32_t channels);

// True where a PNG says which colour is transparent. (Alpha channels show in its header.)
bool png_has_transparency(ByteSpan data);

// The file without EXIF, XMP, text and times; the colour profile and all that pixels need stay, to
// the bit. The file itself where its structure is not understood.
std::vector<uint8_t> without_metadata(ByteSpan data, PictureFormat format);

}  // namespace spk::image
