// The rows of a sample table in place: nothing is copied or allocated a sample. Reads a chunk's
// table as well as the pair of tables (samples, names) of a footer or of the index.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "format/sample.h"

namespace spk {

class SampleRows {
 public:
  struct Blob {
    uint64_t offset = 0;  // as stored: from the chunk's or the shard's start
    uint64_t bytes = 0;
    uint64_t checksum = 0;
  };

  SampleRows() = default;
  // Both check every column against the schema. The memory must outlive the rows.
  static Result<SampleRows> from_chunk(ByteSpan table, const Schema& schema);
  static Result<SampleRows> from_footer(ByteSpan samples, ByteSpan names, const Schema& schema);

  uint64_t size() const noexcept { return rows_; }
  size_t field_count() const noexcept { return fields_.size(); }
  bool is_blob(size_t field) const noexcept { return fields_[field].kind == FieldKind::kBlob; }
  std::string_view key(uint64_t row) const noexcept { return keys_[row]; }
  uint64_t ordinal(uint64_t row) const noexcept { return ordinals_.unsigned_at(row); }
  bool present(size_t field, uint64_t row) const noexcept {
    const auto& column = fields_[field].present;
    return !column || column->unsigned_at(row) != 0;
  }
  // REQUIRES is_blob(field).
  Blob blob(size_t field, uint64_t row) const noexcept;
  // The bit patterns of a row's numbers, as in StoredSample::numbers. REQUIRES !is_blob(field).
  void append_numbers(size_t field, uint64_t row, std::vector<uint64_t>& numbers) const;
  // A copy of the row, blob offsets less `blob_base`.
  StoredSample sample(uint64_t row, uint64_t blob_base) const;
  // True if row `row` here says the same as `other_row` of `other`, whose blob offsets are
  // `blob_base` smaller.
  bool same(uint64_t row, const SampleRows& other, uint64_t other_row, uint64_t blob_base) const;

 private:
  struct FieldColumns {
    FieldKind kind;
    uint32_t length;
    std::optional<ColumnView> present;
    ColumnView offsets, bytes, checksums;
    ColumnView values, ends;

    uint64_t values_begin(uint64_t row) const noexcept {
      if (length != 0) return row * length;
      return row == 0 ? 0 : ends.unsigned_at(row - 1);
    }
    uint64_t values_end(uint64_t row) const noexcept { return values_begin(row + 1); }
    uint64_t bits(uint64_t at) const noexcept {
      return kind == FieldKind::kInt64 ? static_cast<uint64_t>(values.signed_at(at))
                                       : values.unsigned_at(at);
    }
  };
  static Result<SampleRows> parse(const TableView& names, const TableView& samples,
                                  const Schema& schema);
  Status parse_field(const TableView& samples, const Field& field, uint16_t number);
  uint64_t flags(uint64_t row) const noexcept { return flags_ ? flags_->unsigned_at(row) : 0; }

  uint64_t rows_ = 0;
  StringColumn keys_;
  ColumnView ordinals_;
  std::optional<ColumnView> flags_;
  std::vector<FieldColumns> fields_;
};

}  // namespace spk
