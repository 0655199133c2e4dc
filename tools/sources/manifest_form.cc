#include "sources/manifest_form.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "sources/label_text.h"
#include "sources/list_reader.h"
#include "sources/names.h"

namespace spk {

namespace {

constexpr size_t kLinesLookedAt = 200;
constexpr std::string_view kBlanks = " \t";

constexpr std::array<std::string_view, 17> kPathColumns = {
    "path",      "paths", "filepath",   "file_path",  "filename", "filenames",
    "file_name", "file",  "files",      "image",      "images",   "image_path",
    "img_path",  "img",   "image_name", "image_file", "imagepath"};

bool is_path_column(std::string_view name) {
  return std::find(kPathColumns.begin(), kPathColumns.end(), name) != kPathColumns.end();
}

// "label", "label_3", "label3": the stem with or without a number.
bool is_numbered(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem)) return false;
  name.remove_prefix(stem.size());
  if (name.starts_with('_')) name.remove_prefix(1);
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Names that label columns go by, best first: where a table has several kinds ("label" and
// "class_name"), the best kind alone is taken.
int label_column_rank(std::string_view name) {
  if (is_numbered(name, "label") || name == "labels") return 0;
  if (is_numbered(name, "class") || is_numbered(name, "class_id") || name == "class_index" ||
      name == "label_id") {
    return 1;
  }
  if (name == "class_name" || name == "classname" || name == "label_name" || name == "classes") {
    return 2;
  }
  if (is_numbered(name, "target") || name == "category" || name == "category_id" || name == "y") {
    return 3;
  }
  return -1;
}

std::string column_name(std::string_view field) {
  field = trim_blanks(field);
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
    field = field.substr(1, field.size() - 2);
  }
  return to_lower(field);
}

std::vector<std::string_view> split_at(std::string_view line, char delimiter) {
  std::vector<std::string_view> fields;
  for (;;) {
    const size_t end = line.find(delimiter);
    fields.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + 1);
  }
}

// 0 where the line is no header.
char header_delimiter(std::string_view line) {
  for (const char delimiter : {'\t', ',', ';'}) {
    const auto fields = split_at(line, delimiter);
    if (fields.size() < 2) continue;
    for (const std::string_view field : fields) {
      if (is_path_column(column_name(field))) return delimiter;
    }
  }
  return is_path_column(column_name(line)) ? ',' : 0;
}

struct LineShape {
  std::string_view path;   // before the last run of blanks
  std::string_view label;  // after it; empty where there is none
};
LineShape split_line(std::string_view line) {
  line = trim_blanks(line);
  const size_t last = line.find_last_of(kBlanks);
  if (last == std::string_view::npos) return {line, {}};
  return {trim_blanks(line.substr(0, last)), line.substr(last + 1)};
}

bool is_lst_line(std::string_view line) {
  const size_t end = line.find_last_not_of(kBlanks);
  const auto fields = split_at(line.substr(0, end + 1), '\t');
  return fields.size() >= 3 && !looks_like_number(trim_blanks(fields.back())) &&
         std::all_of(fields.begin(), fields.end() - 1,
                     [](std::string_view field) { return looks_like_number(trim_blanks(field)); });
}

// "i0.jpg,3": a table without a header.
bool is_headerless_line(std::string_view line) {
  for (const char delimiter : {',', ';'}) {
    const auto fields = split_at(line, delimiter);
    if (fields.size() >= 2 && is_picture_name(column_name(fields[0])) &&
        std::all_of(fields.begin() + 1, fields.end(),
                    [](std::string_view field) { return looks_like_number(trim_blanks(field)); })) {
      return true;
    }
  }
  return false;
}

struct Votes {
  size_t all = 0, lst = 0, statted = 0, lines = 0, headerless = 0;
  void add(std::string_view line) {
    ++all;
    ListRecord record;
    if (is_lst_line(line)) ++lst;
    // A line that may be either, such as "10 1700000000 7", is taken for a label only where the
    // second number does not look like a time.
    const LineShape shape = split_line(line);
    const bool statted_line = split_statted_line(line, &record);
    const bool numbered = !shape.label.empty() && looks_like_number(shape.label);
    const bool like_time = record.mtime_ns % 1'000'000'000 != 0 ||
                           record.mtime_ns >= int64_t{100'000'000} * 1'000'000'000;
    if (statted_line && (!numbered || like_time)) ++statted;
    // A picture's name and then a word: a label that is not a number, to be refused as such.
    if (numbered ||
        (is_picture_name(shape.path) && !shape.label.empty() && !is_picture_name(shape.label))) {
      ++lines;
    }
    if (is_headerless_line(line)) ++headerless;
  }
  bool most(size_t votes) const { return votes * 2 >= all; }
};

