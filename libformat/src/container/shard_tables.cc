#include "container/shard_tables.h"

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {

// Loads the table's header and column headers, and no more.
Result<TableView> parse_head(const IndexBody& body, uint64_t offset, uint64_t bytes,
                             uint64_t expected_rows) {
  if (bytes < TableHeader::kBytes) {
    return damaged(str_cat("table of ", bytes, " bytes is shorter than its header"));
  }
  SPK_TRY(body.load(offset, TableHeader::kBytes));
  const ByteSpan table = body.view(offset, bytes);
  SPK_ASSIGN(const uint64_t head_bytes,
             TableView::head_bytes(table.first(TableHeader::kBytes), bytes));
  SPK_TRY(body.load(offset, head_bytes));
  SPK_ASSIGN(TableView view, TableView::parse(table));
  if (view.row_count() != expected_rows) {
    return damaged(str_cat("table has ", view.row_count(), " rows, expected ", expected_rows));
  }
  return view;
}

Status at_table(Status status, const IndexBody& body, uint64_t offset) {
  return std::move(status).at_path(body.path()).at_offset(offset);
}

// The columns of one table of the index, `offset` being where it starts there.
struct Columns {
  const TableView& table;
  uint64_t offset;

  Result<LazyColumn> require(uint16_t field, Role role, ColumnType type, uint64_t count) const {
    SPK_ASSIGN(const ColumnView view, table.require(field, role, type, count));
    return LazyColumn(view, offset);
  }
  Result<LazyColumn> optional(uint16_t field, Role role, ColumnType type, uint64_t count) const {
    SPK_ASSIGN(const auto view, table.optional(field, role, type, count));
    return view ? LazyColumn(*view, offset) : LazyColumn();
  }
};

Status parse_field(const Columns& columns, uint16_t number, LazyField& field) {
  const uint64_t rows = columns.table.row_count();
  SPK_ASSIGN(field.present, columns.optional(number, Role::kPresent, ColumnType::kUnsigned, rows));
  if (field.kind == FieldKind::kBlob) {
    const auto require = [&](Role role) {
      return columns.require(number, role, ColumnType::kUnsigned, rows);
    };
    SPK_ASSIGN(field.offsets, require(Role::kBlobOffset));
    SPK_ASSIGN(field.bytes, require(Role::kBlobBytes));
    SPK_ASSIGN(field.checksums, require(Role::kBlobChecksum));
    return {};
  }
  const ColumnType type =
      field.kind == FieldKind::kInt64 ? ColumnType::kSigned : ColumnType::kFloat;
  if (field.length != 0) {
    uint64_t values = 0;
    if (!checked_mul(rows, field.length, &values)) return damaged("number of values overflows");
    SPK_ASSIGN(field.values, columns.require(number, Role::kValue, type, values));
  } else {
    SPK_ASSIGN(field.ends, columns.require(number, Role::kValueEnd, ColumnType::kUnsigned, rows));
    // As many as there are; the ends are compared with that when they are read.
    const ColumnView* values = columns.table.find(number, Role::kValue);
    SPK_ASSIGN(field.values, columns.require(number, Role::kValue, type,
                                             values == nullptr ? 0 : values->count()));
  }
  const uint8_t float_width = field.kind == FieldKind::kFloat32 ? 4 : 8;
  if (type == ColumnType::kFloat && field.values.view().width != float_width) {
    return damaged(str_cat("values of field ", number, " have width ", field.values.view().width,
                           "; expected ", float_width));
  }
  return {};
}

}  // namespace

Status get_row_range(const IndexBody& body, const LazyColumn& ends, uint64_t row, uint64_t limit,
                     RowRange& range) {
  range.begin = 0;
  if (row != 0) SPK_TRY(ends.get(body, row - 1, range.begin));
  SPK_TRY(ends.get(body, row, range.end));
  if (range.begin <= range.end && range.end <= limit) return {};
  return damaged(str_cat("row ", row, " of a table reaches from ", range.begin, " to ", range.end,
                         " of ", limit))
      .at_path(body.path());
}

Status LazyField::get_present(const IndexBody& body, uint64_t row, bool& is_present) const {
  uint64_t value = 1;
  if (present.there()) SPK_TRY(present.get(body, row, value));
  is_present = value != 0;
  return {};
}

Status LazyField::get_values(const IndexBody& body, uint64_t row, RowRange& range) const {
  if (length == 0) return get_row_range(body, ends, row, values.count(), range);
  range = {row * length, (row + 1) * length};
  return {};
}

Result<std::unique_ptr<SamplesTable>> SamplesTable::parse(const IndexBody& body,
                                                          const ShardRow& shard,
                                                          const Schema& schema) {
  const uint64_t offset = shard.samples_offset;
  auto view = parse_head(body, offset, shard.samples_bytes, shard.sample_count);
  if (!view.ok()) return at_table(std::move(view).status(), body, offset);
  const Columns columns{*view, offset};
  auto table = std::make_unique<SamplesTable>();
  auto flags =
      columns.optional(kNoField, Role::kSampleFlags, ColumnType::kUnsigned, shard.sample_count);
  if (!flags.ok()) return at_table(std::move(flags).status(), body, offset);
  table->flags = *flags;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    LazyField field;
    field.kind = schema.fields[i].kind;
    field.length = schema.fields[i].length;
    SPK_TRY(at_table(parse_field(columns, static_cast<uint16_t>(i), field), body, offset));
    table->fields.push_back(field);
  }
  return table;
}

Result<std::unique_ptr<NamesTable>> NamesTable::parse(const IndexBody& body,
                                                      const ShardRow& shard) {
  const uint64_t offset = shard.names_offset;
  const auto parse_columns = [&]() -> Result<std::unique_ptr<NamesTable>> {
    const uint64_t rows = shard.sample_count;
    SPK_ASSIGN(const TableView view, parse_head(body, offset, shard.names_bytes, rows));
    const Columns columns{view, offset};
    auto table = std::make_unique<NamesTable>();
    SPK_ASSIGN(table->key_ends,
               columns.require(kNoField, Role::kKeyEnd, ColumnType::kUnsigned, rows));
    SPK_ASSIGN(table->ordinals,
               columns.require(kNoField, Role::kOrdinal, ColumnType::kUnsigned, rows));
    const ColumnView* heap = view.find(kNoField, Role::kKeyBytes);
    SPK_ASSIGN(table->key_bytes, columns.require(kNoField, Role::kKeyBytes, ColumnType::kBytes,
                                                 heap == nullptr ? 0 : heap->count()));
    if (table->key_bytes.view().width != 1) return damaged("keys are not stored as bytes");
    return table;
  };
  auto table = parse_columns();
  if (!table.ok()) return at_table(std::move(table).status(), body, offset);
  return table;
}

Status NamesTable::get_key(const IndexBody& body, uint64_t row, std::string_view& key) const {
  RowRange range;
  SPK_TRY(get_row_range(body, key_ends, row, key_bytes.count(), range));
  SPK_TRY(key_bytes.load(body, range.begin, range.end - range.begin));
  key = as_text(key_bytes.view().data.subspan(range.begin, range.end - range.begin));
  return {};
}

}  // namespace spk
