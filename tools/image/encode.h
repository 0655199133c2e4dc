// Pixels to a picture's bytes. The same pixels, request and library versions give the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "image/probe.h"

namespace spk::image {

struct EncodeRequest {
  PictureFormat format = PictureFormat::kJpeg;  // kJpeg, kPng or kWebp
  uint32_t quality = 95;                        // of JPEG and WebP
  ByteSpan icc;                                 // a colour profile to put in; empty: none
  uint32_t orientation = 1;                     // EXIF's, put in unless 1
};

// 8 bits a channel, HWC, 1 or 3 channels.
struct PixelView {
  const uint8_t* pixels = nullptr;
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 3;
};

bool can_encode(PictureFormat format) noexcept;

// JPEG: baseline, chroma halved both ways, the standard's Huffman tables. PNG: 8 bits, deflate
// level 6. WebP: lossy. kUnsupported where the format has no pictures of this size or the build no
// such encoder; kNoMemory. Thread-safe.
Result<std::vector<uint8_t>> encode_picture(const PixelView& view, const EncodeRequest& request);

// ("libjpeg", "turbo 2.1.5") ... of those that shape what is decoded and encoded; the one for
// colour profiles only where they are converted.
std::vector<std::pair<std::string, std::string>> codec_versions(bool converts_profiles);

// The longest side that the format can have; UINT32_MAX where it is not these that limit it.
uint32_t most_side(PictureFormat format) noexcept;

}  // namespace spk::image
