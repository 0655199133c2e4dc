// Tables: the one way in which the format stores columns. The sample table of a chunk, the parts of
// a footer, and the sections of the index are all tables, so there is one encoder and one decoder.
// A column is announced by (field, role, type, width, offset); what a reader does not know it
// skips, unless the column is marked required. docs/FORMAT.md, "Tables".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "format/constants.h"
#include "format/structs.h"

namespace spk {

// Smallest of 1, 2, 4, 8 bytes that holds all values.
uint8_t unsigned_width(uint64_t max) noexcept;
uint8_t signed_width(int64_t min, int64_t max) noexcept;

// Where the first column's data starts in a table of so many columns.
uint64_t table_data_offset(uint64_t column_count) noexcept;
// What a column of so many bytes occupies, with the zero padding behind it.
uint64_t column_span_bytes(uint64_t column_bytes) noexcept;

class TableBuilder {
 public:
  explicit TableBuilder(uint64_t row_count) : row_count_(row_count) {}

  // Integers are stored in the smallest width that holds them, but not below min_width.
  void add_unsigned(uint16_t field, Role role, std::span<const uint64_t> values,
                    uint8_t min_width = 1);
  void add_signed(uint16_t field, Role role, std::span<const int64_t> values);
  // Values are the bit patterns of binary64, or of binary32 widened to 64 bits.
  void add_float(uint16_t field, Role role, uint8_t width, std::span<const uint64_t> bits);
  void add_bytes(uint16_t field, Role role, ByteSpan bytes);
  // The common pair: byte strings as an end column and a heap.
  void add_strings(uint16_t field, Role end_role, Role bytes_role,
                   std::span<const std::string_view> strings);

  // Header, column headers in the order added, data, zero padding to kTableAlignBytes.
  std::vector<uint8_t> encode() const;

 private:
  struct Column {
    ColumnHeader header;
    std::vector<uint8_t> data;
  };
  void add(uint16_t field, Role role, ColumnType type, uint8_t width, std::vector<uint8_t> data);
  uint64_t row_count_;
  std::vector<Column> columns_;
};

// A column in place; refers to the table's memory. `data` may be not loaded yet where the table
// lies in a section that is read on demand.
struct ColumnView {
  ColumnType type = ColumnType::kBytes;
  uint8_t width = 1;
  uint64_t offset = 0;  // of the data within the table
  ByteSpan data;

  uint64_t count() const noexcept { return data.size() / width; }
  // REQUIRES index < count().
  uint64_t unsigned_at(uint64_t index) const noexcept;
  int64_t signed_at(uint64_t index) const noexcept;
  double float_at(uint64_t index) const noexcept;
};

class TableView {
 public:
  // Bytes to load before parse() may be called: header and column headers. `first` holds at least
  // TableHeader::kBytes bytes of a table of table_bytes bytes.
  static Result<uint64_t> head_bytes(ByteSpan first, uint64_t table_bytes);
  // Checks the header and every column header against `table`'s size; touches no column's data.
  // kUnsupported for a required column with an unknown role, or reserved bytes in use.
  static Result<TableView> parse(ByteSpan table);

  uint64_t row_count() const noexcept { return row_count_; }
  size_t column_count() const noexcept { return columns_.size(); }
  const ColumnView* find(uint16_t field, Role role) const noexcept;
  // The column, checked to be of this type and to have exactly `count` elements.
  Result<ColumnView> require(uint16_t field, Role role, ColumnType type, uint64_t count) const;
  // As require, but nothing where there is no such column.
  Result<std::optional<ColumnView>> optional(uint16_t field, Role role, ColumnType type,
                                             uint64_t count) const;
  // True if every byte between and behind the columns is zero. REQUIRES all of the table loaded.
  bool padding_is_zero() const noexcept;

 private:
  struct Entry {
    uint16_t field;
    uint16_t role;
    ColumnView view;
  };
  ByteSpan table_;
  uint64_t row_count_ = 0;
  std::vector<Entry> columns_;
};

// Byte strings stored as an end column and a heap, checked when made. REQUIRES both loaded.
class StringColumn {
 public:
  StringColumn() = default;
  // Checks that the ends never fall and that the last is the heap's size.
  static Result<StringColumn> make(const TableView& table, uint16_t field, Role end_role,
                                   Role bytes_role);
  uint64_t size() const noexcept { return ends_.data.size() / ends_.width; }
  std::string_view operator[](uint64_t row) const noexcept;

 private:
  ColumnView ends_;
  ByteSpan heap_;
};

}  // namespace spk
