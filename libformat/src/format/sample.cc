#include "format/sample.h"

#include <bit>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

void StoredSample::set_ints(size_t field, const int64_t* values, size_t count) {
  StoredField& stored = fields[field];
  stored.present = true;
  stored.first = static_cast<uint32_t>(numbers.size());
  stored.count = static_cast<uint32_t>(count);
  for (size_t i = 0; i < count; ++i) numbers.push_back(static_cast<uint64_t>(values[i]));
}

void StoredSample::set_floats(size_t field, FieldKind kind, const double* values, size_t count) {
  StoredField& stored = fields[field];
  stored.present = true;
  stored.first = static_cast<uint32_t>(numbers.size());
  stored.count = static_cast<uint32_t>(count);
  for (size_t i = 0; i < count; ++i) {
    numbers.push_back(kind == FieldKind::kFloat32
                          ? std::bit_cast<uint32_t>(static_cast<float>(values[i]))
                          : std::bit_cast<uint64_t>(values[i]));
  }
}

void StoredSample::set_bits(size_t field, std::span<const uint64_t> values) {
  StoredField& stored = fields[field];
  stored.present = true;
  stored.first = static_cast<uint32_t>(numbers.size());
  stored.count = static_cast<uint32_t>(values.size());
  numbers.insert(numbers.end(), values.begin(), values.end());
}

std::optional<std::vector<uint64_t>> StoredSample::values(size_t field) const {
  const StoredField& stored = fields[field];
  if (!stored.present) return std::nullopt;
  const auto begin = numbers.begin() + stored.first;
  return std::vector<uint64_t>(begin, begin + stored.count);
}

SampleColumns::SampleColumns(const Schema& schema) {
  for (const Field& field : schema.fields) {
    FieldColumns columns;
    columns.kind = field.kind;
    columns.length = field.length;
    fields_.push_back(std::move(columns));
  }
}

void SampleColumns::append(const StoredSample& sample, uint64_t blob_base) {
  key_heap_.insert(key_heap_.end(), sample.key.begin(), sample.key.end());
  key_ends_.push_back(key_heap_.size());
  ordinals_.push_back(sample.ordinal);
  flags_.push_back(sample.flags);
  any_flags_ = any_flags_ || sample.flags != 0;
  for (size_t i = 0; i < fields_.size(); ++i) {
    FieldColumns& columns = fields_[i];
    const StoredField& field = sample.fields[i];
    columns.present.push_back(field.present ? 1 : 0);
    columns.any_absent = columns.any_absent || !field.present;
    if (columns.kind == FieldKind::kBlob) {
      columns.offsets.push_back(field.present ? blob_base + field.offset : 0);
      columns.bytes.push_back(field.present ? field.bytes : 0);
      columns.checksums.push_back(field.present ? field.checksum : 0);
      continue;
    }
    if (field.present) {
      const auto first = sample.numbers.begin() + field.first;
      columns.numbers.insert(columns.numbers.end(), first, first + field.count);
    } else {
      columns.numbers.insert(columns.numbers.end(), columns.length, 0);
    }
    if (columns.length == 0) columns.ends.push_back(columns.numbers.size());
  }
}

void SampleColumns::clear() {
  key_heap_.clear();
  key_ends_.clear();
  ordinals_.clear();
  flags_.clear();
  any_flags_ = false;
  for (FieldColumns& field : fields_) {
    field.present.clear();
    field.any_absent = false;
    field.offsets.clear();
    field.bytes.clear();
    field.checksums.clear();
    field.numbers.clear();
    field.ends.clear();
  }
}

void SampleColumns::encode_names(TableBuilder& table) const {
  table.add_unsigned(kNoField, Role::kKeyEnd, key_ends_);
  table.add_bytes(kNoField, Role::kKeyBytes, key_heap_);
  table.add_unsigned(kNoField, Role::kOrdinal, ordinals_);
}

void SampleColumns::encode_fields(TableBuilder& table, bool chunk_relative) const {
  if (any_flags_) table.add_unsigned(kNoField, Role::kSampleFlags, flags_);
  uint8_t offset_width = 1;
  if (chunk_relative) {
    uint64_t payload_bytes = 0;
    for (const FieldColumns& columns : fields_) {
      for (const uint64_t bytes : columns.bytes) payload_bytes += bytes;
    }
    offset_width = chunk_offset_width(payload_bytes);
  }
  for (size_t i = 0; i < fields_.size(); ++i) {
    const FieldColumns& columns = fields_[i];
    const auto number = static_cast<uint16_t>(i);
    if (columns.any_absent) table.add_unsigned(number, Role::kPresent, columns.present);
    switch (columns.kind) {
      case FieldKind::kBlob:
        table.add_unsigned(number, Role::kBlobOffset, columns.offsets, offset_width);
        table.add_unsigned(number, Role::kBlobBytes, columns.bytes);
        // Checksums look random; a width that followed their values would make a table's size
        // depend on them.
        table.add_unsigned(number, Role::kBlobChecksum, columns.checksums, 8);
        break;
      case FieldKind::kInt64: {
        const std::vector<int64_t> values(columns.numbers.begin(), columns.numbers.end());
        table.add_signed(number, Role::kValue, values);
        break;
      }
      case FieldKind::kFloat32: table.add_float(number, Role::kValue, 4, columns.numbers); break;
      case FieldKind::kFloat64: table.add_float(number, Role::kValue, 8, columns.numbers); break;
    }
    if (columns.kind != FieldKind::kBlob && columns.length == 0) {
      table.add_unsigned(number, Role::kValueEnd, columns.ends);
    }
  }
}

