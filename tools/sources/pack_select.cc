#include "sources/pack_select.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>

#include "base/hash.h"
#include "base/text.h"
#include "commands/sample_filter.h"
#include "layout/permutation.h"

namespace spk {

namespace {

Status bad(const std::string& word, const std::string& why) {
  return invalid_argument(str_cat("--select ", escape_bytes(word), ": ", why))
      .with_hint("give class=NAME, label=N, glob=PATTERN, keys=FILE or share=FRACTION[:SEED]");
}

template <typename T>
bool parse_number(std::string_view text, T* value) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && at == end;
}

}  // namespace

Result<PackSelect> PackSelect::parse(const std::vector<std::string>& words) {
  PackSelect select;
  for (const std::string& word : words) SPK_TRY(select.add(word));
  select.all_ = words.empty();
  return select;
}

Status PackSelect::add(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == word.npos) return bad(word, "has no '='");
  const std::string name = word.substr(0, equals);
  const std::string value = word.substr(equals + 1);
  if (name == "class") {
    classes_.insert(value);
    return {};
  }
  if (name == "glob") {
    globs_.push_back(value);
    return {};
  }
  if (name == "keys") return read_keys(value);
  if (name == "label") {
    int64_t label = 0;
    if (!parse_number(value, &label)) return bad(word, "is no whole number");
    labels_.push_back(label);
    return {};
  }
  if (name != "share") return bad(word, "is not known");
  const size_t colon = value.find(':');
  double share = 0;
  const bool number = parse_number(std::string_view(value).substr(0, colon), &share);
  if (!number || !(share >= 0 && share <= 1)) return bad(word, "is no share from 0 to 1");
  if (colon != value.npos &&
      !parse_number(std::string_view(value).substr(colon + 1), &share_seed_)) {
    return bad(word, "has no whole number as seed");
  }
  share_ = share >= 1 ? UINT64_MAX : static_cast<uint64_t>(std::ldexp(share, 64));
  return {};
}

Status PackSelect::read_keys(const std::string& path) {
  by_keys_ = true;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status(Code::kNotFound, "cannot read the list of keys").at_path(path);
  uint64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    auto key = unescape_bytes(line);
    if (!key.ok()) {
      return invalid_argument(str_cat("line ", number, ": ", key.status().message()))
          .at_path(path)
          .with_hint("a key is written as `stripepack ls --keys` prints it: a backslash as \\\\");
    }
    keys_.insert(std::move(*key));
  }
  if (file.bad()) return Status(Code::kIo, "cannot read the list of keys").at_path(path);
  return {};
}

Status PackSelect::check_classes(const std::vector<std::string>& classes) const {
  for (const std::string& name : classes_) {
    if (std::find(classes.begin(), classes.end(), name) != classes.end()) continue;
    return Status(Code::kNotFound,
                  str_cat("--select: there is no class '", escape_bytes(name), "'"))
        .with_hint("`stripepack info --classes` lists them");
  }
  return {};
}

bool PackSelect::takes_label(const std::vector<int64_t>& labels,
                             const std::vector<std::string>& classes) const {
  if (classes_.empty() && labels_.empty()) return true;
  return std::any_of(labels.begin(), labels.end(), [&](int64_t label) {
    if (std::find(labels_.begin(), labels_.end(), label) != labels_.end()) return true;
    return label >= 0 && static_cast<uint64_t>(label) < classes.size() &&
           classes_.contains(classes[static_cast<size_t>(label)]);
  });
}

bool PackSelect::takes(std::string_view split, std::string_view key,
                       const std::vector<int64_t>& labels,
                       const std::vector<std::string>& classes) const {
  if (all_) return true;
  if (!takes_label(labels, classes)) return false;
  const std::string text(key);
  const std::string with_split = split.empty() ? text : str_cat(split, "/", key);
  if (by_keys_ && !keys_.contains(text) && !keys_.contains(with_split)) return false;
  if (!globs_.empty() && std::none_of(globs_.begin(), globs_.end(), [&](const std::string& glob) {
        return glob_matches(glob, text) || glob_matches(glob, with_split);
      })) {
    return false;
  }
  return share_ == UINT64_MAX || mix64(xxh3_64(as_bytes(key)) ^ mix64(share_seed_)) < share_;
}

}  // namespace spk
