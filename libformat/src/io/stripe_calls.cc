#include "io/stripe_calls.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

namespace spk {

ssize_t StripeCalls::get_xattr(int fd, const char* name, void* value, size_t size) const {
  return ::fgetxattr(fd, name, value, size);
}

int StripeCalls::set_xattr(int fd, const char* name, const void* value, size_t size) const {
  return ::fsetxattr(fd, name, value, size, 0);
}

int StripeCalls::control(int fd, unsigned long request, void* argument) const {
  return ::ioctl(fd, request, argument);
}

int StripeCalls::create(int directory_fd, const char* name, int more_flags) const {
  return ::openat(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | more_flags, 0666);
}

int StripeCalls::open_parent(int directory_fd) const {
  return ::openat(directory_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

const StripeCalls& kernel_stripe_calls() noexcept {
  static const StripeCalls calls;
  return calls;
}

}  // namespace spk
