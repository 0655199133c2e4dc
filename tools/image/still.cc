#include "image/still.h"

namespace spk::image {

Result<StillInfo> look_at_still(ByteSpan data, PictureFormat format) {
  switch (format) {
    case PictureFormat::kGif: return look_at_gif(data);
    case PictureFormat::kBmp: return look_at_bmp(data);
    case PictureFormat::kTiff: return look_at_tiff(data);
    default: return internal_error("a still picture of another format was asked for");
  }
}

Result<Still> read_still(ByteSpan data, PictureFormat format, const StillInfo& info,
                         const StillRequest& request) {
  switch (format) {
    case PictureFormat::kGif: return read_gif(data, info, request);
    case PictureFormat::kBmp: return read_bmp(data, info, request);
    case PictureFormat::kTiff: return read_tiff(data, info, request);
    default: return internal_error("a still picture of another format was asked for");
  }
}

std::vector<uint8_t> still_profile(ByteSpan data, PictureFormat format) {
  if (format == PictureFormat::kBmp) return bmp_profile(data);
  if (format == PictureFormat::kTiff) return tiff_profile(data);
  return {};
}

}  // namespace spk::image
