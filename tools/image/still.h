// GIF, BMP and TIFF pictures as pixels of 8 bits: the first frame or page. For transforms alone;
// libstripepack-image does not decode them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "image/probe.h"

namespace spk::image {

struct StillInfo {
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 3;  // 1: grey, 3: colours, 4: CMYK; alpha is not counted
  bool alpha = false;
  uint32_t orientation = 1;  // EXIF's numbers
  uint64_t work_bytes = 0;   // that reading takes beside 3 bytes a pixel
};

struct StillRequest {
  std::optional<uint32_t> background;  // 0xRRGGBB that alpha lies over; otherwise alpha is dropped
  bool keep_cmyk = false;              // otherwise CMYK becomes RGB by the usual formula
};

// 1, 3 or (CMYK, with 0 for no ink) 4 bytes a pixel, from top to bottom.
struct Still {
  std::vector<uint8_t> pixels;
  uint32_t channels = 3;
  bool has_more = false;  // frames or pages, which are not read
};

constexpr bool is_still(PictureFormat format) noexcept {
  return format == PictureFormat::kGif || format == PictureFormat::kBmp ||
         format == PictureFormat::kTiff;
}

// The header alone. kUnsupported: a kind that is not read here, or by this build; kDamaged: cut or
// in contradiction with itself. REQUIRES is_still(format), and that DATA begins like it.
Result<StillInfo> look_at_still(ByteSpan data, PictureFormat format);

// What has been looked at. Errors as above, and kNoMemory. Thread-safe.
Result<Still> read_still(ByteSpan data, PictureFormat format, const StillInfo& info,
                         const StillRequest& request);

// The colour profile in it as it stands there; empty where there is none.
std::vector<uint8_t> still_profile(ByteSpan data, PictureFormat format);

// Each format's own; bmp needs no library.
Result<StillInfo> look_at_bmp(ByteSpan data);
Result<Still> read_bmp(ByteSpan data, const StillInfo& info, const StillRequest& request);
std::vector<uint8_t> bmp_profile(ByteSpan data);
Result<StillInfo> look_at_gif(ByteSpan data);
Result<Still> read_gif(ByteSpan data, const StillInfo& info, const StillRequest& request);
Result<StillInfo> look_at_tiff(ByteSpan data);
Result<Still> read_tiff(ByteSpan data, const StillInfo& info, const StillRequest& request);
std::vector<uint8_t> tiff_profile(ByteSpan data);

// One channel of a pixel of this alpha over the background's.
inline uint8_t laid_over(uint32_t value, uint32_t ground, uint32_t alpha) noexcept {
  return static_cast<uint8_t>((value * alpha + ground * (255 - alpha) + 127) / 255);
}

// 16 bits to 8, rounded to the nearest.
inline uint8_t scaled_to_8(uint32_t value) noexcept {
  return static_cast<uint8_t>((value * 255 + 32895) >> 16);
}

}  // namespace spk::image
