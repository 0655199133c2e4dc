// WebP: RIFF and chunk lengths, and the headers of the bitstreams.
#include <algorithm>
#include <vector>

#include "base/text.h"
#include "image/formats.h"

#if SPK_HAVE_WEBP
#include <webp/decode.h>
#endif

namespace spk::image {
namespace {

constexpr uint64_t kRiffHeader = 12;
constexpr uint64_t kChunkHeader = 8;
constexpr uint64_t kFrameHeader = 16;  // of an ANMF chunk
constexpr uint32_t kMaxFrames = 100000;

struct Chunk {
  std::string type;
  uint64_t pos = 0;   // of its header
  uint64_t body = 0;  // of its content
  uint64_t end = 0;   // of its content, without the padding byte
};

struct Bitstream {
  uint64_t begin = 0;  // of the chunks to give to a decoder; 0: none seen
  uint64_t end = 0;
  uint32_t height = 0;
  uint32_t width = 0;
  bool alpha = false;
  bool lossless = false;
};

class WebpWalk {
 public:
  WebpWalk(ByteView& view, const ProbeOptions& options, ProbeResult& result)
      : view_(view), options_(options), result_(result) {}

  Status run() {
    SPK_ASSIGN(ByteSpan head, view_.at(0, kRiffHeader));
    // The length is even but for writers that forget to count the last padding byte.
    riff_end_ = kChunkHeader + uint64_t{load_le<uint32_t>(head.data() + 4)};
    const bool header_only = options_.check == CheckMode::kNone;
    if (riff_end_ > view_.size() && !header_only) {
      return reject(truncated("RIFF", 0, riff_end_, view_.size()));
    }
    if (header_only) riff_end_ = std::min(riff_end_, view_.size());
    SPK_TRY(walk(header_only));
    if (header_only || !result_.reject.empty()) return Status();
    if (!still_ && frames_ == 0) return reject("truncated: no picture in the RIFF");
    if (riff_end_ < view_.size()) result_.warnings.emplace_back(kWarnTail);
    return Status();
  }

 private:
  Status reject(std::string why) {
    result_.reject = std::move(why);
    return Status();
  }
  bool rejected() const { return !result_.reject.empty(); }

  // Reads the header of the chunk at `pos` within a list that ends at `limit`.
  Status read_chunk(uint64_t pos, uint64_t limit, Chunk& chunk) {
    SPK_ASSIGN(ByteSpan head, view_.at(pos, kChunkHeader));
    if (head.size() < kChunkHeader || limit - pos < kChunkHeader) {
      return reject(truncated("a chunk", pos, kChunkHeader, limit));
    }
    chunk.type = as_text(head.first(4));
    chunk.pos = pos;
    chunk.body = pos + kChunkHeader;
    chunk.end = chunk.body + load_le<uint32_t>(head.data() + 4);
    if (chunk.end > limit && options_.check != CheckMode::kNone) {
      return reject(
          truncated(str_cat("chunk ", escape_bytes(chunk.type)), pos, chunk.end - pos, limit));
    }
    return Status();
  }

  static uint64_t behind(const Chunk& chunk, uint64_t limit) {
    return std::min(limit, chunk.end + ((chunk.end - chunk.body) & 1));
  }

  Status walk(bool header_only) {
    bool first = true;
    Bitstream still;
    for (uint64_t pos = kRiffHeader; pos < riff_end_; first = false) {
      Chunk chunk;
      SPK_TRY(read_chunk(pos, riff_end_, chunk));
      if (rejected()) return Status();
      if (chunk.type == "VP8X") {
        if (!first) return reject(str_cat("corrupt webp: VP8X at offset ", pos, " is not first"));
        SPK_TRY(extended_header(chunk));
      } else if (chunk.type == "ANMF") {
        SPK_TRY(frame(chunk));
      } else if (!animated_ && !still_) {
        SPK_TRY(picture_chunk(chunk, still));
        if (!rejected() && still.height != 0) SPK_TRY(still_picture(still));
      }
      if (rejected() || (header_only && result_.height != 0)) return Status();
      pos = behind(chunk, riff_end_);
    }
    return Status();
  }

