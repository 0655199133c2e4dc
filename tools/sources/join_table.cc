#include "sources/join_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/varint.h"
#include "sources/label_text.h"
#include "sources/list_labels.h"
#include "sources/list_reader.h"

namespace spk {

namespace {

constexpr size_t kMostShown = 60;
constexpr std::array<std::string_view, 4> kTaken = {"image", "height", "width", "channels"};

std::string shown(std::string_view text) { return escape_bytes(text.substr(0, kMostShown)); }

Status bad_row() { return damaged("a sorted row of a table is not whole"); }

bool is_whole(std::string_view cell) {
  if (cell.starts_with('-') || cell.starts_with('+')) cell.remove_prefix(1);
  return !cell.empty() && cell.find_first_not_of("0123456789") == cell.npos;
}

// "007" is a name, not a number: its zeros would be lost.
bool has_idle_zero(std::string_view cell) {
  if (cell.starts_with('-') || cell.starts_with('+')) cell.remove_prefix(1);
  return cell.size() > 1 && cell[0] == '0' && cell[1] >= '0' && cell[1] <= '9';
}

// What the cells of a column were so far, together.
struct Seen {
  bool any = false;
  bool whole = true;
  bool number = true;

  void add(std::string_view cell) {
    if (cell.empty() || !number) return;
    any = true;
    if (has_idle_zero(cell) || !looks_like_number(cell)) {
      number = whole = false;
      return;
    }
    const bool fits = join_number(JoinType::kInt64, cell).has_value();
    whole = whole && fits;
    // A whole number that needs more than 64 bits would lose digits as a decimal one.
    if (is_whole(cell) && !fits) number = false;
    if (!join_number(JoinType::kFloat64, cell)) number = false;
  }
  JoinType type() const {
    if (!any || !number) return JoinType::kText;
    return whole ? JoinType::kInt64 : JoinType::kFloat64;
  }
};

std::string_view trimmed(const JoinColumn& column, std::string_view cell) {
  return column.told == JoinType::kText ? cell : trim_blanks(cell);
}

}  // namespace

const char* join_type_name(JoinType type) noexcept {
  switch (type) {
    case JoinType::kInt64: return "int64";
    case JoinType::kFloat32: return "float32";
    case JoinType::kFloat64: return "float64";
    case JoinType::kText: return "text";
  }
  return "unknown";
}

std::optional<uint64_t> join_number(JoinType type, std::string_view cell) noexcept {
  cell = trim_blanks(cell);
  if (type == JoinType::kInt64) {
    if (!is_whole(cell)) return std::nullopt;
    int64_t value = 0;
    if (parse_int_label(cell, &value) != LabelText::kOk) return std::nullopt;
    return static_cast<uint64_t>(value);
  }
  double value = 0;
  if (parse_float_label(cell, &value) != LabelText::kOk) return std::nullopt;
  if (type == JoinType::kFloat64) return std::bit_cast<uint64_t>(value);
  if (std::fabs(value) > std::numeric_limits<float>::max()) return std::nullopt;
  return std::bit_cast<uint32_t>(static_cast<float>(value));
}

Result<std::vector<JoinColumn>> parse_join_columns(const std::string& text) {
  std::vector<JoinColumn> columns;
  std::set<std::string> fields;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    const auto bad = [&](std::string_view why) {
      return invalid_argument(str_cat("--join-columns ", escape_bytes(word), ": ", why))
          .with_hint("--join-columns COLUMN[:FIELD[:int64|float32|float64|text]],...");
    };
    JoinColumn column;
    const size_t colon = word.find(':');
    column.name = word.substr(0, colon);
    column.field = column.name;
    if (colon != word.npos) {
      const size_t second = word.find(':', colon + 1);
      column.field = word.substr(colon + 1, second == word.npos ? second : second - colon - 1);
      if (second != word.npos) {
        const std::string type = word.substr(second + 1);
        for (const JoinType one :
             {JoinType::kInt64, JoinType::kFloat32, JoinType::kFloat64, JoinType::kText}) {
          if (type == join_type_name(one)) column.told = one;
        }
        if (!column.told) return bad("no such type");
      }
    }
    if (column.name.empty() || column.field.empty()) return bad("a name is empty");
    if (!fields.insert(column.field).second) return bad("two columns become one field");
    columns.push_back(std::move(column));
  }
  return columns;
}

