// A folder of pictures: first level = class, nested below; or first level = splits, then classes.
//
// Splits: where all first-level folders are named train, training, val, valid, validation or test,
// each becomes a pack, with one list of classes: the union, in byte order. --splits none turns that
// off. Keys are paths relative to the split's folder.
// A label is the class folder's place in the byte order of the names; classes without a picture
// keep theirs. Pictures beside class folders are rejected ("no class folder"); those beside splits
// likewise, in the first split. A root, or a split, with pictures and no folder at all is
// unlabelled (with a warning). --labels none asks for that everywhere. Hidden names, __MACOSX, and
// names without a picture's suffix are left out and counted. Symlinks are followed, each a sample
// under its own name; one that leads to a folder which contains it is not entered (with a warning).
// A folder that cannot be read is an error, for what it holds is unknown.
#pragma once

#include <memory>
#include <string>

#include "io/directory.h"
#include "sources/source.h"

namespace spk {

class FolderSource : public Source {
 public:
  static Result<std::unique_ptr<Source>> open_root(const std::string& path);

  // Walks in parallel with options.io_threads threads. At most a few hundred entries are held at a
  // time, besides the class names and the paths of folders still to be entered.
  Result<Listing> list(const PackOptions& options, const Sink& sink) override;
  Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const override;

 private:
  explicit FolderSource(Directory root) : root_(std::move(root)) {}
  Directory root_;
};

}  // namespace spk
