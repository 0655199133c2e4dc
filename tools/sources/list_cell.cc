#include "sources/list_cell.h"

#include <utility>

namespace spk {

namespace {

constexpr std::pair<char, std::string_view> kForms[] = {
    {'\t', "\\x09"}, {'\n', "\\x0a"}, {'\r', "\\x0d"}, {'\\', "\\x5c"}};

// The form that TEXT begins with; null where it is none.
const std::pair<char, std::string_view>* form_at(std::string_view text) {
  for (const auto& form : kForms) {
    if (text.starts_with(form.second)) return &form;
  }
  return nullptr;
}

}  // namespace

std::string list_cell_of(std::string_view key) {
  std::string cell;
  for (size_t at = 0; at < key.size(); ++at) {
    std::string_view as = key.substr(at, 1);
    for (const auto& [character, form] : kForms) {
      if (key[at] != character) continue;
      if (character != '\\' || form_at(key.substr(at)) != nullptr) as = form;
    }
    cell += as;
  }
  return cell;
}

std::string key_of_list_cell(std::string_view cell) {
  std::string key;
  while (!cell.empty()) {
    const auto* const form = form_at(cell);
    key += form == nullptr ? cell.front() : form->first;
    cell.remove_prefix(form == nullptr ? 1 : form->second.size());
  }
  return key;
}

}  // namespace spk
