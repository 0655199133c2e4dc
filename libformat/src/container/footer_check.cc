#include "container/footer_check.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {

constexpr size_t kCoveredFrom = 16;
// How far back from the end of the file a footer is looked for when its trailer is gone.
constexpr uint64_t kSearchBytes = uint64_t{1} << 30;

bool header_checksum_ok(ByteSpan footer) {
  if (footer.size() < FooterHeader::kBytes + Trailer::kBytes) return false;
  const FooterHeader header = FooterHeader::decode(footer.data());
  const uint64_t head_bytes =
      FooterHeader::kBytes + uint64_t{header.part_count} * PartEntry::kBytes;
  return header.magic == kFooterMagic && header.footer_bytes == footer.size() &&
         head_bytes <= footer.size() - Trailer::kBytes &&
         xxh3_64(footer.subspan(kCoveredFrom, head_bytes - kCoveredFrom)) == header.checksum;
}

// The trailer that goes with a footer's header.
std::vector<uint8_t> make_trailer(const FooterHeader& header) {
  Trailer trailer;
  trailer.magic = kTrailerMagic;
  trailer.footer_offset = header.data_bytes;
  trailer.footer_bytes = header.footer_bytes;
  trailer.footer_checksum = header.checksum;
  trailer.plan_id_low = header.plan_id_low;
  trailer.plan_id_high = header.plan_id_high;
  trailer.shard = header.shard;
  trailer.version = header.version;
  std::vector<uint8_t> bytes(Trailer::kBytes);
  trailer.encode(bytes.data());
  trailer.checksum = xxh3_64(ByteSpan(bytes).subspan(kCoveredFrom));
  trailer.encode(bytes.data());
  return bytes;
}

// The footer that ends at `end` and has lost its trailer.
std::optional<uint64_t> search_footer(const File& file, uint64_t end) {
  const uint64_t lowest = end > kSearchBytes ? end - kSearchBytes : 0;
  uint8_t bytes[FooterHeader::kBytes];
  for (uint64_t at = end - end % kFooterAlignBytes; at >= lowest; at -= kFooterAlignBytes) {
    if (end - at >= sizeof bytes && file.read_exact(at, bytes).ok()) {
      const FooterHeader header = FooterHeader::decode(bytes);
      if (header.magic == kFooterMagic && header.data_bytes == at &&
          header.footer_bytes == end - at) {
        return at;
      }
    }
    if (at < kFooterAlignBytes) break;
  }
  return std::nullopt;
}

class Check {
 public:
  Check(const File& file, const FooterPlace& place, std::vector<Damage>& damages)
      : file_(file), place_(place), damages_(damages) {}

  void run(FooterCheck& footer) {
    uint64_t offset = 0;
    if (!find(&offset)) return;
    const uint64_t bytes = place_.end - offset;
    if (bytes > place_.max_bytes) {
      return report(DamageKind::kFooter, Code::kNoMemory, offset,
                    str_cat("footer of ", format_size(bytes), " is larger than the ",
                            format_size(place_.max_bytes), " that may be used for it"));
    }
    footer.bytes.resize(bytes);
    if (Status status = file_.read_exact(offset, footer.bytes); !status.ok()) {
      return report(DamageKind::kFooter, status.code(), offset, status.message());
    }
    if (header_checksum_ok(footer.bytes)) {
      mend_trailer(footer.bytes, offset);
      mend_padding(footer.bytes, offset);
    } else if (!trailer_status_.ok()) {
      report_trailer();
    }
    auto view = FooterView::parse(footer.bytes);
    if (!view.ok()) {
      const Code code = view.status().code();
      return report(DamageKind::kFooter, code == Code::kNotThisFormat ? Code::kDamaged : code,
                    offset, view.status().message());
    }
    footer.view = std::move(view).value();
    footer.usable = true;
    for (uint32_t kind = 1; kind <= static_cast<uint32_t>(PartKind::kRejects); ++kind) {
      const auto part_kind = static_cast<PartKind>(kind);
      if (!footer.view.has(part_kind)) continue;
      if (const auto part = footer.view.part(part_kind); !part.ok()) {
        report(DamageKind::kFooter, Code::kDamaged, offset + footer.view.entry(part_kind).offset,
               part.status().message());
      } else {
        footer.good_parts |= 1u << kind;
      }
    }
  }