Result<std::unique_ptr<JoinTable>> JoinTable::open(const PackOptions& options) {
  auto file = File::open_read(options.join);
  if (!file.ok()) return std::move(file).status().with_hint("--join names a CSV or TSV file");
  std::unique_ptr<JoinTable> table(new JoinTable(options.join, std::move(*file)));
  LineReader lines(table->file_, table->path_);
  std::string_view line;
  do {
    SPK_ASSIGN(const bool more, lines.next(&line));
    if (!more) return invalid_argument("the table is empty").at_path(table->path_);
  } while (trim_blanks(line).empty());
  for (const char delimiter : {';', ',', '\t'}) {
    if (line.find(delimiter) != line.npos) table->delimiter_ = delimiter;
  }
  TableReader reader(table->file_, table->path_, table->delimiter_);
  std::vector<std::string> header;
  SPK_TRY(reader.next(&header).status());
  SPK_TRY(table->take_header(options, header));
  return table;
}

Status JoinTable::take_header(const PackOptions& options, const std::vector<std::string>& header) {
  width_ = header.size();
  std::set<std::string_view> names;
  for (const std::string& name : header) {
    if (names.insert(trim_blanks(name)).second) continue;
    return list_error(path_, 1, str_cat("two columns are named '", shown(name), "'"))
        .with_hint("give each column a name of its own");
  }
  if (!options.join_key.empty()) {
    const auto found = std::find_if(header.begin(), header.end(), [&](const std::string& name) {
      return trim_blanks(name) == options.join_key;
    });
    if (found == header.end()) {
      return Status(Code::kNotFound,
                    str_cat("the table has no column '", shown(options.join_key), "'"))
          .at_path(path_)
          .with_hint("--join-key names the column of the samples' keys");
    }
    key_place_ = static_cast<size_t>(found - header.begin());
  }
  SPK_TRY(choose_columns(options, header));
  for (size_t i = 0; i < columns_.size(); ++i) {
    const JoinColumn& column = columns_[i];
    if (column.field == "label") label_column_ = i;
    if (!is_valid_utf8(column.field)) {
      return invalid_argument(
                 str_cat("the name of the column '", shown(column.field), "' is not UTF-8"))
          .at_path(path_)
          .with_hint("--join-columns COLUMN:FIELD gives it another");
    }
    if (std::find(kTaken.begin(), kTaken.end(), column.field) != kTaken.end()) {
      return invalid_argument(str_cat("a field of the name '", column.field, "' is there already"))
          .at_path(path_)
          .with_hint("--join-columns COLUMN:FIELD,... names those that are wanted");
    }
  }
  return {};
}

Status JoinTable::choose_columns(const PackOptions& options,
                                 const std::vector<std::string>& header) {
  if (options.join_columns.empty()) {
    for (size_t place = 0; place < header.size(); ++place) {
      if (place == key_place_) continue;
      JoinColumn column;
      column.name = column.field = trim_blanks(header[place]);
      column.place = place;
      if (column.name.empty()) {
        return list_error(path_, 1, str_cat("column ", place + 1, " has no name"))
            .with_hint("--join-columns names those that are wanted");
      }
      // Nobody's labels are replaced by a column that happens to have this name.
      if (column.name == "label") {
        return invalid_argument("the table has a column 'label'")
            .at_path(path_)
            .with_hint(
                "--join-columns label takes it in place of the source's labels; naming only others "
                "leaves it out");
      }
      columns_.push_back(std::move(column));
    }
    if (!columns_.empty()) return {};
    return invalid_argument("the table has no column but its key").at_path(path_);
  }
  SPK_ASSIGN(columns_, parse_join_columns(options.join_columns));
  for (JoinColumn& column : columns_) {
    const auto found = std::find_if(header.begin(), header.end(), [&](const std::string& name) {
      return trim_blanks(name) == column.name;
    });
    if (found == header.end()) {
      return Status(Code::kNotFound, str_cat("the table has no column '", shown(column.name), "'"))
          .at_path(path_);
    }
    column.place = static_cast<size_t>(found - header.begin());
  }
  return {};
}