std::vector<uint8_t> SampleColumns::encode(SampleTableKind kind) const {
  TableBuilder table(size());
  if (kind != SampleTableKind::kSamples) encode_names(table);
  if (kind != SampleTableKind::kNames) encode_fields(table, kind == SampleTableKind::kChunk);
  return table.encode();
}

Result<SampleTable> SampleTable::parse(ByteSpan bytes, const Schema& schema) {
  SPK_ASSIGN(const TableView table, TableView::parse(bytes));
  SampleTable samples;
  const uint64_t rows = table.row_count();
  samples.rows_ = rows;
  SPK_ASSIGN(samples.keys_, StringColumn::make(table, kNoField, Role::kKeyEnd, Role::kKeyBytes));
  SPK_ASSIGN(samples.ordinals_,
             table.require(kNoField, Role::kOrdinal, ColumnType::kUnsigned, rows));
  SPK_ASSIGN(samples.flags_,
             table.optional(kNoField, Role::kSampleFlags, ColumnType::kUnsigned, rows));
  if (samples.flags_ && samples.flags_->width != 1) {
    return damaged(str_cat("sample flags have width ", samples.flags_->width, "; expected 1"));
  }
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto number = static_cast<uint16_t>(i);
    FieldColumns columns;
    columns.kind = schema.fields[i].kind;
    columns.length = schema.fields[i].length;
    SPK_ASSIGN(columns.present,
               table.optional(number, Role::kPresent, ColumnType::kUnsigned, rows));
    for (uint64_t row = 0; columns.present && row < rows; ++row) {
      if (columns.present->unsigned_at(row) > 1) {
        return damaged(str_cat("presence of field ", i, " in row ", row, " is ",
                               columns.present->unsigned_at(row), ", neither 0 nor 1"));
      }
    }
    if (columns.kind == FieldKind::kBlob) {
      const auto require = [&](Role role) {
        return table.require(number, role, ColumnType::kUnsigned, rows);
      };
      SPK_ASSIGN(columns.offsets, require(Role::kBlobOffset));
      SPK_ASSIGN(columns.bytes, require(Role::kBlobBytes));
      SPK_ASSIGN(columns.checksums, require(Role::kBlobChecksum));
      samples.fields_.push_back(columns);
      continue;
    }
    uint64_t values = 0;
    if (columns.length != 0) {
      if (!checked_mul(rows, columns.length, &values)) return damaged("row count overflows");
    } else {
      SPK_ASSIGN(columns.ends, table.require(number, Role::kValueEnd, ColumnType::kUnsigned, rows));
      for (uint64_t row = 0; row < rows; ++row) {
        const uint64_t end = columns.ends.unsigned_at(row);
        if (end < values) return damaged(str_cat("values of row ", row, " end before they start"));
        values = end;
      }
    }
    const ColumnType type =
        columns.kind == FieldKind::kInt64 ? ColumnType::kSigned : ColumnType::kFloat;
    SPK_ASSIGN(columns.values, table.require(number, Role::kValue, type, values));
    const uint8_t float_width = columns.kind == FieldKind::kFloat32 ? 4 : 8;
    if (type == ColumnType::kFloat && columns.values.width != float_width) {
      return damaged(str_cat("values of field ", i, " have width ", columns.values.width,
                             "; expected ", float_width));
    }
    // An absent value is stored as zeros (fixed length) or as nothing (ragged).
    for (uint64_t row = 0; columns.present && row < rows; ++row) {
      if (columns.present->unsigned_at(row) != 0) continue;
      const auto [begin, end] = columns.value_range(row);
      bool empty = columns.length != 0 || begin == end;
      for (uint64_t at = begin; at < end; ++at)
        empty = empty && columns.values.unsigned_at(at) == 0;
      if (!empty) {
        return damaged(str_cat("row ", row, " has no value in field ", i, ", but numbers for it"));
      }
    }
    samples.fields_.push_back(columns);
  }
  return samples;
}

std::pair<uint64_t, uint64_t> SampleTable::FieldColumns::value_range(uint64_t row) const noexcept {
  if (length != 0) return {row * length, (row + 1) * length};
  return {row == 0 ? 0 : ends.unsigned_at(row - 1), ends.unsigned_at(row)};
}

StoredSample SampleTable::row(uint64_t row) const {
  StoredSample sample;
  sample.key = std::string(keys_[row]);
  sample.ordinal = ordinals_.unsigned_at(row);
  if (flags_) sample.flags = static_cast<uint8_t>(flags_->unsigned_at(row));
  sample.fields.resize(fields_.size());
  for (size_t i = 0; i < fields_.size(); ++i) {
    const FieldColumns& columns = fields_[i];
    StoredField& field = sample.fields[i];
    field.present = !columns.present || columns.present->unsigned_at(row) != 0;
    if (columns.kind == FieldKind::kBlob) {
      field.offset = columns.offsets.unsigned_at(row);
      field.bytes = columns.bytes.unsigned_at(row);
      field.checksum = columns.checksums.unsigned_at(row);
      continue;
    }
    if (!field.present) continue;
    const auto [begin, end] = columns.value_range(row);
    field.first = static_cast<uint32_t>(sample.numbers.size());
    field.count = static_cast<uint32_t>(end - begin);
    for (uint64_t at = begin; at < end; ++at) {
      sample.numbers.push_back(columns.kind == FieldKind::kInt64
                                   ? static_cast<uint64_t>(columns.values.signed_at(at))
                                   : columns.values.unsigned_at(at));
    }
  }
  return sample;
}

}  // namespace spk
