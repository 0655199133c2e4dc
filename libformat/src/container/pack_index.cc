// Opening an index, and its chunks. What it tells of samples is in pack_index_samples.cc.
#include "container/pack_index.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "layout/fill.h"

namespace spk {

namespace {

// Enough for the head of an index of 128 GiB, and for all of a small pack's. Where the head is
// small, its first block is there as well, which need not be read once more.
constexpr uint64_t kFirstReadBytes = kIndexBlockBytes + (uint64_t{64} << 10);

Result<ColumnView> require_chunks(const TableView& table, Role role) {
  return table.require(kNoField, role, ColumnType::kUnsigned, table.row_count());
}

}  // namespace

Result<std::unique_ptr<PackIndex>> PackIndex::open(File file) {
  std::unique_ptr<PackIndex> index(new PackIndex());
  const std::string path = file.path();
  const auto run = [&]() -> Status {
    SPK_ASSIGN(const uint64_t file_bytes, file.size());
    // All reads are of whole blocks. What lies behind them is mostly names, which the kernel would
    // read ahead for every rank that opens the pack.
    file.advise_random();
    SPK_ASSIGN(AlignedBuffer first, AlignedBuffer::allocate(std::min(file_bytes, kFirstReadBytes)));
    uint64_t have = std::min(file_bytes, kFirstReadBytes);
    SPK_TRY(file.read_exact(0, first.span().first(have)));
    SPK_ASSIGN(const uint64_t head_bytes, index_head_bytes(first.span().first(have), file_bytes));
    if (head_bytes > have) {
      SPK_ASSIGN(AlignedBuffer longer, AlignedBuffer::allocate(head_bytes));
      std::memcpy(longer.data(), first.data(), have);
      SPK_TRY(file.read_exact(have, longer.span().subspan(have, head_bytes - have)));
      first = std::move(longer);
      have = head_bytes;
    }
    SPK_ASSIGN(index->head_, decode_index_head(first.span().first(head_bytes)));
    SPK_ASSIGN(index->body_, IndexBody::make(std::move(file), index->head_));
    index->body_->adopt(first.span().first(have));
    SPK_TRY(index->load_small_sections());
    return index->load_chunks();
  };
  SPK_TRY(run().at_path(path));
  return index;
}

PackIndex::~PackIndex() {
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (samples_tables_) delete samples_tables_[i].load(std::memory_order_acquire);
    if (names_tables_) delete names_tables_[i].load(std::memory_order_acquire);
  }
}

PackIdentity PackIndex::identity() const noexcept {
  PackIdentity identity;
  identity.plan_id = {head_.header.plan_id_low, head_.header.plan_id_high};
  identity.chunk_bytes_log2 = head_.header.chunk_bytes_log2;
  identity.blob_align_log2 = head_.header.blob_align_log2;
  return identity;
}

Result<ByteSpan> PackIndex::load_section(PartKind kind) const {
  const PartEntry section = head_.section(kind);
  // decode_index_head has checked that it lies within the file, behind the head.
  if (section.bytes == 0) return ByteSpan();
  SPK_TRY(body_->load(section.offset, section.bytes));
  return body_->view(section.offset, section.bytes);
}

