#include "sources/file_sample.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/text.h"
#include "io/file.h"

namespace spk {

namespace {

constexpr size_t kMostPathBytes = 4000;  // below PATH_MAX, which counts the final NUL

// Walks all but the last piece of a long path. *fd becomes a descriptor to close, or stays
// `root_fd` where nothing had to be walked. False with errno on failure.
bool walk_long_path(int root_fd, std::string_view* path, int* fd) {
  *fd = root_fd;
  while (path->size() > kMostPathBytes) {
    const size_t slash = path->rfind('/', kMostPathBytes);
    const size_t cut = slash == std::string_view::npos || slash == 0 ? path->size() : slash;
    const std::string piece(path->substr(0, cut));
    const int next = openat(*fd, piece.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int os_errno = errno;
    if (*fd != root_fd) close(*fd);
    errno = os_errno;
    if (next < 0) return false;
    *fd = next;
    path->remove_prefix(cut);
    while (path->starts_with('/')) path->remove_prefix(1);
  }
  return true;
}

class FileHandle : public SampleHandle {
 public:
  FileHandle(File file, uint64_t size_bytes) : file_(std::move(file)), size_bytes_(size_bytes) {}
  uint64_t size_bytes() const override { return size_bytes_; }
  Status read_at(uint64_t offset, MutableByteSpan into) override {
    SPK_ASSIGN(const uint64_t got, file_.read_some(offset, into));
    if (got == into.size()) return {};
    return Status(Code::kMismatch, str_cat("the file ends at ", offset + got, "; it had ",
                                           size_bytes_, " bytes when it was opened"))
        .at_path(file_.path())
        .at_offset(offset + got);
  }

 private:
  File file_;
  uint64_t size_bytes_;
};

Status changed(std::string message, const std::string& path, const std::string& told_by) {
  return Status(Code::kMismatch, std::move(message))
      .at_path(path)
      .with_hint(told_by.empty() ? std::string(kChangedSourceHint)
                                 : str_cat("the list ", escape_bytes(told_by),
                                           " is older than the file; write the list anew, then "
                                           "--restart"));
}

// Listing rejects these; so it became one since, or a list that nobody looked at names one.
Status not_regular(const std::string& path) {
  return Status(Code::kMismatch, kRejectNotRegular)
      .at_path(path)
      .with_hint(
          "list files only, as `find -type f` does; where the source changed, --restart "
          "begins anew with it as it is");
}

}  // namespace

int open_below(int root_fd, std::string_view path, int flags) {
  int fd = -1;
  if (!walk_long_path(root_fd, &path, &fd)) return -1;
  const std::string rest(path.empty() ? "." : path);
  const int opened = openat(fd, rest.c_str(), flags | O_CLOEXEC);
  const int os_errno = errno;
  if (fd != root_fd) close(fd);
  errno = os_errno;
  return opened;
}

int stat_below(int root_fd, std::string_view path, struct stat* out) {
  int fd = -1;
  if (!walk_long_path(root_fd, &path, &fd)) return -1;
  const std::string rest(path.empty() ? "." : path);
  const int result = fstatat(fd, rest.c_str(), out, 0);
  const int os_errno = errno;
  if (fd != root_fd) close(fd);
  errno = os_errno;
  return result;
}

int64_t mtime_ns_of(const struct stat& info) noexcept {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

const char* reject_of_errno(int os_errno) noexcept {
  switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG: return kRejectNotFound;
    case EACCES:
    case EPERM: return kRejectDenied;
    default: return nullptr;
  }
}

Status stat_entry(int root_fd, SampleEntry* entry) {
  const std::string& path = entry->path.empty() ? entry->key : entry->path;
  struct stat info;
  if (stat_below(root_fd, path, &info) != 0) {
    const int os_errno = errno;
    const char* reject = reject_of_errno(os_errno);
    if (reject == nullptr) {
      return io_error(os_errno, "cannot look at", escape_bytes(path));
    }
    entry->reject = reject;
    return {};
  }
  if (!S_ISREG(info.st_mode)) {
    entry->reject = kRejectNotRegular;
    return {};
  }
  entry->size_bytes = static_cast<uint64_t>(info.st_size);
  entry->mtime_ns = mtime_ns_of(info);
  return {};
}

bool same_mtime(int64_t listed_ns, int64_t actual_ns) noexcept {
  int64_t unit = 1;
  while (unit < 1'000'000'000 && listed_ns % (unit * 10) == 0) unit *= 10;
  const auto floor_to_unit = [unit](int64_t ns) {
    const int64_t rest = ns % unit;
    return ns - (rest < 0 ? rest + unit : rest);
  };
  return floor_to_unit(actual_ns) == listed_ns;
}

Result<std::unique_ptr<SampleHandle>> open_file_sample(const Directory& root,
                                                       const SampleEntry& entry,
                                                       const std::string& told_by) {
  const std::string& path = entry.path.empty() ? entry.key : entry.path;
  const std::string shown = escape_bytes(path);
  // O_NONBLOCK: what was a file when it was listed may be a fifo now, and must not hang us.
  const int fd = open_below(root.fd(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const int os_errno = errno;
    if (os_errno == ENXIO) return not_regular(shown);
    if (reject_of_errno(os_errno) == kRejectNotFound) {
      return Status(Code::kNotFound, kRejectNotFound).at_path(shown);
    }
    return io_error(os_errno, "cannot open", shown);
  }
  File file = File::adopt(fd, shown);
  struct stat info;
  if (fstat(fd, &info) != 0) return Status::from_errno(errno, "cannot look at").at_path(shown);
  if (!S_ISREG(info.st_mode)) return not_regular(shown);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (entry.size_bytes != kUnknownSize && size != entry.size_bytes) {
    return changed(str_cat("has ", size, " bytes; ", entry.size_bytes, " when it was listed"),
                   shown, told_by);
  }
  if (entry.mtime_ns != kUnknownMtime && !same_mtime(entry.mtime_ns, mtime_ns_of(info))) {
    return changed("was written to since it was listed", shown, told_by);
  }
  return std::unique_ptr<SampleHandle>(std::make_unique<FileHandle>(std::move(file), size));
}

}  // namespace spk
