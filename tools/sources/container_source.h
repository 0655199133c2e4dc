// What sources have in common whose samples are pieces of the files of a ContainerSet.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "sources/container_set.h"
#include "sources/source_kind.h"

namespace spk {

// A kind of container file, as it is looked for.
struct ContainerFormat {
  bool (*is_plain)(ByteSpan head);
  const char* what;        // "a zip archive"
  const char* none;        // "a folder without zip archives"
  bool zlib_too = false;   // see ContainerSet::open
  bool empty_too = false;  // see find_containers
};

struct FoundSet {
  std::unique_ptr<ContainerSet> files;
  uint64_t others = 0;  // of a folder: other files
};

// The files of LOOK. kNotThisFormat where there are none.
Result<FoundSet> open_containers(const SourceLook& look, const ContainerFormat& format,
                                 std::shared_ptr<Spool> spool);

class ContainerSource : public Source {
 public:
  bool lists_in_order() const override { return true; }
  Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const override {
    return files_->open_sample(entry);
  }

 protected:
  explicit ContainerSource(std::unique_ptr<ContainerSet> files, uint64_t others = 0)
      : files_(std::move(files)), others_(others) {}
  const ContainerSet& files() const noexcept { return *files_; }
  uint64_t others() const noexcept { return others_; }
  std::vector<std::string> paths() const;

 private:
  const std::unique_ptr<ContainerSet> files_;
  const uint64_t others_;
};

}  // namespace spk
