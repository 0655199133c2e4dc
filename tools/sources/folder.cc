#include "sources/folder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "sources/file_sample.h"
#include "sources/folder_walk.h"
#include "sources/names.h"

namespace spk {

namespace {

// Listing waits for the file system, not for the processor.
constexpr unsigned kDefaultThreads = 16;
constexpr unsigned kMostThreads = 256;

}  // namespace

Result<std::unique_ptr<Source>> FolderSource::open_root(const std::string& path) {
  SPK_ASSIGN(Directory root, Directory::open(path));
  return std::unique_ptr<Source>(new FolderSource(std::move(root)));
}

Result<Listing> FolderSource::list(const PackOptions& options, const Sink& sink) {
  if (options.labels == LabelMode::kFloat) {
    return invalid_argument(
               "--labels float does not go with a folder, whose labels are its classes")
        .at_path(root_.path())
        .with_hint("write a list of `path,label` lines and pack that");
  }
  SPK_ASSIGN(const auto ancestors, ancestors_of(root_));
  bool root_has_pictures = false;
  SPK_ASSIGN(std::vector<std::string> first_level,
             list_folders(root_, "", ancestors.get(), options.accept_any, &root_has_pictures));

  Listing listing;
  listing.source_kind = "folder";
  FolderWalk::Plan plan;
  plan.every_file = options.accept_any;
  plan.root_holds_splits = options.splits == SplitMode::kAuto && !first_level.empty() &&
                           std::all_of(first_level.begin(), first_level.end(), is_split_name);
  if (plan.root_holds_splits) {
    for (const std::string& split : first_level) {
      bool has_pictures = false;
      SPK_ASSIGN(std::vector<std::string> classes,
                 list_folders(root_, split, ancestors.get(), options.accept_any, &has_pictures));
      plan.splits.push_back({split + "/", classes.empty() && has_pictures});
      std::vector<std::string> merged;
      std::set_union(listing.classes.begin(), listing.classes.end(), classes.begin(), classes.end(),
                     std::back_inserter(merged));
      listing.classes = std::move(merged);
    }
    listing.splits = std::move(first_level);
  } else {
    plan.splits.push_back({"", first_level.empty()});
    listing.splits = {""};
    listing.classes = std::move(first_level);
  }
  if (options.labels == LabelMode::kNone) {
    listing.classes.clear();
  } else {
    for (size_t split = 0; split < plan.splits.size(); ++split) {
      if (!plan.splits[split].unlabelled || (listing.splits[split].empty() && !root_has_pictures)) {
        continue;
      }
      listing.warnings.add(
          "no class folders, so no labels",
          escape_bytes(root_.path_of(listing.splits[split].empty() ? "." : listing.splits[split])));
    }
  }
  // Usually somebody gave the folder above the right one.
  if (listing.classes.size() == 1 && !plan.root_holds_splits && !root_has_pictures) {
    const std::string& only = listing.classes[0];
    bool has_pictures = false;
    SPK_ASSIGN(const std::vector<std::string> below,
               list_folders(root_, only, ancestors.get(), options.accept_any, &has_pictures));
    if (below.size() > 1 && !has_pictures) {
      listing.warnings.add(
          "only one class, but its folder holds folders alone: are these the "
          "classes?",
          escape_bytes(root_.path_of(only)));
    }
  }
  listing.label_kind = listing.classes.empty() ? LabelKind::kNone : LabelKind::kInt;
  plan.classes = listing.classes;
  plan.split_names = listing.splits;

  FolderWalk walk(root_, ancestors, std::move(plan), sink);
  const unsigned threads = options.io_threads == 0 ? kDefaultThreads : options.io_threads;
  SPK_TRY(walk.run(std::min(threads, kMostThreads)));
  listing.ignored = walk.ignored();
  listing.warnings.merge(walk.warnings());
  warn_of_numeric_classes(&listing);
  warn_of_empty_classes(walk.class_counts(), &listing);
  return listing;
}

Result<std::unique_ptr<SampleHandle>> FolderSource::open(const SampleEntry& entry) const {
  return open_file_sample(root_, entry);
}

}  // namespace spk
