#include "sources/idx_pairs.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "sources/names.h"

namespace spk {

namespace {

constexpr std::string_view kPacked = ".gz";

std::string_view name_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

// The name of the labels that belong to these pictures, without ".gz"; empty where it tells none.
std::string label_name_of(std::string_view images_name) {
  if (images_name.ends_with(kPacked)) images_name.remove_suffix(kPacked.size());
  std::string name(images_name);
  const size_t at = name.find("images");
  if (at == name.npos) return {};
  name.replace(at, 6, "labels");
  if (const size_t sizes = name.find("idx3"); sizes != name.npos) name.replace(sizes, 4, "idx1");
  if (const size_t sizes = name.find("idx4"); sizes != name.npos) name.replace(sizes, 4, "idx1");
  return name;
}

// The split that a word of the name tells.
std::string split_of(std::string_view name) {
  const std::string lower = to_lower(name);
  for (size_t begin = 0; begin < lower.size();) {
    const size_t end = std::min(lower.find_first_of("-_.", begin), lower.size());
    const std::string word = lower.substr(begin, end - begin);
    if (word == "t10k") return "test";
    if (is_split_name(word)) return word;
    begin = end + 1;
  }
  return {};
}

}  // namespace

Result<std::vector<IdxSource::Pair>> pair_idx_files(const std::vector<IdxFile>& files) {
  using Pair = IdxSource::Pair;
  std::vector<Pair> pairs;
  uint32_t label_files = 0;
  std::set<std::string> splits;
  for (uint32_t file = 0; file < files.size(); ++file) {
    if (files[file].is_labels) {
      ++label_files;
      continue;
    }
    Pair pair;
    pair.images = file;
    pair.split = split_of(name_of(files[file].path));
    if (!pair.split.empty() && !splits.insert(pair.split).second) {
      return invalid_argument(str_cat("two files hold the pictures of split '", pair.split, "'"))
          .at_path(escape_bytes(files[file].path))
          .with_hint("give the one to take as SRC");
    }
    const std::string wanted = label_name_of(name_of(files[file].path));
    for (uint32_t other = 0; other < files.size() && !wanted.empty(); ++other) {
      const std::string_view name = name_of(files[other].path);
      const bool matches = name == wanted || name == wanted + std::string(kPacked);
      if (files[other].is_labels && matches && pair.labels == Pair::kNone) pair.labels = other;
    }
    pairs.push_back(std::move(pair));
  }
  if (pairs.empty()) {
    return invalid_argument("no IDX file of pictures: only of labels or other vectors");
  }
  // One of each belongs together whatever their names.
  if (pairs.size() == 1 && label_files == 1 && pairs[0].labels == Pair::kNone) {
    for (uint32_t file = 0; file < files.size(); ++file) {
      if (files[file].is_labels) pairs[0].labels = file;
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return std::pair(a.split != "train", a.split) < std::pair(b.split != "train", b.split);
  });
  return pairs;
}

void add_label_file_beside(std::vector<std::string>* files) {
  const std::string& images = files->front();
  const std::string_view name = name_of(images);
  const std::string wanted = label_name_of(name);
  if (wanted.empty()) return;
  const std::string beside = images.substr(0, images.size() - name.size()) + wanted;
  for (const std::string& path : {beside, beside + std::string(kPacked)}) {
    if (access(path.c_str(), F_OK) != 0) continue;
    files->push_back(path);
    return;
  }
}

}  // namespace spk