  Status extended_header(const Chunk& chunk) {
    SPK_ASSIGN(ByteSpan body, view_.at(chunk.body, 10));
    if (body.size() < 10 || chunk.end - chunk.body < 10) {
      return reject("corrupt webp: chunk VP8X is too short");
    }
    extended_ = true;
    animated_ = (body[0] & 0x02) != 0;
    result_.channels = (body[0] & 0x10) != 0 ? 4 : 3;
    const auto size = [&](size_t at) {
      return 1 + (body[at] | uint32_t{body[at + 1]} << 8 | uint32_t{body[at + 2]} << 16);
    };
    result_.width = size(4);
    result_.height = size(7);
    if (options_.check != CheckMode::kNone) over_pixel_limit(options_, result_);
    return Status();
  }

  // Notes a chunk that belongs to a picture; the dimensions are set by the one with the bitstream.
  Status picture_chunk(const Chunk& chunk, Bitstream& bits) {
    const bool lossy = chunk.type == "VP8 ";
    const bool lossless = chunk.type == "VP8L";
    if (chunk.type == "ALPH" && bits.begin == 0) {
      bits.begin = chunk.pos;
      bits.alpha = true;
    }
    if (!lossy && !lossless) return Status();
    if (bits.begin == 0) bits.begin = chunk.pos;
    bits.end = chunk.end;
    bits.lossless = lossless;
    const uint64_t length = chunk.end - chunk.body;
    SPK_ASSIGN(ByteSpan body, view_.at(chunk.body, 10));
    const std::string where = str_cat("chunk ", chunk.type, " at offset ", chunk.pos);
    if (lossy) {
      if (length < 10 || body.size() < 10) {
        return reject(str_cat("corrupt webp: ", where, " is too short"));
      }
      const uint32_t tag = body[0] | uint32_t{body[1]} << 8 | uint32_t{body[2]} << 16;
      if ((tag & 1) != 0 || body[3] != 0x9d || body[4] != 0x01 || body[5] != 0x2a) {
        return reject(str_cat("corrupt webp: ", where, " begins no key frame"));
      }
      if (10 + uint64_t{tag >> 5} > length && options_.check != CheckMode::kNone) {
        return reject(
            truncated(where + ", first partition", chunk.body, 10 + uint64_t{tag >> 5}, chunk.end));
      }
      bits.width = load_le<uint16_t>(body.data() + 6) & 0x3fff;
      bits.height = load_le<uint16_t>(body.data() + 8) & 0x3fff;
      if (bits.width == 0 || bits.height == 0) {
        return reject(str_cat("corrupt webp: ", where, " says ", bits.height, " x ", bits.width));
      }
    } else {
      if (length < 5 || body.size() < 5 || body[0] != 0x2f) {
        return reject(str_cat("corrupt webp: ", where, " begins no lossless picture"));
      }
      const uint32_t word = load_le<uint32_t>(body.data() + 1);
      bits.width = (word & 0x3fff) + 1;
      bits.height = ((word >> 14) & 0x3fff) + 1;
      bits.alpha = (word >> 28 & 1) != 0;
    }
    return Status();
  }

  Status still_picture(const Bitstream& bits) {
    still_ = true;
    if (!extended_) {
      result_.width = bits.width;
      result_.height = bits.height;
      result_.channels = bits.alpha ? 4 : 3;
      if (options_.check == CheckMode::kNone || over_pixel_limit(options_, result_)) {
        return Status();
      }
    } else if (bits.width != result_.width || bits.height != result_.height) {
      return reject(str_cat("corrupt webp: canvas of ", result_.height, " x ", result_.width,
                            ", bitstream of ", bits.height, " x ", bits.width));
    }
    return decode_if_asked(bits);
  }

