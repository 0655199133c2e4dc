#include "container/chunk_check.h"

#include <algorithm>

#include "base/text.h"

namespace spk {

namespace {

constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

// Walks the file's bytes in order, whether they are in the first buffer already or not.
class PieceReader {
 public:
  PieceReader(const File& file, uint64_t chunk_offset, ByteSpan loaded)
      : file_(file), chunk_offset_(chunk_offset), loaded_(loaded) {}

  // Calls `use` with consecutive pieces of [begin, end), offsets from the chunk's start.
  template <typename Use>
  Status each(uint64_t begin, uint64_t end, Use&& use) {
    while (begin < end) {
      if (begin < loaded_.size()) {
        const uint64_t bytes = std::min<uint64_t>(end, loaded_.size()) - begin;
        use(loaded_.subspan(begin, bytes));
        begin += bytes;
        continue;
      }
      piece_.resize(kPieceBytes);
      const MutableByteSpan into =
          MutableByteSpan(piece_).first(std::min<uint64_t>(kPieceBytes, end - begin));
      SPK_TRY(file_.read_exact(chunk_offset_ + begin, into));
      use(ByteSpan(into));
      begin += into.size();
    }
    return {};
  }

 private:
  const File& file_;
  uint64_t chunk_offset_;
  ByteSpan loaded_;
  std::vector<uint8_t> piece_;
};

}  // namespace

Status check_chunk_place(const ChunkHeader& header, const ChunkExpectation& expected) {
  const Hash128 plan_id{header.plan_id_low, header.plan_id_high};
  if (plan_id != expected.identity.plan_id) {
    return Status(Code::kMismatch, str_cat("chunk belongs to plan ", plan_id.to_hex(),
                                           ", expected ", expected.identity.plan_id.to_hex()));
  }
  if (header.shard != expected.shard || header.chunk != expected.chunk ||
      header.slot != expected.slot || header.first_sample != expected.first_sample ||
      header.chunk_bytes_log2 != expected.identity.chunk_bytes_log2 ||
      header.blob_align_log2 != expected.identity.blob_align_log2) {
    return Status(Code::kMismatch,
                  str_cat("found chunk ", header.chunk, " of shard ", header.shard, " for slot ",
                          header.slot, "; expected chunk ", expected.chunk, " of shard ",
                          expected.shard, " for slot ", expected.slot));
  }
  return {};
}

Result<CheckedChunk> check_chunk_in_file(const File& file, uint64_t offset, uint64_t file_bytes,
                                         const ChunkExpectation& expected, const Schema& schema,
                                         std::vector<uint8_t>& buffer) {
  const auto here = [&](Status status, uint64_t at) {
    return std::move(status).at_path(file.path()).at_offset(offset + at);
  };
  const uint64_t first_bytes =
      std::min(expected.identity.chunk_bytes(), file_bytes - std::min(offset, file_bytes));
  buffer.resize(first_bytes);
  SPK_TRY(file.read_exact(offset, buffer));

  CheckedChunk checked;
  auto header = decode_chunk_header(buffer);
  if (!header.ok()) return here(std::move(header).status(), 0);
  checked.header = *header;
  const uint64_t head_bytes = chunk_head_bytes(*header);
  if (head_bytes > file_bytes - offset || header->used_bytes > file_bytes - offset) {
    return here(damaged(str_cat("chunk of ", header->used_bytes, " bytes is cut off; ",
                                file_bytes - offset, " are there")),
                0);
  }
  if (head_bytes > buffer.size()) {  // a run whose table alone is larger than a slot
    buffer.resize(head_bytes);
    SPK_TRY(file.read_exact(offset, buffer));
  }
  const ByteSpan loaded(buffer);
  if (Status status = check_chunk_head(*header, loaded.first(head_bytes)); !status.ok()) {
    return here(std::move(status), 0);
  }
  if (Status status = check_chunk_place(*header, expected); !status.ok()) {
    return here(std::move(status), 0);
  }
  const ByteSpan table = loaded.subspan(ChunkHeader::kBytes, header->table_bytes);
  auto samples = SampleTable::parse(table, schema);
  if (!samples.ok()) return here(std::move(samples).status(), ChunkHeader::kBytes);
  if (Status status = check_chunk_rows(*header, table, *samples, schema); !status.ok()) {
    return here(std::move(status), ChunkHeader::kBytes);
  }

  PieceReader reader(file, offset, loaded);
  uint64_t end = head_bytes;
  const auto check_padding = [&](uint64_t until) -> Status {
    bool zero = true;
    SPK_TRY(reader.each(end, until, [&](ByteSpan piece) { zero = zero && is_all_zero(piece); }));
    if (!zero) return here(damaged(str_cat("padding up to ", offset + until, " is not zero")), end);
    return {};
  };
  checked.samples.reserve(samples->size());
  for (uint64_t row = 0; row < samples->size(); ++row) {
    checked.samples.push_back(samples->row(row));
    const StoredSample& sample = checked.samples.back();
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      const StoredField& field = sample.fields[i];
      if (schema.fields[i].kind != FieldKind::kBlob || !field.present) continue;
      SPK_TRY(check_padding(field.offset));
      uint64_t actual = 0;
      if (field.offset + field.bytes <= loaded.size()) {
        actual = xxh3_64(loaded.subspan(field.offset, field.bytes));
      } else {
        Xxh3Stream hash;
        SPK_TRY(reader.each(field.offset, field.offset + field.bytes,
                            [&](ByteSpan piece) { hash.update(piece); }));
        actual = hash.digest_64();
      }
      if (actual != field.checksum) {
        return here(damaged(str_cat("sample '", escape_bytes(sample.key), "' has checksum ",
                                    to_hex(actual), ", expected ", to_hex(field.checksum))),
                    field.offset);
      }
      end = field.offset + field.bytes;
    }
  }
  const uint64_t slots_end =
      std::min(uint64_t{header->span_slots} << header->chunk_bytes_log2, file_bytes - offset);
  SPK_TRY(check_padding(slots_end));
  return checked;
}

}  // namespace spk
