// Samples as they are stored: the rows of a chunk's sample table and of a shard's part of the
// index.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "format/schema.h"
#include "format/table.h"

namespace spk {

// One field of one sample.
struct StoredField {
  bool present = false;
  // Blobs: where, how many bytes, and the XXH3-64 of them.
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t checksum = 0;
  // Numeric fields: StoredSample::numbers[first .. first + count).
  uint32_t first = 0;
  uint32_t count = 0;
};

struct StoredSample {
  std::string key;
  uint64_t ordinal = 0;
  uint8_t flags = 0;
  std::vector<StoredField> fields;  // one for each field of the schema
  // Bit patterns: int64 as two's complement, float32 widened from its 32 bits, float64.
  std::vector<uint64_t> numbers;

  // REQUIRES fields.size() > field. Sets a numeric field's values.
  void set_ints(size_t field, const int64_t* values, size_t count);
  void set_floats(size_t field, FieldKind kind, const double* values, size_t count);
  // Bit patterns as `numbers` has them.
  void set_bits(size_t field, std::span<const uint64_t> values);
  // The same of a numeric field that has them; nothing where it is absent.
  std::optional<std::vector<uint64_t>> values(size_t field) const;
};

// Which table is written: a chunk's holds everything; a shard's part of the index has keys and
// ordinals in a table of their own (names), because only tools need them.
enum class SampleTableKind { kChunk, kSamples, kNames };

// Gathers samples column by column and encodes the tables.
class SampleColumns {
 public:
  explicit SampleColumns(const Schema& schema);
  // blob_base is added to the offsets of the sample's blobs. A numeric field of fixed length
  // that is absent is stored as zeros; one that is present REQUIRES exactly that many values.
  void append(const StoredSample& sample, uint64_t blob_base);
  uint64_t size() const noexcept { return ordinals_.size(); }
  std::vector<uint8_t> encode(SampleTableKind kind) const;
  void clear();

 private:
  struct FieldColumns {
    FieldKind kind;
    uint32_t length;
    std::vector<uint64_t> present;
    bool any_absent = false;
    std::vector<uint64_t> offsets, bytes, checksums;  // blobs
    std::vector<uint64_t> numbers, ends;              // numeric
  };
  void encode_names(TableBuilder& table) const;
  void encode_fields(TableBuilder& table, bool chunk_relative) const;
  std::vector<uint8_t> key_heap_;
  std::vector<uint64_t> key_ends_;
  std::vector<uint64_t> ordinals_;
  std::vector<uint64_t> flags_;
  bool any_flags_ = false;
  std::vector<FieldColumns> fields_;
};

// Width of the blob offsets in a chunk table whose blobs have so many bytes together. It follows
// from the sizes alone, so that a table's size does not depend on the offsets that follow from it.
constexpr uint8_t chunk_offset_width(uint64_t payload_bytes) noexcept {
  return payload_bytes < kWideOffsetBytes ? 4 : 8;
}

// Reads samples from a chunk's table, whole and checked.
class SampleTable {
 public:
  // Parses and checks every column against the schema, including that string and ragged ends never
  // fall. `table` must outlive the result.
  static Result<SampleTable> parse(ByteSpan table, const Schema& schema);
  uint64_t size() const noexcept { return rows_; }
  std::string_view key(uint64_t row) const noexcept { return keys_[row]; }
  uint64_t ordinal(uint64_t row) const noexcept { return ordinals_.unsigned_at(row); }
  // Everything about one row. Blob offsets are as stored, relative to the chunk.
  StoredSample row(uint64_t row) const;

 private:
  struct FieldColumns {
    FieldKind kind;
    uint32_t length;
    std::optional<ColumnView> present;
    ColumnView offsets, bytes, checksums;
    ColumnView values, ends;
    // Where the values of a row lie in `values`.
    std::pair<uint64_t, uint64_t> value_range(uint64_t row) const noexcept;
  };
  uint64_t rows_ = 0;
  StringColumn keys_;
  ColumnView ordinals_;
  std::optional<ColumnView> flags_;
  std::vector<FieldColumns> fields_;
};

}  // namespace spk
