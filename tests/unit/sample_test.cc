#include "format/sample.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

namespace spk {
namespace {

Schema all_kinds() {
  Schema schema;
  schema.fields = {{"image", FieldKind::kBlob, 1},
                   {"box", FieldKind::kInt64, 2},
                   {"tokens", FieldKind::kInt64, 0},
                   {"mean", FieldKind::kFloat32, 1},
                   {"track", FieldKind::kFloat64, 0}};
  return schema;
}

StoredSample sample_with(const Schema& schema, std::string key, uint64_t ordinal) {
  StoredSample sample;
  sample.key = std::move(key);
  sample.ordinal = ordinal;
  sample.fields.resize(schema.fields.size());
  return sample;
}

void set_blob(StoredSample& sample, size_t field, uint64_t offset, uint64_t bytes,
              uint64_t checksum) {
  StoredField& stored = sample.fields[field];
  stored.present = true;
  stored.offset = offset;
  stored.bytes = bytes;
  stored.checksum = checksum;
}

std::vector<int64_t> ints(const StoredSample& sample, size_t field) {
  const StoredField& stored = sample.fields[field];
  std::vector<int64_t> values;
  for (uint32_t i = 0; i < stored.count; ++i) {
    values.push_back(static_cast<int64_t>(sample.numbers[stored.first + i]));
  }
  return values;
}

TEST(Sample, ChunkTableKeepsEverything) {
  const Schema schema = all_kinds();
  StoredSample full = sample_with(schema, "full\xff", 7);
  set_blob(full, 0, 512, 100, 0x1122334455667788);
  const int64_t box[] = {std::numeric_limits<int64_t>::min(), -1};
  full.set_ints(1, box, 2);
  const int64_t tokens[] = {3, 4, 500};
  full.set_ints(2, tokens, 3);
  const double mean = 0.1;
  full.set_floats(3, FieldKind::kFloat32, &mean, 1);
  const double track[] = {-0.0, 1e300};
  full.set_floats(4, FieldKind::kFloat64, track, 2);
  StoredSample bare = sample_with(schema, "", uint64_t{1} << 40);
  StoredSample empty = sample_with(schema, "empty", 0);
  set_blob(empty, 0, 640, 0, 5);
  empty.set_ints(2, nullptr, 0);

  SampleColumns columns(schema);
  for (const StoredSample& sample : {full, bare, empty}) columns.append(sample, 0);
  const std::vector<uint8_t> bytes = columns.encode(SampleTableKind::kChunk);
  const SampleTable table = SampleTable::parse(bytes, schema).value();
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table.key(0), "full\xff");
  EXPECT_EQ(table.ordinal(1), uint64_t{1} << 40);
  const StoredSample read = table.row(0);
  EXPECT_EQ(read.fields[0].offset, 512u);
  EXPECT_EQ(read.fields[0].bytes, 100u);
  EXPECT_EQ(read.fields[0].checksum, 0x1122334455667788u);
  EXPECT_EQ(ints(read, 1), (std::vector<int64_t>{box[0], box[1]}));
  EXPECT_EQ(ints(read, 2), (std::vector<int64_t>{3, 4, 500}));
  EXPECT_EQ(ints(read, 3), (std::vector<int64_t>{std::bit_cast<int32_t>(0.1f)}));
  EXPECT_EQ(ints(read, 4),
            (std::vector<int64_t>{std::bit_cast<int64_t>(-0.0), std::bit_cast<int64_t>(1e300)}));
  for (const StoredField& field : table.row(1).fields) EXPECT_FALSE(field.present);
  // Empty is not absent.
  EXPECT_TRUE(table.row(2).fields[0].present);
  EXPECT_TRUE(table.row(2).fields[2].present);
  EXPECT_EQ(table.row(2).fields[2].count, 0u);
  EXPECT_FALSE(table.row(2).fields[4].present);
}

TEST(Sample, PresenceColumnOnlyWhereAValueIsAbsent) {
  const Schema schema = all_kinds();
  StoredSample sample = sample_with(schema, "k", 0);
  set_blob(sample, 0, 0, 1, 2);
  SampleColumns columns(schema);
  columns.append(sample, 0);
  const std::vector<uint8_t> bytes = columns.encode(SampleTableKind::kChunk);
  const TableView view = TableView::parse(bytes).value();
  EXPECT_EQ(view.find(0, Role::kPresent), nullptr);
  EXPECT_NE(view.find(1, Role::kPresent), nullptr);
  EXPECT_EQ(view.find(kNoField, Role::kSampleFlags), nullptr);
}

TEST(Sample, ShardTablesSplitNamesFromTheRest) {
  Schema schema;
  schema.fields = {{"image", FieldKind::kBlob, 1}};
  StoredSample sample = sample_with(schema, "key", 3);
  sample.flags = 1;
  set_blob(sample, 0, 192, 10, 9);
  SampleColumns columns(schema);
  columns.append(sample, uint64_t{5} << 32);
  const std::vector<uint8_t> names = columns.encode(SampleTableKind::kNames);
  const std::vector<uint8_t> samples = columns.encode(SampleTableKind::kSamples);
  const TableView names_view = TableView::parse(names).value();
  EXPECT_EQ(names_view.column_count(), 3u);
  const TableView view = TableView::parse(samples).value();
  EXPECT_EQ(view.find(kNoField, Role::kKeyEnd), nullptr);
  EXPECT_EQ(view.find(kNoField, Role::kSampleFlags)->unsigned_at(0), 1u);
  const ColumnView* offsets = view.find(0, Role::kBlobOffset);
  EXPECT_EQ(offsets->width, 8);
  EXPECT_EQ(offsets->unsigned_at(0), (uint64_t{5} << 32) + 192);
}

TEST(Sample, OffsetWidthFollowsFromThePayload) {
  EXPECT_EQ(chunk_offset_width(kWideOffsetBytes - 1), 4);
  EXPECT_EQ(chunk_offset_width(kWideOffsetBytes), 8);
  Schema schema;
  schema.fields = {{"image", FieldKind::kBlob, 1}, {"mask", FieldKind::kBlob, 1}};
  for (const uint64_t first_bytes : {uint64_t{10}, uint64_t{5} << 30}) {
    StoredSample sample = sample_with(schema, "k", 0);
    set_blob(sample, 0, 512, first_bytes, 1);
    set_blob(sample, 1, 512 + first_bytes, 3, 1);
    SampleColumns columns(schema);
    columns.append(sample, 0);
    const std::vector<uint8_t> bytes = columns.encode(SampleTableKind::kChunk);
    const TableView view = TableView::parse(bytes).value();
    EXPECT_EQ(view.find(0, Role::kBlobOffset)->width, first_bytes == 10 ? 4 : 8);
    EXPECT_EQ(view.find(1, Role::kBlobOffset)->unsigned_at(0), 512 + first_bytes);
  }
}

// A table with one field, to break.
class BrokenSampleTable : public ::testing::Test {
 protected:
  static Status parse(const TableBuilder& table, Field field) {
    Schema schema;
    schema.fields = {std::move(field)};
    const std::vector<uint8_t> bytes = table.encode();
    return SampleTable::parse(bytes, schema).status();
  }
  static TableBuilder with_names() {
    TableBuilder table(2);
    const std::string_view keys[] = {"a", "b"};
    table.add_strings(kNoField, Role::kKeyEnd, Role::kKeyBytes, keys);
    table.add_unsigned(kNoField, Role::kOrdinal, std::vector<uint64_t>{0, 1});
    return table;
  }
  static constexpr uint64_t kTwo[] = {1, 1};
};

TEST_F(BrokenSampleTable, MissingColumns) {
  TableBuilder table = with_names();
  table.add_unsigned(0, Role::kBlobOffset, kTwo);
  table.add_unsigned(0, Role::kBlobBytes, kTwo);
  EXPECT_EQ(parse(table, {"image", FieldKind::kBlob, 1}).message(),
            "table has no column with role 10 for field 0");
  EXPECT_EQ(parse(TableBuilder(0), {"image", FieldKind::kBlob, 1}).code(), Code::kDamaged);
}

TEST_F(BrokenSampleTable, PresenceIsZeroOrOne) {
  TableBuilder table = with_names();
  table.add_unsigned(0, Role::kPresent, std::vector<uint64_t>{1, 2});
  table.add_signed(0, Role::kValue, std::vector<int64_t>{0, 0});
  EXPECT_EQ(parse(table, {"label", FieldKind::kInt64, 1}).message(),
            "presence of field 0 in row 1 is 2, neither 0 nor 1");
}

TEST_F(BrokenSampleTable, AbsentValuesAreZeroOrNothing) {
  TableBuilder fixed = with_names();
  fixed.add_unsigned(0, Role::kPresent, std::vector<uint64_t>{1, 0});
  fixed.add_signed(0, Role::kValue, std::vector<int64_t>{4, 4});
  EXPECT_EQ(parse(fixed, {"label", FieldKind::kInt64, 1}).message(),
            "row 1 has no value in field 0, but numbers for it");
  TableBuilder ragged = with_names();
  ragged.add_unsigned(0, Role::kPresent, std::vector<uint64_t>{0, 1});
  ragged.add_signed(0, Role::kValue, std::vector<int64_t>{0, 1});
  ragged.add_unsigned(0, Role::kValueEnd, std::vector<uint64_t>{1, 2});
  EXPECT_EQ(parse(ragged, {"label", FieldKind::kInt64, 0}).message(),
            "row 0 has no value in field 0, but numbers for it");
}

TEST_F(BrokenSampleTable, RaggedEndsMustNotFall) {
  TableBuilder table = with_names();
  table.add_signed(0, Role::kValue, std::vector<int64_t>{1, 2});
  table.add_unsigned(0, Role::kValueEnd, std::vector<uint64_t>{2, 1});
  EXPECT_EQ(parse(table, {"label", FieldKind::kInt64, 0}).message(),
            "values of row 1 end before they start");
}

TEST_F(BrokenSampleTable, CountTypeAndWidthOfValues) {
  TableBuilder table = with_names();
  table.add_signed(0, Role::kValue, std::vector<int64_t>{1, 2, 3});
  EXPECT_EQ(parse(table, {"label", FieldKind::kInt64, 1}).code(), Code::kDamaged);
  EXPECT_EQ(parse(table, {"label", FieldKind::kFloat32, 1}).code(), Code::kDamaged);
  EXPECT_EQ(parse(table, {"label", FieldKind::kInt64, UINT32_MAX}).code(), Code::kDamaged);
  TableBuilder floats = with_names();
  floats.add_float(0, Role::kValue, 8, kTwo);
  EXPECT_EQ(parse(floats, {"x", FieldKind::kFloat32, 1}).message(),
            "values of field 0 have width 8; expected 4");
  EXPECT_EQ(parse(floats, {"x", FieldKind::kFloat64, 1}).code(), Code::kOk);
}

TEST_F(BrokenSampleTable, FlagsAreOneByteWide) {
  TableBuilder table = with_names();
  table.add_unsigned(kNoField, Role::kSampleFlags, std::vector<uint64_t>{0, 256});
  table.add_signed(0, Role::kValue, std::vector<int64_t>{1, 2});
  EXPECT_EQ(parse(table, {"label", FieldKind::kInt64, 1}).message(),
            "sample flags have width 2; expected 1");
}

}  // namespace
}  // namespace spk