class LinesReader : public RecordReader {
 public:
  LinesReader(const File& file, const std::string& list_path) : lines_(file, list_path) {}
  size_t label_columns() const override { return 1; }
  Result<bool> next(ListRecord* record) override {
    std::string_view line;
    do {
      SPK_ASSIGN(const bool more, lines_.next(&line));
      if (!more) return false;
    } while (trim_blanks(line).empty());
    const LineShape shape = split_line(line);
    record->line = lines_.line_number();
    if (shape.label.empty()) {
      return list_error(lines_.list_path(), record->line,
                        str_cat("'", escape_bytes(shape.path), "' has no label"))
          .with_hint("each line reads PATH LABEL; --labels none is for tables and bare lists");
    }
    record->path.assign(shape.path);
    record->labels.resize(1);
    record->labels[0].assign(shape.label);
    return true;
  }

 private:
  LineReader lines_;
};

class LstReader : public RecordReader {
 public:
  LstReader(const File& file, const std::string& list_path) : lines_(file, list_path) {}
  size_t label_columns() const override { return 0; }
  Result<bool> next(ListRecord* record) override {
    std::string_view line;
    do {
      SPK_ASSIGN(const bool more, lines_.next(&line));
      if (!more) return false;
    } while (trim_blanks(line).empty());
    record->line = lines_.line_number();
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    const auto fields = split_at(line, '\t');
    if (fields.size() < 3) {
      return bad(*record, str_cat("has ", count_of(fields.size(), "field"),
                                  ", not an id, labels and a path"));
    }
    if (!looks_like_number(trim_blanks(fields[0]))) {
      return bad(*record, str_cat("id '", escape_bytes(fields[0]), "' is not a number"));
    }
    record->labels.resize(fields.size() - 2);
    for (size_t i = 0; i < record->labels.size(); ++i) {
      record->labels[i].assign(trim_blanks(fields[i + 1]));
    }
    record->path.assign(trim_blanks(fields.back()));
    if (record->path.empty()) return bad(*record, "has no path");
    return true;
  }

 private:
  Status bad(const ListRecord& record, const std::string& what) const {
    return list_error(lines_.list_path(), record.line, what)
        .with_hint("each line reads ID <tab> LABEL ... <tab> PATH");
  }
  LineReader lines_;
};

class PathsReader : public RecordReader {
 public:
  PathsReader(const File& file, const std::string& list_path, bool statted)
      : lines_(file, list_path), statted_(statted) {}
  size_t label_columns() const override { return 0; }
  Result<bool> next(ListRecord* record) override {
    std::string_view line;
    do {
      SPK_ASSIGN(const bool more, lines_.next(&line));
      if (!more) return false;
    } while (trim_blanks(line).empty());
    record->line = lines_.line_number();
    if (statted_) {
      if (split_statted_line(line, record)) return true;
      return list_error(lines_.list_path(), record->line, "is not a size, an mtime and a path")
          .with_hint("each line reads as `find -printf '%s %T@ %p\\n'` writes it");
    }
    const LineShape shape = split_line(line);
    if (looks_like_number(shape.label) && is_picture_name(shape.path)) {
      return list_error(lines_.list_path(), record->line,
                        str_cat("'", escape_bytes(shape.path), "' has a label, most have none"));
    }
    record->path.assign(trim_blanks(line));
    return true;
  }

 private:
  LineReader lines_;
  bool statted_;
};

class TableRecords : public RecordReader {
 public:
  TableRecords(const File& file, const std::string& list_path, char delimiter)
      : table_(file, list_path, delimiter), list_path_(list_path) {}

  Status read_header() {
    SPK_ASSIGN(const bool more, table_.next(&fields_));
    if (!more) return internal_error("the header is gone");
    columns_ = fields_.size();
    SPK_TRY(refuse_repeated_names());
    int best = -1;
    bool has_path = false;
    for (size_t column = 0; column < columns_; ++column) {
      const std::string name = column_name(fields_[column]);
      if (!has_path && is_path_column(name)) {
        path_column_ = column;
        has_path = true;
        continue;
      }
      const int rank = label_column_rank(name);
      if (rank < 0 || (best >= 0 && rank > best)) continue;
      if (rank != best) label_columns_.clear();
      best = rank;
      label_columns_.push_back(column);
    }
    return {};
  }
  size_t label_columns() const override { return label_columns_.size(); }

  Result<bool> next(ListRecord* record) override {
    SPK_ASSIGN(const bool more, table_.next(&fields_));
    if (!more) return false;
    record->line = table_.line_number();
    if (fields_.size() != columns_) {
      return list_error(
          list_path_, record->line,
          str_cat("has ", count_of(fields_.size(), "field"), ", the header has ", columns_));
    }
    record->path = fields_[path_column_];
    if (record->path.empty()) return list_error(list_path_, record->line, "has no path");
    record->labels.resize(label_columns_.size());
    for (size_t i = 0; i < label_columns_.size(); ++i) {
      record->labels[i].assign(trim_blanks(fields_[label_columns_[i]]));
    }
    return true;
  }

