#include "image/probe.h"

#include <new>

#include "base/text.h"
#include "image/formats.h"

namespace spk {

const char* picture_format_name(PictureFormat format) noexcept {
  switch (format) {
    case PictureFormat::kUnknown: return "unknown";
    case PictureFormat::kJpeg: return "jpeg";
    case PictureFormat::kPng: return "png";
    case PictureFormat::kWebp: return "webp";
    case PictureFormat::kGif: return "gif";
    case PictureFormat::kBmp: return "bmp";
    case PictureFormat::kTiff: return "tiff";
  }
  return "unknown";
}

bool picture_format_supported(PictureFormat format) noexcept {
  switch (format) {
    case PictureFormat::kUnknown: return false;
    case PictureFormat::kJpeg:
    case PictureFormat::kPng:
    case PictureFormat::kBmp: return true;
    case PictureFormat::kWebp:
#if SPK_HAVE_WEBP
      return true;
#else
      return false;
#endif
    case PictureFormat::kGif:
#if SPK_HAVE_GIF
      return true;
#else
      return false;
#endif
    case PictureFormat::kTiff:
#if SPK_HAVE_TIFF
      return true;
#else
      return false;
#endif
  }
  return false;
}

namespace image {
namespace {

const char* library_of(PictureFormat format) {
  switch (format) {
    case PictureFormat::kWebp: return "libwebp";
    case PictureFormat::kGif: return "giflib";
    case PictureFormat::kTiff: return "libtiff";
    default: return "decoder";
  }
}

Status probe_format(ByteView& view, const ProbeOptions& options, ProbeResult& result) {
  switch (result.format) {
    case PictureFormat::kUnknown: return Status();
    case PictureFormat::kJpeg: return probe_jpeg(view, options, result);
    case PictureFormat::kPng: return probe_png(view, options, result);
    case PictureFormat::kWebp: return probe_webp(view, options, result);
    case PictureFormat::kGif: return probe_gif(view, options, result);
    case PictureFormat::kBmp: return probe_bmp(view, options, result);
    case PictureFormat::kTiff: return probe_tiff(view, options, result);
  }
  return Status();
}

Status probe_any(ByteView& view, const ProbeOptions& options, ProbeResult& result) {
  if (view.size() == 0) {
    result.reject = "empty file";
  } else {
    SPK_ASSIGN(Sniffed sniffed, sniff(view));
    result.format = sniffed.format;
    result.reject = std::move(sniffed.reject);
    if (result.format != PictureFormat::kUnknown) {
      if (options.check != CheckMode::kNone && !picture_format_supported(result.format)) {
        result.reject = str_cat("unsupported format: ", picture_format_name(result.format),
                                " (this build has no ", library_of(result.format), ")");
      } else {
        SPK_TRY(probe_format(view, options, result));
      }
    }
  }
  if (options.check == CheckMode::kNone) {
    result.reject.clear();
    result.warnings.clear();
  }
  return Status();
}

}  // namespace

bool over_pixel_limit(const ProbeOptions& options, ProbeResult& result) {
  const uint64_t pixels = uint64_t{result.height} * result.width;
  if (pixels <= options.max_pixels) return false;
  result.reject = str_cat("over the pixel limit: ", result.height, " x ", result.width, " = ",
                          format_count(pixels), " pixels, the limit is ",
                          format_count(options.max_pixels), " (--max-pixels)");
  return true;
}

bool over_frames_limit(const ProbeOptions& options, uint64_t pixels, ProbeResult& result) {
  constexpr uint64_t kFactor = 16;
  if (pixels / kFactor <= options.max_pixels) return false;
  result.reject =
      str_cat("over the pixel limit: its frames have more than ", format_count(options.max_pixels),
              " x ", kFactor, " pixels (--max-pixels)");
  return true;
}

std::string truncated(std::string_view what, uint64_t offset, uint64_t need, uint64_t file_size) {
  return str_cat("truncated: ", what, " at offset ", offset, " needs ", need,
                 " bytes, the file ends at ", file_size);
}

std::unique_lock<std::mutex> heavy_decode_lock(uint64_t pixels) {
  static std::mutex mutex;
  return pixels > kHeavyPixels ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
}

}  // namespace image

Result<ProbeResult> probe_picture(ByteView& view, const ProbeOptions& options) {
  ProbeResult result;
  try {
    SPK_TRY(image::probe_any(view, options, result));
  } catch (const std::bad_alloc&) {
    return Status(Code::kNoMemory, "no memory left to check a picture");
  }
  return result;
}

}  // namespace spk
