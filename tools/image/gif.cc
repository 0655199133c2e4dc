// GIF: blocks and sub-blocks to the trailer; with --check decode every row of every frame.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/text.h"
#include "image/formats.h"

#if SPK_HAVE_GIF
#include <gif_lib.h>
#endif

namespace spk::image {
namespace {

constexpr uint64_t kScreenEnd = 13;       // signature and logical screen descriptor
constexpr uint64_t kMaxExpansion = 2731;  // pixels a byte: 4096 to each code of 12 bits
constexpr size_t kPieceBytes = 32 * 1024;

uint64_t colour_table_bytes(uint8_t packed) {
  return (packed & 0x80) != 0 ? uint64_t{3} << ((packed & 7) + 1) : 0;
}

class GifWalk {
 public:
  GifWalk(ByteView& view, const ProbeOptions& options, ProbeResult& result)
      : view_(view), options_(options), result_(result) {}

  // Sets end() to the byte behind the trailer unless the file is rejected.
  Status run() {
    SPK_ASSIGN(ByteSpan head, view_.at(0, kScreenEnd));
    if (head.size() < kScreenEnd) {
      return reject(truncated("the header", 0, kScreenEnd, view_.size()));
    }
    result_.width = load_le<uint16_t>(head.data() + 6);
    result_.height = load_le<uint16_t>(head.data() + 8);
    result_.channels = 3;
    if (options_.check == CheckMode::kNone || over_pixel_limit(options_, result_)) return Status();
    if (result_.width == 0 || result_.height == 0) {
      return reject(str_cat("corrupt gif: a screen of ", result_.height, " x ", result_.width));
    }
    pos_ = kScreenEnd + colour_table_bytes(head[10]);
    while (end_ == 0 && result_.reject.empty()) SPK_TRY(block());
    if (!result_.reject.empty()) return Status();
    if (frames_ == 0) return reject("truncated: no picture before the trailer");
    if (end_ < view_.size()) result_.warnings.emplace_back(kWarnTail);
    return Status();
  }

  uint64_t end() const { return end_; }
  const std::string& suspicion() const { return suspicion_; }

 private:
  Status reject(std::string why) {
    result_.reject = std::move(why);
    return Status();
  }

  Status block() {
    SPK_ASSIGN(ByteSpan head, view_.at(pos_, 10));
    if (head.empty()) return reject(truncated("a block or the trailer", pos_, 1, view_.size()));
    if (head[0] == 0x3b) {
      end_ = pos_ + 1;
      return Status();
    }
    if (head[0] == 0x21) {
      pos_ += 2;
      return sub_blocks("extension");
    }
    if (head[0] != 0x2c) {
      return reject(str_cat("corrupt gif: no block begins at offset ", pos_));
    }
    if (head.size() < 10) return reject(truncated("a frame", pos_, 10, view_.size()));
    ++frames_;
    const uint32_t width = load_le<uint16_t>(head.data() + 5);
    const uint32_t height = load_le<uint16_t>(head.data() + 7);
    const uint64_t pixels = uint64_t{width} * height;
    if (pixels > options_.max_pixels) {
      return reject(str_cat("over the pixel limit: frame ", frames_, " has ", format_count(pixels),
                            " pixels (--max-pixels)"));
    }
    const uint64_t frame_at = pos_;
    pos_ += 10 + colour_table_bytes(head[9]);
    SPK_ASSIGN(ByteSpan code, view_.at(pos_, 1));
    if (code.empty()) return reject(truncated("a frame's data", pos_, 1, view_.size()));
    if (code[0] < 2 || code[0] > 8 || pixels == 0) {
      suspicion_ = str_cat("frame at offset ", frame_at, " of ", height, " x ", width,
                           " with codes of ", code[0], " bits");
    }
    const uint64_t data_at = ++pos_;
    SPK_TRY(sub_blocks("frame"));
    if (result_.reject.empty() && (pos_ - data_at) * kMaxExpansion < pixels) {
      return reject(str_cat("truncated: frame at offset ", frame_at, " has ", pos_ - data_at,
                            " bytes for ", pixels, " pixels"));
    }
    return Status();
  }

  // Moves pos_ behind the empty sub-block that ends a list of them.
  Status sub_blocks(std::string_view what) {
    ByteSpan piece;
    uint64_t piece_at = 0;
    for (;;) {
      if (piece.empty() || pos_ - piece_at >= piece.size()) {
        SPK_ASSIGN(piece, view_.at(pos_, kPieceBytes));
        piece_at = pos_;
        if (piece.empty()) {
          return reject(truncated(str_cat("a sub-block of ", what), pos_, 1, view_.size()));
        }
      }
      const uint64_t length = piece[static_cast<size_t>(pos_ - piece_at)];
      pos_ += 1 + length;
      if (length == 0) return Status();
    }
  }

