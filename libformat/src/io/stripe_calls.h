// The system calls by which file systems tell and take stripe layouts. Tests put in their own,
// which answers as Lustre's and BeeGFS' documents say, for those systems cannot be run everywhere.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>

#include "io/directory.h"
#include "io/filesystem.h"

namespace spk {

// Every member does as the system call does: -1 and errno where it fails. Thread-safe.
class StripeCalls {
 public:
  virtual ~StripeCalls() = default;
  virtual FileSystemInfo identify(int fd) const { return detect_filesystem(fd); }
  virtual ssize_t get_xattr(int fd, const char* name, void* value, size_t size) const;
  virtual int set_xattr(int fd, const char* name, const void* value, size_t size) const;
  virtual int control(int fd, unsigned long request, void* argument) const;
  // open of a new file: O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC and more_flags, mode 0666.
  virtual int create(int directory_fd, const char* name, int more_flags) const;
  // open of "..", to read: for layouts that are inherited from further up.
  virtual int open_parent(int directory_fd) const;
};

// The kernel's.
const StripeCalls& kernel_stripe_calls() noexcept;

}  // namespace spk
