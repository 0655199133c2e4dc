// PNG: every chunk and its checksum, to IEND.
#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "image/formats.h"
#include "image/png_decode.h"

namespace spk::image {
namespace {

constexpr size_t kSignatureBytes = 8;
constexpr size_t kFrameBytes = 12;  // length, type, checksum
constexpr uint32_t kMaxLength = 0x7fffffff;
constexpr size_t kPieceBytes = 256 * 1024;
constexpr uint64_t kDeflateLimit = 1032;               // no deflate stream grows by more
constexpr uint64_t kMaxRowBytes = uint64_t{64} << 20;  // a decoder holds a few rows
constexpr uint64_t kMaxChunks = 10 * 1000 * 1000;

struct Header {
  uint8_t depth = 0;
  uint8_t colour = 0;
  uint8_t interlace = 0;
  uint32_t samples = 0;  // a pixel, as stored
};

class PngWalk {
 public:
  PngWalk(ByteView& view, const ProbeOptions& options, ProbeResult& result)
      : view_(view), options_(options), result_(result) {}

  Status run() {
    SPK_TRY(walk());
    const bool suspicious = !suspicion_.empty();
    if (options_.check == CheckMode::kNone || !result_.reject.empty()) return Status();
    if (!suspicious && options_.check != CheckMode::kDecode) return Status();
    if (!png_decoder_present()) {
      result_.reject = suspicious ? str_cat("corrupt png: ", suspicion_,
                                            "; this build has no libpng to tell more")
                                  : "cannot be decoded: this build has no libpng";
      return Status();
    }
    SPK_ASSIGN(Decoded decoded, decode_png(view_, end_));
    result_.decoded = decoded.whole;
    if (!decoded.whole) {
      result_.reject = str_cat("corrupt png: ", suspicion_, suspicious ? "; " : "",
                               "libpng: ", decoded.complaint);
    }
    return Status();
  }

 private:
  Status reject(std::string why) {
    result_.reject = std::move(why);
    return Status();
  }
  void warn(const char* kind) {
    auto& list = result_.warnings;
    if (std::find(list.begin(), list.end(), kind) == list.end()) list.emplace_back(kind);
  }

  Status walk() {
    uint64_t pos = kSignatureBytes;
    for (uint64_t chunks = 0;; ++chunks) {
      if (chunks == kMaxChunks) return reject(str_cat("corrupt png: over ", kMaxChunks, " chunks"));
      SPK_ASSIGN(ByteSpan head, view_.at(pos, 8));
      if (head.size() < 8) return reject(truncated("a chunk", pos, 8, view_.size()));
      const uint32_t length = load_be<uint32_t>(head.data());
      char type[5] = {};
      std::memcpy(type, head.data() + 4, 4);
      for (int i = 0; i < 4; ++i) {
        const char letter = static_cast<char>(type[i] | 0x20);
        if (letter < 'a' || letter > 'z') {
          return reject(str_cat("corrupt png: no chunk type at offset ", pos + 4));
        }
      }
      if (length > kMaxLength) {
        return reject(
            str_cat("corrupt png: chunk ", type, " at offset ", pos, " has length ", length));
      }
      if (chunks == 0) {
        SPK_TRY(header(type, pos, length));
        if (!result_.reject.empty() || options_.check == CheckMode::kNone) return Status();
      }
      if (uint64_t{length} + kFrameBytes > view_.size() - pos) {
        return reject(
            truncated(str_cat("chunk ", type), pos, uint64_t{length} + kFrameBytes, view_.size()));
      }
      SPK_ASSIGN(const bool sound, checksum_holds(pos, length));
      if (!sound && !critical(type)) warn(kWarnMetadata);  // readers skip such a chunk
      if (!sound && critical(type)) {
        return reject(str_cat("corrupt png: checksum of chunk ", type, " at offset ", pos));
      }
      order(type, pos, length, chunks);
      if (!result_.reject.empty()) return Status();
      pos += uint64_t{length} + kFrameBytes;
      if (std::strcmp(type, "IEND") == 0) break;
    }
    end_ = pos;
    if (pos < view_.size()) warn(kWarnTail);
    if (data_bytes_ == 0) return reject("truncated: no IDAT chunk");
    if (header_.colour == 3 && !palette_seen_) return reject("corrupt png: no PLTE chunk");
    const uint64_t bits = uint64_t{result_.width} * header_.samples * header_.depth;
    const uint64_t raw = uint64_t{result_.height} * ((bits + 7) / 8);
    if (raw / kDeflateLimit > data_bytes_) {
      suspicion_ = str_cat(data_bytes_, " bytes of IDAT cannot hold ", raw, " bytes of pixels");
    }
    return Status();
  }

  static bool critical(const char* type) { return (type[0] & 0x20) == 0; }

