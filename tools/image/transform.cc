#include "image/transform.h"

#include <algorithm>

#include "base/text.h"
#include "image/encode.h"

namespace spk {

namespace {

// About what a pixel takes while a picture is made; see Transformer.
constexpr uint64_t kBytesOfPixel = 8;

const char* encode_word(EncodeAs encode) {
  switch (encode) {
    case EncodeAs::kJpeg: return "JPEG";
    case EncodeAs::kWebp: return "WebP";
    default: return "picture";
  }
}

// What no picture can become: every one would be rejected, after all of the source was read.
Status check_size(const TransformOptions& options, uint64_t max_pixels, uint64_t memory_bytes) {
  const std::string size =
      options.box ? str_cat(options.width, "x", options.height) : str_cat(options.width);
  const uint32_t longest = std::max(options.width, options.height);
  if (options.width == 0 || options.height == 0) {
    return invalid_argument(str_cat("--resize ", size, " leaves no pixels"));
  }
  if (longest > kMostSide) {
    return invalid_argument(
        str_cat("--resize ", size, " is too large: a side may have ", kMostSide, " pixels"));
  }
  const uint32_t most = image::most_side(picture_format_of(options.encode));
  if (longest > most) {
    return invalid_argument(str_cat("--resize ", size, " is too large: a ",
                                    encode_word(options.encode), " side may have ", most,
                                    " pixels"))
        .with_hint("choose another --encode, or a smaller size");
  }
  const LeastSize least = least_size(options);
  const uint64_t pixels = least.width * least.height;
  if (pixels > max_pixels) {
    return invalid_argument(str_cat("--resize ", size, " makes pictures of ", format_count(pixels),
                                    " pixels, --max-pixels allows ", format_count(max_pixels)));
  }
  if (pixels > memory_bytes / kBytesOfPixel) {
    return invalid_argument(
               str_cat("--resize ", size, " needs about ", format_size(pixels * kBytesOfPixel),
                       " to make a picture, --memory allows ", format_size(memory_bytes)))
        .with_hint("raise --memory, or choose a smaller size");
  }
  return {};
}

}  // namespace

PictureFormat picture_format_of(EncodeAs encode) noexcept {
  switch (encode) {
    case EncodeAs::kJpeg: return PictureFormat::kJpeg;
    case EncodeAs::kPng: return PictureFormat::kPng;
    case EncodeAs::kWebp: return PictureFormat::kWebp;
    default: return PictureFormat::kUnknown;
  }
}

Status check_transform(const TransformOptions& options, uint64_t max_pixels,
                       uint64_t memory_bytes) {
  if (!options.mask_fields.empty() && !options.on()) {
    return invalid_argument("--mask-field needs --resize or --orient");
  }
  if (!options.on()) return {};
#if !SPK_HAVE_IMAGE
  return unsupported("this build has no picture library, which transforms need")
      .with_hint("build with libjpeg and SPK_BUILD_IMAGE=ON");
#endif
  if (options.resizes()) SPK_TRY(check_size(options, max_pixels, memory_bytes));
  if (options.only_if_bigger && !options.resizes()) {
    return invalid_argument("--only-if-bigger needs --resize");
  }
  if (options.encode != EncodeAs::kSame && options.encode != EncodeAs::kRaw &&
      !image::can_encode(picture_format_of(options.encode))) {
    return unsupported(str_cat("this build cannot encode ",
                               picture_format_name(picture_format_of(options.encode))))
        .with_hint("build with libpng and libwebp, or choose another --encode");
  }
  if (options.profile == ProfileMode::kSrgb && !image::can_convert_profiles()) {
    return unsupported("this build has no Little CMS, which --icc srgb needs")
        .with_hint(
            "install liblcms2-dev (lcms2-devel) and build again, or leave profiles as they "
            "are: --icc keep");
  }
  if (!options.mask_fields.empty() && !image::can_encode(PictureFormat::kPng)) {
    return unsupported("this build has no libpng, which --mask-field needs")
        .with_hint("install libpng-dev and build again");
  }
  return {};
}

uint64_t estimated_bytes(const TransformOptions& options, uint64_t bytes) {
  const uint64_t channels = options.colour == ColourMode::kGray ? 1 : 3;
  uint64_t pixels = uint64_t{options.width} * options.height;
  // Photographs are mostly of 4 : 3.
  const bool larger =
      options.mode == (options.box ? ResizeMode::kKeepRatioLargest : ResizeMode::kKeepRatio);
  const bool smaller =
      options.mode == (options.box ? ResizeMode::kKeepRatio : ResizeMode::kKeepRatioLargest);
  if (larger) pixels = pixels * 4 / 3;
  if (smaller) pixels = pixels * 3 / 4;
  if (options.encode == EncodeAs::kRaw) {
    // Of a picture whose size stays, about ten times what JPEG takes.
    return options.resizes() ? std::max<uint64_t>(pixels * channels, 1) : 10 * bytes;
  }
  if (!options.resizes()) return bytes;
  const uint64_t encoded = options.encode == EncodeAs::kPng ? pixels * channels * 2 / 3
                                                            : pixels * (options.quality + 20) / 400;
  return std::max<uint64_t>(std::min(encoded, bytes), 1);
}

}  // namespace spk
