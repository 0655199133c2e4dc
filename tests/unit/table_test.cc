#include "format/table.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

namespace spk {
namespace {

constexpr size_t kFirstColumn = TableHeader::kBytes;

// Three rows: keys "a", "", "xyz"; ordinals 1, 300, 2.
std::vector<uint8_t> small_table() {
  TableBuilder table(3);
  const std::string_view keys[] = {"a", "", "xyz"};
  table.add_strings(kNoField, Role::kKeyEnd, Role::kKeyBytes, keys);
  table.add_unsigned(kNoField, Role::kOrdinal, std::vector<uint64_t>{1, 300, 2});
  return table.encode();
}

template <typename Change>
std::vector<uint8_t> with_column(std::vector<uint8_t> table, size_t column, Change change) {
  uint8_t* at = table.data() + kFirstColumn + column * ColumnHeader::kBytes;
  ColumnHeader header = ColumnHeader::decode(at);
  change(header);
  header.encode(at);
  return table;
}

Status parse_status(const std::vector<uint8_t>& table) { return TableView::parse(table).status(); }

TEST(Table, WidthsAreTheSmallestThatHoldTheValues) {
  EXPECT_EQ(unsigned_width(0), 1);
  EXPECT_EQ(unsigned_width(255), 1);
  EXPECT_EQ(unsigned_width(256), 2);
  EXPECT_EQ(unsigned_width(65535), 2);
  EXPECT_EQ(unsigned_width(65536), 4);
  EXPECT_EQ(unsigned_width(UINT32_MAX), 4);
  EXPECT_EQ(unsigned_width(uint64_t{1} << 32), 8);
  EXPECT_EQ(signed_width(-128, 127), 1);
  EXPECT_EQ(signed_width(-129, 0), 2);
  EXPECT_EQ(signed_width(0, 128), 2);
  EXPECT_EQ(signed_width(INT16_MIN, INT16_MAX), 2);
  EXPECT_EQ(signed_width(0, 32768), 4);
  EXPECT_EQ(signed_width(INT32_MIN, INT32_MAX), 4);
  EXPECT_EQ(signed_width(INT64_MIN, 0), 8);
  EXPECT_EQ(signed_width(0, INT64_MAX), 8);
}

TEST(Table, ReadsBackWhatWasBuilt) {
  const std::vector<uint8_t> table = small_table();
  EXPECT_EQ(table.size(), 16u + 3 * 24 + 8 + 8 + 8);
  const TableView view = TableView::parse(table).value();
  EXPECT_EQ(view.row_count(), 3u);
  EXPECT_EQ(view.column_count(), 3u);
  EXPECT_TRUE(view.padding_is_zero());
  const StringColumn keys =
      StringColumn::make(view, kNoField, Role::kKeyEnd, Role::kKeyBytes).value();
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys[0], "a");
  EXPECT_EQ(keys[1], "");
  EXPECT_EQ(keys[2], "xyz");
  const ColumnView ordinals =
      view.require(kNoField, Role::kOrdinal, ColumnType::kUnsigned, 3).value();
  EXPECT_EQ(ordinals.width, 2);
  EXPECT_EQ(ordinals.unsigned_at(1), 300u);
  EXPECT_EQ(view.find(0, Role::kOrdinal), nullptr);
}

TEST(Table, SignedAndFloatElementsKeepTheirValues) {
  TableBuilder builder(2);
  builder.add_signed(0, Role::kValue, std::vector<int64_t>{-129, 5});
  builder.add_float(1, Role::kValue, 4,
                    std::vector<uint64_t>{std::bit_cast<uint32_t>(-1.5f), 0x7f800000});
  builder.add_float(2, Role::kValue, 8,
                    std::vector<uint64_t>{std::bit_cast<uint64_t>(0.1), 0x8000000000000000});
  const std::vector<uint8_t> table = builder.encode();
  const TableView view = TableView::parse(table).value();
  EXPECT_EQ(view.find(0, Role::kValue)->width, 2);
  EXPECT_EQ(view.find(0, Role::kValue)->signed_at(0), -129);
  EXPECT_EQ(view.find(0, Role::kValue)->signed_at(1), 5);
  EXPECT_EQ(view.find(1, Role::kValue)->float_at(0), -1.5);
  EXPECT_EQ(view.find(1, Role::kValue)->float_at(1), HUGE_VAL);
  EXPECT_EQ(view.find(2, Role::kValue)->float_at(0), 0.1);
  EXPECT_TRUE(std::signbit(view.find(2, Role::kValue)->float_at(1)));
}

TEST(Table, EmptyTablesHaveColumnsOfWidthOne) {
  TableBuilder builder(0);
  builder.add_strings(kNoField, Role::kKeyEnd, Role::kKeyBytes, {});
  builder.add_unsigned(kNoField, Role::kHeaderChecksum, {}, 8);
  builder.add_signed(0, Role::kValue, {});
  const std::vector<uint8_t> table = builder.encode();
  EXPECT_EQ(table.size(), 16u + 4 * 24);
  const TableView view = TableView::parse(table).value();
  EXPECT_EQ(view.find(kNoField, Role::kKeyEnd)->width, 1);
  EXPECT_EQ(view.find(kNoField, Role::kHeaderChecksum)->width, 8);
  EXPECT_EQ(view.find(0, Role::kValue)->width, 1);
  EXPECT_EQ(StringColumn::make(view, kNoField, Role::kKeyEnd, Role::kKeyBytes).value().size(), 0u);
}

TEST(Table, EveryTruncationIsDamage) {
  const std::vector<uint8_t> table = small_table();
  for (size_t size = 0; size < table.size(); ++size) {
    const std::vector<uint8_t> cut(table.begin(), table.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_EQ(parse_status(cut).code(), Code::kDamaged) << size;
  }
  std::vector<uint8_t> longer = table;
  longer.resize(table.size() + 8);
  EXPECT_EQ(parse_status(longer).code(), Code::kDamaged);
}

TEST(Table, ColumnsMustFollowOneAnother) {
  const std::vector<uint8_t> table = small_table();
  const Status gap =
      parse_status(with_column(table, 1, [](ColumnHeader& column) { column.offset += 8; }));
  EXPECT_EQ(gap.code(), Code::kDamaged);
  EXPECT_EQ(gap.message(), "column 1 lies at 104 with 4 bytes; expected at 96 within 112");
  for (const uint64_t bytes : {uint64_t{1000}, UINT64_MAX, UINT64_MAX - 7}) {
    EXPECT_EQ(parse_status(with_column(table, 2, [&](ColumnHeader& c) { c.bytes = bytes; })).code(),
              Code::kDamaged)
        << bytes;
  }
}

TEST(Table, TwoColumnsOfOneNameAreDamage) {
  const std::vector<uint8_t> table =
      with_column(small_table(), 2, [](ColumnHeader& column) { column.role = 1; });
  EXPECT_EQ(parse_status(table).message(), "table has two columns with role 1 for field 65535");
}

TEST(Table, WidthTypeAndSizeMustGoTogether) {
  const std::vector<uint8_t> table = small_table();
  for (const uint8_t width : {0, 3, 5, 16}) {
    EXPECT_EQ(parse_status(with_column(table, 0, [&](ColumnHeader& c) { c.width = width; })).code(),
              Code::kDamaged);
  }
  for (const uint8_t type : {0, 5, 255}) {
    EXPECT_EQ(parse_status(with_column(table, 0, [&](ColumnHeader& c) { c.type = type; })).code(),
              Code::kDamaged);
  }
  EXPECT_EQ(parse_status(with_column(table, 0, [](ColumnHeader& c) { c.width = 2; })).code(),
            Code::kDamaged);  // three bytes are no whole number of elements
}

TEST(Table, UnknownColumnsAreSkippedUnlessRequired) {
  const auto unknown = [](uint16_t role, uint8_t flags) {
    return with_column(small_table(), 2, [&](ColumnHeader& column) {
      column.role = role;
      column.flags = flags;
      column.type = 77;  // a type that only the newer writer knows
    });
  };
  for (const uint16_t role :
       {uint16_t{9999}, static_cast<uint16_t>(Role::kCodec), static_cast<uint16_t>(Role::kShape)}) {
    const std::vector<uint8_t> skipped = unknown(role, 0);
    const TableView view = TableView::parse(skipped).value();
    EXPECT_EQ(view.column_count(), 2u);
    EXPECT_EQ(parse_status(unknown(role, 1)).code(), Code::kUnsupported) << role;
  }
  EXPECT_EQ(parse_status(unknown(9999, 2)).code(), Code::kUnsupported);  // an unknown flag
}

TEST(Table, ReservedBytesInUseAreUnsupported) {
  std::vector<uint8_t> table = small_table();
  table[4] = 1;
  EXPECT_EQ(parse_status(table).code(), Code::kUnsupported);
  EXPECT_EQ(
      parse_status(with_column(small_table(), 1, [](ColumnHeader& c) { c.reserved_0 = 1; })).code(),
      Code::kUnsupported);
}

TEST(Table, TooManyColumnsAreDamage) {
  TableBuilder builder(0);
  std::vector<uint8_t> table = builder.encode();
  table.resize(16 + (kMaxColumns + 1) * ColumnHeader::kBytes);
  store_le<uint32_t>(table.data(), kMaxColumns + 1);
  EXPECT_EQ(parse_status(table).code(), Code::kDamaged);
}

TEST(Table, PaddingIsTold) {
  std::vector<uint8_t> table = small_table();
  table[16 + 3 * 24 + 3] = 1;  // behind the three ends
  EXPECT_FALSE(TableView::parse(table).value().padding_is_zero());
}

TEST(Table, RequireNamesWhatIsMissingOrWrong) {
  const std::vector<uint8_t> table = small_table();
  const TableView view = TableView::parse(table).value();
  EXPECT_EQ(view.require(kNoField, Role::kSlot, ColumnType::kUnsigned, 3).status().message(),
            "table has no column with role 32 for field 65535");
  EXPECT_EQ(view.require(kNoField, Role::kOrdinal, ColumnType::kUnsigned, 4).status().code(),
            Code::kDamaged);
  EXPECT_EQ(view.require(kNoField, Role::kOrdinal, ColumnType::kSigned, 3).status().code(),
            Code::kDamaged);
  EXPECT_FALSE(view.optional(kNoField, Role::kSlot, ColumnType::kUnsigned, 3).value().has_value());
}

TEST(Table, StringEndsMustNotFallNorMissTheHeap) {
  std::vector<uint8_t> table = small_table();
  const size_t ends = 16 + 3 * 24;
  const auto status = [&] {
    const TableView view = TableView::parse(table).value();
    return StringColumn::make(view, kNoField, Role::kKeyEnd, Role::kKeyBytes).status();
  };
  ASSERT_EQ(table[ends + 2], 4);
  table[ends + 1] = 5;
  EXPECT_EQ(status().message(), "string 2 ends before it starts");
  table[ends + 1] = 1;
  table[ends + 2] = 3;
  EXPECT_EQ(status().message(), "strings end at 3; their heap has 4 bytes");
  table[ends + 2] = 200;
  EXPECT_EQ(status().code(), Code::kDamaged);
}

TEST(Table, RowCountThatNoColumnSupportsIsDamage) {
  std::vector<uint8_t> table = small_table();
  store_le<uint64_t>(table.data() + 8, UINT64_MAX);
  const TableView view = TableView::parse(table).value();
  EXPECT_EQ(StringColumn::make(view, kNoField, Role::kKeyEnd, Role::kKeyBytes).status().code(),
            Code::kDamaged);
}

}  // namespace
}  // namespace spk
