#include "image/jpeg_walk.h"

#include <algorithm>

#include "base/text.h"
#include "image/formats.h"

namespace spk::image {
namespace {

constexpr uint32_t kMaxScans = 1000;
constexpr uint32_t kMaxDimension = 65500;  // libjpeg's, and so that of nearly every reader
constexpr size_t kPieceBytes = 32 * 1024;  // well below a view's window, so that few are read twice

enum Marker : uint8_t {
  kSof0 = 0xC0,
  kSof1 = 0xC1,
  kSof2 = 0xC2,
  kDht = 0xC4,
  kJpg = 0xC8,
  kDac = 0xCC,
  kSof15 = 0xCF,
  kRst0 = 0xD0,
  kRst7 = 0xD7,
  kSoi = 0xD8,
  kEoi = 0xD9,
  kSos = 0xDA,
  kDqt = 0xDB,
  kDnl = 0xDC,
  kDri = 0xDD,
  kApp0 = 0xE0,
  kApp15 = 0xEF,
  kCom = 0xFE,
};

std::string marker_name(uint8_t code) {
  constexpr char kHex[] = "0123456789abcdef";
  return std::string("FF ") + kHex[code >> 4] + kHex[code & 15];
}

uint32_t div_up(uint64_t a, uint64_t b) { return static_cast<uint32_t>((a + b - 1) / b); }

class Walker {
 public:
  Walker(ByteView& view, bool header_only) : view_(view), header_only_(header_only) {}

  Result<JpegWalk> run() {
    SPK_TRY(walk());
    return std::move(out_);
  }

 private:
  // Fewest bits that a block can take, by what its Huffman tables offer. 0: no table.
  struct Table {
    uint8_t shortest = 0;
    uint8_t end_of_block = 0;  // length of the code of symbol 0; 0: has none
  };

  bool stopped() const { return lost_ || !out_.reject.empty(); }
  // Something is odd, but where the next segment begins is known.
  void doubt(std::string why) {
    if (out_.suspicion.empty()) out_.suspicion = std::move(why);
  }
  // The walk cannot go on.
  Status suspect(std::string why) {
    doubt(std::move(why));
    lost_ = true;
    return Status();
  }
  Status reject(std::string why) {
    out_.reject = std::move(why);
    return Status();
  }

  Status walk() {
    pos_ = 2;
    for (;;) {
      SPK_ASSIGN(ByteSpan head, view_.at(pos_, 4));
      if (head.size() < 2) return file_ends();
      if (head[0] != 0xff) {
        return suspect(str_cat("no marker at offset ", pos_, " where one is due"));
      }
      const uint8_t code = head[1];
      if (code == 0xff) {  // a fill byte
        ++pos_;
        continue;
      }
      if (code == kEoi) {
        out_.end = pos_ + 2;
        return finish();
      }
      if (code == 0 || code == 1 || (code >= kRst0 && code <= kSoi)) {
        return suspect(
            str_cat("marker ", marker_name(code), " at offset ", pos_, " between segments"));
      }
      if (head.size() < 4) {
        return reject(truncated(str_cat("segment ", marker_name(code)), pos_, 4, view_.size()));
      }
      const uint64_t length = load_be<uint16_t>(head.data() + 2);
      if (length < 2) {
        return suspect(str_cat("segment ", marker_name(code), " at offset ", pos_,
                               " has the impossible length ", length));
      }
      if (length + 2 > view_.size() - pos_) {
        return reject(
            truncated(str_cat("segment ", marker_name(code)), pos_, length + 2, view_.size()));
      }
      SPK_TRY(segment(code, static_cast<size_t>(length - 2)));
      if (stopped() || (header_only_ && frame_seen_)) return Status();
      if (code == kSos) {
        SPK_TRY(scan_data());
        if (stopped() || out_.cut) return Status();
      }
    }
  }

