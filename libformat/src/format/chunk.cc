#include "format/chunk.h"

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {
// The checksum covers everything behind the magic and itself.
constexpr size_t kCoveredFrom = 16;
}  // namespace

std::vector<uint8_t> encode_chunk_head(ChunkHeader& header, const PackIdentity& identity,
                                       ByteSpan table) {
  header.magic = kChunkMagic;
  header.version = kFormatVersion;
  header.plan_id_low = identity.plan_id.low;
  header.plan_id_high = identity.plan_id.high;
  header.chunk_bytes_log2 = identity.chunk_bytes_log2;
  header.blob_align_log2 = identity.blob_align_log2;
  header.header_bytes = ChunkHeader::kBytes;
  header.table_bytes = table.size();
  std::vector<uint8_t> head(ChunkHeader::kBytes + table.size());
  header.encode(head.data());
  std::memcpy(head.data() + ChunkHeader::kBytes, table.data(), table.size());
  header.checksum = xxh3_64(ByteSpan(head).subspan(kCoveredFrom));
  header.encode(head.data());
  return head;
}

Result<ChunkHeader> decode_chunk_header(ByteSpan first) {
  if (first.size() < ChunkHeader::kBytes) {
    return damaged(str_cat("only ", first.size(), " bytes where a chunk header of ",
                           ChunkHeader::kBytes, " should be"));
  }
  const ChunkHeader header = ChunkHeader::decode(first.data());
  if (header.magic != kChunkMagic) {
    return Status(Code::kNotThisFormat, str_cat("no chunk here: found magic ", to_hex(header.magic),
                                                ", expected ", to_hex(kChunkMagic)));
  }
  const auto bad = [](std::string what) { return damaged("chunk header: " + std::move(what)); };
  if (header.header_bytes != ChunkHeader::kBytes) {
    return bad(
        str_cat("header_bytes is ", header.header_bytes, ", expected ", ChunkHeader::kBytes));
  }
  if (header.chunk_bytes_log2 < 16 || header.chunk_bytes_log2 > 26 || header.blob_align_log2 > 12) {
    return bad(str_cat("chunk_bytes_log2 ", header.chunk_bytes_log2, " or blob_align_log2 ",
                       header.blob_align_log2, " is out of range"));
  }
  const uint64_t span_bytes = uint64_t{header.span_slots} << header.chunk_bytes_log2;
  if (header.table_bytes > kMaxTableBytes) {
    return bad(str_cat("table of ", header.table_bytes, " bytes; at most ", kMaxTableBytes,
                       " are allowed"));
  }
  if (header.span_slots == 0 || header.table_bytes > span_bytes ||
      ChunkHeader::kBytes + header.table_bytes > header.payload_offset ||
      header.payload_offset > header.used_bytes ||
      divide_up(header.used_bytes, uint64_t{1} << header.chunk_bytes_log2) != header.span_slots) {
    return bad(str_cat("table of ", header.table_bytes, " bytes, payload at ",
                       header.payload_offset, " and end at ", header.used_bytes, " do not go with ",
                       header.span_slots, " slots"));
  }
  if (header.payload_offset !=
      round_up(ChunkHeader::kBytes + header.table_bytes, uint64_t{1} << header.blob_align_log2)) {
    return bad(str_cat("payload_offset ", header.payload_offset, " does not follow the table"));
  }
  if (header.sample_count == 0 || (header.span_slots > 1 && header.sample_count != 1)) {
    return bad(str_cat(count_of(header.sample_count, "sample"), " in ",
                       count_of(header.span_slots, "slot")));
  }
  return header;
}

uint64_t chunk_head_bytes(const ChunkHeader& header) noexcept {
  return ChunkHeader::kBytes + header.table_bytes;
}

Status check_chunk_head(const ChunkHeader& header, ByteSpan head) {
  const uint64_t actual = xxh3_64(head.subspan(kCoveredFrom));
  if (actual != header.checksum) {
    return damaged(str_cat("chunk header and table have checksum ", to_hex(actual), ", expected ",
                           to_hex(header.checksum)));
  }
  // Only after the checksum: a flipped bit is damage, not a newer version.
  SPK_TRY(check_version("chunk", header.version, header.features_incompatible));
  if (!header.reserved_is_zero()) return unsupported("reserved bytes of a chunk header are in use");
  return {};
}

Status check_chunk_rows(const ChunkHeader& header, ByteSpan table, const SampleTable& samples,
                        const Schema& schema) {
  if (samples.size() != header.sample_count) {
    return damaged(str_cat("chunk table has ", samples.size(), " rows, its header says ",
                           header.sample_count));
  }
  SPK_ASSIGN(const TableView view, TableView::parse(table));
  if (!view.padding_is_zero()) return damaged("padding in a chunk table is not zero");
  const uint64_t align = uint64_t{1} << header.blob_align_log2;
  uint64_t end = header.payload_offset;
  for (uint64_t row = 0; row < samples.size(); ++row) {
    const StoredSample sample = samples.row(row);
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      const StoredField& field = sample.fields[i];
      if (schema.fields[i].kind != FieldKind::kBlob) continue;
      if (!field.present) {
        if (field.offset == 0 && field.bytes == 0 && field.checksum == 0) continue;
        return damaged(
            str_cat("sample ", row, " has no blob in field ", i, ", but its columns are not zero"));
      }
      if (field.offset != round_up(end, align) || field.offset > header.used_bytes ||
          field.bytes > header.used_bytes - field.offset) {
        return damaged(str_cat("blob of sample ", row, " lies at ", field.offset, " with ",
                               field.bytes, " bytes; expected at ", round_up(end, align),
                               " within ", header.used_bytes));
      }
      end = field.offset + field.bytes;
    }
  }
  if (end != header.used_bytes) {
    return damaged(str_cat("payloads end at ", end, ", the header says ", header.used_bytes));
  }
  return {};
}

}  // namespace spk
