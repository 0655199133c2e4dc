// TIFF and BigTIFF: the directories, and that every strip, tile and value lies within the file.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/text.h"
#include "image/tiff_decode.h"

namespace spk::image {
namespace {

constexpr uint32_t kMaxPages = 10000;
constexpr uint64_t kMaxEntries = 4096;  // of a directory; writers know a few hundred tags
constexpr size_t kPieceBytes = 32 * 1024;

enum Tag : uint16_t {
  kWidth = 256,
  kHeight = 257,
  kBits = 258,
  kCompression = 259,
  kPhotometric = 262,
  kStripOffsets = 273,
  kSamples = 277,
  kRowsPerStrip = 278,
  kStripBytes = 279,
  kPlanar = 284,
  kTileWidth = 322,
  kTileHeight = 323,
  kTileOffsets = 324,
  kTileBytes = 325,
  kJpegOffset = 513,
  kJpegBytes = 514,
  kDngVersion = 50706,
};

struct Entry {
  uint16_t type = 0;
  uint64_t count = 0;
  uint64_t at = 0;  // of the values
};

// Bytes of one value of a field type; 0: unknown.
uint32_t type_bytes(uint16_t type) {
  switch (type) {
    case 1:
    case 2:
    case 6:
    case 7: return 1;
    case 3:
    case 8: return 2;
    case 4:
    case 9:
    case 11:
    case 13: return 4;
    case 5:
    case 10:
    case 12:
    case 16:
    case 17:
    case 18: return 8;
    default: return 0;
  }
}

class TiffWalk {
 public:
  TiffWalk(ByteView& view, const ProbeOptions& options, ProbeResult& result)
      : view_(view), options_(options), result_(result) {}

  Status run() {
    SPK_ASSIGN(ByteSpan head, view_.at(0, 16));
    big_endian_ = head[0] == 'M';
    big_ = (big_endian_ ? head[3] : head[2]) == 43;
    if (head.size() < (big_ ? 16u : 8u)) {
      return reject(truncated("the header", 0, big_ ? 16 : 8, view_.size()));
    }
    const bool usual =
        !big_ || (number(head.subspan(4), 2) == 8 && number(head.subspan(6), 2) == 0);
    if (!usual) return reject("corrupt tiff: header of a BigTIFF without 8-byte offsets");
    uint64_t directory = big_ ? number(head.subspan(8), 8) : number(head.subspan(4), 4);
    std::set<uint64_t> seen;
    if (directory == 0) return reject("truncated: the header names no directory");
    for (uint32_t page = 0; directory != 0; ++page) {
      if (!seen.insert(directory).second || page == kMaxPages) {
        return reject(str_cat("corrupt tiff: directories without end at offset ", directory));
      }
      SPK_TRY(read_directory(directory));
      if (!rejected()) SPK_TRY(check_page(page));
      if (rejected() || options_.check == CheckMode::kNone) return Status();
    }
    if (seen.size() > 1) result_.warnings.emplace_back(kWarnPages);
    return Status();
  }

  const std::string& suspicion() const { return suspicion_; }

 private:
  Status reject(std::string why) {
    result_.reject = std::move(why);
    return Status();
  }
  bool rejected() const { return !result_.reject.empty(); }

  uint64_t number(ByteSpan bytes, size_t width) const {
    switch (width) {
      case 1: return bytes[0];
      case 2:
        return big_endian_ ? load_be<uint16_t>(bytes.data()) : load_le<uint16_t>(bytes.data());
      case 4:
        return big_endian_ ? load_be<uint32_t>(bytes.data()) : load_le<uint32_t>(bytes.data());
      default:
        return big_endian_ ? load_be<uint64_t>(bytes.data()) : load_le<uint64_t>(bytes.data());
    }
  }
  bool inside(uint64_t at, uint64_t bytes) const {
    return at <= view_.size() && bytes <= view_.size() - at;
  }

