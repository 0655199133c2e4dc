#include "commands/named_file.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/text.h"
#include "commands/pack_set.h"
#include "io/atomic_file.h"
#include "io/file.h"

namespace spk {

namespace {

// What a link leads to; empty where that has no name.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
  return real ? std::string(real.get()) : std::string();
}

// Standard output has a place where it goes on, which opening it anew would not have.
bool is_standard_output(const struct stat& info) {
  struct stat out = {};
  return fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == info.st_dev && out.st_ino == info.st_ino;
}

bool is_link(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

}  // namespace

Result<NamedFile> NamedFile::find(const std::string& path, const std::string& option) {
  NamedFile file;
  file.path_ = path;
  struct stat info = {};
  const bool exists = stat(path.c_str(), &info) == 0;
  const auto refuse = [&](const std::string& what, std::string_view hint) {
    return invalid_argument(str_cat(option, ": ", what)).at_path(path).with_hint(hint);
  };
  if (path.empty() || path.ends_with('/') || (exists && S_ISDIR(info.st_mode))) {
    return refuse("this names a folder, not a file", "write for example DIR/name");
  }
  file.standard_output_ = exists && is_standard_output(info);
  file.in_place_ = exists && (file.standard_output_ || !S_ISREG(info.st_mode));
  if (file.in_place_) return file;
  const std::string target = is_link(path) ? resolved(path) : path;
  if (target.empty()) return refuse("this link leads nowhere", "name the file itself");
  const size_t slash = target.rfind('/');
  file.name_ = slash == target.npos ? target : target.substr(slash + 1);
  auto folder = Directory::open(slash == target.npos ? "."
                                : slash == 0         ? "/"
                                                     : target.substr(0, slash));
  if (!folder.ok()) {
    return std::move(folder).status().with_hint(
        str_cat("make the folder that the file of ", option, " shall stand in first"));
  }
  file.folder_ = std::move(folder).value();
  SPK_ASSIGN(const bool inside_pack, holds_whole_pack(file.folder_));
  if (inside_pack) {
    return refuse("this is inside a pack, which holds nothing but its own files",
                  "choose another folder");
  }
  return file;
}

std::string NamedFile::path_below(const Directory& root) const {
  std::string top = resolved(root.path());
  const std::string file = resolved(folder_.path()) + "/" + name_;
  if (!top.ends_with('/')) top += '/';
  return file.starts_with(top) ? file.substr(top.size()) : std::string();
}

Status NamedFile::write(ByteSpan bytes) const {
  return in_place_ ? write_in_place(bytes) : write_file_atomically(folder_, name_, bytes);
}

// A device or a pipe has no place to write at, and must be neither replaced nor waited for in vain:
// a fifo that nobody reads is refused (ENXIO).
Status NamedFile::write_in_place(ByteSpan bytes) const {
  const int fd = standard_output_
                     ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                     : ::open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return io_error(errno, "cannot open", path_);
  Status status;
  while (!bytes.empty() && status.ok()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd ready = {fd, POLLOUT, 0};
      if (::poll(&ready, 1, -1) < 0) status = io_error(errno, "cannot write", path_);
    } else if (errno != EINTR) {
      status = io_error(errno, "cannot write", path_);
    }
  }
  if (::close(fd) != 0 && status.ok()) status = io_error(errno, "cannot close", path_);
  return status;
}

}  // namespace spk
