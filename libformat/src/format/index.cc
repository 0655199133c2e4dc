#include "format/index.h"

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {
constexpr size_t kCoveredFrom = 16;
struct ShardColumn {
  Role role;
  uint64_t ShardRow::*member;
};
constexpr ShardColumn kShardColumns[] = {
    {Role::kFileBytes, &ShardRow::file_bytes},
    {Role::kDataBytes, &ShardRow::data_bytes},
    {Role::kChunkCount, &ShardRow::chunk_count},
    {Role::kSampleCount, &ShardRow::sample_count},
    {Role::kRejectCount, &ShardRow::reject_count},
    {Role::kChunksOffset, &ShardRow::chunks_offset},
    {Role::kChunksBytes, &ShardRow::chunks_bytes},
    {Role::kSamplesOffset, &ShardRow::samples_offset},
    {Role::kSamplesBytes, &ShardRow::samples_bytes},
    {Role::kNamesOffset, &ShardRow::names_offset},
    {Role::kNamesBytes, &ShardRow::names_bytes},
};
// Every column of the shards table has this width, so that its size follows from the number of
// shards alone.
constexpr uint8_t kShardColumnWidth = 8;
}  // namespace

std::vector<uint8_t> encode_shard_rows(std::span<const ShardRow> rows) {
  std::vector<uint64_t> column(rows.size());
  TableBuilder table(rows.size());
  const auto add = [&](Role role, auto&& get) {
    for (size_t i = 0; i < rows.size(); ++i) column[i] = get(rows[i]);
    table.add_unsigned(kNoField, role, column, kShardColumnWidth);
  };
  for (const ShardColumn& shard_column : kShardColumns) {
    add(shard_column.role, [&](const ShardRow& row) { return row.*shard_column.member; });
  }
  add(Role::kDigestLow, [](const ShardRow& row) { return row.digest.low; });
  add(Role::kDigestHigh, [](const ShardRow& row) { return row.digest.high; });
  return table.encode();
}

Result<std::vector<ShardRow>> decode_shard_rows(ByteSpan bytes) {
  SPK_ASSIGN(const TableView table, TableView::parse(bytes));
  const uint64_t count = table.row_count();
  if (count > kMaxShards) return damaged(str_cat("index announces ", count, " shards"));
  // Before anything is allocated: the columns are as long as the count says.
  SPK_TRY(table.require(kNoField, Role::kFileBytes, ColumnType::kUnsigned, count).status());
  std::vector<ShardRow> rows(count);
  for (const ShardColumn& column : kShardColumns) {
    SPK_ASSIGN(const ColumnView view,
               table.require(kNoField, column.role, ColumnType::kUnsigned, count));
    for (uint64_t i = 0; i < count; ++i) rows[i].*column.member = view.unsigned_at(i);
  }
  SPK_ASSIGN(const ColumnView low,
             table.require(kNoField, Role::kDigestLow, ColumnType::kUnsigned, count));
  SPK_ASSIGN(const ColumnView high,
             table.require(kNoField, Role::kDigestHigh, ColumnType::kUnsigned, count));
  for (uint64_t i = 0; i < count; ++i) rows[i].digest = {low.unsigned_at(i), high.unsigned_at(i)};
  return rows;
}

IndexPlan plan_index(std::vector<ShardRow>& rows, uint64_t fields_bytes, uint64_t classes_bytes,
                     uint64_t settings_bytes) {
  uint64_t chunks_bytes = 0;
  uint64_t samples_bytes = 0;
  uint64_t names_bytes = 0;
  for (const ShardRow& row : rows) {
    chunks_bytes += row.chunks_bytes;
    samples_bytes += row.samples_bytes;
    names_bytes += row.names_bytes;
  }
  IndexPlan plan;
  const std::pair<PartKind, uint64_t> sizes[] = {
      {PartKind::kShards, encode_shard_rows(rows).size()},
      {PartKind::kFields, fields_bytes},
      {PartKind::kClasses, classes_bytes},
      {PartKind::kSettings, settings_bytes},
      {PartKind::kChunks, chunks_bytes},
      {PartKind::kSamples, samples_bytes},
      {PartKind::kNames, names_bytes},
  };
  // Offsets from the start of the body first: the head's size depends on the body's.
  uint64_t body_bytes = 0;
  for (const auto& [kind, bytes] : sizes) {
    PartEntry entry;
    entry.kind = static_cast<uint32_t>(kind);
    entry.offset = body_bytes;
    entry.bytes = bytes;
    plan.sections.push_back(entry);
    body_bytes = round_up(body_bytes + bytes, kSectionAlignBytes);
  }
  plan.block_count = static_cast<uint32_t>(divide_up(body_bytes, kIndexBlockBytes));
  plan.head_bytes = round_up(IndexHeader::kBytes + plan.sections.size() * PartEntry::kBytes +
                                 uint64_t{plan.block_count} * 8,
                             kFooterAlignBytes);
  plan.file_bytes = plan.head_bytes + body_bytes;
  for (PartEntry& entry : plan.sections) entry.offset += plan.head_bytes;

  uint64_t chunks_at = plan.sections[4].offset;
  uint64_t samples_at = plan.sections[5].offset;
  uint64_t names_at = plan.sections[6].offset;
  for (ShardRow& row : rows) {
    row.chunks_offset = chunks_at;
    row.samples_offset = samples_at;
    row.names_offset = names_at;
    chunks_at += row.chunks_bytes;
    samples_at += row.samples_bytes;
    names_at += row.names_bytes;
  }
  return plan;
}

