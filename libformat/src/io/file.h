// A file held by descriptor, with the calls that a packer and a reader need, each of which loops
// over short transfers and EINTR, and each of whose errors names the path and the offset. Offsets
// are 64-bit always. There is no file position: all transfers say where.
//
// Thread safety: const members may be called from several threads at once; the kernel orders them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "io/directory.h"

namespace spk {

class File {
 public:
  File() noexcept = default;  // holds nothing
  // Closes without a report. Who wrote calls sync() or close() and heeds the answer.
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Read-only. Anything but a regular file (directory, fifo, device) is kNotThisFormat, and a fifo
  // without a writer does not hang. Symlinks are followed: packs are often made of links.
  static Result<File> open_read(const std::string& path);
  static Result<File> open_read(const Directory& dir, std::string_view name);
  // A new, empty file, read-write, mode 0666 so that umask, setgid and default ACLs rule. kExists
  // where the name is taken, even by a dangling symlink.
  static Result<File> create(const Directory& dir, std::string_view name);
  // An existing regular file, read-write; never made, never truncated; symlinks are not followed.
  static Result<File> open_write(const Directory& dir, std::string_view name);
  // A new, empty file without a name, in memory, read-write. PATH is for messages.
  static Result<File> create_in_memory(std::string path);
  // Takes over a descriptor of the caller's; PATH is for messages.
  static File adopt(int fd, std::string path) noexcept;

  bool is_open() const noexcept { return fd_ >= 0; }
  int fd() const noexcept { return fd_; }
  // The path it was opened by, for messages only: it may have been renamed since.
  const std::string& path() const noexcept { return path_; }

  Result<uint64_t> size() const;
  Result<EntryInfo> info() const;

  // Fills INTO. Where the file ends before that: kDamaged, "file ends at X, Y bytes expected at Z".
  Status read_exact(uint64_t offset, MutableByteSpan into) const;
  // The same for neighbours in the file, one after the other, in as few system calls as the kernel
  // allows.
  Status read_exact_v(uint64_t offset, std::span<const MutableByteSpan> pieces) const;
  // As many bytes as there are up to the end of the file; fewer than asked only at the end.
  Result<uint64_t> read_some(uint64_t offset, MutableByteSpan into) const;

  // kNoSpace where the disk or the quota is full.
  Status write_all(uint64_t offset, ByteSpan bytes) const;
  // The spans one after the other, in as few system calls as the kernel allows.
  Status write_all_v(uint64_t offset, std::span<const ByteSpan> pieces) const;

  // fsync. After a failure the file must be given up and written again from its source: the kernel
  // marks the pages that it could not write as clean, so that a second fsync says ok although the
  // bytes never reached the disk, and a read returns them from memory until they are dropped.
  Status sync() const;
  Status truncate(uint64_t size_bytes) const;
  // Reserves blocks without changing the size. Ok where the file system cannot do it; kNoSpace
  // where there is no room.
  Status allocate(uint64_t size_bytes) const;

  // Reads and writes pass by the page cache (O_DIRECT) from now on, or no longer. False where the
  // file system cannot.
  bool set_direct(bool direct) const noexcept;
  // Whether the file system says that whole pages from or to page-aligned memory may. Some say so
  // and refuse the calls with EINVAL all the same.
  bool can_be_direct() const noexcept;

  // Hints; what cannot be done is not an error.
  void drop_cache() const noexcept;  // only clean pages go, so call it after sync()
  void advise_sequential() const noexcept;
  void advise_random() const noexcept;
  // Starts writing dirty pages of the range to the disk and does not wait.
  void start_writeback(uint64_t offset, uint64_t size_bytes) const noexcept;

  // Closes and reports: NFS and quota errors may show only here. The file is closed in any case.
  Status close();

 private:
  File(int fd, std::string path) noexcept : fd_(fd), path_(std::move(path)) {}

  int fd_ = -1;
  std::string path_;
};

// The Status of a failed system call on a file that stood at OFFSET (Status::kNoOffset: nowhere):
// annotated, with the hints that go with a full disk, the file size limit and full descriptor
// tables. WHAT is the call in words: "cannot write".
Status io_error(int os_errno, std::string_view what, std::string_view path,
                uint64_t offset = Status::kNoOffset);

}  // namespace spk
