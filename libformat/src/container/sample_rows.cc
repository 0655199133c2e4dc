#include "container/sample_rows.h"

#include "base/checked.h"
#include "base/text.h"

namespace spk {

Result<SampleRows> SampleRows::from_chunk(ByteSpan table, const Schema& schema) {
  SPK_ASSIGN(const TableView view, TableView::parse(table));
  return parse(view, view, schema);
}

Result<SampleRows> SampleRows::from_footer(ByteSpan samples, ByteSpan names, const Schema& schema) {
  SPK_ASSIGN(const TableView names_view, TableView::parse(names));
  SPK_ASSIGN(const TableView samples_view, TableView::parse(samples));
  if (names_view.row_count() != samples_view.row_count()) {
    return damaged(str_cat("samples table has ", samples_view.row_count(), " rows, names table ",
                           names_view.row_count()));
  }
  return parse(names_view, samples_view, schema);
}

Result<SampleRows> SampleRows::parse(const TableView& names, const TableView& samples,
                                     const Schema& schema) {
  SampleRows rows;
  rows.rows_ = samples.row_count();
  SPK_ASSIGN(rows.keys_, StringColumn::make(names, kNoField, Role::kKeyEnd, Role::kKeyBytes));
  SPK_ASSIGN(rows.ordinals_,
             names.require(kNoField, Role::kOrdinal, ColumnType::kUnsigned, rows.rows_));
  SPK_ASSIGN(rows.flags_,
             samples.optional(kNoField, Role::kSampleFlags, ColumnType::kUnsigned, rows.rows_));
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    SPK_TRY(rows.parse_field(samples, schema.fields[i], static_cast<uint16_t>(i)));
  }
  return rows;
}

Status SampleRows::parse_field(const TableView& samples, const Field& field, uint16_t number) {
  FieldColumns columns;
  columns.kind = field.kind;
  columns.length = field.length;
  SPK_ASSIGN(columns.present,
             samples.optional(number, Role::kPresent, ColumnType::kUnsigned, rows_));
  if (field.kind == FieldKind::kBlob) {
    const auto require = [&](Role role) {
      return samples.require(number, role, ColumnType::kUnsigned, rows_);
    };
    SPK_ASSIGN(columns.offsets, require(Role::kBlobOffset));
    SPK_ASSIGN(columns.bytes, require(Role::kBlobBytes));
    SPK_ASSIGN(columns.checksums, require(Role::kBlobChecksum));
    fields_.push_back(columns);
    return {};
  }
  uint64_t count = 0;
  if (field.length != 0) {
    if (!checked_mul(rows_, field.length, &count)) return damaged("row count overflows");
  } else {
    SPK_ASSIGN(columns.ends,
               samples.require(number, Role::kValueEnd, ColumnType::kUnsigned, rows_));
    for (uint64_t row = 0; row < rows_; ++row) {
      const uint64_t end = columns.ends.unsigned_at(row);
      if (end < count) return damaged(str_cat("values of row ", row, " end before they start"));
      count = end;
    }
  }
  const ColumnType type =
      field.kind == FieldKind::kInt64 ? ColumnType::kSigned : ColumnType::kFloat;
  SPK_ASSIGN(columns.values, samples.require(number, Role::kValue, type, count));
  const uint8_t float_width = field.kind == FieldKind::kFloat32 ? 4 : 8;
  if (type == ColumnType::kFloat && columns.values.width != float_width) {
    return damaged(str_cat("values of field ", number, " have width ", columns.values.width,
                           "; expected ", float_width));
  }
  fields_.push_back(columns);
  return {};
}

SampleRows::Blob SampleRows::blob(size_t field, uint64_t row) const noexcept {
  const FieldColumns& columns = fields_[field];
  return {columns.offsets.unsigned_at(row), columns.bytes.unsigned_at(row),
          columns.checksums.unsigned_at(row)};
}

void SampleRows::append_numbers(size_t field, uint64_t row, std::vector<uint64_t>& numbers) const {
  const FieldColumns& columns = fields_[field];
  for (uint64_t at = columns.values_begin(row); at < columns.values_end(row); ++at) {
    numbers.push_back(columns.bits(at));
  }
}

StoredSample SampleRows::sample(uint64_t row, uint64_t blob_base) const {
  StoredSample sample;
  sample.key = std::string(key(row));
  sample.ordinal = ordinal(row);
  sample.flags = static_cast<uint8_t>(flags(row));
  sample.fields.resize(fields_.size());
  for (size_t i = 0; i < fields_.size(); ++i) {
    const FieldColumns& columns = fields_[i];
    StoredField& field = sample.fields[i];
    field.present = present(i, row);
    if (!field.present) continue;
    if (columns.kind == FieldKind::kBlob) {
      const Blob place = blob(i, row);
      field.offset = place.offset - blob_base;
      field.bytes = place.bytes;
      field.checksum = place.checksum;
      continue;
    }
    field.first = static_cast<uint32_t>(sample.numbers.size());
    append_numbers(i, row, sample.numbers);
    field.count = static_cast<uint32_t>(sample.numbers.size()) - field.first;
  }
  return sample;
}

bool SampleRows::same(uint64_t row, const SampleRows& other, uint64_t other_row,
                      uint64_t blob_base) const {
  if (key(row) != other.key(other_row) || ordinal(row) != other.ordinal(other_row) ||
      flags(row) != other.flags(other_row)) {
    return false;
  }
  for (size_t i = 0; i < fields_.size(); ++i) {
    const FieldColumns& mine = fields_[i];
    const FieldColumns& theirs = other.fields_[i];
    if (present(i, row) != other.present(i, other_row)) return false;
    if (mine.kind == FieldKind::kBlob) {
      if (!present(i, row)) continue;
      const Blob a = blob(i, row);
      const Blob b = other.blob(i, other_row);
      if (a.offset - blob_base != b.offset || a.bytes != b.bytes || a.checksum != b.checksum) {
        return false;
      }
      continue;
    }
    const uint64_t begin = mine.values_begin(row);
    const uint64_t other_begin = theirs.values_begin(other_row);
    const uint64_t count = mine.values_end(row) - begin;
    if (theirs.values_end(other_row) - other_begin != count) return false;
    for (uint64_t n = 0; n < count; ++n) {
      if (mine.bits(begin + n) != theirs.bits(other_begin + n)) return false;
    }
  }
  return true;
}

}  // namespace spk
