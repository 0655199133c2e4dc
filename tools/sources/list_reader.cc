#include "sources/list_reader.h"

#include <cstring>
#include <utility>

#include "base/text.h"

namespace spk {

namespace {

constexpr size_t kReadBytes = size_t{256} << 10;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

Status list_error(const std::string& list_path, uint64_t line, const std::string& message) {
  return invalid_argument(str_cat("line ", line, ": ", message)).at_path(list_path);
}

std::string_view trim_blanks(std::string_view text) noexcept {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

LineReader::LineReader(const File& file, std::string list_path)
    : file_(file), list_path_(std::move(list_path)), buffer_(kReadBytes) {}

// Reads on; false at the end of the file.
Result<bool> LineReader::fill() {
  std::memmove(buffer_.data(), buffer_.data() + at_, filled_ - at_);
  filled_ -= at_;
  at_ = 0;
  if (filled_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const MutableByteSpan into{reinterpret_cast<uint8_t*>(buffer_.data()) + filled_,
                             buffer_.size() - filled_};
  SPK_ASSIGN(const uint64_t got, file_.read_some(offset_, into));
  const bool at_start = offset_ == 0;
  offset_ += got;
  filled_ += got;
  if (at_start && std::string_view(buffer_.data(), filled_).starts_with(kByteOrderMark)) {
    at_ = kByteOrderMark.size();
  }
  return got != 0;
}

Result<bool> LineReader::next_raw(std::string_view* line) {
  size_t searched = 0;
  for (;;) {
    const std::string_view rest(buffer_.data() + at_, filled_ - at_);
    size_t end = rest.find('\n', searched);
    bool more = true;
    if (end == std::string_view::npos) {
      searched = rest.size();
      if (searched > kMostLineBytes) {
        return list_error(list_path_, line_number_ + 1,
                          str_cat("longer than ", format_size(kMostLineBytes)));
      }
      SPK_ASSIGN(more, fill());
      if (more) continue;
      if (rest.empty()) return false;
      end = rest.size();
    }
    const std::string_view found(buffer_.data() + at_, end);
    ++line_number_;
    if (end > kMostLineBytes) {
      return list_error(list_path_, line_number_,
                        str_cat("longer than ", format_size(kMostLineBytes)));
    }
    if (found.find('\0') != std::string_view::npos) {
      return list_error(list_path_, line_number_, "a NUL byte; no file name has one")
          .with_hint("a list is text, with one sample a line");
    }
    *line = found;
    at_ += end + (more ? 1 : 0);
    return true;
  }
}

Result<bool> LineReader::next(std::string_view* line) {
  SPK_ASSIGN(const bool more, next_raw(line));
  if (more && line->ends_with('\r')) line->remove_suffix(1);
  return more;
}

Result<bool> TableReader::next(std::vector<std::string>* fields) {
  std::string_view line;
  do {
    SPK_ASSIGN(const bool more, lines_.next_raw(&line));
    if (!more) return false;
  } while (line.find_first_not_of(" \t\r") == std::string_view::npos);
  record_line_ = lines_.line_number();

  size_t count = 0;  // fields so far; their strings are used again
  const auto start_field = [&] {
    if (fields->size() == count) fields->emplace_back();
    (*fields)[count++].clear();
  };
  enum class State { kFieldStart, kPlain, kQuoted, kQuoteSeen } state = State::kFieldStart;
  uint64_t record_bytes = 0;
  start_field();
  for (;;) {
    record_bytes += line.size();
    if (record_bytes > LineReader::kMostLineBytes) {
      return list_error(lines_.list_path(), record_line_,
                        "a record that does not end; is a quote open?");
    }
    for (size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      std::string& field = (*fields)[count - 1];
      if (state == State::kQuoted) {
        if (c == '"') {
          state = State::kQuoteSeen;
        } else {
          field += c;
        }
      } else if (state == State::kQuoteSeen && c == '"') {
        field += c;  // a doubled quote
        state = State::kQuoted;
      } else if (c == delimiter_) {
        start_field();
        state = State::kFieldStart;
      } else if (c == '\r' && i + 1 == line.size()) {
        break;
      } else if (state == State::kQuoteSeen) {
        return list_error(lines_.list_path(), lines_.line_number(), "text after a closing quote");
      } else if (state == State::kFieldStart && c == '"') {
        state = State::kQuoted;
      } else {
        field += c;
        state = State::kPlain;
      }
    }
    if (state != State::kQuoted) break;
    (*fields)[count - 1] += '\n';
    SPK_ASSIGN(const bool more, lines_.next_raw(&line));
    if (!more) return list_error(lines_.list_path(), record_line_, "a quote is not closed");
  }
  fields->resize(count);
  return true;
}

}  // namespace spk
