#include "sources/shard_names.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include "base/text.h"
#include "sources/names.h"

namespace spk {

namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_word_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// The one word of the name that is a split's; empty where there is none, or there are several.
std::string split_word(std::string_view name) {
  std::string found;
  for (size_t begin = 0; begin < name.size();) {
    size_t end = begin;
    while (end < name.size() && is_word_letter(name[end])) ++end;
    const std::string word = to_lower(name.substr(begin, end - begin));
    if (is_split_name(word)) {
      if (!found.empty() && found != word) return {};
      found = word;
    }
    begin = end + 1;
  }
  return found;
}

// "NAME-00001-of-00003..." as (NAME, 1, 3).
bool parse_shard(std::string_view name, std::string* stem, uint64_t* number, uint64_t* count) {
  constexpr std::string_view kOf = "-of-";
  const size_t of = name.rfind(kOf);
  if (of == name.npos) return false;
  const size_t dash = of == 0 ? name.npos : name.rfind('-', of - 1);
  if (dash == name.npos) return false;
  const char* const begin = name.data() + dash + 1;
  const char* const middle = name.data() + of;
  const auto [end, error] = std::from_chars(begin, middle, *number);
  if (error != std::errc() || end != middle) return false;
  const char* const last = name.data() + name.size();
  const auto [rest, wrong] = std::from_chars(middle + kOf.size(), last, *count);
  if (wrong != std::errc() || rest == middle + kOf.size()) return false;
  *stem =
      str_cat(name.substr(0, dash), "*", std::string_view(rest, static_cast<size_t>(last - rest)));
  return true;
}

}  // namespace

ShardSplits splits_of_files(const std::vector<std::string>& paths, SplitMode mode) {
  ShardSplits splits;
  std::vector<std::string> words;
  std::set<std::string> distinct;
  for (const std::string& path : paths) {
    words.push_back(split_word(base_name(path)));
    distinct.insert(words.back());
  }
  if (mode == SplitMode::kNone || distinct.size() < 2 || distinct.contains("")) {
    splits.names = {""};
    splits.of_file.assign(paths.size(), 0);
    return splits;
  }
  splits.names.assign(distinct.begin(), distinct.end());
  for (const std::string& word : words) {
    const auto at = std::lower_bound(splits.names.begin(), splits.names.end(), word);
    splits.of_file.push_back(static_cast<uint32_t>(at - splits.names.begin()));
  }
  return splits;
}

Status check_no_shard_is_missing(const std::vector<std::string>& paths) {
  struct Seen {
    uint64_t count = 0;
    std::set<uint64_t> numbers;
    std::string example;
  };
  std::map<std::string, Seen> sets;
  for (const std::string& path : paths) {
    std::string stem;
    uint64_t number = 0, count = 0;
    if (!parse_shard(base_name(path), &stem, &number, &count)) continue;
    Seen& seen = sets[str_cat(stem, "/", count)];
    seen.count = count;
    seen.numbers.insert(number);
    seen.example = path;
  }
  for (const auto& [stem, seen] : sets) {
    if (seen.numbers.size() >= seen.count) continue;
    uint64_t missing = 0;
    while (seen.numbers.contains(missing)) ++missing;
    return Status(Code::kMismatch, str_cat("found ", seen.numbers.size(), " of ", seen.count,
                                           " shards; number ", missing, " is missing"))
        .at_path(escape_bytes(seen.example))
        .with_hint("name the files one by one, by braces or wildcards, to take only some");
  }
  return {};
}

}  // namespace spk
