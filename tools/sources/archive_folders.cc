// Members of archives as pictures in class folders.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "sources/archive_groups.h"
#include "sources/archive_stored.h"
#include "sources/file_sample.h"
#include "sources/names.h"

namespace spk {

namespace {

using Names = std::set<std::string, std::less<>>;

// The folders directly in PREFIX ("", "train/"), without it.
std::vector<std::string> folders_in(const Names& folders, const std::string& prefix) {
  std::vector<std::string> names;
  for (auto it = folders.lower_bound(prefix); it != folders.end() && it->starts_with(prefix);
       ++it) {
    std::string name = it->substr(prefix.size());
    if (!name.empty() && name.find('/') == name.npos) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool leads_out(std::string_view name) {
  return name == ".." || name.starts_with("../") || name.ends_with("/..") ||
         name.find("/../") != name.npos;
}

}  // namespace

Status ArchiveGroups::choose_classes() {
  if (options_.labels == LabelMode::kFloat) {
    return invalid_argument("--labels float does not go with class folders")
        .at_path(escape_bytes(options_.source));
  }
  if (too_many_folders_ && options_.labels != LabelMode::kNone) {
    return invalid_argument(str_cat("more than ", format_count(kMostClasses), " folders"))
        .at_path(escape_bytes(options_.source))
        .with_hint("--labels none does without class names");
  }
  // "tar c dataset" puts all into one folder more.
  std::vector<std::string> first = folders_in(folders_, "");
  if (first.size() == 1 && !folders_with_pictures_.contains("") &&
      !folders_with_pictures_.contains(first[0])) {
    std::vector<std::string> second = folders_in(folders_, first[0] + "/");
    if (!second.empty()) {
      top_ = first[0] + "/";
      listing_.warnings.add("one folder holds all others, which are the classes",
                            escape_bytes(first[0]));
      listing_.decisions.emplace_back("top_folder", escape_bytes(first[0]));
      first = std::move(second);
    }
  }
  listing_.splits = splits_.names;
  folder_splits_ = splits_.names.size() == 1 && options_.splits == SplitMode::kAuto &&
                   !first.empty() && std::all_of(first.begin(), first.end(), is_split_name);
  if (folder_splits_) {
    for (const std::string& split : first) {
      const std::vector<std::string> classes = folders_in(folders_, top_ + split + "/");
      std::vector<std::string> merged;
      std::set_union(listing_.classes.begin(), listing_.classes.end(), classes.begin(),
                     classes.end(), std::back_inserter(merged));
      listing_.classes = std::move(merged);
    }
    listing_.splits = std::move(first);
  } else {
    listing_.classes = std::move(first);
  }
  if (options_.labels == LabelMode::kNone) {
    listing_.classes.clear();
  } else if (listing_.classes.empty()) {
    listing_.warnings.add("no class folders, so no labels", escape_bytes(options_.source));
  }
  listing_.label_kind = listing_.classes.empty() ? LabelKind::kNone : LabelKind::kInt;
  class_counts_.assign(listing_.splits.size(), std::vector<uint64_t>(listing_.classes.size()));
  return {};
}

Status ArchiveGroups::emit_pictures(Group& group) {
  for (const Stored& member : group.members) {
    if (!is_picture_name("." + member.field)) {
      ignore("not a picture name");
      continue;
    }
    SampleEntry entry;
    entry.key = member.name;
    entry.split = splits_.of_file[group.archive];
    entry.reject = member.reject;
    entry.mtime_ns = member.mtime_ns;
    entry.size_bytes = member.piece.bytes;
    entry.path = encode_pieces({member.piece});
    std::string_view rest = member.name;
    while (rest.starts_with('/')) rest.remove_prefix(1);
    if (rest.starts_with(top_)) rest.remove_prefix(top_.size());
    const auto take_folder = [&rest]() {
      const size_t slash = rest.find('/');
      if (slash == rest.npos) return std::string_view();
      const std::string_view folder = rest.substr(0, slash);
      rest.remove_prefix(slash + 1);
      return folder;
    };
    if (folder_splits_) {
      const std::string_view split = take_folder();
      const auto at = std::find(listing_.splits.begin(), listing_.splits.end(), split);
      if (at == listing_.splits.end()) {
        entry.reject = "in no split's folder";
      } else {
        entry.split = static_cast<uint32_t>(at - listing_.splits.begin());
      }
    }
    if (!listing_.classes.empty() && entry.reject.empty()) {
      const std::string_view folder = take_folder();
      const auto at = std::lower_bound(listing_.classes.begin(), listing_.classes.end(), folder);
      if (folder.empty() || at == listing_.classes.end() || *at != folder) {
        entry.reject = kRejectNoClass;
      } else {
        const auto label = static_cast<size_t>(at - listing_.classes.begin());
        entry.int_labels = {static_cast<int64_t>(label)};
        ++class_counts_[entry.split][label];
      }
    }
    if (leads_out(member.name)) entry.reject = "its path leads out of the archive";
    SPK_TRY(store(member.place, entry));
  }
  return {};
}

}  // namespace spk
