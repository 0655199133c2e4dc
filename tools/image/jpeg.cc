// JPEG: the walk's verdict, and the decoder's where the walk cannot tell.
#include <algorithm>

#include "base/text.h"
#include "image/formats.h"
#include "image/jpeg_decode.h"
#include "image/jpeg_walk.h"

namespace spk::image {
namespace {

// Each scan of a progressive picture visits every block, however few bytes it has: many scans over
// a large picture would keep a decoder busy for hours.
constexpr uint64_t kScansAlwaysDecoded = 100;
constexpr uint64_t kMaxScans = 1000;
constexpr uint64_t kMaxScanPixels = uint64_t{20} * 1000 * 1000 * 1000;

Status ask_decoder(ByteView& view, const ProbeOptions& options, JpegWalk& walk,
                   ProbeResult& result) {
  if (!jpeg_decoder_present()) {
    // Structure is all that this build can check, and it is in order unless there is a suspicion.
    if (walk.cut) {
      result.reject = str_cat("truncated: no EOI marker behind the scan at offset ", walk.cut_at,
                              "; this build has no libjpeg to tell whether only that is missing");
    } else if (!walk.suspicion.empty()) {
      result.reject =
          str_cat("corrupt scan: ", walk.suspicion, "; this build has no libjpeg to tell more");
    } else {
      result.reject = "cannot be decoded: this build has no libjpeg";
    }
    return Status();
  }
  const uint64_t pixels = uint64_t{walk.height} * walk.width;
  const uint64_t max_scans =
      std::clamp(kMaxScanPixels / std::max<uint64_t>(pixels, 1), kScansAlwaysDecoded, kMaxScans);
  if (walk.scans > max_scans) {
    result.reject =
        str_cat("corrupt scan: ", walk.scans, " scans of ", format_count(pixels), " pixels");
    return Status();
  }
  JpegDecodeRequest request;
  request.end = walk.end != 0 ? walk.end : view.size();
  request.append_eoi = walk.cut;
  request.max_pixels = options.max_pixels;
  request.max_scans = max_scans;
  SPK_ASSIGN(Decoded decoded, decode_jpeg(view, request));
  result.decoded = decoded.whole;
  if (decoded.whole) {
    if (!walk.cut && walk.end == 0) walk.end = decoded.end;
    return Status();
  }
  if (walk.cut) {
    result.reject =
        str_cat("truncated: the file ends at ", view.size(), " within the scan at offset ",
                walk.cut_at, "; libjpeg: ", decoded.complaint);
  } else if (!walk.suspicion.empty()) {
    result.reject = str_cat("corrupt scan: ", walk.suspicion, "; libjpeg: ", decoded.complaint);
  } else {
    result.reject = str_cat("corrupt scan: libjpeg: ", decoded.complaint);
  }
  return Status();
}

}  // namespace

bool JpegWalk::has_all_components() const {
  for (size_t i = 0; i < component_count; ++i) {
    if (components[i].missing_bits[0] == JpegComponent::kNeverSent) return false;
  }
  return component_count > 0;
}

bool JpegWalk::has_all_bits() const {
  for (size_t i = 0; i < component_count; ++i) {
    for (int8_t missing : components[i].missing_bits) {
      if (missing != 0) return false;
    }
  }
  return component_count > 0;
}

Status probe_jpeg(ByteView& view, const ProbeOptions& options, ProbeResult& result) {
  const bool header_only = options.check == CheckMode::kNone;
  SPK_ASSIGN(JpegWalk walk, walk_jpeg(view, header_only));
  result.height = walk.height;
  result.width = walk.width;
  result.channels = walk.component_count;
  if (header_only || over_pixel_limit(options, result)) return Status();
  if (!walk.reject.empty()) {
    result.reject = std::move(walk.reject);
    return Status();
  }
  if (options.check == CheckMode::kDecode || walk.cut || !walk.suspicion.empty()) {
    SPK_TRY(ask_decoder(view, options, walk, result));
    if (!result.reject.empty()) return Status();
  }
  if (walk.cut) result.warnings.emplace_back(kWarnNoEoi);
  if (walk.end != 0 && walk.end < view.size()) result.warnings.emplace_back(kWarnTail);
  if (walk.end != 0 && !walk.has_all_bits()) result.warnings.emplace_back(kWarnProgression);
  return Status();
}

}  // namespace spk::image
