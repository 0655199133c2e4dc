#include "base/json_value.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "base/text.h"

namespace spk {

class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text) {}

  Result<JsonValue> run() {
    JsonValue value;
    skip_blanks();
    SPK_TRY(take_value(&value, 0));
    skip_blanks();
    if (at_ != text_.size()) return bad("something follows the value");
    return value;
  }

 private:
  Status bad(const char* what) const { return damaged(str_cat("no JSON: ", what)).at_offset(at_); }
  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_blanks() {
    while (!at_end() && (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t'))
      ++at_;
  }
  bool take_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Status take_value(JsonValue* value, int depth) {
    if (depth == JsonValue::kDeepest) return bad("it is nested too deep");
    if (++values_ > JsonValue::kMostValues) return bad("it has too many values");
    using Kind = JsonValue::Kind;
    switch (peek()) {
      case '{': return take_object(value, depth);
      case '[': return take_array(value, depth);
      case '"': value->kind_ = Kind::kString; return take_string(&value->text_);
      case 't':
      case 'f':
        value->kind_ = Kind::kBool;
        value->text_ = peek() == 't' ? "true" : "false";
        return take_word(value->text_) ? Status() : bad("an unknown word");
      case 'n': return take_word("null") ? Status() : bad("an unknown word");
      default: value->kind_ = Kind::kNumber; return take_number(&value->text_);
    }
  }

  Status take_object(JsonValue* value, int depth) {
    value->kind_ = JsonValue::Kind::kObject;
    ++at_;
    skip_blanks();
    if (take('}')) return {};
    std::unordered_set<std::string> names;
    do {
      skip_blanks();
      if (peek() != '"') return bad("a name was expected");
      auto& [name, member] = value->members_.emplace_back();
      SPK_TRY(take_string(&name));
      if (!names.insert(name).second) return bad("a name is there twice");
      skip_blanks();
      if (!take(':')) return bad("':' was expected");
      skip_blanks();
      SPK_TRY(take_value(&member, depth + 1));
      skip_blanks();
    } while (take(','));
    return take('}') ? Status() : bad("',' or '}' was expected");
  }

  Status take_array(JsonValue* value, int depth) {
    value->kind_ = JsonValue::Kind::kArray;
    ++at_;
    skip_blanks();
    if (take(']')) return {};
    do {
      skip_blanks();
      SPK_TRY(take_value(&value->items_.emplace_back(), depth + 1));
      skip_blanks();
    } while (take(','));
    return take(']') ? Status() : bad("',' or ']' was expected");
  }

  void take_digits() {
    while (!at_end() && peek() >= '0' && peek() <= '9') ++at_;
  }

  Status take_number(std::string* text) {
    const size_t begin = at_;
    take('-');
    const size_t whole = at_;
    take_digits();
    if (at_ == whole || (text_[whole] == '0' && at_ - whole > 1))
      return bad("a value was expected");
    if (take('.')) {
      const size_t fraction = at_;
      take_digits();
      if (at_ == fraction) return bad("a digit was expected");
    }
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      const size_t exponent = at_;
      take_digits();
      if (at_ == exponent) return bad("a digit was expected");
    }
    *text = text_.substr(begin, at_ - begin);
    return {};
  }

  bool take_hex4(uint32_t* value) {
    if (text_.size() - at_ < 4) return false;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, begin + 4, *value, 16);
    at_ += 4;
    return error == std::errc() && end == begin + 4;
  }

  static void append_utf8(std::string* text, uint32_t code) {
    const auto put = [text](uint32_t byte) { *text += static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xc0 | code >> 6);
      put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
      put(0xe0 | code >> 12);
      put(0x80 | (code >> 6 & 0x3f));
      put(0x80 | (code & 0x3f));
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
      put(0x80 | (code >> 6 & 0x3f));
      put(0x80 | (code & 0x3f));
    }
  }

  Status take_unicode(std::string* text) {
    uint32_t code = 0;
    if (!take_hex4(&code)) return bad("four hex digits were expected");
    if (code >= 0xd800 && code < 0xdc00) {
      uint32_t low = 0;
      if (!take_word("\\u") || !take_hex4(&low) || low < 0xdc00 || low > 0xdfff) {
        return bad("half of a surrogate pair");
      }
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      return bad("half of a surrogate pair");
    }
    append_utf8(text, code);
    return {};
  }

  Status take_string(std::string* text) {
    ++at_;
    const size_t begin = at_;
    for (;;) {
      if (at_end()) return bad("a string has no end");
      const char c = text_[at_];
      if (static_cast<uint8_t>(c) < 0x20) return bad("a control character in a string");
      ++at_;
      if (c == '"') break;
      if (c != '\\') {
        *text += c;
        continue;
      }
      constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
      const char letter = peek();
      ++at_;
      if (letter == 'u') {
        SPK_TRY(take_unicode(text));
      } else if (const size_t which = kLetters.find(letter);
                 letter != '\0' && which != kLetters.npos) {
        *text += kMeant[which];
      } else {
        --at_;
        return bad("an unknown escape");
      }
    }
    if (!is_valid_utf8(text_.substr(begin, at_ - 1 - begin))) return bad("a string is not UTF-8");
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t values_ = 0;
};

Result<JsonValue> JsonValue::parse(std::string_view text) { return JsonParser(text).run(); }

const JsonValue* JsonValue::find(std::string_view name) const noexcept {
  for (const auto& [own, value] : members_) {
    if (own == name) return &value;
  }
  return nullptr;
}

bool JsonValue::to_u64(uint64_t* value) const noexcept {
  if (kind_ != Kind::kNumber) return false;
  const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), *value);
  return error == std::errc() && end == text_.data() + text_.size();
}

}  // namespace spk
