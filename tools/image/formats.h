// Internal to image/: what the dispatcher calls and what the formats share.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "image/probe.h"

namespace spk::image {

// What the first bytes are. Either a format that has a prober, or text that says what it is.
struct Sniffed {
  PictureFormat format = PictureFormat::kUnknown;
  std::string reject;  // kUnknown: why it cannot be a sample
};
Result<Sniffed> sniff(ByteView& view);

// Each fills height, width and channels as early as it can, then (not for CheckMode::kNone) checks
// the rest and sets reject or adds warnings. The signature has been seen by sniff().
Status probe_jpeg(ByteView& view, const ProbeOptions& options, ProbeResult& result);
Status probe_png(ByteView& view, const ProbeOptions& options, ProbeResult& result);
Status probe_webp(ByteView& view, const ProbeOptions& options, ProbeResult& result);
Status probe_gif(ByteView& view, const ProbeOptions& options, ProbeResult& result);
Status probe_bmp(ByteView& view, const ProbeOptions& options, ProbeResult& result);
Status probe_tiff(ByteView& view, const ProbeOptions& options, ProbeResult& result);

// What a decoder said of a picture.
struct Decoded {
  bool whole = false;
  std::string complaint;  // why not
  uint64_t end = 0;       // JPEG: where the decoder stopped reading, behind EOI
};

constexpr const char kWarnTail[] = "bytes after the end";
constexpr const char kWarnNoEoi[] = "no EOI marker";
constexpr const char kWarnProgression[] = "progressive scans end before full precision";
constexpr const char kWarnMetadata[] = "damaged metadata";
constexpr const char kWarnSizeField[] = "size field in the header is wrong";
constexpr const char kWarnPages[] = "more than one page";

// Sets reject and returns true where height x width exceeds the limit.
bool over_pixel_limit(const ProbeOptions& options, ProbeResult& result);
// The same for the pixels that have been decoded of all frames of an animation: a few bytes can
// promise a hundred thousand frames.
bool over_frames_limit(const ProbeOptions& options, uint64_t pixels, ProbeResult& result);
// "truncated: WHAT at offset N needs M bytes, the file has S"
std::string truncated(std::string_view what, uint64_t offset, uint64_t need, uint64_t file_size);

// Held while a decoder needs memory in proportion to a large picture, so that only one such picture
// is in memory whatever the number of threads.
constexpr uint64_t kHeavyPixels = uint64_t{16} << 20;
std::unique_lock<std::mutex> heavy_decode_lock(uint64_t pixels);

// CRC-32 of PNG (IEEE 802.3), continuing from `crc` (0 at the start).
uint32_t crc32_ieee(uint32_t crc, ByteSpan bytes) noexcept;

}  // namespace spk::image
