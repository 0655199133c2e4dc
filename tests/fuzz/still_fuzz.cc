// Any bytes taken for a GIF, BMP or TIFF whose pixels are wanted; the first bytes say with which
// wishes. Neither a crash nor other pixels than were promised, and the same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "image/still.h"

namespace {

constexpr uint64_t kMostPixels = uint64_t{1} << 20;

spk::PictureFormat format_of(uint8_t first) {
  switch (first) {
    case 'G': return spk::PictureFormat::kGif;
    case 'I':
    case 'M': return spk::PictureFormat::kTiff;
    default: return spk::PictureFormat::kBmp;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  spk::image::StillRequest request;
  if ((data[0] & 1) != 0) request.background = data[1] * 0x10203u;
  request.keep_cmyk = (data[0] & 2) != 0;
  const spk::ByteSpan bytes(data + 2, size - 2);
  const spk::PictureFormat format = format_of(bytes[0]);
  const auto profile = spk::image::still_profile(bytes, format);
  if (profile.size() > size) std::abort();
  const auto info = spk::image::look_at_still(bytes, format);
  if (!info.ok()) {
    const spk::Code code = info.status().code();
    if (code != spk::Code::kDamaged && code != spk::Code::kUnsupported) std::abort();
    return 0;
  }
  const uint64_t pixels = uint64_t{info->width} * info->height;
  if (pixels == 0) std::abort();
  if (pixels > kMostPixels || info->work_bytes > 8 * kMostPixels) return 0;
  const auto still = spk::image::read_still(bytes, format, *info, request);
  if (!still.ok()) return 0;
  if (still->channels != 1 && still->channels != 3 && still->channels != 4) std::abort();
  if (still->channels == 4 && !request.keep_cmyk) std::abort();
  if (still->pixels.size() != pixels * still->channels) std::abort();
  const auto again = spk::image::read_still(bytes, format, *info, request);
  if (!again.ok() || again->pixels != still->pixels) std::abort();
  return 0;
}