  ByteView& view_;
  const ProbeOptions& options_;
  ProbeResult& result_;
  uint64_t pos_ = 0;
  uint64_t end_ = 0;
  uint64_t frames_ = 0;
  std::string suspicion_;
};

#if SPK_HAVE_GIF

struct GifInput {
  ByteView* view;
  uint64_t position;
  uint64_t end;
  Status io;
};

int read_gif(GifFileType* gif, GifByteType* to, int want) {
  GifInput& in = *static_cast<GifInput*>(gif->UserData);
  int got = 0;
  while (got < want && in.position < in.end) {
    const size_t ask = static_cast<size_t>(
        std::min<uint64_t>(static_cast<uint64_t>(want - got), in.end - in.position));
    Result<ByteSpan> piece = in.view->at(in.position, ask);
    if (!piece.ok()) {
      in.io = std::move(piece).status();
      return 0;
    }
    if (piece->empty()) break;
    std::memcpy(to + got, piece->data(), piece->size());
    got += static_cast<int>(piece->size());
    in.position += piece->size();
  }
  return got;
}

int read_frame_header(GifFileType* gif) {
#if GIFLIB_MAJOR > 5 || (GIFLIB_MAJOR == 5 && GIFLIB_MINOR >= 2)
  return DGifGetImageHeader(gif);
#else
  return DGifGetImageDesc(gif);  // the same, but keeps a record of every frame
#endif
}

// Gives the decoder's complaint, empty where there is none.
std::string decode_frames(GifFileType* gif, const ProbeOptions& options, ProbeResult& result) {
  const auto complaint = [&] {
    const char* text = GifErrorString(gif->Error);
    return std::string(text != nullptr ? text : "unknown error");
  };
  std::vector<GifPixelType> row;
  uint64_t frame_pixels = 0;
  for (;;) {
    GifRecordType type;
    if (DGifGetRecordType(gif, &type) == GIF_ERROR) return complaint();
    if (type == TERMINATE_RECORD_TYPE) return std::string();
    if (type == EXTENSION_RECORD_TYPE) {
      int code = 0;
      GifByteType* bytes = nullptr;
      if (DGifGetExtension(gif, &code, &bytes) == GIF_ERROR) return complaint();
      while (bytes != nullptr) {
        if (DGifGetExtensionNext(gif, &bytes) == GIF_ERROR) return complaint();
      }
      continue;
    }
    if (type != IMAGE_DESC_RECORD_TYPE) return "unknown block";
    if (read_frame_header(gif) == GIF_ERROR) return complaint();
    const int width = gif->Image.Width, height = gif->Image.Height;
    frame_pixels += static_cast<uint64_t>(width) * static_cast<uint64_t>(height);
    if (over_frames_limit(options, frame_pixels, result)) return result.reject;
    if (width == 0 || height == 0) return "a frame without pixels";
    row.resize(static_cast<size_t>(width));
    for (int y = 0; y < height; ++y) {
      if (DGifGetLine(gif, row.data(), width) == GIF_ERROR) return complaint();
    }
  }
}

Status decode_gif(ByteView& view, uint64_t end, const ProbeOptions& options, ProbeResult& result) {
  GifInput input{&view, 0, end, Status()};
  int error = 0;
  GifFileType* gif = DGifOpen(&input, read_gif, &error);
  std::string complaint;
  if (gif == nullptr) {
    const char* text = GifErrorString(error);
    complaint = text != nullptr ? text : "unknown error";
    if (error == D_GIF_ERR_NOT_ENOUGH_MEM) {
      return Status(Code::kNoMemory, "no memory left to decode a GIF");
    }
  } else {
    complaint = decode_frames(gif, options, result);
    const bool no_memory = gif->Error == D_GIF_ERR_NOT_ENOUGH_MEM;
    DGifCloseFile(gif, &error);
    if (no_memory) return Status(Code::kNoMemory, "no memory left to decode a GIF");
  }
  if (!input.io.ok()) return std::move(input.io);
  result.decoded = complaint.empty();
  if (!complaint.empty() && result.reject.empty()) {
    result.reject = str_cat("corrupt gif: giflib: ", complaint);
  }
  return Status();
}

#else

Status decode_gif(ByteView&, uint64_t, const ProbeOptions&, ProbeResult&) { return Status(); }

#endif

}  // namespace

Status probe_gif(ByteView& view, const ProbeOptions& options, ProbeResult& result) {
  GifWalk walk(view, options, result);
  SPK_TRY(walk.run());
  if (options.check == CheckMode::kNone || !result.reject.empty()) return Status();
  if (options.check != CheckMode::kDecode && walk.suspicion().empty()) return Status();
  return decode_gif(view, walk.end(), options, result);
}

}  // namespace spk::image
