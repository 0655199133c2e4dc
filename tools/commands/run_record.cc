#include "commands/run_record.h"

#include <charconv>

#include "base/bytes.h"
#include "container/pack.h"
#include "io/atomic_file.h"

namespace spk {

namespace {

constexpr uint64_t kMostRunRecordBytes = uint64_t{1} << 20;

// Walks over JSON without building anything. Each step is false at a mistake.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}

  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool string(std::string* out) {
    out->clear();
    if (!take('"')) return false;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return true;
      if (c != '\\') {
        *out += c;
      } else if (!escape(out)) {
        return false;
      }
    }
    return false;
  }
  bool word(std::string* out) {
    out->clear();
    skip_blanks();
    while (at_ < text_.size() && std::string_view(",]} \t\r\n").find(text_[at_]) == text_.npos) {
      *out += text_[at_++];
    }
    return !out->empty();
  }
  // An array or object, whatever is in it.
  bool skip_nested() {
    int depth = 0;
    std::string ignored;
    do {
      const char c = peek();
      if (c == '\0') return false;
      if (c == '"') {
        if (!string(&ignored)) return false;
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at_;
    } while (depth > 0);
    return true;
  }

 private:
  bool escape(std::string* out) {
    if (at_ >= text_.size()) return false;
    const char c = text_[at_++];
    switch (c) {
      case 'n': *out += '\n'; return true;
      case 't': *out += '\t'; return true;
      case 'r': *out += '\r'; return true;
      case 'b': *out += '\b'; return true;
      case 'f': *out += '\f'; return true;
      case 'u': return code_point(out);
      default: *out += c; return true;
    }
  }
  // Our own writer escapes so only bytes below 0x20; others keep their digits.
  bool code_point(std::string* out) {
    if (text_.size() - at_ < 4) return false;
    const std::string_view digits = text_.substr(at_, 4);
    unsigned value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + 4, value, 16);
    if (error != std::errc() || end != digits.data() + 4) return false;
    at_ += 4;
    if (value < 0x80) {
      *out += static_cast<char>(value);
    } else {
      *out += "\\u";
      *out += digits;
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> flat_members(std::string_view json) {
  std::vector<std::pair<std::string, std::string>> members;
  Walker walker(json);
  if (!walker.take('{')) return members;
  std::string name;
  std::string value;
  while (walker.string(&name) && walker.take(':')) {
    const char first = walker.peek();
    if (first == '{' || first == '[') {
      if (!walker.skip_nested()) break;
    } else {
      if (!(first == '"' ? walker.string(&value) : walker.word(&value))) break;
      members.emplace_back(name, value);
    }
    if (!walker.take(',')) break;
  }
  return members;
}

std::vector<std::pair<std::string, std::string>> read_run_record(const Directory& directory) {
  const auto bytes = read_whole_file(directory, kRunName, kMostRunRecordBytes);
  if (!bytes.ok()) return {};
  return flat_members(as_text(*bytes));
}

}  // namespace spk
