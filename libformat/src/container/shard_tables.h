// A shard's tables in the index, column by column, without loading more of them than is looked at.
// Sizes and places are checked when a table is parsed, values whenever one is read: a column of
// ends is never trusted.
//
// Thread safety: immutable once parsed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "container/index_body.h"
#include "format/index.h"
#include "format/schema.h"
#include "format/table.h"

namespace spk {

// A column whose elements are loaded on demand.
class LazyColumn {
 public:
  LazyColumn() = default;
  LazyColumn(const ColumnView& view, uint64_t table_offset)
      : view_(view), offset_(table_offset + view.offset), there_(true) {}

  bool there() const noexcept { return there_; }
  uint64_t count() const noexcept { return view_.count(); }
  const ColumnView& view() const noexcept { return view_; }

  // Loads elements first .. first + count - 1. REQUIRES that there are as many.
  Status load(const IndexBody& body, uint64_t first, uint64_t count) const {
    return body.load(offset_ + first * view_.width, count * view_.width);
  }
  // REQUIRES index < count().
  Status get(const IndexBody& body, uint64_t index, uint64_t& value) const {
    SPK_TRY(load(body, index, 1));
    value = view_.unsigned_at(index);
    return {};
  }

 private:
  ColumnView view_;
  uint64_t offset_ = 0;  // of the data, in the index file
  bool there_ = false;
};

// Row `row` of a column pair "ends and what they end": [begin, end) of what. kDamaged where the
// ends fall or go beyond `limit`.
struct RowRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};
Status get_row_range(const IndexBody& body, const LazyColumn& ends, uint64_t row, uint64_t limit,
                     RowRange& range);

struct LazyField {
  FieldKind kind = FieldKind::kBlob;
  uint32_t length = 1;
  LazyColumn present;                    // not there: all present
  LazyColumn offsets, bytes, checksums;  // blobs
  LazyColumn values, ends;               // numeric; ends only where ragged

  // Whether the row has a value. REQUIRES row below the table's row count, here and below.
  Status get_present(const IndexBody& body, uint64_t row, bool& is_present) const;
  // Where the row's numbers lie in `values`; they are not loaded yet.
  Status get_values(const IndexBody& body, uint64_t row, RowRange& range) const;
};

struct SamplesTable {
  LazyColumn flags;  // not there: all 0
  std::vector<LazyField> fields;

  static Result<std::unique_ptr<SamplesTable>> parse(const IndexBody& body, const ShardRow& shard,
                                                     const Schema& schema);
};

struct NamesTable {
  LazyColumn key_ends, key_bytes, ordinals;

  static Result<std::unique_ptr<NamesTable>> parse(const IndexBody& body, const ShardRow& shard);
  Status get_key(const IndexBody& body, uint64_t row, std::string_view& key) const;
};

}  // namespace spk
