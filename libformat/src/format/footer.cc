#include "format/footer.h"

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {
constexpr size_t kCoveredFrom = 16;
}  // namespace

Hash128 shard_digest(std::span<const uint64_t> header_checksums, uint64_t sample_count) {
  Xxh3Stream hash;
  for (const uint64_t checksum : header_checksums) hash.update_u64(checksum);
  hash.update_u64(header_checksums.size());
  hash.update_u64(sample_count);
  return hash.digest_128();
}

Hash128 content_id(const Hash128& schema_hash, std::span<const Hash128> shard_digests) {
  Xxh3Stream hash;
  hash.update_u64(schema_hash.low);
  hash.update_u64(schema_hash.high);
  for (const Hash128& digest : shard_digests) {
    hash.update_u64(digest.low);
    hash.update_u64(digest.high);
  }
  return hash.digest_128();
}

std::vector<uint8_t> encode_chunk_rows(std::span<const ChunkRow> rows) {
  std::vector<uint64_t> column(rows.size());
  TableBuilder table(rows.size());
  const auto add = [&](Role role, auto member, uint8_t min_width) {
    for (size_t i = 0; i < rows.size(); ++i) column[i] = rows[i].*member;
    table.add_unsigned(kNoField, role, column, min_width);
  };
  add(Role::kSlot, &ChunkRow::slot, 1);
  add(Role::kSpanSlots, &ChunkRow::span_slots, 1);
  add(Role::kFirstSample, &ChunkRow::first_sample, 1);
  add(Role::kSampleCount, &ChunkRow::sample_count, 1);
  add(Role::kHeaderChecksum, &ChunkRow::header_checksum, 8);
  add(Role::kUsedBytes, &ChunkRow::used_bytes, 1);
  return table.encode();
}

Result<std::vector<ChunkRow>> decode_chunk_rows(ByteSpan bytes) {
  SPK_ASSIGN(const TableView table, TableView::parse(bytes));
  const uint64_t count = table.row_count();
  const auto require = [&](Role role) {
    return table.require(kNoField, role, ColumnType::kUnsigned, count);
  };
  SPK_ASSIGN(const ColumnView slots, require(Role::kSlot));
  SPK_ASSIGN(const ColumnView spans, require(Role::kSpanSlots));
  SPK_ASSIGN(const ColumnView first_samples, require(Role::kFirstSample));
  SPK_ASSIGN(const ColumnView sample_counts, require(Role::kSampleCount));
  SPK_ASSIGN(const ColumnView checksums, require(Role::kHeaderChecksum));
  SPK_ASSIGN(const ColumnView used, require(Role::kUsedBytes));
  std::vector<ChunkRow> rows(count);
  uint64_t next_slot = 0;
  uint64_t next_sample = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t span = spans.unsigned_at(i);
    const uint64_t samples = sample_counts.unsigned_at(i);
    if (slots.unsigned_at(i) != next_slot || first_samples.unsigned_at(i) != next_sample ||
        span == 0 || samples == 0 || span > UINT32_MAX - next_slot || samples > UINT32_MAX) {
      return damaged(str_cat("chunk ", i, " does not follow chunk before it (slot ",
                             slots.unsigned_at(i), ", expected ", next_slot, ")"));
    }
    rows[i].slot = static_cast<uint32_t>(next_slot);
    rows[i].span_slots = static_cast<uint32_t>(span);
    rows[i].first_sample = next_sample;
    rows[i].sample_count = static_cast<uint32_t>(samples);
    rows[i].header_checksum = checksums.unsigned_at(i);
    rows[i].used_bytes = used.unsigned_at(i);
    next_slot += span;
    next_sample += samples;
  }
  return rows;
}

std::vector<uint8_t> encode_reject_rows(std::span<const RejectRow> rows) {
  std::vector<std::string_view> keys;
  std::vector<uint64_t> ordinals;
  std::vector<std::string_view> reasons;
  for (const RejectRow& row : rows) {
    keys.push_back(row.key);
    ordinals.push_back(row.ordinal);
    reasons.push_back(row.reason);
  }
  TableBuilder table(rows.size());
  table.add_strings(kNoField, Role::kKeyEnd, Role::kKeyBytes, keys);
  table.add_unsigned(kNoField, Role::kOrdinal, ordinals);
  table.add_strings(kNoField, Role::kValueEnd, Role::kValue, reasons);
  return table.encode();
}

