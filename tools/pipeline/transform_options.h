// What `pack` and `repack` do to pictures on the way. All of it shapes bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spk {

enum class ResizeMode { kKeepRatio, kKeepRatioLargest, kCenterCrop, kBorder, kExact };
enum class ResizeFilter { kArea, kLanczos, kBilinear };
enum class EncodeAs { kSame, kJpeg, kPng, kWebp, kRaw };  // kSame: the picture's own format
enum class ColourMode { kSame, kRgb, kGray };
enum class ProfileMode { kKeep, kSrgb };  // kKeep: it goes with the pixels, which stay as they are

struct TransformOptions {
  uint32_t width = 0;  // 0: no resizing
  uint32_t height = 0;
  bool box = false;  // W x H; otherwise one number, which is both
  ResizeMode mode = ResizeMode::kKeepRatio;
  bool only_if_bigger = false;
  ResizeFilter filter = ResizeFilter::kArea;
  EncodeAs encode = EncodeAs::kSame;
  uint32_t quality = 95;  // of JPEG and WebP, 1 to 100
  ColourMode colour = ColourMode::kSame;
  bool orient = false;
  bool strip_metadata = false;
  std::optional<uint32_t> background;  // 0xRRGGBB; unset: alpha is dropped, borders are white
  ProfileMode profile = ProfileMode::kKeep;
  std::vector<std::string> mask_fields;  // names of those that go where the picture goes

  bool resizes() const { return width != 0; }
  bool on() const {
    return resizes() || encode != EncodeAs::kSame || colour != ColourMode::kSame || orient ||
           strip_metadata || background.has_value() || profile != ProfileMode::kKeep;
  }
};

}  // namespace spk
