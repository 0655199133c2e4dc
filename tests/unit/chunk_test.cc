#include "format/chunk.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/checked.h"

namespace spk {
namespace {

constexpr uint64_t kAlign = 64;

PackIdentity identity() {
  PackIdentity identity;
  identity.plan_id = {0x1122334455667788, 0x99aabbccddeeff00};
  identity.chunk_bytes_log2 = 16;
  identity.blob_align_log2 = 6;
  return identity;
}

Schema two_blobs() {
  Schema schema;
  schema.fields = {{"image", FieldKind::kBlob, 1}, {"mask", FieldKind::kBlob, 1}};
  return schema;
}

// Two samples: blobs of 100, 0 and 7 bytes; the second sample has no mask.
class ChunkTest : public ::testing::Test {
 protected:
  ChunkTest() {
    place();
    const SampleColumns columns = gather();
    table_ = columns.encode(SampleTableKind::kChunk);
    header_.payload_offset = round_up(ChunkHeader::kBytes + table_.size(), kAlign);
    place();
    table_ = gather().encode(SampleTableKind::kChunk);
    header_.span_slots = 1;
    header_.sample_count = 2;
    header_.chunk = 3;
    header_.slot = 4;
    header_.first_sample = 11;
    head_ = encode_chunk_head(header_, identity(), table_);
  }

  void place() {
    const uint64_t sizes[2][2] = {{100, 0}, {7, 0}};
    uint64_t end = header_.payload_offset;
    for (size_t row = 0; row < 2; ++row) {
      StoredSample& sample = samples_[row];
      sample.key = row == 0 ? "a" : "b";
      sample.fields.resize(2);
      for (size_t field = 0; field < (row == 0 ? 2 : 1); ++field) {
        StoredField& stored = sample.fields[field];
        stored.present = true;
        stored.offset = round_up(end, kAlign);
        stored.bytes = sizes[row][field];
        stored.checksum = 77;
        end = stored.offset + stored.bytes;
      }
    }
    header_.used_bytes = end;
  }

  SampleColumns gather() const {
    SampleColumns columns(schema_);
    for (const StoredSample& sample : samples_) columns.append(sample, 0);
    return columns;
  }

  // The status of a header with one change, its checksum made right again.
  Status changed(const std::function<void(ChunkHeader&)>& change) const {
    ChunkHeader header = header_;
    change(header);
    std::vector<uint8_t> head = head_;
    header.encode(head.data());
    header.checksum = xxh3_64(ByteSpan(head).subspan(16));
    header.encode(head.data());
    const auto decoded = decode_chunk_header(head);
    if (!decoded.ok()) return decoded.status();
    if (chunk_head_bytes(*decoded) > head.size()) return damaged("head is longer");
    return check_chunk_head(*decoded, ByteSpan(head).first(chunk_head_bytes(*decoded)));
  }

  Status rows_status() {
    const std::vector<uint8_t> table = gather().encode(SampleTableKind::kChunk);
    const SampleTable samples = SampleTable::parse(table, schema_).value();
    return check_chunk_rows(header_, table, samples, schema_);
  }