Status PackIndex::load_small_sections() {
  const IndexHeader& header = head_.header;
  SPK_ASSIGN(const ByteSpan fields, load_section(PartKind::kFields));
  SPK_ASSIGN(const ByteSpan classes, load_section(PartKind::kClasses));
  SPK_ASSIGN(schema_, decode_schema(fields, classes));
  const Hash128 hash = schema_hash(fields, classes);
  const Hash128 expected{header.schema_hash_low, header.schema_hash_high};
  if (hash != expected) {
    return damaged(
        str_cat("schema has hash ", hash.to_hex(), ", the index says ", expected.to_hex()));
  }
  SPK_ASSIGN(const ByteSpan settings, load_section(PartKind::kSettings));
  SPK_ASSIGN(settings_, decode_settings(settings));

  SPK_ASSIGN(const ByteSpan shards, load_section(PartKind::kShards));
  SPK_ASSIGN(shards_, decode_shard_rows(shards));
  if (shards_.size() != header.shard_count) {
    return damaged(str_cat("index has rows for ", count_of(shards_.size(), "shard"),
                           ", its header says ", header.shard_count));
  }
  uint64_t samples = 0;
  uint64_t chunks = 0;
  samples_before_ = {0};
  chunks_before_ = {0};
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    SPK_TRY(check_shard_row(shard).at_shard(shard));
    if (!checked_add(samples, shards_[shard].sample_count, &samples) ||
        !checked_add(chunks, shards_[shard].chunk_count, &chunks)) {
      return damaged("counts of the shards overflow");
    }
    samples_before_.push_back(samples);
    chunks_before_.push_back(chunks);
  }
  if (samples != header.sample_count || chunks != header.chunk_count) {
    return damaged(str_cat("shards have ", count_of(samples, "sample"), " in ",
                           count_of(chunks, "chunk"), ", the index says ", header.sample_count,
                           " in ", header.chunk_count));
  }
  if (samples != 0) {
    shards_per_sample_ = static_cast<double>(shards_.size()) / static_cast<double>(samples);
  }
  samples_tables_ = std::make_unique<std::atomic<const SamplesTable*>[]>(shards_.size());
  names_tables_ = std::make_unique<std::atomic<const NamesTable*>[]>(shards_.size());
  return {};
}

Status PackIndex::check_shard_row(uint32_t shard) const {
  const ShardRow& row = shards_[shard];
  if (row.data_bytes > row.file_bytes || row.file_bytes > INT64_MAX) {
    return damaged(str_cat("shard ", shard, " has ", row.data_bytes, " bytes of data in a file of ",
                           row.file_bytes));
  }
  // Each sample has a key's end and an ordinal among the names: what is announced is bounded by
  // what is there.
  if (row.sample_count > row.names_bytes / 2) {
    return damaged(str_cat("shard ", shard, " has ", count_of(row.sample_count, "sample"), ", but ",
                           row.names_bytes, " bytes for their names"));
  }
  const struct {
    PartKind kind;
    uint64_t offset, bytes;
  } tables[] = {{PartKind::kChunks, row.chunks_offset, row.chunks_bytes},
                {PartKind::kSamples, row.samples_offset, row.samples_bytes},
                {PartKind::kNames, row.names_offset, row.names_bytes}};
  for (const auto& table : tables) {
    const PartEntry section = head_.section(table.kind);
    if (table.offset < section.offset ||
        !range_fits(table.offset - section.offset, table.bytes, section.bytes) ||
        table.offset % kTableAlignBytes != 0) {
      return damaged(str_cat("table of shard ", shard, " lies at ", table.offset, " with ",
                             table.bytes, " bytes, outside its section (", section.offset, " with ",
                             section.bytes, ")"));
    }
  }
  return {};
}

Status PackIndex::load_chunks() {
  // Said once for all shards: their tables follow one another.
  SPK_TRY(load_section(PartKind::kChunks).status());
  chunks_.reserve(shards_.size());
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    const ShardRow& row = shards_[shard];
    const ByteSpan bytes = body_->view(row.chunks_offset, row.chunks_bytes);
    const auto parse = [&]() -> Status {
      SPK_ASSIGN(const std::vector<ChunkRow> rows, decode_chunk_rows(bytes));
      SPK_TRY(check_chunks(shard, rows));
      SPK_ASSIGN(const TableView table, TableView::parse(bytes));
      ChunkColumns columns;
      SPK_ASSIGN(columns.slots, require_chunks(table, Role::kSlot));
      SPK_ASSIGN(columns.spans, require_chunks(table, Role::kSpanSlots));
      SPK_ASSIGN(columns.first_samples, require_chunks(table, Role::kFirstSample));
      SPK_ASSIGN(columns.sample_counts, require_chunks(table, Role::kSampleCount));
      SPK_ASSIGN(columns.checksums, require_chunks(table, Role::kHeaderChecksum));
      SPK_ASSIGN(columns.used_bytes, require_chunks(table, Role::kUsedBytes));
      chunks_.push_back(columns);
      return {};
    };
    SPK_TRY(parse().at_shard(shard).at_offset(row.chunks_offset));
  }
  return {};
}

