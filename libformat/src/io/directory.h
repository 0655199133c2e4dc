// A directory held by descriptor. Everything in it is reached relative to that descriptor, so that
// a pack that is renamed aside while it is open keeps working, and no name is resolved twice.
//
// Names are single components ("shard-00001.spks") unless a function says otherwise; "" , "." ,
// ".." and names with a slash or a NUL are refused with kInvalidArgument, so that no caller can be
// led out of the directory by a hostile name.
//
// Thread safety: const members may be called from several threads at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spk {

enum class EntryType : uint8_t { kRegular, kDirectory, kSymlink, kOther };

struct DirectoryEntry {
  std::string name;
  EntryType type = EntryType::kOther;
  bool operator==(const DirectoryEntry&) const = default;
};

struct EntryInfo {
  EntryType type = EntryType::kOther;
  uint64_t size_bytes = 0;
  int64_t mtime_ns = 0;  // since 1970
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t links = 0;
};

struct SpaceInfo {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;       // what root could still use
  uint64_t available_bytes = 0;  // what this user can still use; quotas are not in it
  uint64_t free_inodes = 0;      // 0 where the file system does not count them
  uint64_t block_bytes = 0;
};

class Directory {
 public:
  Directory() noexcept = default;  // holds nothing
  ~Directory();
  Directory(Directory&& other) noexcept;
  Directory& operator=(Directory&& other) noexcept;
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  // kNotFound; kNotThisFormat where PATH is not a directory.
  static Result<Directory> open(const std::string& path);
  // As open, within a directory; a symlink under that name is not followed.
  static Result<Directory> open_at(const Directory& parent, std::string_view name);
  // Makes the directory (mode 0777, so that umask, setgid and default ACLs rule) and opens it.
  // kExists where the name is taken: mkdir is the claim, two callers never both succeed.
  static Result<Directory> create(const std::string& path);
  static Result<Directory> create_at(const Directory& parent, std::string_view name);

  bool is_open() const noexcept { return fd_ >= 0; }
  int fd() const noexcept { return fd_; }
  // The path it was opened by, for messages only: it may have been renamed since.
  const std::string& path() const noexcept { return path_; }
  std::string path_of(std::string_view name) const;

  // Every entry but "." and "..", sorted by the bytes of the name. Symlinks are not followed.
  Result<std::vector<DirectoryEntry>> list() const;
  // Of the entry itself; a symlink is not followed. kNotFound where there is none.
  Result<EntryInfo> stat(std::string_view name) const;
  // False only where there is surely no such entry; trouble in finding out is an error.
  Result<bool> exists(std::string_view name) const;

  // Replaces NEW_NAME where it exists, atomically.
  Status rename(std::string_view old_name, std::string_view new_name) const;
  // kExists where NEW_NAME is taken. Atomic (renameat2) where the file system can do it; elsewhere
  // a check and a rename, with a short window between them.
  Status rename_no_replace(std::string_view old_name, std::string_view new_name) const;
  // The same two into another directory of the same file system.
  Status rename_to(std::string_view old_name, const Directory& target,
                   std::string_view new_name) const;
  Status rename_to_no_replace(std::string_view old_name, const Directory& target,
                              std::string_view new_name) const;

  // Removes a file or symlink. kNotFound where there is none.
  Status unlink(std::string_view name) const;
  Status remove_directory(std::string_view name) const;  // must be empty
  // Removes a file, symlink or whole directory tree. Never follows a symlink, so nothing outside is
  // touched. Ok where there is nothing of that name; entries that vanish meanwhile do not matter.
  Status remove_tree(std::string_view name) const;

  // fsync of the directory: makes creations, renames and unlinks in it last. EINVAL is taken for
  // "this file system has no such thing" (some FUSE ones), every other error is reported.
  Status sync() const;

  Result<SpaceInfo> space() const;

  // Ok iff NAME is one component as said above.
  static Status check_name(std::string_view name);

 private:
  Directory(int fd, std::string path) noexcept : fd_(fd), path_(std::move(path)) {}

  int fd_ = -1;
  std::string path_;
};

}  // namespace spk