  // Reads the segment at pos_ and moves pos_ behind it.
  Status segment(uint8_t code, size_t length) {
    const uint64_t start = pos_;
    pos_ += 4 + length;
    if ((code >= kApp0 && code <= kApp15) || code == kCom || code == kDnl || code == kDac) {
      return Status();  // metadata; DNL repeats a height that the frame header has given
    }
    SPK_ASSIGN(ByteSpan body, view_.at(start + 4, length));
    if (code == kDht) return huffman_tables(body, start);
    if (code == kDqt) return quant_tables(body, start);
    if (code == kDri) {
      if (length != 2) return suspect(str_cat("DRI at offset ", start, " has a wrong length"));
      restart_interval_ = load_be<uint16_t>(body.data());
      return Status();
    }
    if (code == kSos) return scan_header(body, start);
    if (code >= kSof0 && code <= kSof15 && code != kJpg) return frame(code, body, start);
    return suspect(str_cat("unknown marker ", marker_name(code), " at offset ", start));
  }

  Status frame(uint8_t code, ByteSpan body, uint64_t at) {
    const int number = code - kSof0;
    if (frame_seen_) return suspect(str_cat("a second frame header at offset ", at));
    if (body.size() < 6) return suspect(str_cat("frame header at offset ", at, " is too short"));
    out_.height = load_be<uint16_t>(body.data() + 1);
    out_.width = load_be<uint16_t>(body.data() + 3);
    const uint8_t count = body[5];
    out_.component_count = count <= 4 ? count : 0;
    frame_seen_ = true;
    if (header_only_) return Status();
    const std::string where = str_cat("SOF", number, " at offset ", at);
    if (code > kSof2) {
      const char* what = number == 3                   ? "lossless"
                         : number == 9 || number == 10 ? "arithmetic-coded"
                         : number == 11                ? "lossless arithmetic-coded"
                                                       : "hierarchical";
      return reject(str_cat("unsupported jpeg: ", what, " (", where, ")"));
    }
    if (body[0] != 8) {
      return reject(str_cat(body[0], "-bit precision: ", where, " says precision ", body[0],
                            ", only 8 is taken"));
    }
    if (out_.height == 0) {
      return reject(str_cat("unsupported jpeg: ", where, " leaves the height to a DNL marker"));
    }
    if (out_.width == 0 || out_.height > kMaxDimension || out_.width > kMaxDimension) {
      return reject(str_cat("corrupt header: ", where, " says ", out_.height, " x ", out_.width));
    }
    if (count != 1 && count != 3 && count != 4) {
      return reject(str_cat("unsupported jpeg: ", where, " says ", count, " components"));
    }
    if (body.size() != 6u + 3u * count) {
      return suspect(str_cat("frame header at offset ", at, " has a wrong length"));
    }
    out_.progressive = code == kSof2;
    for (size_t i = 0; i < count; ++i) {
      JpegComponent& component = out_.components[i];
      component.id = body[6 + 3 * i];
      component.h = body[7 + 3 * i] >> 4;
      component.v = body[7 + 3 * i] & 15;
      component.quant_table = body[8 + 3 * i];
      component.missing_bits.fill(JpegComponent::kNeverSent);
      if (component.h < 1 || component.h > 4 || component.v < 1 || component.v > 4 ||
          component.quant_table > 3) {
        return reject(str_cat("corrupt header: ", where, ", component ", i, " has sampling ",
                              component.h, " x ", component.v, " and table ",
                              component.quant_table));
      }
      h_max_ = std::max<uint32_t>(h_max_, component.h);
      v_max_ = std::max<uint32_t>(v_max_, component.v);
    }
    return Status();
  }

  Status huffman_tables(ByteSpan body, uint64_t at) {
    while (!body.empty()) {
      if (body.size() < 17 || (body[0] >> 4) > 1 || (body[0] & 15) > 3) {
        return suspect(str_cat("Huffman table in the segment at offset ", at, " is malformed"));
      }
      Table table;
      size_t symbols = 0;
      const uint8_t* counts = body.data() + 1;
      for (size_t length = 1; length <= 16; ++length) {
        if (counts[length - 1] != 0 && table.shortest == 0) {
          table.shortest = static_cast<uint8_t>(length);
        }
        const size_t next = symbols + counts[length - 1];
        if (next > 256 || 17 + next > body.size()) {
          return suspect(str_cat("Huffman table in the segment at offset ", at, " is malformed"));
        }
        for (; symbols < next; ++symbols) {
          if (body[17 + symbols] == 0) table.end_of_block = static_cast<uint8_t>(length);
        }
      }
      tables_[body[0] >> 4][body[0] & 3] = table;
      body = body.subspan(17 + symbols);
    }
    return Status();
  }