 private:
  // Which of two columns were meant, nobody can tell. Other columns may be named as they like.
  Status refuse_repeated_names() const {
    std::vector<std::string> names;
    for (const std::string& field : fields_) names.push_back(column_name(field));
    for (size_t second = 0; second < names.size(); ++second) {
      const std::string& name = names[second];
      if (!is_path_column(name) && label_column_rank(name) < 0) continue;
      const auto first = std::find(names.begin(), names.end(), name) - names.begin();
      if (static_cast<size_t>(first) == second) continue;
      return list_error(list_path_, table_.line_number(),
                        str_cat("columns ", first + 1, " and ", second + 1, " are both named '",
                                escape_bytes(name), "'"))
          .with_hint("give each column a name of its own");
    }
    return {};
  }

  TableReader table_;
  std::string list_path_;
  std::vector<std::string> fields_;
  size_t columns_ = 0;
  size_t path_column_ = 0;
  std::vector<size_t> label_columns_;
};

}  // namespace

bool parse_seconds(std::string_view text, int64_t* ns) noexcept {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  const std::string_view fraction =
      dot == std::string_view::npos ? std::string_view() : text.substr(dot + 1);
  const auto is_digits = [](std::string_view digits) {
    return digits.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (whole.empty() || whole.size() > 9 + 1 || !is_digits(whole) || !is_digits(fraction)) {
    return false;  // ten digits reach the year 2286; nanoseconds in 64 bits end in 2262
  }
  int64_t value = 0;
  for (const char c : whole) value = value * 10 + (c - '0');
  for (size_t i = 0; i < 9; ++i) {
    const int64_t digit = i < fraction.size() ? fraction[i] - '0' : 0;
    if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
        __builtin_add_overflow(value, digit, &value)) {
      return false;
    }
  }
  *ns = negative ? -value : value;
  return true;
}

bool split_statted_line(std::string_view line, ListRecord* record) {
  const size_t first = line.find_first_of(kBlanks);
  if (first == std::string_view::npos) return false;
  const size_t second = line.find_first_of(kBlanks, first + 1);
  if (second == std::string_view::npos || second + 1 == line.size()) return false;
  const std::string_view size = line.substr(0, first);
  uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), bytes);
  if (error != std::errc() || end != size.data() + size.size() || bytes == kUnknownSize ||
      !parse_seconds(line.substr(first + 1, second - first - 1), &record->mtime_ns)) {
    return false;
  }
  record->size_bytes = bytes;
  record->path.assign(line.substr(second + 1));  // to the end: blanks there belong to the name
  record->labels.clear();
  return true;
}

Result<RecognisedForm> recognise_form(const File& file, const std::string& list_path) {
  LineReader lines(file, list_path);
  Votes votes;
  while (votes.all < kLinesLookedAt) {
    std::string_view line;
    SPK_ASSIGN(const bool more, lines.next(&line));
    if (!more) break;
    if (trim_blanks(line).empty()) continue;
    if (votes.all == 0) {
      if (const char delimiter = header_delimiter(line)) {
        return RecognisedForm{ListForm::kTable, delimiter, delimiter == '\t' ? "tsv" : "csv"};
      }
    }
    votes.add(line);
  }
  if (votes.all == 0) {
    return invalid_argument("the list is empty: it names no sample").at_path(list_path);
  }
  if (votes.most(votes.lst)) return RecognisedForm{ListForm::kLst, 0, "lst"};
  if (votes.most(votes.statted)) return RecognisedForm{ListForm::kStatted, 0, "find"};
  if (votes.most(votes.headerless)) {
    return list_error(list_path, 1, "looks like a table, but without names of its columns")
        .with_hint("add a first line such as `path,label`");
  }
  if (votes.most(votes.lines)) return RecognisedForm{ListForm::kLines, 0, "lines"};
  return RecognisedForm{ListForm::kPaths, 0, "paths"};
}

Result<std::unique_ptr<RecordReader>> open_records(const File& file, const std::string& list_path,
                                                   const RecognisedForm& form) {
  switch (form.form) {
    case ListForm::kLines: return std::unique_ptr<RecordReader>(new LinesReader(file, list_path));
    case ListForm::kLst: return std::unique_ptr<RecordReader>(new LstReader(file, list_path));
    case ListForm::kStatted:
    case ListForm::kPaths:
      return std::unique_ptr<RecordReader>(
          new PathsReader(file, list_path, form.form == ListForm::kStatted));
    case ListForm::kTable: {
      auto reader = std::make_unique<TableRecords>(file, list_path, form.delimiter);
      SPK_TRY(reader->read_header());
      return std::unique_ptr<RecordReader>(std::move(reader));
    }
  }
  return internal_error("an unknown form of list");
}

}  // namespace spk