 private:
  void report(DamageKind kind, Code code, uint64_t offset, std::string what) {
    Damage damage;
    damage.kind = kind;
    damage.code = code;
    damage.offset = offset;
    damage.what = std::move(what);
    damages_.push_back(std::move(damage));
  }
  void report_trailer() {
    const Code code = trailer_status_.code();
    report(DamageKind::kTrailer, code == Code::kNotThisFormat ? Code::kDamaged : code,
           place_.end - std::min<uint64_t>(place_.end, Trailer::kBytes), trailer_status_.message());
  }

  // Where the footer starts, by the trailer or without it.
  bool find(uint64_t* offset) {
    uint8_t last[Trailer::kBytes];
    const uint64_t last_bytes = std::min<uint64_t>(place_.end, Trailer::kBytes);
    const auto into = MutableByteSpan(last).first(last_bytes);
    if (Status status = file_.read_exact(place_.end - last_bytes, into); !status.ok()) {
      report(DamageKind::kTrailer, status.code(), place_.end - last_bytes, status.message());
      return false;
    }
    const auto trailer = decode_trailer(into, place_.end);
    if (trailer.ok()) {
      *offset = trailer->footer_offset;
      return true;
    }
    trailer_status_ = trailer.status();
    if (place_.data_bytes && *place_.data_bytes < place_.end) {
      *offset = *place_.data_bytes;
      return true;
    }
    const auto found = search_footer(file_, place_.end);
    if (!found) report_trailer();
    if (found) *offset = *found;
    return found.has_value();
  }

  void mend_trailer(std::vector<uint8_t>& bytes, uint64_t offset) {
    const FooterHeader header = FooterHeader::decode(bytes.data());
    if (header.data_bytes != offset) return;
    const std::vector<uint8_t> right = make_trailer(header);
    const auto last = bytes.end() - static_cast<ptrdiff_t>(right.size());
    const auto differs = std::mismatch(right.begin(), right.end(), last).second;
    if (differs == bytes.end()) return;
    report(DamageKind::kTrailer, Code::kDamaged,
           offset + static_cast<uint64_t>(differs - bytes.begin()),
           "the shard's trailer differs from its footer");
    std::copy(right.begin(), right.end(), last);
  }

  void mend_padding(std::vector<uint8_t>& bytes, uint64_t offset) {
    const FooterHeader header = FooterHeader::decode(bytes.data());
    const uint64_t parts_end = bytes.size() - Trailer::kBytes;
    uint64_t end = FooterHeader::kBytes + uint64_t{header.part_count} * PartEntry::kBytes;
    const auto gap = [&](uint64_t until) {
      const auto first = bytes.begin() + static_cast<ptrdiff_t>(end);
      const auto last = bytes.begin() + static_cast<ptrdiff_t>(until);
      const auto found = std::find_if(first, last, [](uint8_t b) { return b != 0; });
      if (found == last) return;
      report(DamageKind::kFooter, Code::kDamaged,
             offset + static_cast<uint64_t>(found - bytes.begin()),
             "padding in the footer is not zero");
      std::fill(found, last, uint8_t{0});
    };
    for (uint32_t i = 0; i < header.part_count; ++i) {
      const PartEntry entry =
          PartEntry::decode(bytes.data() + FooterHeader::kBytes + i * PartEntry::kBytes);
      if (entry.offset < end || !range_fits(entry.offset, entry.bytes, parts_end)) return;
      gap(entry.offset);
      end = entry.offset + entry.bytes;
    }
    gap(parts_end);
  }

  const File& file_;
  const FooterPlace& place_;
  std::vector<Damage>& damages_;
  Status trailer_status_;
};

}  // namespace

std::optional<ByteSpan> FooterCheck::part(PartKind kind) const {
  if (!usable || (good_parts >> static_cast<uint32_t>(kind) & 1) == 0) return std::nullopt;
  const PartEntry place = view.entry(kind);
  return ByteSpan(bytes).subspan(place.offset, place.bytes);
}

bool has_trailer(const File& file, uint64_t end) {
  uint8_t last[Trailer::kBytes];
  return end >= sizeof last && file.read_exact(end - sizeof last, last).ok() &&
         decode_trailer(last, end).ok();
}

void check_footer(const File& file, const FooterPlace& place, std::vector<Damage>& damages,
                  FooterCheck& footer) {
  Check(file, place, damages).run(footer);
}

}  // namespace spk
