#include "sources/json_pick.h"

#include <bit>

#include "base/text.h"
#include "sources/label_text.h"

namespace spk {

namespace {

bool append_number(const JsonValue& value, std::string* text) {
  if (value.is(JsonValue::Kind::kBool)) {
    *text += value.as_bool() ? "1" : "0";
    return true;
  }
  if (!value.is(JsonValue::Kind::kNumber)) return false;
  *text += value.text();
  return true;
}

// Each number of a pick.
template <typename Use>
void for_numbers(std::string_view text, const Use& use) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    use(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

std::optional<JsonPick> pick_json(const JsonValue& document, std::string_view path) {
  const JsonValue* value = &document;
  // A name with a dot in it goes before a way through objects.
  if (const JsonValue* whole = document.find(path)) {
    value = whole;
    path = {};
  }
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    value = value->find(path.substr(0, dot));
    if (value == nullptr) return std::nullopt;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  JsonPick pick;
  if (value->is(JsonValue::Kind::kString)) {
    pick.is_text = true;
    pick.text = value->text();
    return pick;
  }
  if (!value->is(JsonValue::Kind::kArray)) {
    if (!append_number(*value, &pick.text)) return std::nullopt;
    return pick;
  }
  pick.is_list = true;
  for (const JsonValue& item : value->items()) {
    if (!pick.text.empty()) pick.text += ' ';
    if (!append_number(item, &pick.text)) return std::nullopt;
  }
  return pick;
}

void JsonPickType::saw(const JsonPick& pick) {
  seen_ = true;
  if (pick.is_text) text_ = true;
  if (pick.is_list) list_ = true;
  if (pick.is_text) return;
  for_numbers(pick.text, [this](std::string_view number) {
    int64_t value = 0;
    if (parse_int_label(number, &value) != LabelText::kOk) fraction_ = true;
  });
}

Field JsonPickType::field(const std::string& name) const {
  return {name, fraction_ ? FieldKind::kFloat64 : FieldKind::kInt64, list_ ? 0u : 1u};
}

NumericValues JsonPickType::values(const JsonPick& pick) const {
  NumericValues values;
  for_numbers(pick.text, [&](std::string_view number) {
    int64_t whole = 0;
    double value = 0;
    if (!fraction_) {
      (void)parse_int_label(number, &whole);
      values.push_back(static_cast<uint64_t>(whole));
    } else {
      (void)parse_float_label(number, &value);
      values.push_back(std::bit_cast<uint64_t>(value));
    }
  });
  return values;
}

}  // namespace spk
