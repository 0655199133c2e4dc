// A text file that lists samples. Forms, told by content (manifest_form.h): PATH LABEL lines; CSV
// and TSV with a header; MXNet's .lst; SIZE MTIME PATH as find writes, where nothing need be looked
// at; bare paths.
//
// Order and keys are those of the list; a key is the path as written. Paths are relative to
// --root, by default the list's own folder; absolute ones and `..` are taken as they are.
// Labels are 64-bit integers (57.000000 is one) and kept as written; fractions need --labels float.
// A table's label column of words gives class names, numbered in byte order. Lists without labels
// take classes, and splits, from the first folders of each path, as a folder source does.
// A record that breaks the form refuses the list, naming the line. A file that is missing, out of
// reach or not regular rejects its sample.
#pragma once

#include <memory>
#include <string>

#include "io/directory.h"
#include "io/file.h"
#include "sources/manifest_form.h"
#include "sources/source.h"

namespace spk {

class ManifestSource : public Source {
 public:
  // An empty `root` means the list's folder.
  static Result<std::unique_ptr<Source>> open_list(const std::string& list_path,
                                                   const std::string& root);

  bool lists_in_order() const override { return true; }
  // The list is read once or twice and never held. Looks at files with options.io_threads threads.
  Result<Listing> list(const PackOptions& options, const Sink& sink) override;
  Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const override;

 private:
  ManifestSource(File file, Directory root) : file_(std::move(file)), root_(std::move(root)) {}

  File file_;
  Directory root_;
  bool list_tells_sizes_ = false;  // which a process that only opens samples must know too
};

}  // namespace spk
