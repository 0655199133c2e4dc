// Tells what a file's bytes are, by content and never by name, and whether the picture is whole.
//
// CheckMode::kNone       reads the header for the dimensions and rejects nothing.
// CheckMode::kStructure  walks the structure without decoding pixels, and decodes what looks
//                        suspicious. A file cut at any byte is rejected, with these exceptions: a
//                        JPEG that lacks nothing but its EOI marker is accepted with a warning, and
//                        so is a BMP that lacks only what lies behind its pixels.
//                        Not seen: damage inside compressed data that leaves its framing in order
//                        (bits flipped in a JPEG scan, or a JPEG scan cut short and closed by a new
//                        EOI that is still long enough for its number of blocks).
// CheckMode::kDecode     decodes everything; what the decoder calls corrupt is rejected.
//
// Metadata (EXIF, ICC, text) never rejects a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/byte_view.h"
#include "pipeline/pack_options.h"

namespace spk {

enum class PictureFormat { kUnknown, kJpeg, kPng, kWebp, kGif, kBmp, kTiff };

// "jpeg", "png", ...; "unknown". Never null.
const char* picture_format_name(PictureFormat format) noexcept;
// Whether this build accepts the format: JPEG, PNG and BMP always, the others where their library
// was found.
bool picture_format_supported(PictureFormat format) noexcept;

struct ProbeOptions {
  CheckMode check = CheckMode::kStructure;
  uint64_t max_pixels = PackOptions{}.max_pixels;  // more are rejected before anything is allocated
};

struct ProbeResult {
  PictureFormat format = PictureFormat::kUnknown;
  // As coded in the file; 0 where unknown. CMYK has 4 channels, RGBA 4, grey and alpha 2, a palette
  // 3, grey and 1 bit 1. An EXIF turn is not applied.
  uint32_t height = 0;
  uint32_t width = 0;
  uint32_t channels = 0;
  std::string reject;                 // empty: accepted; otherwise the reason, with figures
  std::vector<std::string> warnings;  // kinds: "no EOI marker", "bytes after the end", ...
  bool decoded = false;               // a decoder saw all pixels
};

// A Status tells only of errors of the view (and of memory); all that the content can be is a
// ProbeResult. Thread-safe for different views. Memory is bounded by windows and rows, except for
// what a format forces: progressive and multi-scan JPEGs need 2 bytes a coefficient, lossless WebP
// 4 bytes a pixel; such pictures of more than 16 million pixels are decoded one at a time.
Result<ProbeResult> probe_picture(ByteView& view, const ProbeOptions& options);

}  // namespace spk
