#include "container/shard_rewrite.h"

#include <algorithm>

#include "base/text.h"

namespace spk {

namespace {

// The chunk that holds exactly these samples, laid out as a packer does it.
Result<FilledChunk> fill_chunk(const Schema& schema, const PackIdentity& identity,
                               std::vector<StoredSample> samples) {
  Geometry geometry;
  geometry.chunk_bytes = static_cast<uint32_t>(identity.chunk_bytes());
  geometry.blob_align_bytes = static_cast<uint32_t>(identity.blob_align_bytes());
  ChunkFiller filler(schema, geometry, false);
  const size_t count = samples.size();
  std::optional<FilledChunk> filled;
  for (size_t i = 0; i < count && !filled; ++i) {
    filler.push(i, std::move(samples[i]));
    if (i + 1 == count) filler.finish();
    filled = filler.next();
  }
  if (!filled || filled->samples.size() != count) {
    return internal_error("the samples of a chunk do not fit into it again");
  }
  return std::move(*filled);
}

bool has_rows(const LoadedShard* side) {
  return side != nullptr && side->source != RowSource::kChunks;
}

}  // namespace

ShardRewrite::ShardRewrite(const PackFacts& facts, const LoadedShard& own, const LoadedShard* copy)
    : facts_(facts),
      own_(own),
      copy_(copy),
      rows_(has_rows(&own) || !has_rows(copy) ? &own : copy) {}

Result<ShardRewrite> ShardRewrite::make(const PackFacts& facts, const LoadedShard& own,
                                        const LoadedShard* copy) {
  ShardRewrite rewrite(facts, own, copy);
  const LoadedShard& rows = *rewrite.rows_;
  if (!has_rows(&rows) && rows.chunks.empty()) {
    return damaged("nothing of this shard is left: neither rows nor chunks")
        .at_shard(own.shard)
        .with_hint("--from COPY takes it from a second copy");
  }
  SPK_ASSIGN(rewrite.own_bytes_, ChunkBytes::make(facts.identity.chunk_bytes()));
  SPK_ASSIGN(rewrite.copy_bytes_, ChunkBytes::make(facts.identity.chunk_bytes()));
  uint64_t end = 0;
  for (const ChunkRow& row : rows.chunks) {
    rewrite.samples_ += row.sample_count;
    if (row.first_sample > end) rewrite.unknown_samples_ += row.first_sample - end;
    end = row.first_sample + row.sample_count;
  }
  return rewrite;
}

std::optional<Hash128> ShardRewrite::digest() const {
  if (!has_rows(rows_)) return std::nullopt;
  return rows_->row.digest;
}

void ShardRewrite::open_side(ChunkBytes& bytes, const LoadedShard* side, uint64_t start,
                             uint64_t end) {
  if (side == nullptr || !side->file.is_open()) return;
  const uint64_t stop = std::min(end, side->file_bytes);
  bytes.open(side->file, start, stop > start ? stop - start : 0);
}

Result<ShardRewrite::Chunk> ShardRewrite::open_chunk(size_t i) {
  Chunk chunk;
  chunk.row = rows_->chunks[i];
  chunk.start = uint64_t{chunk.row.slot} << facts_.identity.chunk_bytes_log2;
  const uint64_t end = rows_->chunk_end(i, facts_.identity);
  open_side(own_bytes_, &own_, chunk.start, end);
  open_side(copy_bytes_, copy_, chunk.start, end);
  chunk.samples.reserve(chunk.row.sample_count);
  if (has_rows(rows_)) {
    for (uint64_t n = 0; n < chunk.row.sample_count; ++n) {
      chunk.samples.push_back(rows_->rows.sample(chunk.row.first_sample + n, chunk.start));
    }
    return chunk;
  }
  SPK_ASSIGN(const ByteSpan first, own_bytes_.span(0, ChunkHeader::kBytes));
  SPK_ASSIGN(const ChunkHeader header, decode_chunk_header(first));
  SPK_ASSIGN(const ByteSpan head, own_bytes_.span(0, chunk_head_bytes(header)));
  SPK_TRY(check_chunk_head(header, head));
  SPK_ASSIGN(const SampleRows rows,
             SampleRows::from_chunk(head.subspan(ChunkHeader::kBytes), facts_.schema));
  if (rows.size() != chunk.row.sample_count) return damaged("chunk table and header disagree");
  for (uint64_t n = 0; n < rows.size(); ++n) chunk.samples.push_back(rows.sample(n, 0));
  return chunk;
}

std::optional<BlobSource> ShardRewrite::find_blob(const Chunk& chunk, const StoredField& field) {
  const bool streamed = chunk.row.span_slots > 1;
  const auto look = [&](ChunkBytes& bytes, const LoadedShard* side) -> std::optional<BlobSource> {
    if (side == nullptr || (!side->file.is_open() && field.bytes != 0)) return std::nullopt;
    const auto actual = bytes.hash(field.offset, field.bytes);
    if (!actual.ok()) {
      const bool unread = could_not_be_read(actual.status().code());
      if (side == &own_ && unread && read_error_.ok()) read_error_ = actual.status();
      return std::nullopt;
    }
    if (*actual != field.checksum) return std::nullopt;
    BlobSource source;
    if (streamed) {
      const uint64_t offset = chunk.start + field.offset;
      source.read = [side, offset](uint64_t at, MutableByteSpan into) {
        return side->file.read_exact(offset + at, into);
      };
    } else {
      const auto span = bytes.span(field.offset, field.bytes);
      if (!span.ok()) return std::nullopt;
      source.bytes = *span;
    }
    return source;
  };
  if (auto found = look(own_bytes_, &own_)) return found;
  auto found = look(copy_bytes_, copy_);
  if (found) blobs_from_copy_ += 1;
  return found;
}

Result<std::vector<LostSample>> ShardRewrite::find_lost(const std::set<uint64_t>* suspects) {
  std::vector<LostSample> lost;
  for (size_t i = 0; i < rows_->chunks.size(); ++i) {
    const ChunkRow& row = rows_->chunks[i];
    if (suspects != nullptr) {
      const auto first = suspects->lower_bound(row.first_sample);
      if (first == suspects->end() || *first >= row.first_sample + row.sample_count) continue;
    }
    SPK_ASSIGN(const Chunk chunk, open_chunk(i));
    for (uint64_t n = 0; n < chunk.samples.size(); ++n) {
      const uint64_t number = row.first_sample + n;
      if (suspects != nullptr && suspects->count(number) == 0) continue;
      const StoredSample& sample = chunk.samples[n];
      for (size_t f = 0; f < sample.fields.size(); ++f) {
        const StoredField& field = sample.fields[f];
        if (facts_.schema.fields[f].kind != FieldKind::kBlob || !field.present) continue;
        if (find_blob(chunk, field)) continue;
        lost.push_back({own_.shard, number, sample.key, sample.ordinal,
                        str_cat("field '", facts_.schema.fields[f].name, "', ", field.bytes,
                                " bytes at ", chunk.start + field.offset, " of ", own_.name)});
        break;
      }
    }
  }
  blobs_from_copy_ = 0;  // these were only looked at
  return lost;
}

Status ShardRewrite::write_chunk(ShardWriter& writer, Chunk& chunk,
                                 const std::set<uint64_t>& drop) {
  std::vector<StoredSample> kept;
  std::vector<BlobSource> blobs;
  for (uint64_t n = 0; n < chunk.samples.size(); ++n) {
    const uint64_t number = chunk.row.first_sample + n;
    if (drop.count(number) != 0) continue;
    StoredSample& sample = chunk.samples[n];
    for (size_t f = 0; f < sample.fields.size(); ++f) {
      const StoredField& field = sample.fields[f];
      if (facts_.schema.fields[f].kind != FieldKind::kBlob || !field.present) continue;
      auto found = find_blob(chunk, field);
      if (!found) {
        return damaged(str_cat("sample '", escape_bytes(sample.key), "' became unreadable"))
            .at_path(own_.name)
            .at_shard(own_.shard)
            .at_offset(chunk.start + field.offset);
      }
      blobs.push_back(std::move(*found));
    }
    kept.push_back(std::move(sample));
  }
  if (kept.empty()) return {};
  SPK_ASSIGN(FilledChunk filled, fill_chunk(facts_.schema, facts_.identity, std::move(kept)));
  filled.slot = next_slot_;
  filled.first_sample = next_sample_;
  next_slot_ += filled.span_slots;
  next_sample_ += filled.samples.size();
  return writer.add_chunk(std::move(filled), blobs);
}

Status ShardRewrite::write(const Directory& dir, const std::string& name,
                           const ShardContext& context, const std::set<uint64_t>& drop,
                           std::span<const RejectRow> rejects) {
  SPK_ASSIGN(ShardWriter writer, ShardWriter::create(dir, name, context));
  next_slot_ = 0;
  next_sample_ = 0;
  for (size_t i = 0; i < rows_->chunks.size(); ++i) {
    SPK_ASSIGN(Chunk chunk, open_chunk(i));
    SPK_TRY(write_chunk(writer, chunk, drop));
  }
  return writer.finish(rejects);
}

}  // namespace spk
