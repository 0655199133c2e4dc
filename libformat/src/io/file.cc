#include "io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/text.h"
#include "io/filesystem.h"
#include "io/posix_calls.h"

namespace spk {

namespace {

// O_NONBLOCK keeps the open of a fifo from waiting for a writer; it is taken off again once the
// file is known to be regular, where it would mean nothing on most systems but something on some.
Result<int> open_regular(int dir_fd, const char* name, int flags, const std::string& path) {
  int fd;
  do {
    fd = ::openat(dir_fd, name, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  const auto wrong_kind = [&] {
    return Status(Code::kNotThisFormat, "not a regular file").at_path(path);
  };
  if (fd < 0) {
    // Sockets and devices without a driver; a directory to be written; a symlink with O_NOFOLLOW.
    if (errno == ENXIO || errno == EISDIR || errno == ELOOP) return wrong_kind();
    return io_error(errno, "cannot open", path);
  }
  struct stat info;
  if (::fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return io_error(error, "cannot stat", path);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return wrong_kind();
  }
  const int status_flags = ::fcntl(fd, F_GETFL);
  if (status_flags >= 0) ::fcntl(fd, F_SETFL, status_flags & ~O_NONBLOCK);
  return fd;
}

}  // namespace

Status io_error(int os_errno, std::string_view what, std::string_view path, uint64_t offset) {
  Status status = Status::from_errno(os_errno, what);
  if (!path.empty()) status = std::move(status).at_path(path);
  if (offset != Status::kNoOffset) status = std::move(status).at_offset(offset);
  if (os_errno == ENOSPC || os_errno == EDQUOT) {
    return std::move(status).with_hint(
        "free space or write elsewhere, then run the same command again");
  }
  if (os_errno == EFBIG) {
    return std::move(status).with_hint(
        "raise the file size limit (ulimit -f), or write where larger files are allowed");
  }
  if (os_errno == EMFILE)
    return std::move(status).with_hint("raise the limit of open files (ulimit -n)");
  return status;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

Result<File> File::open_read(const std::string& path) {
  SPK_ASSIGN(const int fd, open_regular(AT_FDCWD, path.c_str(), O_RDONLY, path));
  return File(fd, path);
}

Result<File> File::open_read(const Directory& dir, std::string_view name) {
  SPK_TRY(Directory::check_name(name).at_path(dir.path()));
  std::string path = dir.path_of(name);
  SPK_ASSIGN(const int fd, open_regular(dir.fd(), std::string(name).c_str(), O_RDONLY, path));
  return File(fd, std::move(path));
}

Result<File> File::open_write(const Directory& dir, std::string_view name) {
  SPK_TRY(Directory::check_name(name).at_path(dir.path()));
  std::string path = dir.path_of(name);
  SPK_ASSIGN(const int fd,
             open_regular(dir.fd(), std::string(name).c_str(), O_RDWR | O_NOFOLLOW, path));
  return File(fd, std::move(path));
}

Result<File> File::create(const Directory& dir, std::string_view name) {
  SPK_TRY(Directory::check_name(name).at_path(dir.path()));
  std::string path = dir.path_of(name);
  int fd;
  do {
    fd = ::openat(dir.fd(), std::string(name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return io_error(errno, "cannot create", path);
  return File(fd, std::move(path));
}

Result<File> File::create_in_memory(std::string path) {
  const int fd = ::memfd_create("stripepack", MFD_CLOEXEC);
  if (fd < 0) return io_error(errno, "cannot make a file in memory for", path);
  return File(fd, std::move(path));
}

File File::adopt(int fd, std::string path) noexcept { return File(fd, std::move(path)); }

Result<EntryInfo> File::info() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0) return io_error(errno, "cannot stat", path_);
  return entry_info(info);
}

Result<uint64_t> File::size() const {
  SPK_ASSIGN(const EntryInfo found, info());
  return found.size_bytes;
}

Status File::read_exact(uint64_t offset, MutableByteSpan into) const {
  return pread_exact(fd_, offset, into).at_path(path_);
}

Status File::read_exact_v(uint64_t offset, std::span<const MutableByteSpan> pieces) const {
  constexpr size_t kBatch = 64;  // more would save nothing: copying is what takes the time
  iovec batch[kBatch];
  while (!pieces.empty()) {
    const size_t count = std::min(pieces.size(), kBatch);
    uint64_t total = 0;
    for (size_t i = 0; i < count; ++i) {
      SPK_TRY(check_range(offset, total).at_path(path_).at_offset(offset));
      SPK_TRY(check_range(offset + total, pieces[i].size()).at_path(path_).at_offset(offset));
      batch[i] = {pieces[i].data(), pieces[i].size()};
      total += pieces[i].size();
    }
    const ssize_t got = ::preadv(fd_, batch, static_cast<int>(count), static_cast<off_t>(offset));
    uint64_t done = got < 0 ? 0 : static_cast<uint64_t>(got);
    // Short counts and errors are rare: what is left is read piece by piece, with a full report.
    for (size_t i = 0; i < count; ++i) {
      const uint64_t have = std::min<uint64_t>(done, pieces[i].size());
      done -= have;
      if (have < pieces[i].size()) SPK_TRY(read_exact(offset + have, pieces[i].subspan(have)));
      offset += pieces[i].size();
    }
    pieces = pieces.subspan(count);
  }
  return {};
}

Result<uint64_t> File::read_some(uint64_t offset, MutableByteSpan into) const {
  Result<uint64_t> got = pread_some(fd_, offset, into);
  if (!got.ok()) return std::move(got).status().at_path(path_);
  return got;
}

Status File::write_all(uint64_t offset, ByteSpan bytes) const {
  SPK_TRY(check_range(offset, bytes.size()).at_path(path_).at_offset(offset));
  uint64_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put =
        ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return io_error(errno, "cannot write", path_, offset + done);
    // Never seen for a count above 0; taken for a full disk, as the alternative is a loop.
    if (put == 0) return io_error(ENOSPC, "cannot write", path_, offset + done);
    done += static_cast<uint64_t>(put);
  }
  return {};
}

Status File::write_all_v(uint64_t offset, std::span<const ByteSpan> pieces) const {
  uint64_t total = 0;
  for (const ByteSpan piece : pieces) {
    SPK_TRY(check_range(offset, total).at_path(path_).at_offset(offset));
    SPK_TRY(check_range(offset + total, piece.size()).at_path(path_).at_offset(offset));
    total += piece.size();
  }
  std::vector<iovec> batch(std::min<size_t>(pieces.size(), IOV_MAX));
  uint64_t done = 0;
  size_t next = 0;  // first piece that is not written whole
  size_t skip = 0;  // bytes of it that are
  while (done < total) {
    size_t count = 0;
    for (size_t i = next; i < pieces.size() && count < batch.size(); ++i) {
      const size_t from = i == next ? skip : 0;
      // pwritev does not change what iov_base points at; its type only has no const.
      auto* base = const_cast<uint8_t*>(pieces[i].data()) + from;
      if (pieces[i].size() > from) batch[count++] = {base, pieces[i].size() - from};
    }
    const ssize_t put =
        ::pwritev(fd_, batch.data(), static_cast<int>(count), static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return io_error(errno, "cannot write", path_, offset + done);
    if (put == 0) return io_error(ENOSPC, "cannot write", path_, offset + done);
    done += static_cast<uint64_t>(put);
    for (skip += static_cast<size_t>(put); next < pieces.size() && skip >= pieces[next].size();
         ++next) {
      skip -= pieces[next].size();
    }
  }
  return {};
}

Status File::sync() const {
  // EINTR is reported like any other error: what the interrupted call had already cleared from the
  // kernel's record of failed pages, a second one would not tell.
  if (::fsync(fd_) == 0) return {};
  return io_error(errno, "cannot sync", path_);
}

Status File::truncate(uint64_t size_bytes) const {
  SPK_TRY(check_range(0, size_bytes).at_path(path_));
  int result;
  do {
    result = ::ftruncate(fd_, static_cast<off_t>(size_bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0) return io_error(errno, "cannot set the size", path_, size_bytes);
  return {};
}

Status File::allocate(uint64_t size_bytes) const {
  SPK_TRY(check_range(0, size_bytes).at_path(path_));
  if (size_bytes == 0) return {};
  int result;
  do {
    result = ::fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size_bytes));
  } while (result != 0 && errno == EINTR);
  if (result == 0 || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) return {};
  return io_error(errno, str_cat("cannot reserve ", format_size(size_bytes)), path_);
}

bool File::set_direct(bool direct) const noexcept {
  const int flags = ::fcntl(fd_, F_GETFL);
  if (flags == -1) return false;
  return ::fcntl(fd_, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

bool File::can_be_direct() const noexcept {
  const DirectAlignment told = direct_alignment(fd_);
  if (told.offset_bytes != 0) {
    const size_t page = page_bytes();
    return told.memory_bytes != 0 && page % told.memory_bytes == 0 && page % told.offset_bytes == 0;
  }
  // An older kernel, or a file system that does not tell: tried.
  return set_direct(true) && set_direct(false);
}

void File::drop_cache() const noexcept { ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED); }
void File::advise_sequential() const noexcept { ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL); }
void File::advise_random() const noexcept { ::posix_fadvise(fd_, 0, 0, POSIX_FADV_RANDOM); }

void File::start_writeback(uint64_t offset, uint64_t size_bytes) const noexcept {
  // Length 0 would mean "to the end of the file".
  if (size_bytes == 0 || offset > INT64_MAX || size_bytes > INT64_MAX - offset) return;
  ::sync_file_range(fd_, static_cast<off64_t>(offset), static_cast<off64_t>(size_bytes),
                    SYNC_FILE_RANGE_WRITE);
}

Status File::close() {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0) return {};
  // Never repeated: on Linux the descriptor is gone even after EINTR, and by then its number may
  // belong to another thread's file.
  if (::close(fd) == 0 || errno == EINTR) return {};
  return io_error(errno, "cannot close", path_);
}

}  // namespace spk
