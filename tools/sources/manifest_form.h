// The forms that lists of samples come in, told by their content, and their records.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "sources/source.h"

namespace spk {

enum class ListForm {
  kLines,    // PATH LABEL, split at the last run of blanks, as Caffe reads them
  kTable,    // CSV or TSV with a header line
  kLst,      // ID <tab> LABEL ... <tab> PATH, as MXNet's im2rec reads them
  kStatted,  // SIZE MTIME PATH, as `find -printf '%s %T@ %p\n'` writes
  kPaths,    // PATH
};

struct RecognisedForm {
  ListForm form = ListForm::kPaths;
  char delimiter = 0;  // of a table
  std::string name;    // "lines", "csv", "tsv", "lst", "find", "paths"
};

// Looks at the first lines and goes by the majority, so that one bad line changes nothing. An empty
// list, and a table that lacks its header, are errors.
Result<RecognisedForm> recognise_form(const File& file, const std::string& list_path);

struct ListRecord {
  std::string path;
  std::vector<std::string> labels;  // as written; empty where a cell is
  uint64_t size_bytes = kUnknownSize;
  int64_t mtime_ns = kUnknownMtime;
  uint64_t line = 0;  // where it begins
};

class RecordReader {
 public:
  virtual ~RecordReader() = default;
  // False at the end; an error for a record that does not follow the form, naming its line.
  virtual Result<bool> next(ListRecord* record) = 0;
  // Labels that each record has; 0 where it varies.
  virtual size_t label_columns() const = 0;
};

// Each reader reads the whole list anew; the file outlives it.
Result<std::unique_ptr<RecordReader>> open_records(const File& file, const std::string& list_path,
                                                   const RecognisedForm& form);

// "1700000000" or "1700000000.1234567890" in nanoseconds; false where it is not such a number.
bool parse_seconds(std::string_view text, int64_t* ns) noexcept;
// Takes SIZE MTIME PATH apart.
bool split_statted_line(std::string_view line, ListRecord* record);

}  // namespace spk