Status JoinTable::read_rows(const PackOptions& options, const std::string& spill) {
  // The planner has half of the memory, of which it leaves a part to the source.
  sorted_ = std::make_unique<ExternalSorter>(spill, options.memory_bytes / 16);
  TableReader reader(file_, path_, delimiter_);
  std::vector<std::string> cells;
  SPK_TRY(reader.next(&cells).status());  // the header
  std::vector<Seen> seen(columns_.size());
  std::string payload;
  for (;;) {
    SPK_ASSIGN(const bool more, reader.next(&cells));
    if (!more) break;
    const uint64_t line = reader.line_number();
    if (cells.size() != width_) {
      return list_error(
          path_, line,
          str_cat("has ", count_of(cells.size(), "field"), ", the header has ", width_));
    }
    auto key = unescape_bytes(cells[key_place_]);
    if (!key.ok() || key->empty()) {
      return list_error(path_, line, key.ok() ? "has no key" : key.status().message());
    }
    payload.clear();
    append_be64(payload, line);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const JoinColumn& column = columns_[i];
      const std::string& cell = cells[column.place];
      append_string(payload, cell);
      const std::string_view value = trimmed(column, cell);
      seen[i].add(value);
      const bool fits = !column.told || *column.told == JoinType::kText || value.empty() ||
                        join_number(*column.told, value);
      if (!fits) {
        return list_error(path_, line,
                          str_cat("'", shown(value), "' of column '", shown(column.name),
                                  "' is no ", join_type_name(*column.told)));
      }
    }
    ++row_count_;
    SPK_TRY(sorted_->add(as_bytes(*key), as_bytes(payload)));
  }
  if (row_count_ == 0) return invalid_argument("the table has no rows").at_path(path_);
  for (size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].type = columns_[i].told ? *columns_[i].told : seen[i].type();
  }
  SPK_TRY(sorted_->finish());
  return look_at_rows();
}

// What only the sorted rows tell: keys that come twice, the digest, and the names of classes.
Status JoinTable::look_at_rows() {
  SPK_ASSIGN(Rows all, rows());
  const bool names_classes =
      label_column_ != SIZE_MAX && columns_[label_column_].type == JoinType::kText;
  NameTable names;
  Xxh3Stream hash;
  std::string key, last_key, scratch;
  JoinRow row;
  uint64_t last_line = 0;
  for (bool first = true;; first = false) {
    SPK_ASSIGN(const bool more, all.next(&key, &row));
    if (!more) break;
    if (!first && key == last_key) {
      return list_error(path_, row.line,
                        str_cat("the key '", shown(key), "' stands in line ", last_line, ", too"))
          .with_hint("a table has one row for each sample");
    }
    scratch.clear();
    append_string(scratch, key);
    for (const std::string& cell : row.cells) append_string(scratch, cell);
    hash.update(as_bytes(scratch));
    if (names_classes && !row.cells[label_column_].empty()) {
      SPK_TRY(names.add(row.cells[label_column_]));
    }
    last_key.swap(key);
    last_line = row.line;
  }
  names.finish();
  classes_ = names.sorted();
  digest_ = hash.digest_128();
  return {};
}

Result<JoinTable::Rows> JoinTable::rows() const {
  Rows rows;
  SPK_ASSIGN(rows.stream_, sorted_->read());
  return rows;
}

Result<bool> JoinTable::Rows::next(std::string* key, JoinRow* row) {
  ByteSpan key_bytes, payload;
  SPK_ASSIGN(const bool more, stream_->next(&key_bytes, &payload));
  if (!more) return false;
  key->assign(as_text(key_bytes));
  if (payload.size() < 8) return bad_row();
  row->line = load_be<uint64_t>(payload.data());
  payload = payload.subspan(8);
  row->cells.clear();
  while (!payload.empty()) {
    std::string_view cell;
    if (!take_string(&payload, &cell)) return bad_row();
    row->cells.emplace_back(cell);
  }
  return true;
}

}  // namespace spk