  Status quant_tables(ByteSpan body, uint64_t at) {
    while (!body.empty()) {
      const size_t need = (body[0] >> 4) != 0 ? 129 : 65;
      if ((body[0] >> 4) > 1 || (body[0] & 15) > 3 || body.size() < need) {
        return suspect(str_cat("quantisation table at offset ", at, " is malformed"));
      }
      quant_seen_[body[0] & 3] = true;
      body = body.subspan(need);
    }
    return Status();
  }

  Status scan_header(ByteSpan body, uint64_t at) {
    const auto malformed = [&](std::string_view what) {
      return suspect(str_cat("scan header at offset ", at, ": ", what));
    };
    if (!frame_seen_) return malformed("no frame header before it");
    if (++out_.scans > kMaxScans) {
      return reject(str_cat("corrupt scan: more than ", kMaxScans, " scans"));
    }
    const size_t count = body.empty() ? 0 : body[0];
    if (count < 1 || count > 4 || body.size() != 4 + 2 * count) return malformed("wrong length");
    const uint8_t from = body[1 + 2 * count];
    const uint8_t to = body[2 + 2 * count];
    const uint8_t high = body[3 + 2 * count] >> 4;
    const uint8_t low = body[3 + 2 * count] & 15;
    if (out_.progressive && (to > 63 || from > to || (from == 0 && to != 0) || low > 13 ||
                             (from > 0 && count > 1) || (high != 0 && low != high - 1))) {
      return malformed("invalid progression");
    }
    uint64_t blocks_in_mcu = 0, bits_in_mcu = 0;
    JpegComponent* component = nullptr;
    for (size_t i = 0; i < count; ++i) {
      component = find_component(body[1 + 2 * i]);
      if (component == nullptr) return malformed("a component that the frame has not");
      if (!quant_seen_[component->quant_table]) return malformed("no quantisation table");
      const size_t first = out_.progressive ? from : 0, last = out_.progressive ? to : 63;
      for (size_t k = first; k <= last; ++k) {
        int8_t& missing = component->missing_bits[k];
        if (missing != (high == 0 || !out_.progressive ? JpegComponent::kNeverSent : high)) {
          doubt(str_cat("scan header at offset ", at, ": coefficients sent twice or out of turn"));
        }
        missing = out_.progressive ? static_cast<int8_t>(low) : 0;
      }
      const uint64_t blocks = count == 1 ? 1 : uint64_t{component->h} * component->v;
      uint64_t bits = 0;
      if (!fewest_bits(body[2 + 2 * i], from, high, bits)) return malformed("no Huffman table");
      blocks_in_mcu += blocks;
      bits_in_mcu += blocks * bits;
    }
    if (count > 1 && blocks_in_mcu > 10) return malformed("too many blocks in an MCU");
    if (count > 1) {
      mcus_ = uint64_t{div_up(out_.width, 8 * h_max_)} * div_up(out_.height, 8 * v_max_);
    } else {
      mcus_ = uint64_t{div_up(div_up(uint64_t{out_.width} * component->h, h_max_), 8)} *
              div_up(div_up(uint64_t{out_.height} * component->v, v_max_), 8);
    }
    fewest_bits_ = mcus_ * bits_in_mcu;
    return Status();
  }

  // The fewest bits of one block of a scan; false where a table that it names is missing.
  bool fewest_bits(uint8_t selector, uint8_t from, uint8_t high, uint64_t& bits) const {
    const Table& dc = tables_[0][(selector >> 4) & 3];
    const Table& ac = tables_[1][selector & 3];
    if ((selector >> 4) > 3 || (selector & 15) > 3) return false;
    const bool needs_dc = !out_.progressive || (from == 0 && high == 0);
    const bool needs_ac = !out_.progressive || from > 0;
    if ((needs_dc && dc.shortest == 0) || (needs_ac && ac.shortest == 0)) return false;
    if (out_.progressive) {
      bits = from > 0 ? 0 : high != 0 ? 1 : dc.shortest;  // one end-of-band run covers 32767 blocks
      return true;
    }
    // A block ends with the end-of-block code, or reaches coefficient 63 by at least four codes.
    const uint64_t full = 4u * ac.shortest + 1;
    bits = dc.shortest + (ac.end_of_block ? std::min<uint64_t>(full, ac.end_of_block) : full);
    return true;
  }

