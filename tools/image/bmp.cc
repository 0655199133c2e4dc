// BMP: the sizes that its header promises; run-length data is followed to its end. There is nothing
// to decode beyond that, so structure and decode check the same.
#include <algorithm>

#include "base/text.h"
#include "image/formats.h"

namespace spk::image {
namespace {

constexpr size_t kFileHeaderBytes = 14;
constexpr size_t kPieceBytes = 64 * 1024;

enum Compression : uint32_t { kRgb = 0, kRle8 = 1, kRle4 = 2, kBitFields = 3, kAlphaBitFields = 6 };

struct Header {
  uint32_t file_bytes = 0;
  uint32_t pixel_offset = 0;
  uint32_t header_bytes = 0;
  uint32_t depth = 0;
  uint32_t compression = kRgb;
  uint32_t colours = 0;
  uint32_t planes = 1;
  bool top_down = false;
};

// Reads bytes one after the other through a view.
class Bytes {
 public:
  Bytes(ByteView& view, uint64_t offset) : view_(view), offset_(offset) {}
  uint64_t offset() const { return offset_ + used_; }
  // -1 at the end.
  Result<int> next() {
    if (used_ == piece_.size()) {
      offset_ += used_;
      used_ = 0;
      SPK_ASSIGN(piece_, view_.at(offset_, kPieceBytes));
      if (piece_.empty()) return -1;
    }
    return piece_[used_++];
  }