  Status header(const char* type, uint64_t pos, uint32_t length) {
    if (std::strcmp(type, "CgBI") == 0) {
      return reject("unsupported format: png with Apple's CgBI chunk");
    }
    if (std::strcmp(type, "IHDR") != 0 || length != 13) {
      return reject("corrupt png: the first chunk is no IHDR of 13 bytes");
    }
    SPK_ASSIGN(ByteSpan body, view_.at(pos + 8, 13));
    if (body.size() < 13) return reject(truncated("chunk IHDR", pos, 25, view_.size()));
    result_.width = load_be<uint32_t>(body.data());
    result_.height = load_be<uint32_t>(body.data() + 4);
    header_.depth = body[8];
    header_.colour = body[9];
    header_.interlace = body[12];
    switch (header_.colour) {
      case 0: header_.samples = result_.channels = 1; break;
      case 2: header_.samples = result_.channels = 3; break;
      case 3:
        header_.samples = 1;
        result_.channels = 3;
        break;
      case 4: header_.samples = result_.channels = 2; break;
      case 6: header_.samples = result_.channels = 4; break;
      default: break;
    }
    if (options_.check == CheckMode::kNone) return Status();
    const bool power = header_.depth == 1 || header_.depth == 2 || header_.depth == 4 ||
                       header_.depth == 8 || header_.depth == 16;
    const bool fits =
        header_.colour == 0 || (header_.colour == 3 && header_.depth <= 8) || header_.depth >= 8;
    if (result_.channels == 0 || !power || !fits || body[10] != 0 || body[11] != 0 ||
        header_.interlace > 1) {
      return reject(str_cat("corrupt png: IHDR says depth ", header_.depth, ", colour type ",
                            header_.colour, ", compression ", body[10], ", filter ", body[11],
                            ", interlace ", header_.interlace));
    }
    if (result_.width == 0 || result_.height == 0 || result_.width > kMaxLength ||
        result_.height > kMaxLength) {
      return reject(str_cat("corrupt png: IHDR says ", result_.height, " x ", result_.width));
    }
    if (over_pixel_limit(options_, result_)) return Status();
    const uint64_t row_bytes = uint64_t{result_.width} * header_.samples * header_.depth / 8;
    if (row_bytes > kMaxRowBytes) {
      return reject(str_cat("unsupported png: a row of ", format_size(row_bytes), ", at most ",
                            format_size(kMaxRowBytes), " are taken"));
    }
    return Status();
  }

  // Over type and body, against the four bytes behind.
  Result<bool> checksum_holds(uint64_t pos, uint32_t length) {
    uint32_t crc = 0;
    uint64_t at = pos + 4, left = uint64_t{length} + 4;
    while (left > 0) {
      SPK_ASSIGN(ByteSpan piece,
                 view_.at(at, static_cast<size_t>(std::min<uint64_t>(left, kPieceBytes))));
      if (piece.empty()) return false;
      crc = crc32_ieee(crc, piece);
      at += piece.size();
      left -= piece.size();
    }
    SPK_ASSIGN(ByteSpan stored, view_.at(at, 4));
    return stored.size() == 4 && load_be<uint32_t>(stored.data()) == crc;
  }

  // What the order of chunks must be for a reader to see all pixels.
  void order(const char* type, uint64_t pos, uint32_t length, uint64_t index) {
    const bool data = std::strcmp(type, "IDAT") == 0;
    if (data) {
      if (data_ended_) {
        result_.reject =
            str_cat("corrupt png: chunk IDAT at offset ", pos, " does not follow the others");
      }
      data_bytes_ += length;
      data_seen_ = true;
      return;
    }
    data_ended_ = data_seen_;
    if (std::strcmp(type, "PLTE") == 0) {
      if (data_seen_ || palette_seen_ || length % 3 != 0 || length == 0 || length > 768) {
        suspicion_ =
            str_cat("chunk PLTE at offset ", pos, " of ", length, " bytes is out of place");
      }
      palette_seen_ = true;
    } else if (critical(type) && std::strcmp(type, "IEND") != 0 && index > 0) {
      result_.reject =
          str_cat(std::strcmp(type, "IHDR") == 0 ? "corrupt png: a second chunk "
                                                 : "corrupt png: unknown critical chunk ",
                  type, " at offset ", pos);
    }
  }

  ByteView& view_;
  const ProbeOptions& options_;
  ProbeResult& result_;
  Header header_;
  std::string suspicion_;
  bool palette_seen_ = false;
  bool data_seen_ = false;
  bool data_ended_ = false;
  uint64_t data_bytes_ = 0;
  uint64_t end_ = 0;
};

}  // namespace

Status probe_png(ByteView& view, const ProbeOptions& options, ProbeResult& result) {
  return PngWalk(view, options, result).run();
}

}  // namespace spk::image