Status PackIndex::check_chunks(uint32_t shard, const std::vector<ChunkRow>& rows) const {
  const ShardRow& row = shards_[shard];
  const uint64_t samples = rows.empty() ? 0 : rows.back().first_sample + rows.back().sample_count;
  if (rows.size() != row.chunk_count || samples != row.sample_count) {
    return damaged(str_cat("chunks table of shard ", shard, " has ", count_of(rows.size(), "chunk"),
                           " with ", count_of(samples, "sample"), ", expected ", row.chunk_count,
                           " with ", row.sample_count));
  }
  const uint64_t chunk_bytes = identity().chunk_bytes();
  for (size_t i = 0; i < rows.size(); ++i) {
    // A slot is below 2^32 and a chunk at most 2^26 bytes: no overflow.
    const uint64_t offset = rows[i].slot * chunk_bytes;
    if (rows[i].used_bytes < ChunkHeader::kBytes ||
        rows[i].used_bytes > rows[i].span_slots * chunk_bytes ||
        !range_fits(offset, rows[i].used_bytes, row.data_bytes)) {
      return damaged(str_cat("chunk ", i, " of shard ", shard, " lies at ", offset, " with ",
                             rows[i].used_bytes, " bytes of ", row.data_bytes));
    }
  }
  const uint64_t data_bytes =
      rows.empty() ? 0 : shard_data_bytes(rows.back().slot * chunk_bytes, rows.back().used_bytes);
  if (data_bytes != row.data_bytes) {
    return damaged(
        str_cat("chunks of shard ", shard, " end at ", data_bytes, ", expected ", row.data_bytes));
  }
  return {};
}

Status PackIndex::chunk(uint64_t chunk, ChunkLocation& location) const {
  if (chunk >= chunk_count()) {
    return invalid_argument(str_cat("chunk ", chunk, " of ", chunk_count(), " does not exist"));
  }
  const auto after = std::upper_bound(chunks_before_.begin(), chunks_before_.end(), chunk);
  const auto shard = static_cast<uint32_t>(after - chunks_before_.begin() - 1);
  const uint64_t row = chunk - chunks_before_[shard];
  const ChunkColumns& columns = chunks_[shard];
  const uint64_t chunk_bytes = identity().chunk_bytes();
  location.shard = shard;
  location.chunk_in_shard = static_cast<uint32_t>(row);
  location.offset = columns.slots.unsigned_at(row) * chunk_bytes;
  // All its slots, but the last chunk of a shard ends where the data ends.
  location.read_bytes = std::min(columns.spans.unsigned_at(row) * chunk_bytes,
                                 shards_[shard].data_bytes - location.offset);
  location.used_bytes = columns.used_bytes.unsigned_at(row);
  location.first_sample = samples_before_[shard] + columns.first_samples.unsigned_at(row);
  location.sample_count = static_cast<uint32_t>(columns.sample_counts.unsigned_at(row));
  location.header_checksum = columns.checksums.unsigned_at(row);
  return {};
}

Status PackIndex::chunk_of(uint64_t sample, uint64_t& chunk) const {
  Row at;
  SPK_TRY(find_row(sample, at));
  // The last chunk whose first sample is not behind this one.
  const ColumnView& firsts = chunks_[at.shard].first_samples;
  uint64_t low = 0;
  uint64_t high = firsts.count();
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (firsts.unsigned_at(middle) <= at.row ? low : high) = middle;
  }
  chunk = chunks_before_[at.shard] + low;
  return {};
}

}  // namespace spk
