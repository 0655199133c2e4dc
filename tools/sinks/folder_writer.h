// Writes files below a folder. No symlink below it is followed, no file is ever seen half-written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "io/directory.h"
#include "io/file.h"

namespace spk {

// Opens the folder, or makes it (not its parents).
Result<Directory> open_or_make_folder(const std::string& path);
// As above within `parent`; a symlink of that name is kExists.
Result<Directory> open_or_make_folder_at(const Directory& parent, std::string_view name);

// How many folders each of THREADS writers may keep open: together a quarter of what the process
// may have open (RLIMIT_NOFILE), for shards and files need descriptors too, and 512 at most.
size_t open_folders_of_each(uint32_t threads);

// Not thread-safe: each thread has its own. `root` must outlive it.
class FolderWriter {
 public:
  // `most_open_folders` descriptors are kept, so that neighbours are not looked up again; fewer
  // where the process has none left.
  FolderWriter(const Directory& root, bool replace, size_t most_open_folders);

  // Makes the folders of `path` ("a/b/file") and the file, through a temporary name. `fill` writes
  // it. kExists where something is there already (a folder or symlink also with `replace`), or
  // where a part of the path is no folder. Not synced: like other extracted files, it may be lost
  // in a power cut.
  Status write(std::string_view path, const std::function<Status(const File&)>& fill);

 private:
  // The folder part of a path, without its last slash; "" is the root.
  Result<const Directory*> folder(std::string_view path);
  struct Begun {
    const Directory* folder;
    File file;  // under the temporary name
  };
  Result<Begun> begin(std::string_view folder_path);

  const Directory& root_;
  const bool replace_;
  const size_t most_open_folders_;
  std::string temporary_name_;
  std::unordered_map<std::string, std::unique_ptr<Directory>> folders_;
};

}  // namespace spk