  JpegComponent* find_component(uint8_t id) {
    for (size_t i = 0; i < out_.component_count; ++i) {
      if (out_.components[i].id == id) return &out_.components[i];
    }
    return nullptr;
  }

  // From pos_, behind a scan header, to the marker that ends the scan's data.
  Status scan_data() {
    out_.cut_at = pos_;
    uint64_t restarts = 0;
    uint64_t marker = pos_;
    bool zeros = false;
    for (bool found = false; !found;) {
      SPK_ASSIGN(ByteSpan piece, view_.at(marker, kPieceBytes));
      if (piece.size() < 2) {
        out_.cut = true;
        return has_all_bits_or_reject();
      }
      size_t begin = 0;
      size_t end = piece.size();
      while (!found) {
        const size_t at = find_jpeg_marker(piece.subspan(begin)) + begin;
        if (at + 1 >= piece.size()) break;
        const uint8_t code = piece[at + 1];
        begin = at + 2;
        if (code >= kRst0 && code <= kRst7) {
          if (restart_interval_ == 0 || code - kRst0 != static_cast<int>(restarts & 7)) {
            doubt(str_cat("restart marker ", marker_name(code), " at offset ", marker + at,
                          " is out of turn"));
          }
          ++restarts;
        } else {
          end = at;
          found = true;
        }
      }
      zeros = zeros || has_zero_hole(piece.first(end));
      // The last byte is looked at again, for it may be the first half of a marker.
      marker += found || begin == end ? end : end - 1;
    }
    const uint64_t bytes = marker - pos_ - 2 * restarts;
    pos_ = marker;
    if (zeros) doubt(str_cat("a run of zero bytes in the scan at offset ", out_.cut_at));
    if (restart_interval_ != 0 && restarts != (mcus_ - 1) / restart_interval_) {
      doubt(str_cat("the scan at offset ", out_.cut_at, " has ", restarts,
                    " restart markers, its size demands ", (mcus_ - 1) / restart_interval_));
    }
    // A quarter above what is possible at all: flat pictures are that small, and so are cut ones.
    if (bytes * 8 < fewest_bits_ + fewest_bits_ / 4) {
      doubt(str_cat("the scan at offset ", out_.cut_at, " has ", bytes, " bytes for ", mcus_,
                    " MCUs"));
    }
    return Status();
  }

  // The file ends where a marker is due, perhaps behind the FF that begins it.
  Status file_ends() {
    if (out_.scans == 0) {
      return reject(str_cat("truncated: the file ends at ", view_.size(), " before any scan"));
    }
    out_.cut = true;
    return has_all_bits_or_reject();
  }

  // Without EOI nothing says that the scans seen are all, except that they are complete.
  Status has_all_bits_or_reject() {
    if (out_.has_all_bits()) return Status();
    return reject(str_cat("truncated: the file ends at ", view_.size(), " in or behind scan ",
                          out_.scans, " (offset ", out_.cut_at,
                          "), before the picture is complete"));
  }

  Status finish() {
    if (!frame_seen_ || out_.scans == 0) {
      return reject(str_cat("truncated: EOI at offset ", out_.end - 2, " before any ",
                            frame_seen_ ? "scan" : "frame header"));
    }
    if (!out_.has_all_components()) {
      return reject(
          str_cat("truncated: EOI at offset ", out_.end - 2, " before every component had a scan"));
    }
    return Status();
  }

  ByteView& view_;
  const bool header_only_;
  JpegWalk out_;
  uint64_t pos_ = 0;
  bool lost_ = false;
  bool frame_seen_ = false;
  uint32_t h_max_ = 1;
  uint32_t v_max_ = 1;
  uint32_t restart_interval_ = 0;
  std::array<bool, 4> quant_seen_{};
  std::array<std::array<Table, 4>, 2> tables_{};
  uint64_t mcus_ = 0;         // of the current scan
  uint64_t fewest_bits_ = 0;  // of the current scan
};

}  // namespace

Result<JpegWalk> walk_jpeg(ByteView& view, bool header_only) {
  return Walker(view, header_only).run();
}

}  // namespace spk::image
