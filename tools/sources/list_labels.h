// How the records of a list get their labels and splits: from numbers, from class names, or from
// the folders of their paths.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sources/manifest_form.h"
#include "sources/source.h"

namespace spk {

// Numbers names in byte order, once all have been seen.
class NameTable {
 public:
  // kInvalidArgument where there are more than kMostClasses.
  Status add(std::string_view name);
  void finish();
  const std::vector<std::string>& sorted() const noexcept { return sorted_; }
  // -1 where it was not added.
  int64_t index(std::string_view name) const;

 private:
  std::set<std::string, std::less<>> names_;
  std::vector<std::string> sorted_;
};

class ListLabels {
 public:
  virtual ~ListLabels() = default;
  // Where true, all records go through learn() in a first reading of the list.
  virtual bool needs_first_reading() const { return false; }
  virtual Status learn(const ListRecord&) { return {}; }
  virtual Status learned(Listing*) { return {}; }
  // Sets labels, split and perhaps `reject` of an entry whose key is set.
  virtual Status apply(const ListRecord& record, SampleEntry* entry) = 0;
  // After the last record: label kind and count, and warnings.
  virtual void finish(Listing* listing) = 0;
};

// Chooses by form, options and first record. `root` tells where absolute paths begin.
Result<std::unique_ptr<ListLabels>> choose_labels(
    const PackOptions& options, const RecognisedForm& form, const RecordReader& reader,
    const ListRecord& first, const std::string& list_path, const std::string& root);

}  // namespace spk