  // Fills entries_ and moves `directory` on to the next one.
  Status read_directory(uint64_t& directory) {
    entries_.clear();
    const size_t count_width = big_ ? 8 : 2, entry_width = big_ ? 20 : 12, word = big_ ? 8 : 4;
    SPK_ASSIGN(ByteSpan head, view_.at(directory, count_width));
    if (head.size() < count_width) {
      return reject(truncated("a directory", directory, count_width, view_.size()));
    }
    const uint64_t count = number(head, count_width);
    if (count == 0 || count > kMaxEntries) {
      return reject(str_cat("corrupt tiff: directory at offset ", directory, " with ",
                            count_of(count, "entry", "entries")));
    }
    const size_t bytes = static_cast<size_t>(count) * entry_width + word;
    SPK_ASSIGN(ByteSpan body, view_.at(directory + count_width, bytes));
    if (body.size() < bytes) {
      return reject(truncated("a directory", directory, count_width + bytes, view_.size()));
    }
    for (size_t i = 0; i < count; ++i) {
      const ByteSpan raw = body.subspan(i * entry_width, entry_width);
      const auto tag = static_cast<uint16_t>(number(raw, 2));
      Entry entry;
      entry.type = static_cast<uint16_t>(number(raw.subspan(2), 2));
      entry.count = number(raw.subspan(4), word);
      entry.at = directory + count_width + i * entry_width + 4 + word;
      const uint64_t size = type_bytes(entry.type);
      if (size != 0 && entry.count > UINT64_MAX / size) {
        return reject(str_cat("corrupt tiff: tag ", tag, " has ", count_of(entry.count, "value")));
      }
      if (size * entry.count > word) {
        entry.at = number(raw.subspan(4 + word), word);
        if (!inside(entry.at, size * entry.count) && options_.check != CheckMode::kNone) {
          return reject(
              truncated(str_cat("tag ", tag), entry.at, size * entry.count, view_.size()));
        }
      }
      entries_.emplace(tag, entry);
    }
    directory = number(body.subspan(static_cast<size_t>(count) * entry_width), word);
    return Status();
  }

  Result<uint64_t> value(uint16_t tag, uint64_t index, uint64_t otherwise) {
    const auto found = entries_.find(tag);
    if (found == entries_.end() || index >= found->second.count) return otherwise;
    const uint32_t width = type_bytes(found->second.type);
    if (width == 0) return otherwise;
    SPK_ASSIGN(ByteSpan bytes, view_.at(found->second.at + index * width, width));
    if (bytes.size() < width) return otherwise;
    return number(bytes, width);
  }

  Status check_page(uint32_t page) {
    SPK_ASSIGN(const uint64_t width, value(kWidth, 0, 0));
    SPK_ASSIGN(const uint64_t height, value(kHeight, 0, 0));
    SPK_ASSIGN(const uint64_t samples, value(kSamples, 0, 1));
    SPK_ASSIGN(const uint64_t photometric, value(kPhotometric, 0, 1));
    SPK_ASSIGN(const uint64_t bits, value(kBits, 0, 1));
    if (page == 0) {
      result_.width = static_cast<uint32_t>(std::min<uint64_t>(width, UINT32_MAX));
      result_.height = static_cast<uint32_t>(std::min<uint64_t>(height, UINT32_MAX));
      result_.channels =
          photometric == 3 ? 3 : static_cast<uint32_t>(std::min<uint64_t>(samples, UINT32_MAX));
      if (options_.check == CheckMode::kNone) return Status();
      if (entries_.count(kDngVersion) != 0) return reject("unsupported format: dng");
      if (over_pixel_limit(options_, result_)) return Status();
    }
    if (width == 0 || height == 0 || width > INT32_MAX || height > INT32_MAX || samples == 0 ||
        samples > UINT16_MAX || bits == 0 || bits > 64) {
      return reject(str_cat("corrupt tiff: page ", page, " of ", height, " x ", width, " pixels, ",
                            count_of(samples, "sample"), " of ", bits, " bits"));
    }
    return check_data(page, width, height, samples * bits);
  }

