#include "format/table.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

uint8_t unsigned_width(uint64_t max) noexcept {
  if (max <= UINT8_MAX) return 1;
  if (max <= UINT16_MAX) return 2;
  if (max <= UINT32_MAX) return 4;
  return 8;
}

uint8_t signed_width(int64_t min, int64_t max) noexcept {
  if (min >= INT8_MIN && max <= INT8_MAX) return 1;
  if (min >= INT16_MIN && max <= INT16_MAX) return 2;
  if (min >= INT32_MIN && max <= INT32_MAX) return 4;
  return 8;
}

uint64_t table_data_offset(uint64_t column_count) noexcept {
  return round_up(TableHeader::kBytes + column_count * ColumnHeader::kBytes, kTableAlignBytes);
}

uint64_t column_span_bytes(uint64_t column_bytes) noexcept {
  return round_up(column_bytes, kTableAlignBytes);
}

namespace {

void store_width(uint8_t* to, uint8_t width, uint64_t value) noexcept {
  switch (width) {
    case 1: *to = static_cast<uint8_t>(value); break;
    case 2: store_le(to, static_cast<uint16_t>(value)); break;
    case 4: store_le(to, static_cast<uint32_t>(value)); break;
    default: store_le(to, value); break;
  }
}

template <typename T>
std::vector<uint8_t> pack_integers(std::span<const T> values, uint8_t width) {
  std::vector<uint8_t> data(values.size() * width);
  for (size_t i = 0; i < values.size(); ++i) {
    store_width(data.data() + i * width, width, static_cast<uint64_t>(values[i]));
  }
  return data;
}

bool is_known_role(uint16_t role) noexcept {
  switch (static_cast<Role>(role)) {
#define SPK_ENUM(group, name, value, meaning) SPK_CASE_##group(name)
#define SPK_CASE_ColumnType(name)
#define SPK_CASE_Role(name) case Role::name:
#define SPK_CASE_FieldKind(name)
#define SPK_CASE_PartKind(name)
#define SPK_CASE_ColumnFlag(name)
#include "format/format_table.def"
#undef SPK_ENUM
#undef SPK_CASE_ColumnType
#undef SPK_CASE_Role
#undef SPK_CASE_FieldKind
#undef SPK_CASE_PartKind
#undef SPK_CASE_ColumnFlag
    // Reserved roles are in the table so that their numbers are taken, but this version does not
    // know what they mean.
    return static_cast<Role>(role) != Role::kCodec && static_cast<Role>(role) != Role::kShape;
  }
  return false;
}

}  // namespace

void TableBuilder::add(uint16_t field, Role role, ColumnType type, uint8_t width,
                       std::vector<uint8_t> data) {
  Column column;
  column.header.field = field;
  column.header.role = static_cast<uint16_t>(role);
  column.header.type = static_cast<uint8_t>(type);
  column.header.width = width;
  column.header.bytes = data.size();
  column.data = std::move(data);
  columns_.push_back(std::move(column));
}

void TableBuilder::add_unsigned(uint16_t field, Role role, std::span<const uint64_t> values,
                                uint8_t min_width) {
  const uint64_t max = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  const uint8_t width = std::max(min_width, unsigned_width(max));
  add(field, role, ColumnType::kUnsigned, width, pack_integers(values, width));
}

void TableBuilder::add_signed(uint16_t field, Role role, std::span<const int64_t> values) {
  uint8_t width = 1;
  if (!values.empty()) {
    const auto [min, max] = std::minmax_element(values.begin(), values.end());
    width = signed_width(*min, *max);
  }
  add(field, role, ColumnType::kSigned, width, pack_integers(values, width));
}

void TableBuilder::add_float(uint16_t field, Role role, uint8_t width,
                             std::span<const uint64_t> bits) {
  add(field, role, ColumnType::kFloat, width, pack_integers(bits, width));
}

void TableBuilder::add_bytes(uint16_t field, Role role, ByteSpan bytes) {
  add(field, role, ColumnType::kBytes, 1, std::vector<uint8_t>(bytes.begin(), bytes.end()));
}

void TableBuilder::add_strings(uint16_t field, Role end_role, Role bytes_role,
                               std::span<const std::string_view> strings) {
  std::vector<uint64_t> ends;
  ends.reserve(strings.size());
  std::vector<uint8_t> heap;
  for (const std::string_view text : strings) {
    heap.insert(heap.end(), text.begin(), text.end());
    ends.push_back(heap.size());
  }
  add_unsigned(field, end_role, ends);
  add(field, bytes_role, ColumnType::kBytes, 1, std::move(heap));
}