std::vector<uint8_t> encode_index_head(IndexHeader& header, const PackIdentity& identity,
                                       const IndexPlan& plan,
                                       std::span<const uint64_t> block_checksums) {
  header.magic = kIndexMagic;
  header.version = kFormatVersion;
  header.plan_id_low = identity.plan_id.low;
  header.plan_id_high = identity.plan_id.high;
  header.chunk_bytes_log2 = identity.chunk_bytes_log2;
  header.blob_align_log2 = identity.blob_align_log2;
  header.header_bytes = IndexHeader::kBytes;
  header.head_bytes = plan.head_bytes;
  header.file_bytes = plan.file_bytes;
  header.section_count = static_cast<uint32_t>(plan.sections.size());
  header.block_count = plan.block_count;
  std::vector<uint8_t> head(plan.head_bytes, 0);
  uint8_t* at = head.data() + IndexHeader::kBytes;
  for (const PartEntry& section : plan.sections) {
    section.encode(at);
    at += PartEntry::kBytes;
  }
  for (const uint64_t checksum : block_checksums) {
    store_le(at, checksum);
    at += sizeof(uint64_t);
  }
  header.encode(head.data());
  header.checksum = xxh3_64(ByteSpan(head).subspan(kCoveredFrom));
  header.encode(head.data());
  return head;
}

PartEntry IndexHead::section(PartKind kind) const noexcept {
  for (const PartEntry& entry : sections) {
    if (entry.kind == static_cast<uint32_t>(kind)) return entry;
  }
  return {};
}

Result<uint64_t> index_head_bytes(ByteSpan first, uint64_t file_bytes) {
  if (first.size() < IndexHeader::kBytes) {
    return damaged(str_cat("index of ", file_bytes, " bytes is shorter than its header"));
  }
  const IndexHeader header = IndexHeader::decode(first.data());
  if (header.magic != kIndexMagic) {
    return Status(Code::kNotThisFormat, str_cat("not an index: found magic ", to_hex(header.magic),
                                                ", expected ", to_hex(kIndexMagic)));
  }
  if (header.file_bytes != file_bytes) {
    return damaged(
        str_cat("index has ", file_bytes, " bytes, its header says ", header.file_bytes));
  }
  if (header.head_bytes > file_bytes || header.head_bytes > kMaxIndexHeadBytes ||
      header.head_bytes < IndexHeader::kBytes) {
    return damaged(str_cat("index head of ", header.head_bytes, " bytes is impossible"));
  }
  return header.head_bytes;
}

Result<IndexHead> decode_index_head(ByteSpan head) {
  IndexHead index;
  index.header = IndexHeader::decode(head.data());
  const IndexHeader& header = index.header;
  const uint64_t actual = xxh3_64(head.subspan(kCoveredFrom));
  if (actual != header.checksum) {
    return damaged(str_cat("index head has checksum ", to_hex(actual), ", expected ",
                           to_hex(header.checksum)));
  }
  SPK_TRY(check_version("index", header.version, header.features_incompatible));
  if (!header.reserved_is_zero() || header.overlay_low != 0 || header.overlay_high != 0) {
    return unsupported("reserved bytes of the index are in use");
  }
  const uint64_t body_bytes = header.file_bytes - header.head_bytes;
  if (header.section_count > kMaxParts || header.shard_count == 0 ||
      header.shard_count > kMaxShards || header.chunk_bytes_log2 < 16 ||
      header.chunk_bytes_log2 > 26 || header.blob_align_log2 > 12 ||
      header.header_bytes != IndexHeader::kBytes || header.head_bytes % kFooterAlignBytes != 0 ||
      header.block_count != divide_up(body_bytes, kIndexBlockBytes) ||
      IndexHeader::kBytes + header.section_count * PartEntry::kBytes +
              uint64_t{header.block_count} * 8 >
          header.head_bytes) {
    return damaged("index head has impossible counts");
  }
  const uint8_t* at = head.data() + IndexHeader::kBytes;
  uint64_t end = header.head_bytes;
  for (uint32_t i = 0; i < header.section_count; ++i) {
    const PartEntry entry = PartEntry::decode(at);
    if (entry.offset != round_up(end, kSectionAlignBytes) ||
        !range_fits(entry.offset, entry.bytes, header.file_bytes)) {
      return damaged(str_cat("index section ", i, " lies at ", entry.offset, " with ", entry.bytes,
                             " bytes in ", header.file_bytes));
    }
    if (index.section(static_cast<PartKind>(entry.kind)).kind != 0 || (entry.flags & ~1u) != 0 ||
        entry.checksum != 0) {
      return damaged(str_cat("index section ", i, " of kind ", entry.kind,
                             " is there twice, has flags ", entry.flags, " or a checksum"));
    }
    const bool known = entry.kind >= 1 && entry.kind <= static_cast<uint32_t>(PartKind::kRejects);
    if (!known && (entry.flags & 1) != 0) {
      return unsupported(str_cat("index section of kind ", entry.kind, " must be known"));
    }
    end = entry.offset + entry.bytes;
    index.sections.push_back(entry);
    at += PartEntry::kBytes;
  }
  index.block_checksums.reserve(header.block_count);
  for (uint32_t i = 0; i < header.block_count; ++i) {
    index.block_checksums.push_back(load_le<uint64_t>(at));
    at += sizeof(uint64_t);
  }
  if (round_up(end, kSectionAlignBytes) != header.file_bytes) {
    return damaged(str_cat("index sections end at ", end, ", the file at ", header.file_bytes));
  }
  if (!is_all_zero(head.subspan(static_cast<size_t>(at - head.data())))) {
    return damaged("padding of the index head is not zero");
  }
  return index;
}

}  // namespace spk
