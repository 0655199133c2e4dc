// A file that is written under a temporary name, "NAME.staging", and renamed when it is whole and
// on the disk. While it is written a lock (flock) tells other processes so: those that want the
// same file leave it to this one, and what a killed process left is taken over by the next.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "io/directory.h"
#include "io/file.h"

namespace spk {

class StagedFile {
 public:
  // Empty, and this process's alone. Nothing where another process that lives is at it. DIR must
  // outlive it. Where the file system has no locks, the temporary name is one that nobody else
  // uses, and what a killed process left stays.
  static Result<std::optional<StagedFile>> claim(const Directory& dir, std::string_view name);
  StagedFile(StagedFile&&) noexcept = default;
  StagedFile& operator=(StagedFile&&) = delete;
  ~StagedFile();  // removes what was not published

  const File& file() const noexcept { return file_; }
  // Forces it to the disk, renames it onto NAME and closes it.
  Status publish();

 private:
  StagedFile(const Directory& dir, std::string name, std::string temporary, File file)
      : dir_(&dir),
        name_(std::move(name)),
        temporary_(std::move(temporary)),
        file_(std::move(file)) {}

  const Directory* dir_;
  std::string name_;
  std::string temporary_;
  File file_;  // not open: published
};

// Whether a name in a directory is a temporary one.
bool is_staging_name(std::string_view name) noexcept;

// Removes the temporary files that nobody writes any more.
Status remove_staging_leftovers(const Directory& dir);

}  // namespace spk
