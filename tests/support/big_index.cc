#include "support/big_index.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "container/pack.h"
#include "io/file.h"
#include "layout/fill.h"
#include "layout/permutation.h"
#include "support/test_pack.h"

namespace spk::bench {

namespace {

constexpr uint64_t kChunkBytes = uint64_t{4} << 20;
constexpr uint64_t kShardBytes = uint64_t{1} << 30;
constexpr uint64_t kAlignBytes = 64;
constexpr uint64_t kFirstBlob = 1024;  // about where a chunk's table ends

struct ShardTables {
  ShardRow row;
  std::vector<uint8_t> chunks, samples, names;
};

ShardTables make_shard(const Schema& schema, PositionRange positions, uint64_t mean_bytes) {
  SampleColumns columns(schema);
  std::vector<ChunkRow> chunks;
  StoredSample sample;
  for (uint64_t i = positions.begin; i < positions.end; ++i) {
    const uint64_t random = mix64(i);
    const uint64_t bytes = mean_bytes / 2 + random % mean_bytes;
    const bool fits =
        !chunks.empty() && chunks.back().used_bytes + kAlignBytes + bytes <= kChunkBytes;
    if (!fits) {
      ChunkRow chunk;
      chunk.slot = static_cast<uint32_t>(chunks.size());
      chunk.first_sample = i - positions.begin;
      chunk.used_bytes = kFirstBlob;
      chunk.header_checksum = mix64(random);
      chunks.push_back(chunk);
    }
    ChunkRow& chunk = chunks.back();
    const uint64_t offset = round_up(chunk.used_bytes, kAlignBytes);
    chunk.used_bytes = offset + bytes;
    ++chunk.sample_count;
    sample.key = str_cat("n0", 1440764 + random % 1000, "/n01440764_", i, ".JPEG");
    sample.ordinal = i;
    sample.numbers.clear();
    sample.fields.assign(schema.fields.size(), {});
    sample.fields[0].present = true;
    sample.fields[0].offset = offset;
    sample.fields[0].bytes = bytes;
    sample.fields[0].checksum = mix64(~random);
    const int64_t values[] = {static_cast<int64_t>(random % 1000), 375, 500, 3};
    for (size_t field = 1; field < 5; ++field) sample.set_ints(field, &values[field - 1], 1);
    columns.append(sample, chunk.slot * kChunkBytes);
  }
  ShardTables tables;
  tables.row.chunk_count = chunks.size();
  tables.row.sample_count = positions.size();
  tables.row.data_bytes =
      shard_data_bytes(chunks.back().slot * kChunkBytes, chunks.back().used_bytes);
  tables.row.file_bytes = tables.row.data_bytes + kFooterAlignBytes;
  tables.chunks = encode_chunk_rows(chunks);
  tables.samples = columns.encode(SampleTableKind::kSamples);
  tables.names = columns.encode(SampleTableKind::kNames);
  tables.row.chunks_bytes = tables.chunks.size();
  tables.row.samples_bytes = tables.samples.size();
  tables.row.names_bytes = tables.names.size();
  return tables;
}

}  // namespace

Status write_big_index(const std::string& path, uint64_t samples, uint64_t mean_bytes) {
  const Schema schema = test::image_schema();
  const auto shard_count =
      static_cast<uint32_t>(std::max<uint64_t>(1, samples * mean_bytes / kShardBytes));
  std::vector<ShardTables> shards;
  std::vector<ShardRow> rows;
  IndexHeader header;
  for (uint32_t shard = 0; shard < shard_count; ++shard) {
    shards.push_back(make_shard(schema, shard_positions(samples, shard_count, shard), mean_bytes));
    rows.push_back(shards.back().row);
    header.chunk_count += rows.back().chunk_count;
  }
  const std::vector<uint8_t> fields = encode_fields(schema);
  const std::vector<uint8_t> classes = encode_classes(schema);
  const std::vector<uint8_t> settings = encode_settings({});
  const IndexPlan plan = plan_index(rows, fields.size(), classes.size(), settings.size());
  std::vector<uint8_t> body(plan.file_bytes - plan.head_bytes, 0);
  const auto place = [&](uint64_t offset, const std::vector<uint8_t>& bytes) {
    std::copy(bytes.begin(), bytes.end(),
              body.begin() + static_cast<ptrdiff_t>(offset - plan.head_bytes));
  };
  place(plan.sections[0].offset, encode_shard_rows(rows));
  place(plan.sections[1].offset, fields);
  place(plan.sections[2].offset, classes);
  place(plan.sections[3].offset, settings);
  for (uint32_t shard = 0; shard < shard_count; ++shard) {
    place(rows[shard].chunks_offset, shards[shard].chunks);
    place(rows[shard].samples_offset, shards[shard].samples);
    place(rows[shard].names_offset, shards[shard].names);
  }
  std::vector<uint64_t> checksums;
  for (uint64_t at = 0; at < body.size(); at += kIndexBlockBytes) {
    const uint64_t bytes = std::min<uint64_t>(kIndexBlockBytes, body.size() - at);
    checksums.push_back(xxh3_64(ByteSpan(body).subspan(at, bytes)));
  }
  const Hash128 hash = schema_hash(fields, classes);
  header.shard_count = shard_count;
  header.sample_count = samples;
  header.schema_hash_low = hash.low;
  header.schema_hash_high = hash.high;
  PackIdentity identity;
  const std::vector<uint8_t> head = encode_index_head(header, identity, plan, checksums);

  SPK_ASSIGN(const Directory dir, Directory::create(path));
  SPK_ASSIGN(const File index, File::create(dir, kIndexName));
  SPK_TRY(index.write_all(0, head));
  SPK_TRY(index.write_all(head.size(), body));
  return File::create(dir, kManifestName).status();
}

}  // namespace spk::bench
