#include "io/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/text.h"
#include "io/file.h"
#include "io/posix_calls.h"

namespace spk {

namespace {

constexpr int kOpenFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

Result<int> open_directory(int dir_fd, const char* name, int flags, const std::string& path) {
  int fd;
  do {
    fd = ::openat(dir_fd, name, flags);
  } while (fd < 0 && errno == EINTR);
  if (fd >= 0) return fd;
  if (errno == ENOTDIR || errno == ELOOP) {
    return Status(Code::kNotThisFormat, "not a directory").at_path(path);
  }
  return io_error(errno, "cannot open directory", path);
}

}  // namespace

Status Directory::check_name(std::string_view name) {
  const bool one_component = !name.empty() && name != "." && name != ".." &&
                             name.find('/') == std::string_view::npos &&
                             name.find('\0') == std::string_view::npos;
  if (one_component) return {};
  return invalid_argument(str_cat("'", escape_bytes(name), "' is not the name of a file"));
}

std::string Directory::path_of(std::string_view name) const {
  const bool has_slash = !path_.empty() && path_.back() == '/';
  return str_cat(path_, has_slash ? "" : "/", name);
}

Directory::~Directory() {
  if (fd_ >= 0) ::close(fd_);
}

Directory::Directory(Directory&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

Directory& Directory::operator=(Directory&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

Result<Directory> Directory::open(const std::string& path) {
  SPK_ASSIGN(const int fd, open_directory(AT_FDCWD, path.c_str(), kOpenFlags, path));
  return Directory(fd, path);
}

Result<Directory> Directory::open_at(const Directory& parent, std::string_view name) {
  SPK_TRY(check_name(name).at_path(parent.path()));
  std::string path = parent.path_of(name);
  SPK_ASSIGN(const int fd,
             open_directory(parent.fd(), std::string(name).c_str(), kOpenFlags | O_NOFOLLOW, path));
  return Directory(fd, std::move(path));
}

Result<Directory> Directory::create(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) return io_error(errno, "cannot make directory", path);
  return open(path);
}

Result<Directory> Directory::create_at(const Directory& parent, std::string_view name) {
  SPK_TRY(check_name(name).at_path(parent.path()));
  if (::mkdirat(parent.fd(), std::string(name).c_str(), 0777) != 0) {
    return io_error(errno, "cannot make directory", parent.path_of(name));
  }
  return open_at(parent, name);
}

Result<std::vector<DirectoryEntry>> Directory::list() const {
  // A stream has a position and takes over its descriptor, so each listing opens one of its own.
  SPK_ASSIGN(const int fd, open_directory(fd_, ".", kOpenFlags, path_));
  const auto close_stream = [](DIR* open_stream) { ::closedir(open_stream); };
  std::unique_ptr<DIR, decltype(close_stream)> stream(::fdopendir(fd), close_stream);
  if (stream == nullptr) {
    const int error = errno;
    ::close(fd);
    return io_error(error, "cannot list", path_);
  }
  std::vector<DirectoryEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) {
      if (errno != 0) return io_error(errno, "cannot list", path_);
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    EntryType type = EntryType::kOther;
    if (entry->d_type == DT_REG) type = EntryType::kRegular;
    if (entry->d_type == DT_DIR) type = EntryType::kDirectory;
    if (entry->d_type == DT_LNK) type = EntryType::kSymlink;
    if (entry->d_type == DT_UNKNOWN) {  // the file system does not tell with the name
      Result<EntryInfo> info = stat(name);
      if (!info.ok() && info.status().code() == Code::kNotFound) continue;  // gone meanwhile
      if (!info.ok()) return std::move(info).status();
      type = info->type;
    }
    entries.push_back({std::string(name), type});
  }
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  return entries;
}

Result<EntryInfo> Directory::stat(std::string_view name) const {
  SPK_TRY(check_name(name).at_path(path_));
  struct stat info;
  if (::fstatat(fd_, std::string(name).c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return io_error(errno, "cannot stat", path_of(name));
  }
  return entry_info(info);
}

Result<bool> Directory::exists(std::string_view name) const {
  Result<EntryInfo> info = stat(name);
  if (info.ok()) return true;
  if (info.status().code() == Code::kNotFound) return false;
  return std::move(info).status();
}

Status Directory::rename(std::string_view old_name, std::string_view new_name) const {
  return rename_to(old_name, *this, new_name);
}

Status Directory::rename_no_replace(std::string_view old_name, std::string_view new_name) const {
  return rename_to_no_replace(old_name, *this, new_name);
}

Status Directory::rename_to(std::string_view old_name, const Directory& target,
                            std::string_view new_name) const {
  SPK_TRY(check_name(old_name).at_path(path_));
  SPK_TRY(check_name(new_name).at_path(target.path()));
  if (::renameat(fd_, std::string(old_name).c_str(), target.fd_, std::string(new_name).c_str()) ==
      0) {
    return {};
  }
  return io_error(errno, str_cat("cannot rename to '", target.path_of(new_name), "'"),
                  path_of(old_name));
}

Status Directory::rename_to_no_replace(std::string_view old_name, const Directory& target,
                                       std::string_view new_name) const {
  SPK_TRY(check_name(old_name).at_path(path_));
  SPK_TRY(check_name(new_name).at_path(target.path()));
  const std::string from(old_name);
  const std::string to(new_name);
  if (::renameat2(fd_, from.c_str(), target.fd_, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) {
    return io_error(errno, str_cat("cannot rename '", path_of(old_name), "'"),
                    target.path_of(new_name));
  }
  // NFS, some FUSE file systems and old kernels do not know the flag.
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) {
    SPK_ASSIGN(const bool taken, target.exists(new_name));
    if (!taken) return rename_to(old_name, target, new_name);
    return io_error(EEXIST, str_cat("cannot rename '", path_of(old_name), "'"),
                    target.path_of(new_name));
  }
  return io_error(errno, str_cat("cannot rename to '", target.path_of(new_name), "'"),
                  path_of(old_name));
}

Status Directory::unlink(std::string_view name) const {
  SPK_TRY(check_name(name).at_path(path_));
  if (::unlinkat(fd_, std::string(name).c_str(), 0) == 0) return {};
  return io_error(errno, "cannot remove", path_of(name));
}

Status Directory::remove_directory(std::string_view name) const {
  SPK_TRY(check_name(name).at_path(path_));
  if (::unlinkat(fd_, std::string(name).c_str(), AT_REMOVEDIR) == 0) return {};
  return io_error(errno, "cannot remove directory", path_of(name));
}

Status Directory::remove_tree(std::string_view name) const {
  const auto unless_gone = [](Status status) {
    return status.code() == Code::kNotFound ? Status() : std::move(status);
  };
  Result<EntryInfo> info = stat(name);
  if (!info.ok()) return unless_gone(std::move(info).status());
  if (info->type != EntryType::kDirectory) return unless_gone(unlink(name));
  {
    // O_NOFOLLOW in open_at: a directory that becomes a symlink just now is an error, not a way
    // out.
    Result<Directory> tree = open_at(*this, name);
    if (!tree.ok()) return unless_gone(std::move(tree).status());
    SPK_ASSIGN(const std::vector<DirectoryEntry> entries, tree->list());
    for (const DirectoryEntry& entry : entries) SPK_TRY(tree->remove_tree(entry.name));
  }
  return unless_gone(remove_directory(name));
}

Status Directory::sync() const {
  if (::fsync(fd_) == 0 || errno == EINVAL) return {};
  return io_error(errno, "cannot sync directory", path_);
}

Result<SpaceInfo> Directory::space() const {
  struct statvfs found;
  int result;
  do {
    result = ::fstatvfs(fd_, &found);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return io_error(errno, "cannot tell the free space", path_);
  const uint64_t fragment = found.f_frsize != 0 ? found.f_frsize : found.f_bsize;
  SpaceInfo space;
  space.total_bytes = fragment * found.f_blocks;
  space.free_bytes = fragment * found.f_bfree;
  space.available_bytes = fragment * found.f_bavail;
  space.free_inodes = found.f_favail;
  space.block_bytes = found.f_bsize;
  return space;
}

}  // namespace spk
