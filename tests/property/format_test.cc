// Tables, footers and indexes read back what was written; hostile bytes give an answer, never more.
#include <gtest/gtest.h>

#include "base/checked.h"
#include "format/footer.h"
#include "format/index.h"
#include "layout/geometry.h"
#include "property/samples.h"

namespace spk::test {
namespace {

TEST(FormatProperty, TablesReadBack) {
  for_random_rounds(300, [](Random& random) {
    const uint64_t rows = random.below(50);
    std::vector<uint64_t> unsigned_values(rows);
    std::vector<int64_t> signed_values(rows);
    std::vector<std::string> strings(rows);
    const uint64_t shift = random.below(64);
    for (uint64_t i = 0; i < rows; ++i) {
      unsigned_values[i] = random.bits() >> shift;
      signed_values[i] = static_cast<int64_t>(random.bits()) >> shift;
      strings[i] = random.bytes(random.below(40));
    }
    const std::vector<std::string_view> views(strings.begin(), strings.end());
    TableBuilder builder(rows);
    builder.add_unsigned(3, Role::kOrdinal, unsigned_values);
    builder.add_signed(4, Role::kValue, signed_values);
    builder.add_strings(kNoField, Role::kKeyEnd, Role::kKeyBytes, views);
    const std::vector<uint8_t> table = builder.encode();
    const auto view = TableView::parse(table);
    ASSERT_TRUE(view.ok());
    ASSERT_TRUE(view->padding_is_zero());
    const ColumnView ordinals =
        view->require(3, Role::kOrdinal, ColumnType::kUnsigned, rows).value();
    const ColumnView values = view->require(4, Role::kValue, ColumnType::kSigned, rows).value();
    const auto keys = StringColumn::make(*view, kNoField, Role::kKeyEnd, Role::kKeyBytes).value();
    for (uint64_t i = 0; i < rows; ++i) {
      ASSERT_EQ(ordinals.unsigned_at(i), unsigned_values[i]);
      ASSERT_EQ(values.signed_at(i), signed_values[i]);
      ASSERT_EQ(keys[i], strings[i]);
    }
  });
}

TEST(FormatProperty, FootersReadBack) {
  for_random_rounds(100, [](Random& random) {
    std::vector<ChunkRow> chunks(random.below(40));
    uint64_t slot = 0;
    uint64_t sample = 0;
    for (ChunkRow& row : chunks) {
      row.slot = static_cast<uint32_t>(slot);
      row.span_slots = random.one_in(9) ? static_cast<uint32_t>(1 + random.below(100000)) : 1;
      row.first_sample = sample;
      row.sample_count = row.span_slots > 1 ? 1 : static_cast<uint32_t>(1 + random.below(2000));
      row.header_checksum = random.bits();
      row.used_bytes = random.any_magnitude();
      slot += row.span_slots;
      sample += row.sample_count;
    }
    std::vector<RejectRow> rejects(random.below(10));
    for (RejectRow& row : rejects) {
      row = {random.bytes(random.below(20)), random.any_magnitude(), random.bytes(5)};
    }
    Parts parts;
    parts.emplace_back(PartKind::kChunks, encode_chunk_rows(chunks));
    parts.emplace_back(PartKind::kRejects, encode_reject_rows(rejects));
    FooterHeader header;
    header.shard_count = static_cast<uint32_t>(1 + random.below(kMaxShards));
    header.shard = static_cast<uint32_t>(random.below(header.shard_count));
    header.sample_count = sample;
    header.reject_count = rejects.size();
    header.position_count = sample + rejects.size();
    header.data_bytes = (random.any_magnitude() >> 1) / kFooterAlignBytes * kFooterAlignBytes;
    const std::vector<uint8_t> footer = encode_footer(header, PackIdentity(), parts);
    ASSERT_EQ(footer.size() % kFooterAlignBytes, 0u);
    const auto trailer =
        decode_trailer(ByteSpan(footer).last(Trailer::kBytes), header.data_bytes + footer.size());
    ASSERT_TRUE(trailer.ok()) << trailer.status().to_string();
    const auto view = FooterView::parse(footer);
    ASSERT_TRUE(view.ok()) << view.status().to_string();
    ASSERT_EQ(decode_chunk_rows(view->part(PartKind::kChunks).value()).value(), chunks);
    ASSERT_EQ(decode_reject_rows(view->part(PartKind::kRejects).value()).value(), rejects);
  });
}

TEST(FormatProperty, IndexesReadBack) {
  for_random_rounds(100, [](Random& random) {
    std::vector<ShardRow> rows(1 + random.below(300));
    for (ShardRow& row : rows) {
      row.file_bytes = random.any_magnitude();
      row.digest = {random.bits(), random.bits()};
      row.chunks_bytes = 8 * random.below(2000);
      row.samples_bytes = 8 * random.below(100000);
      row.names_bytes = 8 * random.below(100000);
    }
    const IndexPlan plan =
        plan_index(rows, 8 * random.below(100), 8 * random.below(100000), 8 * random.below(100));
    std::vector<uint64_t> checksums(plan.block_count);
    for (uint64_t& checksum : checksums) checksum = random.bits();
    IndexHeader header;
    header.shard_count = static_cast<uint32_t>(rows.size());
    const std::vector<uint8_t> head = encode_index_head(header, PackIdentity(), plan, checksums);
    ASSERT_EQ(index_head_bytes(head, plan.file_bytes).value(), head.size());
    const auto decoded = decode_index_head(head);
    ASSERT_TRUE(decoded.ok()) << decoded.status().to_string();
    ASSERT_EQ(decoded->block_checksums, checksums);
    const std::vector<uint8_t> shards = encode_shard_rows(rows);
    ASSERT_EQ(decoded->section(PartKind::kShards).bytes, shards.size());
    const std::vector<ShardRow> read = decode_shard_rows(shards).value();
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(read[i].file_bytes, rows[i].file_bytes);
      ASSERT_EQ(read[i].digest, rows[i].digest);
      ASSERT_EQ(read[i].names_offset, rows[i].names_offset);
    }
  });
}

// Checksums keep accidents out; here the bytes behind them are hostile. Parsing must give an answer
// (the sanitizers look on) and what parses must be safe to read.
TEST(FormatProperty, HostileSampleTablesAreSafe) {
  for_random_rounds(3000, [](Random& random) {
    const Schema schema = random_schema(random);
    SampleColumns columns(schema);
    for (uint64_t i = 1 + random.below(6); i > 0; --i) {
      columns.append(random_sample(random, schema, 1000), 0);
    }
    std::vector<uint8_t> table = columns.encode(SampleTableKind::kChunk);
    for (uint64_t i = 1 + random.below(4); i > 0; --i) {
      const uint64_t at = random.below(table.size());
      switch (random.below(3)) {
        case 0: table[at] = static_cast<uint8_t>(random.bits()); break;
        case 1: table[at] ^= static_cast<uint8_t>(1 << random.below(8)); break;
        default:
          if (at + 8 <= table.size()) store_le(table.data() + at, random.any_magnitude());
      }
    }
    if (random.one_in(10)) table.resize(random.below(table.size() + 1));
    const auto samples = SampleTable::parse(table, schema);
    if (!samples.ok()) {
      ASSERT_TRUE(samples.status().code() == Code::kDamaged ||
                  samples.status().code() == Code::kUnsupported);
      return;
    }
    for (uint64_t row = 0; row < samples->size(); ++row) (void)samples->row(row);
    ChunkHeader header;
    header.sample_count = static_cast<uint32_t>(samples->size());
    header.payload_offset = random.below(2000);
    header.used_bytes = header.payload_offset + random.any_magnitude() / 2;
    header.blob_align_log2 = 6;
    (void)check_chunk_rows(header, table, *samples, schema);
  });
}

TEST(FormatProperty, ShardsShareThePositions) {
  for_random_rounds(300, [](Random& random) {
    const uint64_t count = random.any_magnitude() >> 1;
    const auto shards = static_cast<uint32_t>(1 + random.below(2000));
    uint64_t end = 0;
    for (uint32_t shard = 0; shard < shards; ++shard) {
      const PositionRange range = shard_positions(count, shards, shard);
      ASSERT_EQ(range.begin, end);
      ASSERT_LE(range.size() - count / shards, 1u);
      end = range.end;
    }
    ASSERT_EQ(end, count);
  });
}

TEST(FormatProperty, PermutationsAreBijections) {
  for_random_rounds(200, [](Random& random) {
    const uint64_t size = 1 + random.below(3000);
    const KeyedPermutation permutation(random.bits(), random.bits(), size);
    std::vector<bool> seen(size);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t image = permutation(i);
      ASSERT_LT(image, size);
      ASSERT_FALSE(seen[image]);
      seen[image] = true;
      ASSERT_EQ(permutation.inverse(image), i);
    }
  });
}

}  // namespace
}  // namespace spk::test