  Schema schema_ = two_blobs();
  StoredSample samples_[2];
  ChunkHeader header_;
  std::vector<uint8_t> table_;
  std::vector<uint8_t> head_;
};

TEST_F(ChunkTest, HeadReadsBack) {
  const ChunkHeader header = decode_chunk_header(head_).value();
  EXPECT_EQ(header.magic, kChunkMagic);
  EXPECT_EQ(header.version, kFormatVersion);
  EXPECT_EQ(header.plan_id_low, identity().plan_id.low);
  EXPECT_EQ(header.plan_id_high, identity().plan_id.high);
  EXPECT_EQ(header.chunk, 3u);
  EXPECT_EQ(header.slot, 4u);
  EXPECT_EQ(header.first_sample, 11u);
  EXPECT_EQ(header.table_bytes, table_.size());
  EXPECT_EQ(header.checksum, header_.checksum);
  EXPECT_EQ(chunk_head_bytes(header), head_.size());
  EXPECT_TRUE(check_chunk_head(header, head_).ok());
  EXPECT_TRUE(rows_status().ok());
  EXPECT_EQ(as_text(ByteSpan(head_).first(8)), "SpkChnk1");
}

TEST_F(ChunkTest, EveryFlippedBitIsNoticed) {
  for (size_t i = 0; i < head_.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<uint8_t> head = head_;
      head[i] ^= static_cast<uint8_t>(1 << bit);
      const auto header = decode_chunk_header(head);
      if (!header.ok()) {
        EXPECT_EQ(header.status().code(), i < 8 ? Code::kNotThisFormat : Code::kDamaged) << i;
        continue;
      }
      // Also a flipped bit of the version is damage, not a newer version.
      // A flipped table_bytes asks for more or less than was written.
      head.resize(chunk_head_bytes(*header));
      EXPECT_EQ(check_chunk_head(*header, head).code(), Code::kDamaged) << i;
    }
  }
}

TEST_F(ChunkTest, TooShortForAHeader) {
  EXPECT_EQ(decode_chunk_header(ByteSpan(head_).first(127)).status().code(), Code::kDamaged);
  EXPECT_EQ(decode_chunk_header({}).status().code(), Code::kDamaged);
}

TEST_F(ChunkTest, ImpossibleNumbersAreDamage) {
  const auto code = [&](const std::function<void(ChunkHeader&)>& change) {
    return changed(change).code();
  };
  EXPECT_EQ(code([](ChunkHeader&) {}), Code::kOk);
  EXPECT_EQ(code([](ChunkHeader& h) { h.header_bytes = 136; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.chunk_bytes_log2 = 15; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.chunk_bytes_log2 = 27; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.chunk_bytes_log2 = 255; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.blob_align_log2 = 13; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.span_slots = 0; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.span_slots = 2; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.sample_count = 0; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.table_bytes = UINT64_MAX; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.table_bytes = kMaxTableBytes + 8; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.payload_offset += 64; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.payload_offset = UINT64_MAX - 63; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.used_bytes = 65537; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.used_bytes = h.payload_offset - 1; }), Code::kDamaged);
  EXPECT_EQ(code([](ChunkHeader& h) { h.used_bytes = UINT64_MAX; }), Code::kDamaged);
  // Two samples in a run; one would do.
  const auto run = [](ChunkHeader& h) { h.used_bytes = 100000, h.span_slots = 2; };
  EXPECT_EQ(code(run), Code::kDamaged);
  EXPECT_EQ(code([&](ChunkHeader& h) { run(h), h.sample_count = 1; }), Code::kOk);
}

TEST_F(ChunkTest, NewerVersionsFeaturesAndReservedBytesAreUnsupported) {
  const auto code = [&](const std::function<void(ChunkHeader&)>& change) {
    return changed(change).code();
  };
  EXPECT_EQ(code([](ChunkHeader& h) { h.version = 2; }), Code::kUnsupported);
  EXPECT_EQ(code([](ChunkHeader& h) { h.version = UINT32_MAX; }), Code::kUnsupported);
  EXPECT_EQ(code([](ChunkHeader& h) { h.version = 0; }), Code::kUnsupported);
  EXPECT_EQ(code([](ChunkHeader& h) { h.features_incompatible = 4; }), Code::kUnsupported);
  EXPECT_EQ(code([](ChunkHeader& h) { h.features_compatible = UINT32_MAX; }), Code::kOk);
  EXPECT_EQ(code([](ChunkHeader& h) { h.reserved_0 = 1; }), Code::kUnsupported);
  EXPECT_EQ(code([](ChunkHeader& h) { h.reserved_3 = 1; }), Code::kUnsupported);
}

TEST_F(ChunkTest, BlobsMustLieWhereTheRuleSays) {
  const uint64_t second = samples_[1].fields[0].offset;
  samples_[1].fields[0].offset = second + 64;
  EXPECT_EQ(rows_status().code(), Code::kDamaged);
  samples_[1].fields[0].offset = second - 64;  // on top of the blob before
  EXPECT_EQ(rows_status().code(), Code::kDamaged);
  samples_[1].fields[0].offset = second + 1;
  EXPECT_EQ(rows_status().code(), Code::kDamaged);
  samples_[1].fields[0].offset = second;
  samples_[1].fields[0].bytes = 8;
  EXPECT_EQ(rows_status().code(), Code::kDamaged);
  samples_[1].fields[0].bytes = 6;
  EXPECT_EQ(rows_status().message(), "payloads end at " + std::to_string(second + 6) +
                                         ", the header says " + std::to_string(second + 7));
  samples_[1].fields[0].bytes = UINT64_MAX;
  EXPECT_EQ(rows_status().code(), Code::kDamaged);
}

TEST_F(ChunkTest, AbsentBlobsHaveNoNumbers) {
  std::vector<uint8_t> table = table_;
  const TableView view = TableView::parse(table).value();
  const ColumnView* checksums = view.find(1, Role::kBlobChecksum);
  ASSERT_NE(checksums, nullptr);
  table[checksums->offset + 8] = 1;
  const SampleTable samples = SampleTable::parse(table, schema_).value();
  EXPECT_EQ(check_chunk_rows(header_, table, samples, schema_).message(),
            "sample 1 has no blob in field 1, but its columns are not zero");
}

TEST_F(ChunkTest, TablePaddingAndRowCount) {
  std::vector<uint8_t> table = table_;
  const TableView view = TableView::parse(table).value();
  table[view.find(kNoField, Role::kOrdinal)->offset + 2] = 1;
  EXPECT_EQ(check_chunk_rows(header_, table, SampleTable::parse(table, schema_).value(), schema_)
                .message(),
            "padding in a chunk table is not zero");
  header_.sample_count = 3;
  EXPECT_EQ(rows_status().message(), "chunk table has 2 rows, its header says 3");
}

}  // namespace
}  // namespace spk