Result<std::vector<RejectRow>> decode_reject_rows(ByteSpan bytes) {
  SPK_ASSIGN(const TableView table, TableView::parse(bytes));
  SPK_ASSIGN(const StringColumn keys,
             StringColumn::make(table, kNoField, Role::kKeyEnd, Role::kKeyBytes));
  SPK_ASSIGN(const StringColumn reasons,
             StringColumn::make(table, kNoField, Role::kValueEnd, Role::kValue));
  SPK_ASSIGN(const ColumnView ordinals,
             table.require(kNoField, Role::kOrdinal, ColumnType::kUnsigned, table.row_count()));
  std::vector<RejectRow> rows;
  rows.reserve(keys.size());
  for (uint64_t i = 0; i < keys.size(); ++i) {
    rows.push_back({std::string(keys[i]), ordinals.unsigned_at(i), std::string(reasons[i])});
  }
  return rows;
}

std::vector<uint8_t> encode_footer(FooterHeader& header, const PackIdentity& identity,
                                   const Parts& parts) {
  const uint64_t head_bytes = FooterHeader::kBytes + parts.size() * PartEntry::kBytes;
  std::vector<PartEntry> entries;
  uint64_t at = round_up(head_bytes, kSectionAlignBytes);
  for (const auto& [kind, bytes] : parts) {
    PartEntry entry;
    entry.kind = static_cast<uint32_t>(kind);
    entry.offset = at;
    entry.bytes = bytes.size();
    entry.checksum = xxh3_64(bytes);
    entries.push_back(entry);
    at = round_up(at + bytes.size(), kSectionAlignBytes);
  }
  header.magic = kFooterMagic;
  header.version = kFormatVersion;
  header.plan_id_low = identity.plan_id.low;
  header.plan_id_high = identity.plan_id.high;
  header.chunk_bytes_log2 = identity.chunk_bytes_log2;
  header.blob_align_log2 = identity.blob_align_log2;
  header.header_bytes = FooterHeader::kBytes;
  header.part_count = static_cast<uint32_t>(parts.size());
  header.footer_bytes = round_up(at + Trailer::kBytes, kFooterAlignBytes);

  std::vector<uint8_t> footer(header.footer_bytes, 0);
  header.encode(footer.data());
  for (size_t i = 0; i < parts.size(); ++i) {
    entries[i].encode(footer.data() + FooterHeader::kBytes + i * PartEntry::kBytes);
    const std::vector<uint8_t>& bytes = parts[i].second;
    std::memcpy(footer.data() + entries[i].offset, bytes.data(), bytes.size());
  }
  header.checksum = xxh3_64(ByteSpan(footer).subspan(kCoveredFrom, head_bytes - kCoveredFrom));
  header.encode(footer.data());

  Trailer trailer;
  trailer.magic = kTrailerMagic;
  trailer.footer_offset = header.data_bytes;
  trailer.footer_bytes = header.footer_bytes;
  trailer.footer_checksum = header.checksum;
  trailer.plan_id_low = identity.plan_id.low;
  trailer.plan_id_high = identity.plan_id.high;
  trailer.shard = header.shard;
  trailer.version = kFormatVersion;
  uint8_t* last = footer.data() + footer.size() - Trailer::kBytes;
  trailer.encode(last);
  trailer.checksum = xxh3_64(ByteSpan(last, Trailer::kBytes).subspan(kCoveredFrom));
  trailer.encode(last);
  return footer;
}

Result<Trailer> decode_trailer(ByteSpan last, uint64_t file_bytes) {
  if (last.size() != Trailer::kBytes) {
    return Status(Code::kNotThisFormat, "the file is too short to be a shard");
  }
  const Trailer trailer = Trailer::decode(last.data());
  if (trailer.magic != kTrailerMagic) {
    return Status(Code::kNotThisFormat,
                  str_cat("no shard trailer at the end of the file: found magic ",
                          to_hex(trailer.magic), ", expected ", to_hex(kTrailerMagic)));
  }
  if (xxh3_64(last.subspan(kCoveredFrom)) != trailer.checksum) {
    return damaged("the shard's trailer contradicts its checksum");
  }
  SPK_TRY(check_version("shard", trailer.version, 0));
  if (trailer.footer_bytes < FooterHeader::kBytes + Trailer::kBytes ||
      trailer.footer_bytes > file_bytes ||
      trailer.footer_offset != file_bytes - trailer.footer_bytes) {
    return damaged(str_cat("trailer places a footer of ", trailer.footer_bytes, " bytes at ",
                           trailer.footer_offset, " in a file of ", file_bytes, " bytes"));
  }
  return trailer;
}

