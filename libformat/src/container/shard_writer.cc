#include "container/shard_writer.h"

#include <algorithm>
#include <array>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/text.h"
#include "container/chunk_check.h"

namespace spk {

namespace {

constexpr uint64_t kCopyBytes = uint64_t{1} << 20;

// Zeros to write from: padding is stored, so that no shard has holes for a file system to fill in
// later at another place.
ByteSpan zeros(uint64_t bytes) {
  static const std::vector<uint8_t> zero(kCopyBytes, 0);
  return ByteSpan(zero).first(bytes);
}

}  // namespace

ShardWriter::ShardWriter(File file, const ShardContext& context)
    : file_(std::move(file)), chunks_(file_), context_(context), columns_(context.schema) {}

Result<ShardWriter> ShardWriter::create(const Directory& dir, const std::string& name,
                                        const ShardContext& context) {
  SPK_ASSIGN(File file, File::create(dir, name));
  return ShardWriter(std::move(file), context);
}

ShardWriter ShardWriter::create(File file, const ShardContext& context) {
  return ShardWriter(std::move(file), context);
}

Result<ShardWriter> ShardWriter::resume(const Directory& dir, const std::string& name,
                                        const ShardContext& context) {
  SPK_ASSIGN(File file, File::open_write(dir, name));
  ShardWriter writer(std::move(file), context);
  SPK_TRY(writer.scan_kept());
  return writer;
}

Status ShardWriter::scan_kept() {
  // Pages that a failed write-back left behind look clean and right; only what comes from the disk
  // counts.
  SPK_TRY(file_.sync());
  file_.drop_cache();
  SPK_ASSIGN(const uint64_t file_bytes, file_.size());
  std::vector<uint8_t> buffer;
  uint64_t offset = 0;
  while (offset < file_bytes) {
    SPK_ASSIGN(const uint64_t next, check_kept_chunk(offset, file_bytes, buffer));
    if (next == offset) break;
    offset = next;
  }
  // What lies behind is written over, and cut off by finish() if it is too much; not here: if this
  // process is slow and another one took the file over and finished it, nothing may be lost of it.
  return {};
}

// The offset behind the chunk where it is whole and ours, otherwise `offset` itself. Errors of the
// disk are errors.
Result<uint64_t> ShardWriter::check_kept_chunk(uint64_t offset, uint64_t file_bytes,
                                               std::vector<uint8_t>& buffer) {
  ChunkExpectation expected;
  expected.identity = context_.identity;
  expected.shard = context_.shard;
  expected.chunk = kept_chunks_;
  expected.slot = static_cast<uint32_t>(offset >> context_.identity.chunk_bytes_log2);
  expected.first_sample = kept_.size();
  auto checked = check_chunk_in_file(file_, offset, file_bytes, expected, context_.schema, buffer);
  if (!checked.ok()) {
    const Code code = checked.status().code();
    const bool content = code == Code::kDamaged || code == Code::kNotThisFormat ||
                         code == Code::kUnsupported || code == Code::kMismatch;
    if (content) return offset;
    return std::move(checked).status();
  }
  const uint64_t end =
      offset + (uint64_t{checked->header.span_slots} << context_.identity.chunk_bytes_log2);
  // Only whole slots are kept: the last chunk of a shard is cheap to write again.
  if (end > file_bytes) return offset;
  kept_checksums_.push_back(checked->header.checksum);
  kept_chunks_ += 1;
  for (StoredSample& sample : checked->samples) kept_.push_back(std::move(sample));
  return end;
}

Status ShardWriter::add_chunk(FilledChunk&& chunk, std::span<const BlobSource> blobs) {
  if (chunk.table_bytes > kMaxTableBytes) {
    return invalid_argument(str_cat("the facts of sample '", escape_bytes(chunk.samples[0].key),
                                    "' need a table of ", chunk.table_bytes,
                                    " bytes; the format allows ", kMaxTableBytes));
  }
  SampleColumns chunk_columns(context_.schema);
  for (const StoredSample& sample : chunk.samples) chunk_columns.append(sample, 0);
  const std::vector<uint8_t> table = chunk_columns.encode(SampleTableKind::kChunk);
  if (table.size() != chunk.table_bytes) {
    return internal_error(
        str_cat("sample table has ", table.size(), " bytes, planned were ", chunk.table_bytes));
  }
  ChunkHeader header;
  header.shard = context_.shard;
  header.chunk = static_cast<uint32_t>(rows_.size());
  header.slot = chunk.slot;
  header.span_slots = chunk.span_slots;
  header.sample_count = static_cast<uint32_t>(chunk.samples.size());
  header.first_sample = chunk.first_sample;
  header.payload_offset = chunk.payload_offset;
  header.used_bytes = chunk.used_bytes;
  const std::vector<uint8_t> head = encode_chunk_head(header, context_.identity, table);

  if (next_is_kept()) {
    if (header.checksum != kept_checksums_[rows_.size()]) {
      return Status(Code::kMismatch,
                    str_cat("chunk ", header.chunk, " was written before with other content"))
          .at_path(file_.path())
          .at_offset(slot_offset(chunk.slot))
          .with_hint("the source or the program changed; start again with --restart");
    }
  } else {
    SPK_TRY(write_chunk(header, head, chunk, blobs));
  }

  ChunkRow row;
  row.slot = chunk.slot;
  row.span_slots = chunk.span_slots;
  row.first_sample = chunk.first_sample;
  row.sample_count = header.sample_count;
  row.header_checksum = header.checksum;
  row.used_bytes = chunk.used_bytes;
  rows_.push_back(row);
  sample_count_ += chunk.samples.size();
  for (const StoredSample& sample : chunk.samples) {
    columns_.append(sample, slot_offset(chunk.slot));
    for (size_t i = 0; i < sample.fields.size(); ++i) {
      if (context_.schema.fields[i].kind == FieldKind::kBlob) {
        payload_bytes_ += sample.fields[i].bytes;
      }
    }
  }
  return {};
}

Status ShardWriter::write_chunk(const ChunkHeader& header, const std::vector<uint8_t>& head,
                                const FilledChunk& chunk, std::span<const BlobSource> blobs) {
  const uint64_t start = slot_offset(chunk.slot);
  std::vector<ByteSpan> pieces = {ByteSpan(head)};
  uint64_t written_to = start;         // everything before it is handed over
  uint64_t gathered_to = head.size();  // from the chunk's start
  const auto flush = [&]() -> Status {
    SPK_TRY(chunks_.write_all_v(file_, written_to, pieces));
    written_to = start + gathered_to;
    pieces.clear();
    return {};
  };
  const auto pad_to = [&](uint64_t offset) {
    while (gathered_to < offset) {
      const uint64_t bytes = std::min(offset - gathered_to, kCopyBytes);
      pieces.push_back(zeros(bytes));
      gathered_to += bytes;
    }
  };
  size_t next_blob = 0;
  for (const StoredSample& sample : chunk.samples) {
    for (size_t i = 0; i < sample.fields.size(); ++i) {
      const StoredField& field = sample.fields[i];
      if (context_.schema.fields[i].kind != FieldKind::kBlob || !field.present) continue;
      const BlobSource& blob = blobs[next_blob++];
      pad_to(field.offset);
      if (blob.read) {
        SPK_TRY(flush());
        Status streamed = write_streamed(blob, field, start + field.offset);
        if (streamed.code() == Code::kMismatch && streamed.path().empty()) {
          streamed = std::move(streamed).at_path(sample.key);
        }
        SPK_TRY(std::move(streamed));
        written_to += field.bytes;
      } else {
        pieces.push_back(blob.bytes);
      }
      gathered_to += field.bytes;
    }
  }
  // A run's tail, or the unused end of a slot; the last chunk of the shard is cut in finish().
  pad_to(uint64_t{header.span_slots} << context_.identity.chunk_bytes_log2);
  SPK_TRY(flush());
  file_.start_writeback(start, gathered_to);
  return {};
}

Status ShardWriter::write_streamed(const BlobSource& blob, const StoredField& field,
                                   uint64_t file_offset) {
  std::vector<uint8_t> buffer(std::min(field.bytes, kCopyBytes));
  Xxh3Stream hash;
  for (uint64_t done = 0; done < field.bytes;) {
    const MutableByteSpan piece =
        MutableByteSpan(buffer).first(std::min<uint64_t>(buffer.size(), field.bytes - done));
    SPK_TRY(blob.read(done, piece));
    hash.update(piece);
    SPK_TRY(file_.write_all(file_offset + done, piece));
    done += piece.size();
  }
  if (hash.digest_64() != field.checksum) {
    return Status(Code::kMismatch, "changed while it was packed: its bytes have another checksum")
        .with_hint("run again once nothing is written to the source");
  }
  return {};
}

Status ShardWriter::finish(std::span<const RejectRow> rejects) {
  FooterHeader header;
  header.shard = context_.shard;
  header.shard_count = context_.shard_count;
  header.chunk_count = static_cast<uint32_t>(rows_.size());
  header.sample_count = sample_count_;
  header.reject_count = rejects.size();
  header.payload_bytes = payload_bytes_;
  header.first_position = context_.positions.begin;
  header.position_count = context_.positions.size();
  if (!rows_.empty()) {
    const ChunkRow& last = rows_.back();
    header.data_bytes = shard_data_bytes(slot_offset(last.slot), last.used_bytes);
  }
  std::vector<uint64_t> checksums;
  checksums.reserve(rows_.size());
  for (const ChunkRow& row : rows_) checksums.push_back(row.header_checksum);
  const Hash128 digest = shard_digest(checksums, sample_count_);
  header.digest_low = digest.low;
  header.digest_high = digest.high;

  std::vector<uint8_t> fields = encode_fields(context_.schema);
  std::vector<uint8_t> classes = encode_classes(context_.schema);
  const Hash128 schema = schema_hash(fields, classes);
  header.schema_hash_low = schema.low;
  header.schema_hash_high = schema.high;

  Parts parts;
  // The first and the last shard suffice to rebuild a pack's schema; twenty thousand class names in
  // each of a thousand shards would not pay.
  if (context_.shard == 0 || context_.shard + 1 == context_.shard_count) {
    parts.emplace_back(PartKind::kFields, std::move(fields));
    parts.emplace_back(PartKind::kClasses, std::move(classes));
  }
  parts.emplace_back(PartKind::kSettings, encode_settings(context_.settings));
  parts.emplace_back(PartKind::kChunks, encode_chunk_rows(rows_));
  parts.emplace_back(PartKind::kSamples, columns_.encode(SampleTableKind::kSamples));
  parts.emplace_back(PartKind::kNames, columns_.encode(SampleTableKind::kNames));
  columns_.clear();
  parts.emplace_back(PartKind::kRejects, encode_reject_rows(rejects));
  const std::vector<uint8_t> footer = encode_footer(header, context_.identity, parts);
  parts.clear();

  SPK_TRY(file_.write_all(header.data_bytes, footer));
  file_bytes_ = header.data_bytes + footer.size();
  SPK_TRY(file_.truncate(file_bytes_));
  must_delete_ = true;  // until the disk has said that it has everything
  SPK_TRY(file_.sync());
  SPK_TRY(file_.close());
  must_delete_ = false;
  return {};
}

}  // namespace spk
