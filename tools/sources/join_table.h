// --join: a table (CSV or TSV with a header) that gives samples further fields, or their labels.
//
// One column is the samples' key, as every key is written here (see escape_bytes). Of the others
// each becomes a field: whole numbers int64, decimal numbers float64, anything else text (a blob);
// or what --join-columns says of it. Memory is bounded: rows are sorted by key on disk where there
// are many.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "io/file.h"
#include "pipeline/external_sort.h"
#include "sources/source.h"

namespace spk {

enum class JoinType { kInt64, kFloat32, kFloat64, kText };
const char* join_type_name(JoinType type) noexcept;  // "int64"

struct JoinColumn {
  std::string name;   // in the header
  std::string field;  // what it becomes; "label": the sample's label
  size_t place = 0;   // in the header
  std::optional<JoinType> told;
  JoinType type = JoinType::kText;  // settled by read_rows()
};

// "a,b:label,c:code:text": COLUMN, COLUMN:FIELD, COLUMN:FIELD:TYPE.
Result<std::vector<JoinColumn>> parse_join_columns(const std::string& text);

struct JoinRow {
  uint64_t line = 0;
  std::vector<std::string> cells;  // in the order of JoinTable::columns()
};

class JoinTable {
 public:
  // Reads the header alone. Errors name the column and the option that helps.
  static Result<std::unique_ptr<JoinTable>> open(const PackOptions& options);

  // Reads and sorts all rows and settles the columns' types. SPILL: where to sort what does not
  // fit; empty: nowhere. kInvalidArgument for two rows of one key, and for a cell that is not of
  // the type that was told.
  Status read_rows(const PackOptions& options, const std::string& spill);

  const std::string& path() const noexcept { return path_; }
  const std::vector<JoinColumn>& columns() const noexcept { return columns_; }
  size_t label_column() const noexcept { return label_column_; }  // SIZE_MAX: none
  // Of text labels, in byte order.
  const std::vector<std::string>& classes() const noexcept { return classes_; }
  uint64_t row_count() const noexcept { return row_count_; }
  // Of keys and the chosen columns' cells; the same in whatever order the rows come.
  const Hash128& digest() const noexcept { return digest_; }

  // In the order of keys. REQUIRES read_rows().
  class Rows {
   public:
    // False at the end.
    Result<bool> next(std::string* key, JoinRow* row);

   private:
    friend class JoinTable;
    std::unique_ptr<ExternalSorter::Stream> stream_;
  };
  Result<Rows> rows() const;

 private:
  JoinTable(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}
  Status take_header(const PackOptions& options, const std::vector<std::string>& header);
  Status choose_columns(const PackOptions& options, const std::vector<std::string>& header);
  Status look_at_rows();

  std::string path_;
  File file_;
  char delimiter_ = ',';
  size_t width_ = 0;  // cells of a row
  size_t key_place_ = 0;
  std::vector<JoinColumn> columns_;
  size_t label_column_ = SIZE_MAX;
  std::unique_ptr<ExternalSorter> sorted_;
  std::vector<std::string> classes_;
  uint64_t row_count_ = 0;
  Hash128 digest_;
};

// A cell's number as the bits that a field of its type holds. Nothing where it is none of that
// type, or would lose digits.
std::optional<uint64_t> join_number(JoinType type, std::string_view cell) noexcept;

}  // namespace spk