Result<FooterView> FooterView::parse(ByteSpan footer) {
  FooterView view;
  view.footer_ = footer;
  if (footer.size() < FooterHeader::kBytes + Trailer::kBytes) return damaged("footer is cut off");
  const FooterHeader header = FooterHeader::decode(footer.data());
  if (header.magic != kFooterMagic || header.footer_bytes != footer.size() ||
      header.header_bytes != FooterHeader::kBytes || header.part_count > kMaxParts) {
    return damaged(str_cat("footer header: magic ", to_hex(header.magic), ", ", header.footer_bytes,
                           " bytes, ", header.part_count, " parts; expected magic ",
                           to_hex(kFooterMagic), " and ", footer.size(), " bytes"));
  }
  const uint64_t head_bytes = FooterHeader::kBytes + header.part_count * PartEntry::kBytes;
  if (head_bytes > footer.size() - Trailer::kBytes) return damaged("footer's part list is cut off");
  const uint64_t actual = xxh3_64(footer.subspan(kCoveredFrom, head_bytes - kCoveredFrom));
  if (actual != header.checksum) {
    return damaged(str_cat("footer header has checksum ", to_hex(actual), ", expected ",
                           to_hex(header.checksum)));
  }
  SPK_TRY(check_version("footer", header.version, header.features_incompatible));
  if (!header.reserved_is_zero()) return unsupported("reserved bytes of a footer are in use");
  if (header.chunk_bytes_log2 < 16 || header.chunk_bytes_log2 > 26 || header.blob_align_log2 > 12 ||
      header.data_bytes % kFooterAlignBytes != 0 || footer.size() % kFooterAlignBytes != 0 ||
      header.shard >= header.shard_count || header.shard_count > kMaxShards ||
      header.sample_count > header.position_count ||
      header.position_count - header.sample_count != header.reject_count) {
    return damaged(str_cat("footer of shard ", header.shard, " of ", header.shard_count, " at ",
                           header.data_bytes, " with ", count_of(header.sample_count, "sample"),
                           " and ", header.reject_count, " rejects of ", header.position_count,
                           " positions contradicts itself"));
  }
  SPK_ASSIGN(const Trailer trailer,
             decode_trailer(footer.last(Trailer::kBytes), header.data_bytes + footer.size()));
  if (trailer.footer_checksum != header.checksum || trailer.shard != header.shard ||
      trailer.plan_id_low != header.plan_id_low || trailer.plan_id_high != header.plan_id_high) {
    return damaged("footer and trailer contradict each other");
  }
  view.header_ = header;
  const uint64_t parts_end = footer.size() - Trailer::kBytes;
  uint64_t end = head_bytes;
  for (uint32_t i = 0; i < header.part_count; ++i) {
    const PartEntry entry =
        PartEntry::decode(footer.data() + FooterHeader::kBytes + i * PartEntry::kBytes);
    if (entry.offset != round_up(end, kSectionAlignBytes) ||
        !range_fits(entry.offset, entry.bytes, parts_end)) {
      return damaged(str_cat("footer part ", i, " lies at ", entry.offset, " with ", entry.bytes,
                             " bytes in a footer of ", footer.size()));
    }
    if (view.has(static_cast<PartKind>(entry.kind)) || (entry.flags & ~1u) != 0) {
      return damaged(str_cat("footer part ", i, " of kind ", entry.kind,
                             " is there twice or has flags ", entry.flags));
    }
    const bool known = entry.kind >= 1 && entry.kind <= static_cast<uint32_t>(PartKind::kRejects);
    if (!known && (entry.flags & 1) != 0) {
      return unsupported(str_cat("footer part of kind ", entry.kind, " must be known"));
    }
    if (!is_all_zero(footer.subspan(end, entry.offset - end))) {
      return damaged(str_cat("padding before footer part ", i, " is not zero"));
    }
    view.parts_.push_back(entry);
    end = entry.offset + entry.bytes;
  }
  if (!is_all_zero(footer.subspan(end, parts_end - end))) {
    return damaged("padding before the trailer is not zero");
  }
  return view;
}

bool FooterView::has(PartKind kind) const noexcept {
  for (const PartEntry& entry : parts_) {
    if (entry.kind == static_cast<uint32_t>(kind)) return true;
  }
  return false;
}

PartEntry FooterView::entry(PartKind kind) const noexcept {
  for (const PartEntry& entry : parts_) {
    if (entry.kind == static_cast<uint32_t>(kind)) return entry;
  }
  return {};
}

Result<ByteSpan> FooterView::part(PartKind kind) const {
  if (!has(kind)) {
    return damaged(str_cat("footer has no part of kind ", static_cast<uint32_t>(kind)));
  }
  const PartEntry where = entry(kind);
  const ByteSpan bytes = footer_.subspan(where.offset, where.bytes);
  const uint64_t actual = xxh3_64(bytes);
  if (actual != where.checksum) {
    return damaged(str_cat("footer part of kind ", where.kind, " has checksum ", to_hex(actual),
                           ", expected ", to_hex(where.checksum)))
        .at_offset(header_.data_bytes + where.offset);
  }
  return bytes;
}

}  // namespace spk