  // Every strip or tile must lie within the file, and there must be enough of them.
  Status check_data(uint32_t page, uint64_t width, uint64_t height, uint64_t pixel_bits) {
    const bool tiled = entries_.count(kTileOffsets) != 0;
    const auto offsets = entries_.find(tiled ? kTileOffsets : kStripOffsets);
    const auto lengths = entries_.find(tiled ? kTileBytes : kStripBytes);
    if (offsets == entries_.end()) {
      if (entries_.count(kJpegOffset) == 0) {
        return reject(str_cat("truncated: page ", page, " has no strips"));
      }
      suspicion_ = "an old JPEG stream without strips";
      return Status();
    }
    if (lengths == entries_.end()) {
      suspicion_ = str_cat("page ", page, " does not say how long its strips are");
      return Status();
    }
    SPK_ASSIGN(const uint64_t planar, value(kPlanar, 0, 1));
    SPK_ASSIGN(const uint64_t compression, value(kCompression, 0, 1));
    SPK_ASSIGN(const uint64_t rows, value(kRowsPerStrip, 0, height));
    SPK_ASSIGN(const uint64_t tile_width, value(kTileWidth, 0, 0));
    SPK_ASSIGN(const uint64_t tile_height, value(kTileHeight, 0, 0));
    const uint64_t unit_width = tiled ? tile_width : width;
    const uint64_t unit_height = tiled ? tile_height : std::min(rows, height);
    if (unit_width == 0 || unit_height == 0) {
      return reject(str_cat("corrupt tiff: page ", page, " has strips or tiles of ", unit_height,
                            " x ", unit_width));
    }
    const uint64_t need =
        ((width + unit_width - 1) / unit_width) * ((height + unit_height - 1) / unit_height);
    const uint64_t count = std::min(offsets->second.count, lengths->second.count);
    if (count < need) {
      return reject(
          str_cat("truncated: page ", page, " has ", count, " strips or tiles, needs ", need));
    }
    uint64_t total = 0;
    bool empty = false;
    SPK_TRY(walk_units(offsets->second, lengths->second, count, total, empty));
    if (rejected()) return Status();
    const uint64_t pixel_bytes = (width * height * (planar == 2 ? 1 : pixel_bits)) / 8;
    if (empty) {
      suspicion_ = str_cat("page ", page, " has an empty strip or tile");
    } else if (compression == 1 && total < pixel_bytes) {
      return reject(str_cat("truncated: page ", page, " has ", total, " bytes for ", pixel_bytes,
                            " of pixels"));
    } else if (compression != 1) {
      // A codec that libtiff may lack is asked for by decoding; 5, 7, 8 and 32773 are always there.
      const bool common = compression == 5 || compression == 7 || compression == 8 ||
                          compression == 32773 || compression == 32946;
      if (!common) suspicion_ = str_cat("compression ", compression);
    }
    return Status();
  }

  Status walk_units(const Entry& offsets, const Entry& lengths, uint64_t count, uint64_t& total,
                    bool& empty) {
    const uint32_t offset_width = type_bytes(offsets.type), length_width = type_bytes(lengths.type);
    if (offset_width == 0 || length_width == 0) return reject("corrupt tiff: offsets of no number");
    constexpr size_t kBatch = kPieceBytes / 8;
    std::vector<uint64_t> batch;
    for (uint64_t first = 0; first < count; first += kBatch) {
      const size_t units = static_cast<size_t>(std::min<uint64_t>(kBatch, count - first));
      batch.clear();
      SPK_ASSIGN(ByteSpan raw, view_.at(offsets.at + first * offset_width, units * offset_width));
      if (raw.size() < units * offset_width) return reject("truncated: the list of strips");
      for (size_t i = 0; i < units; ++i) {
        batch.push_back(number(raw.subspan(i * offset_width), offset_width));
      }
      SPK_ASSIGN(raw, view_.at(lengths.at + first * length_width, units * length_width));
      if (raw.size() < units * length_width) return reject("truncated: the list of strips");
      for (size_t i = 0; i < units; ++i) {
        const uint64_t bytes = number(raw.subspan(i * length_width), length_width);
        if (!inside(batch[i], bytes)) {
          return reject(
              truncated(str_cat("strip or tile ", first + i), batch[i], bytes, view_.size()));
        }
        total += bytes;
        empty |= bytes == 0;
      }
    }
    return Status();
  }

  ByteView& view_;
  const ProbeOptions& options_;
  ProbeResult& result_;
  bool big_endian_ = false;
  bool big_ = false;
  std::map<uint16_t, Entry> entries_;
  std::string suspicion_;
};

}  // namespace

Status probe_tiff(ByteView& view, const ProbeOptions& options, ProbeResult& result) {
  TiffWalk walk(view, options, result);
  SPK_TRY(walk.run());
  if (options.check == CheckMode::kNone || !result.reject.empty()) return Status();
  if (options.check != CheckMode::kDecode && walk.suspicion().empty()) return Status();
  SPK_ASSIGN(Decoded decoded, decode_tiff(view));
  result.decoded = decoded.whole;
  if (!decoded.whole) {
    result.reject = str_cat("corrupt tiff: ", walk.suspicion(),
                            walk.suspicion().empty() ? "" : "; ", "libtiff: ", decoded.complaint);
  }
  return Status();
}

}  // namespace spk::image
