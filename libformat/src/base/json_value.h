// A reader of JSON (RFC 8259) from bytes that nobody vouches for: small documents that describe
// data, held whole. Depth, bytes and values are bounded; numbers are kept as they are written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace spk {

class JsonValue {
 public:
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };
  using Member = std::pair<std::string, JsonValue>;

  static constexpr int kDeepest = 64;
  static constexpr size_t kMostValues = size_t{1} << 20;

  // kDamaged, with the offset, where TEXT is no JSON, or has more than kDeepest levels or
  // kMostValues values. A name that
  // an object has twice is refused: readers differ in which one they take.
  static Result<JsonValue> parse(std::string_view text);

  Kind kind() const noexcept { return kind_; }
  bool is(Kind kind) const noexcept { return kind_ == kind; }
  bool as_bool() const noexcept { return text_ == "true"; }
  // Of a string: unescaped, UTF-8. Of a number: as written.
  const std::string& text() const noexcept { return text_; }
  const std::vector<JsonValue>& items() const noexcept { return items_; }   // of an array
  const std::vector<Member>& members() const noexcept { return members_; }  // of an object
  // Of an object; null where it has none of that name.
  const JsonValue* find(std::string_view name) const noexcept;
  // Of a number: false where it is no integer of that range.
  bool to_u64(uint64_t* value) const noexcept;

 private:
  friend class JsonParser;
  Kind kind_ = Kind::kNull;
  std::string text_;
  std::vector<JsonValue> items_;
  std::vector<Member> members_;
};

}  // namespace spk
