// Single values picked out of JSON documents that lie beside pictures, one a sample.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.h"
#include "base/result.h"
#include "sources/source.h"

namespace spk {

struct JsonPick {
  bool is_text = false;  // otherwise numbers
  bool is_list = false;  // [1, 2]
  std::string text;      // the text; or numbers as written, a blank between
};

// PATH "a.b" is the member b of the object that is the member a. Nothing where the document has
// none, or null, or an object; booleans are 1 and 0.
std::optional<JsonPick> pick_json(const JsonValue& document, std::string_view path);

// What the picks of one path are together.
class JsonPickType {
 public:
  void saw(const JsonPick& pick);
  bool seen() const noexcept { return seen_; }
  bool is_text() const noexcept { return text_; }
  // Of numbers: integers where all are, else doubles; ragged where one was a list.
  Field field(const std::string& name) const;
  NumericValues values(const JsonPick& pick) const;

 private:
  bool seen_ = false;
  bool text_ = false;
  bool list_ = false;
  bool fraction_ = false;
};

}  // namespace spk