std::vector<uint8_t> TableBuilder::encode() const {
  uint64_t total = table_data_offset(columns_.size());
  for (const Column& column : columns_) total += column_span_bytes(column.data.size());
  std::vector<uint8_t> table(total, 0);
  TableHeader header;
  header.column_count = static_cast<uint32_t>(columns_.size());
  header.row_count = row_count_;
  header.encode(table.data());
  uint64_t offset = table_data_offset(columns_.size());
  uint8_t* head = table.data() + TableHeader::kBytes;
  for (const Column& column : columns_) {
    ColumnHeader column_header = column.header;
    column_header.offset = offset;
    column_header.encode(head);
    if (!column.data.empty()) {
      std::memcpy(table.data() + offset, column.data.data(), column.data.size());
    }
    head += ColumnHeader::kBytes;
    offset += column_span_bytes(column.data.size());
  }
  return table;
}

uint64_t ColumnView::unsigned_at(uint64_t index) const noexcept {
  const uint8_t* from = data.data() + index * width;
  switch (width) {
    case 1: return *from;
    case 2: return load_le<uint16_t>(from);
    case 4: return load_le<uint32_t>(from);
    default: return load_le<uint64_t>(from);
  }
}

int64_t ColumnView::signed_at(uint64_t index) const noexcept {
  const uint64_t value = unsigned_at(index);
  switch (width) {
    case 1: return static_cast<int8_t>(value);
    case 2: return static_cast<int16_t>(value);
    case 4: return static_cast<int32_t>(value);
    default: return static_cast<int64_t>(value);
  }
}

double ColumnView::float_at(uint64_t index) const noexcept {
  const uint64_t bits = unsigned_at(index);
  if (width == 4) return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return std::bit_cast<double>(bits);
}

Result<uint64_t> TableView::head_bytes(ByteSpan first, uint64_t table_bytes) {
  if (first.size() < TableHeader::kBytes || table_bytes < TableHeader::kBytes) {
    return damaged(str_cat("table of ", table_bytes, " bytes is shorter than its header"));
  }
  const TableHeader header = TableHeader::decode(first.data());
  if (!header.reserved_is_zero()) return unsupported("reserved bytes of a table header are in use");
  if (header.column_count > kMaxColumns || table_data_offset(header.column_count) > table_bytes) {
    return damaged(str_cat("table of ", table_bytes, " bytes announces ", header.column_count,
                           " columns, which do not fit"));
  }
  return table_data_offset(header.column_count);
}

Result<TableView> TableView::parse(ByteSpan table) {
  SPK_ASSIGN(const uint64_t data_offset, head_bytes(table, table.size()));
  TableView view;
  view.table_ = table;
  const TableHeader header = TableHeader::decode(table.data());
  view.row_count_ = header.row_count;
  view.columns_.reserve(header.column_count);
  std::vector<uint32_t> names;  // field and role of each column
  names.reserve(header.column_count);
  uint64_t next = data_offset;
  for (uint32_t i = 0; i < header.column_count; ++i) {
    const ColumnHeader column =
        ColumnHeader::decode(table.data() + TableHeader::kBytes + i * ColumnHeader::kBytes);
    if (!column.reserved_is_zero()) {
      return unsupported(str_cat("reserved bytes of column ", i, " are in use"));
    }
    if ((column.flags & ~static_cast<uint8_t>(ColumnFlag::kRequired)) != 0) {
      return unsupported(
          str_cat("column ", i, " has flags ", column.flags, ", which this version does not know"));
    }
    const bool required = (column.flags & static_cast<uint8_t>(ColumnFlag::kRequired)) != 0;
    if (required && !is_known_role(column.role)) {
      return unsupported(str_cat("column ", i, " has role ", column.role,
                                 ", which this version does not know but must"));
    }
    // Columns follow one another without gap, so nothing can hide between them.
    if (column.offset != next || !range_fits(column.offset, column.bytes, table.size()) ||
        column_span_bytes(column.bytes) > table.size() - column.offset) {
      return damaged(str_cat("column ", i, " lies at ", column.offset, " with ", column.bytes,
                             " bytes; expected at ", next, " within ", table.size()));
    }
    names.push_back((uint32_t{column.field} << 16) | column.role);
    next = column.offset + column_span_bytes(column.bytes);
    if (!is_known_role(column.role)) continue;
    const bool width_ok =
        column.width == 1 || column.width == 2 || column.width == 4 || column.width == 8;
    const bool type_ok = column.type >= static_cast<uint8_t>(ColumnType::kUnsigned) &&
                         column.type <= static_cast<uint8_t>(ColumnType::kBytes);
    if (!width_ok || !type_ok || column.bytes % column.width != 0) {
      return damaged(str_cat("column ", i, " has type ", column.type, ", width ", column.width,
                             " and ", column.bytes, " bytes, which do not go together"));
    }
    ColumnView data;
    data.type = static_cast<ColumnType>(column.type);
    data.width = column.width;
    data.offset = column.offset;
    data.data = table.subspan(column.offset, column.bytes);
    view.columns_.push_back({column.field, column.role, data});
  }
  if (next != table.size()) {
    return damaged(str_cat("table ends at ", next, "; expected at ", table.size()));
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    return damaged(
        str_cat("table has two columns with role ", *twice & 0xffff, " for field ", *twice >> 16));
  }
  return view;
}