 private:
  ByteView& view_;
  uint64_t offset_;
  ByteSpan piece_;
  size_t used_ = 0;
};

// Follows run-length data to its end mark. `reject` where it ends early or leaves the picture.
Status walk_runs(ByteView& view, const Header& header, ProbeResult& result, uint64_t& end) {
  Bytes in(view, header.pixel_offset);
  const bool nibbles = header.compression == kRle4;
  uint64_t x = 0, y = 0;
  const auto cut = [&] {
    result.reject = str_cat("truncated: run-length data ends at ", view.size(), " in row ", y,
                            " of ", result.height);
    return Status();
  };
  const auto corrupt = [&](std::string_view what) {
    result.reject = str_cat("corrupt bmp: run-length data at offset ", in.offset(), " ", what);
    return Status();
  };
  for (;;) {
    SPK_ASSIGN(const int count, in.next());
    SPK_ASSIGN(const int value, in.next());
    if (count < 0 || value < 0) return cut();
    if (count > 0) {
      x += static_cast<uint64_t>(count);
    } else if (value == 1) {
      break;
    } else if (value == 0) {
      x = 0;
      ++y;
    } else if (value == 2) {
      SPK_ASSIGN(const int right, in.next());
      SPK_ASSIGN(const int up, in.next());
      if (right < 0 || up < 0) return cut();
      x += static_cast<uint64_t>(right);
      y += static_cast<uint64_t>(up);
    } else {
      x += static_cast<uint64_t>(value);
      const int bytes = nibbles ? (value + 1) / 2 : value;
      for (int i = 0; i < bytes + (bytes & 1); ++i) {
        SPK_ASSIGN(const int pixel, in.next());
        if (pixel < 0) return cut();
      }
    }
    // Encoders pad rows by a nibble or two; the row behind the last may be begun, not filled.
    if (x > uint64_t{result.width} + 3 || y > result.height) return corrupt("leaves the picture");
  }
  end = in.offset();
  return Status();
}

// Fills `header` and the dimensions; sets reject where they make no sense.
Status read_header(ByteView& view, Header& header, ProbeResult& result) {
  SPK_ASSIGN(ByteSpan head, view.at(0, kFileHeaderBytes + 124));
  if (head.size() < kFileHeaderBytes + 4) {
    result.reject = truncated("the header", 0, kFileHeaderBytes + 4, view.size());
    return Status();
  }
  header.file_bytes = load_le<uint32_t>(head.data() + 2);
  header.pixel_offset = load_le<uint32_t>(head.data() + 10);
  header.header_bytes = load_le<uint32_t>(head.data() + 14);
  if (head.size() < kFileHeaderBytes + header.header_bytes) {
    result.reject =
        truncated("the header", 0, kFileHeaderBytes + uint64_t{header.header_bytes}, view.size());
    return Status();
  }
  const uint8_t* info = head.data() + kFileHeaderBytes;
  int64_t width = 0, height = 0;
  if (header.header_bytes == 12) {
    width = load_le<uint16_t>(info + 4);
    height = load_le<uint16_t>(info + 6);
    header.planes = load_le<uint16_t>(info + 8);
    header.depth = load_le<uint16_t>(info + 10);
  } else {
    width = static_cast<int32_t>(load_le<uint32_t>(info + 4));
    height = static_cast<int32_t>(load_le<uint32_t>(info + 8));
    header.planes = load_le<uint16_t>(info + 12);
    header.depth = load_le<uint16_t>(info + 14);
    if (header.header_bytes >= 40) {
      header.compression = load_le<uint32_t>(info + 16);
      header.colours = load_le<uint32_t>(info + 32);
    }
  }
  header.top_down = height < 0;
  if (height < 0) height = -height;
  if (width <= 0 || height == 0) {
    result.reject = str_cat("corrupt bmp: the header says ", height, " x ", width);
    return Status();
  }
  result.width = static_cast<uint32_t>(width);
  result.height = static_cast<uint32_t>(height);
  const bool alpha = header.header_bytes >= 56 && header.depth == 32 &&
                     (header.compression == kBitFields || header.compression == kAlphaBitFields) &&
                     load_le<uint32_t>(info + 52) != 0;
  result.channels = alpha ? 4 : 3;
  return Status();
}

bool known_coding(const Header& header) {
  const uint32_t depth = header.depth;
  switch (header.compression) {
    case kRgb:
      return depth == 1 || depth == 4 || depth == 8 || depth == 16 || depth == 24 || depth == 32;
    case kRle8: return depth == 8 && !header.top_down;
    case kRle4: return depth == 4 && !header.top_down;
    case kBitFields:
    case kAlphaBitFields: return depth == 16 || depth == 32;
    default: return false;
  }
}

}  // namespace

Status probe_bmp(ByteView& view, const ProbeOptions& options, ProbeResult& result) {
  Header header;
  SPK_TRY(read_header(view, header, result));
  if (!result.reject.empty() || options.check == CheckMode::kNone) return Status();
  if (over_pixel_limit(options, result)) return Status();
  // OS/2's longer headers give compression 3 and 4 other meanings.
  const bool os2 = header.header_bytes == 16 || header.header_bytes == 64;
  if (!known_coding(header) || header.planes != 1 || (os2 && header.compression > kRle4)) {
    result.reject = str_cat("unsupported bmp: ", header.depth, " bits a pixel, ", header.planes,
                            " planes, compression ", header.compression);
    return Status();
  }
  uint64_t tables = kFileHeaderBytes + uint64_t{header.header_bytes};
  if (header.depth <= 8) {
    const uint64_t most = uint64_t{1} << header.depth;
    const uint64_t colours = header.colours != 0 ? header.colours : most;
    if (colours > most) {
      result.reject = str_cat("corrupt bmp: ", colours, " colours at ", header.depth, " bits");
      return Status();
    }
    // Old writers store fewer than they say; only what lies before the pixels is certain.
    tables = std::min<uint64_t>(tables + colours * (header.header_bytes == 12 ? 3 : 4),
                                std::max<uint64_t>(tables, header.pixel_offset));
  }
  if (header.pixel_offset < tables) {
    result.reject = str_cat("corrupt bmp: pixels at offset ", header.pixel_offset,
                            " overlap the header of ", tables, " bytes");
    return Status();
  }
  uint64_t end = 0;
  if (header.compression == kRle8 || header.compression == kRle4) {
    SPK_TRY(walk_runs(view, header, result, end));
    if (!result.reject.empty()) return Status();
  } else {
    const uint64_t stride = (uint64_t{result.width} * header.depth + 31) / 32 * 4;
    const uint64_t need = stride * result.height;
    end = header.pixel_offset + need;
    if (end > view.size()) {
      result.reject = truncated("the pixels", header.pixel_offset, need, view.size());
      return Status();
    }
  }
  result.decoded = true;
  // The size field may count padding or a colour profile behind the pixels.
  if (header.file_bytes > view.size()) result.warnings.emplace_back(kWarnSizeField);
  if (std::max<uint64_t>(end, header.file_bytes) < view.size()) {
    result.warnings.emplace_back(kWarnTail);
  }
  return Status();
}

}  // namespace spk::image
