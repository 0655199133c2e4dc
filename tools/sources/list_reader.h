// Reads text lists piece by piece: lines, and the records of CSV and TSV files (RFC 4180). A UTF-8
// byte order mark at the start is dropped. Line numbers count from 1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/file.h"

namespace spk {

// "line N: MESSAGE", at the list's path.
Status list_error(const std::string& list_path, uint64_t line, const std::string& message);

class LineReader {
 public:
  static constexpr uint64_t kMostLineBytes = uint64_t{1} << 20;

  // The file outlives the reader. Errors name `list_path`.
  LineReader(const File& file, std::string list_path);
  // False at the end. The line is without its newline and a carriage return before that; it is
  // valid until the next call. A longer line than kMostLineBytes, or a NUL, is an error.
  Result<bool> next(std::string_view* line);
  // As next(), but the carriage return stays: it may lie within quotes.
  Result<bool> next_raw(std::string_view* line);
  uint64_t line_number() const noexcept { return line_number_; }  // of the line given last
  const std::string& list_path() const noexcept { return list_path_; }

 private:
  Result<bool> fill();

  const File& file_;
  std::string list_path_;
  std::vector<char> buffer_;
  size_t at_ = 0;
  size_t filled_ = 0;
  uint64_t offset_ = 0;
  uint64_t line_number_ = 0;
};

class TableReader {
 public:
  TableReader(const File& file, std::string list_path, char delimiter)
      : lines_(file, std::move(list_path)), delimiter_(delimiter) {}
  // False at the end. Blank lines are skipped.
  Result<bool> next(std::vector<std::string>* fields);
  uint64_t line_number() const noexcept { return record_line_; }  // where the record begins

 private:
  LineReader lines_;
  char delimiter_;
  uint64_t record_line_ = 0;
};

// Without blanks and tabs at both ends.
std::string_view trim_blanks(std::string_view text) noexcept;

}  // namespace spk