const ColumnView* TableView::find(uint16_t field, Role role) const noexcept {
  for (const Entry& entry : columns_) {
    if (entry.field == field && entry.role == static_cast<uint16_t>(role)) return &entry.view;
  }
  return nullptr;
}

Result<ColumnView> TableView::require(uint16_t field, Role role, ColumnType type,
                                      uint64_t count) const {
  SPK_ASSIGN(const auto column, optional(field, role, type, count));
  if (!column) {
    return damaged(str_cat("table has no column with role ", static_cast<uint16_t>(role),
                           " for field ", field));
  }
  return *column;
}

Result<std::optional<ColumnView>> TableView::optional(uint16_t field, Role role, ColumnType type,
                                                      uint64_t count) const {
  const ColumnView* column = find(field, role);
  if (column == nullptr) return std::optional<ColumnView>();
  if (column->type != type || column->count() != count) {
    return damaged(str_cat("column with role ", static_cast<uint16_t>(role), " for field ", field,
                           " has type ", static_cast<uint8_t>(column->type), " and ",
                           column->count(), " elements; expected type ", static_cast<uint8_t>(type),
                           " and ", count));
  }
  return std::optional<ColumnView>(*column);
}

bool TableView::padding_is_zero() const noexcept {
  const TableHeader header = TableHeader::decode(table_.data());
  for (uint32_t i = 0; i < header.column_count; ++i) {
    const ColumnHeader column =
        ColumnHeader::decode(table_.data() + TableHeader::kBytes + i * ColumnHeader::kBytes);
    const uint64_t end = column.offset + column.bytes;
    const uint64_t span_end = column.offset + column_span_bytes(column.bytes);
    if (!is_all_zero(table_.subspan(end, span_end - end))) return false;
  }
  return true;
}

Result<StringColumn> StringColumn::make(const TableView& table, uint16_t field, Role end_role,
                                        Role bytes_role) {
  StringColumn strings;
  SPK_ASSIGN(strings.ends_,
             table.require(field, end_role, ColumnType::kUnsigned, table.row_count()));
  const ColumnView* heap = table.find(field, bytes_role);
  if (heap == nullptr || heap->type != ColumnType::kBytes) {
    return damaged(str_cat("table has no bytes with role ", static_cast<uint16_t>(bytes_role)));
  }
  strings.heap_ = heap->data;
  uint64_t previous = 0;
  for (uint64_t row = 0; row < table.row_count(); ++row) {
    const uint64_t end = strings.ends_.unsigned_at(row);
    if (end < previous) return damaged(str_cat("string ", row, " ends before it starts"));
    previous = end;
  }
  if (previous != strings.heap_.size()) {
    return damaged(
        str_cat("strings end at ", previous, "; their heap has ", strings.heap_.size(), " bytes"));
  }
  return strings;
}

std::string_view StringColumn::operator[](uint64_t row) const noexcept {
  const uint64_t begin = row == 0 ? 0 : ends_.unsigned_at(row - 1);
  const uint64_t end = ends_.unsigned_at(row);
  return as_text(heap_.subspan(begin, end - begin));
}

}  // namespace spk