  Status frame(const Chunk& chunk) {
    if (!animated_) return reject(str_cat("corrupt webp: ANMF at offset ", chunk.pos));
    if (++frames_ > kMaxFrames)
      return reject(str_cat("corrupt webp: over ", kMaxFrames, " frames"));
    Bitstream bits;
    for (uint64_t pos = chunk.body + kFrameHeader; pos < chunk.end && bits.height == 0;) {
      Chunk inner;
      SPK_TRY(read_chunk(pos, chunk.end, inner));
      if (!rejected()) SPK_TRY(picture_chunk(inner, bits));
      if (rejected()) return Status();
      pos = behind(inner, chunk.end);
    }
    if (bits.height == 0) {
      return reject(str_cat("corrupt webp: no picture in ANMF at offset ", chunk.pos));
    }
    if (bits.width > result_.width || bits.height > result_.height) {
      return reject(str_cat("corrupt webp: frame at offset ", chunk.pos, " of ", bits.height, " x ",
                            bits.width, " is larger than the canvas"));
    }
    return decode_if_asked(bits);
  }

  Status decode_if_asked(const Bitstream& bits);

  ByteView& view_;
  const ProbeOptions& options_;
  ProbeResult& result_;
  uint64_t riff_end_ = 0;
  bool extended_ = false;
  bool animated_ = false;
  bool still_ = false;
  uint32_t frames_ = 0;
  uint64_t frame_pixels_ = 0;
};

#if SPK_HAVE_WEBP

const char* status_text(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA: return "not enough data";
    case VP8_STATUS_BITSTREAM_ERROR: return "bitstream error";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "unsupported feature";
    case VP8_STATUS_SUSPENDED: return "suspended";
    default: return "invalid";
  }
}

Status WebpWalk::decode_if_asked(const Bitstream& bits) {
  if (options_.check != CheckMode::kDecode) return Status();
  const uint64_t pixels = uint64_t{bits.height} * bits.width;
  frame_pixels_ += pixels;
  if (over_frames_limit(options_, frame_pixels_, result_)) return Status();
  const uint64_t bytes = bits.end - bits.begin;
  // No sound bitstream is larger; this bounds what is read into memory.
  if (bytes > (uint64_t{1} << 20) + 16 * pixels) {
    return reject(str_cat("corrupt webp: ", bytes, " bytes for ", pixels, " pixels"));
  }
  const auto lock = heavy_decode_lock(pixels);
  std::vector<uint8_t> copy;
  SPK_ASSIGN(ByteSpan data, view_.at(bits.begin, static_cast<size_t>(bytes)));
  if (data.size() < bytes) {
    copy.reserve(static_cast<size_t>(bytes));
    while (!data.empty()) {
      copy.insert(copy.end(), data.begin(), data.end());
      SPK_ASSIGN(data,
                 view_.at(bits.begin + copy.size(), static_cast<size_t>(bytes) - copy.size()));
    }
    data = copy;
  }
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) return internal_error("libwebp's version differs");
  config.options.no_fancy_upsampling = 1;
  config.options.bypass_filtering = 1;
  if (pixels > 1024 * 1024) {  // all is decoded, little is kept
    config.options.use_scaling = 1;
    config.options.scaled_width = static_cast<int>(std::max(1u, bits.width / 8));
    config.options.scaled_height = static_cast<int>(std::max(1u, bits.height / 8));
  }
  config.output.colorspace = MODE_RGBA;
  const VP8StatusCode status = WebPDecode(data.data(), data.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status == VP8_STATUS_OUT_OF_MEMORY) {
    return Status(Code::kNoMemory, "no memory left to decode a WebP picture");
  }
  result_.decoded = status == VP8_STATUS_OK;
  if (status == VP8_STATUS_OK) return Status();
  return reject(
      str_cat("corrupt webp: picture at offset ", bits.begin, "; libwebp: ", status_text(status)));
}

#else

Status WebpWalk::decode_if_asked(const Bitstream&) { return Status(); }

#endif

}  // namespace

Status probe_webp(ByteView& view, const ProbeOptions& options, ProbeResult& result) {
  return WebpWalk(view, options, result).run();
}

}  // namespace spk::image
