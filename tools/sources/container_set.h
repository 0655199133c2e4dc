// The files of a source that keeps its samples in containers: as they lie, or, where they are
// packed as a whole, unpacked into the spool. Which of them are, is found out once, when opened;
// another process that opens the same files finds the same names in the spool.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sources/forward_reader.h"
#include "sources/pieces.h"
#include "sources/source_kind.h"

namespace spk {

class ContainerSet {
 public:
  // ZLIB_TOO as in packing_of(), asked only for files that IS_PLAIN does not know.
  static Result<std::unique_ptr<ContainerSet>> open(std::vector<std::string> paths,
                                                    std::shared_ptr<Spool> spool, bool zlib_too,
                                                    bool (*is_plain)(ByteSpan head));

  // The same where it is known how each file is packed.
  static Result<std::unique_ptr<ContainerSet>> open_as(std::vector<std::string> paths,
                                                       const std::vector<Packing>& packings,
                                                       std::shared_ptr<Spool> spool);

  uint32_t count() const noexcept { return static_cast<uint32_t>(containers_.size()); }
  const std::string& path(uint32_t file) const { return containers_[file].path; }
  // The file's size and mtime when it was opened.
  uint64_t size_bytes(uint32_t file) const { return containers_[file].size_bytes; }
  Packing packing(uint32_t file) const { return containers_[file].packing; }
  bool any_packed() const;
  // For SampleEntry::mtime_ns: the file's, or unknown where the sample lies in the spool.
  int64_t entry_mtime_ns(uint32_t file) const;

  // From its front; unpacked into the spool meanwhile, unless it is there already.
  Result<std::unique_ptr<ForwardReader>> read(uint32_t file, size_t window_bytes,
                                              bool lenient) const;
  // The number of a file in the spool that holds what belongs to container FILE; see open_sample().
  uint32_t spooled_number(uint32_t file) const { return count() + file; }
  // Its name: made of the container's path, size and mtime.
  std::string spooled_name(uint32_t file) const;
  // A directory for sorting: the spool's, or the one for temporary files.
  Result<std::string> sorting_place() const;
  Spool* spool() const { return spool_.get(); }

  // open_pieces(), but a container that is gone or out of reach is no matter of one sample: it is
  // an error.
  Result<std::unique_ptr<SampleHandle>> open_sample(const SampleEntry& entry) const;

 private:
  struct Container {
    std::string path;
    uint64_t size_bytes = 0;
    int64_t mtime_ns = 0;
    Packing packing = Packing::kNone;
  };
  ContainerSet() = default;
  Status add(std::string path, Packing packing, const File& file);
  void settle(std::shared_ptr<Spool> spool);

  std::vector<Container> containers_;
  std::shared_ptr<Spool> spool_;
  std::unique_ptr<ContainerFiles> files_;
};

// Of LOOK's files, those whose first bytes (unpacked, where packed) IS_PLAIN knows, as `found`; in
// a folder the others are counted, elsewhere they refuse the source, naming WHAT was expected. A
// file of no bytes counts as one of the container's where EMPTY_TOO.
struct FoundContainers {
  std::vector<std::string> paths;
  uint64_t others = 0;
};
Result<FoundContainers> find_containers(const std::vector<std::string>& files, bool is_folder,
                                        bool zlib_too, bool empty_too,
                                        bool (*is_plain)(ByteSpan head), const char* what);
// Whether one of the first files is such a container.
Result<bool> holds_container(const std::vector<std::string>& files, bool zlib_too,
                             bool (*is_plain)(ByteSpan head));
// The same of LOOK's files; never so of folders that hold folders, or pictures: an archive among
// them is not what they are about.
Result<bool> holds_container(const SourceLook& look, bool zlib_too,
                             bool (*is_plain)(ByteSpan head));

}  // namespace spk
