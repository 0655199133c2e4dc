#include "io/posix_calls.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "io/file.h"

namespace spk {

static_assert(sizeof(off_t) == 8, "build with _FILE_OFFSET_BITS=64");

Status check_range(uint64_t offset, uint64_t size_bytes) {
  if (offset > INT64_MAX || size_bytes > INT64_MAX - offset) {
    return invalid_argument(str_cat(size_bytes, " bytes at ", offset, " exceed 2^63"));
  }
  return {};
}

Result<uint64_t> pread_some(int fd, uint64_t offset, MutableByteSpan into) {
  SPK_TRY(check_range(offset, into.size()).at_offset(offset));
  uint64_t done = 0;
  while (done < into.size()) {
    const ssize_t got =
        ::pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(errno, "cannot read", {}, offset + done);
    if (got == 0) break;
    done += static_cast<uint64_t>(got);
  }
  return done;
}

Status pread_exact(int fd, uint64_t offset, MutableByteSpan into) {
  SPK_ASSIGN(const uint64_t got, pread_some(fd, offset, into));
  if (got == into.size()) return {};
  return end_of_file(fd, offset, got, into.size());
}

Status end_of_file(int fd, uint64_t offset, uint64_t got, uint64_t expected) {
  // What was read tells where the file ended, unless nothing was: then it may end long before. The
  // size alone would not do, as the file may be growing.
  uint64_t end = offset + got;
  struct stat info;
  if (got == 0 && ::fstat(fd, &info) == 0) end = std::min(end, static_cast<uint64_t>(info.st_size));
  return damaged(str_cat("file ends at ", end, ", ", expected, " bytes expected at ", offset))
      .at_offset(offset);
}

EntryType entry_type(mode_t mode) noexcept {
  if (S_ISREG(mode)) return EntryType::kRegular;
  if (S_ISDIR(mode)) return EntryType::kDirectory;
  if (S_ISLNK(mode)) return EntryType::kSymlink;
  return EntryType::kOther;
}

EntryInfo entry_info(const struct stat& from) noexcept {
  EntryInfo info;
  info.type = entry_type(from.st_mode);
  info.size_bytes = static_cast<uint64_t>(from.st_size);
  info.mtime_ns = int64_t{from.st_mtim.tv_sec} * 1'000'000'000 + from.st_mtim.tv_nsec;
  info.device = from.st_dev;
  info.inode = from.st_ino;
  info.links = from.st_nlink;
  return info;
}

}  // namespace spk
