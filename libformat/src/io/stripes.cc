#include "io/stripes.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/text.h"
#include "io/beegfs_layout.h"
#include "io/ceph_layout.h"
#include "io/lustre_layout.h"

namespace spk {

namespace {

constexpr const char* kLustreXattr = "lustre.lov";
constexpr const char* kCephFileXattr = "ceph.file.layout";
constexpr const char* kCephDirXattr = "ceph.dir.layout";
// O_LOV_DELAY_CREATE of lustre_user.h: the file gets no objects until its layout is set.
constexpr int kLustreDelayCreate = O_NOCTTY | FASYNC;
constexpr unsigned long kLustreCountTargets =
    0x800866A8;  // LL_IOC_GETOBDCOUNT, _IOR('f', 168, long)
constexpr int kMostLevels = 256;
constexpr uint32_t kMostTargets = 65536;

// Empty where there is none; the reason does not matter: systems that do not know the attribute say
// so with several errors.
std::vector<uint8_t> xattr_value(int fd, const char* name, const StripeCalls& calls) {
  std::vector<uint8_t> value(XATTR_SIZE_MAX);
  const ssize_t got = calls.get_xattr(fd, name, value.data(), value.size());
  value.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return value;
}

bool is_directory(int fd) {
  struct stat info;
  return ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
}

// A directory without a layout of its own has that of the next one above it that has one.
std::vector<uint8_t> inherited_ceph_layout(int directory_fd, const StripeCalls& calls) {
  int fd = ::fcntl(directory_fd, F_DUPFD_CLOEXEC, 0);
  std::vector<uint8_t> value;
  struct stat here;
  for (int level = 0; fd >= 0 && level < kMostLevels; ++level) {
    value = xattr_value(fd, kCephDirXattr, calls);
    const int above = value.empty() ? calls.open_parent(fd) : -1;
    struct stat up;
    const bool more = above >= 0 && ::fstat(fd, &here) == 0 && ::fstat(above, &up) == 0 &&
                      here.st_dev == up.st_dev && here.st_ino != up.st_ino;
    ::close(fd);
    fd = above;
    if (!more) break;
  }
  if (fd >= 0) ::close(fd);
  return value;
}

bool may_be_ceph(const FileSystemInfo& fs) {
  return fs.kind == FileSystemKind::kCephfs || fs.kind == FileSystemKind::kFuse;
}

// The directory's default is one: all of it is asked for with what is not said filled in from
// there.
CephRequest ceph_request(const StripeRequest& request) {
  CephRequest ceph;
  ceph.stripe_bytes = request.stripe_bytes;
  ceph.stripe_count = request.stripe_count == 0 ? 1 : request.stripe_count;
  ceph.object_bytes = request.object_bytes == 0 ? request.stripe_bytes : request.object_bytes;
  ceph.pool = request.pool;
  return ceph;
}

LustreRequest lustre_request(const StripeRequest& request) {
  return {request.stripe_bytes, request.stripe_count, request.start_target, request.pool};
}

Status not_set(int os_errno, std::string_view what) {
  return Status::from_errno(os_errno,
                            str_cat("the file system did not take the layout (", what, ")"));
}

Result<File> create_plain(const Directory& dir, std::string_view name, const StripeCalls& calls) {
  const std::string text(name);
  const int fd = calls.create(dir.fd(), text.c_str(), 0);
  if (fd < 0) return io_error(errno, "cannot create", dir.path_of(name));
  return File::adopt(fd, dir.path_of(name));
}

Result<StripedFile> create_lustre(const Directory& dir, std::string_view name,
                                  const StripeRequest& request, const StripeCalls& calls) {
  SPK_ASSIGN(const std::vector<uint8_t> value, encode_lustre_layout(lustre_request(request)));
  const std::string text(name);
  const int fd = calls.create(dir.fd(), text.c_str(), kLustreDelayCreate);
  if (fd < 0) return io_error(errno, "cannot create", dir.path_of(name));
  StripedFile made;
  made.file = File::adopt(fd, dir.path_of(name));
  if (calls.set_xattr(fd, kLustreXattr, value.data(), value.size()) == 0) return made;
  made.refused = not_set(errno, kLustreXattr);
  // It has no objects, and every write would fail: a plain one takes its place.
  SPK_TRY(dir.unlink(name));
  SPK_ASSIGN(made.file, create_plain(dir, name, calls));
  return made;
}

Result<StripedFile> create_ceph(const Directory& dir, std::string_view name,
                                const StripeRequest& request, const StripeCalls& calls) {
  CephRequest asked = ceph_request(request);
  StripedFile made;
  SPK_ASSIGN(made.file, create_plain(dir, name, calls));
  if (asked.stripe_bytes == 0) {
    auto now = parse_ceph_layout(as_text(xattr_value(made.file.fd(), kCephFileXattr, calls)));
    if (!now.ok()) {
      made.refused = std::move(now).status();
      return made;
    }
    asked.stripe_bytes = now->components[0].stripe_bytes;
    asked.object_bytes = now->components[0].object_bytes;
  }
  auto value = format_ceph_layout(asked);
  if (!value.ok()) {
    SPK_TRY(dir.unlink(name));
    return std::move(value).status();
  }
  if (calls.set_xattr(made.file.fd(), kCephFileXattr, value->data(), value->size()) != 0) {
    made.refused = not_set(errno, kCephFileXattr);
  }
  return made;
}

Result<StripedFile> create_beegfs(const Directory& dir, std::string_view name,
                                  const StripeRequest& request, const StripeCalls& calls) {
  SPK_TRY(check_beegfs_request(request.stripe_bytes, request.stripe_count));
  StripedFile made;
  const Status done =
      make_beegfs_file(dir.fd(), name, request.stripe_bytes, request.stripe_count, calls);
  if (done.ok()) {
    SPK_ASSIGN(made.file, File::open_write(dir, name));
    return made;
  }
  if (done.os_errno() == EEXIST) return io_error(EEXIST, "cannot create", dir.path_of(name));
  made.refused = done;
  SPK_ASSIGN(made.file, create_plain(dir, name, calls));
  return made;
}

}  // namespace

Result<StripeLayout> read_stripes(int fd, const FileSystemInfo& fs, const StripeCalls& calls) {
  if (fs.kind == FileSystemKind::kLustre) {
    const std::vector<uint8_t> value = xattr_value(fd, kLustreXattr, calls);
    if (!value.empty()) return parse_lustre_layout(value);
    StripeLayout unsaid;  // the file system's own default
    unsaid.system = StripeSystem::kLustre;
    return unsaid;
  }
  if (fs.kind == FileSystemKind::kBeegfs) return read_beegfs_layout(fd, calls);
  if (may_be_ceph(fs)) {
    const std::vector<uint8_t> value = is_directory(fd) ? inherited_ceph_layout(fd, calls)
                                                        : xattr_value(fd, kCephFileXattr, calls);
    if (!value.empty()) return parse_ceph_layout(as_text(value));
    StripeLayout unsaid;
    if (fs.kind == FileSystemKind::kCephfs) unsaid.system = StripeSystem::kCeph;
    return unsaid;
  }
  return StripeLayout();
}

uint32_t count_targets(int fd, const FileSystemInfo& fs, const StripeCalls& calls) {
  if (fs.kind != FileSystemKind::kLustre) return 0;
  long count = 0;
  if (calls.control(fd, kLustreCountTargets, &count) != 0) return 0;
  return count > 0 && count <= static_cast<long>(kMostTargets) ? static_cast<uint32_t>(count) : 0;
}

Status check_stripe_request(StripeSystem system, const StripeRequest& request) {
  if (!request.asks()) return {};
  switch (system) {
    case StripeSystem::kLustre: return encode_lustre_layout(lustre_request(request)).status();
    case StripeSystem::kBeegfs:
      if (!request.pool.empty()) {
        return invalid_argument("--pool: BeeGFS takes pools by directory only")
            .with_hint("set it on OUT's folder with `beegfs entry set --pool`, and leave it off");
      }
      return check_beegfs_request(request.stripe_bytes, request.stripe_count);
    case StripeSystem::kCeph: {
      CephRequest asked = ceph_request(request);
      // Of the directory then, which is legal by itself.
      if (asked.stripe_bytes == 0) asked.stripe_bytes = asked.object_bytes = kCephUnitBytes;
      return format_ceph_layout(asked).status();
    }
    case StripeSystem::kNone: return {};
  }
  return {};
}

Result<StripedFile> create_striped(const Directory& dir, std::string_view name,
                                   const FileSystemInfo& fs, StripeSystem system,
                                   const StripeRequest& request, const StripeCalls& calls) {
  SPK_TRY(Directory::check_name(name));
  StripedFile made;
  if (request.asks() && system == StripeSystem::kLustre) {
    SPK_ASSIGN(made, create_lustre(dir, name, request, calls));
  } else if (request.asks() && system == StripeSystem::kBeegfs) {
    SPK_ASSIGN(made, create_beegfs(dir, name, request, calls));
  } else if (request.asks() && system == StripeSystem::kCeph) {
    SPK_ASSIGN(made, create_ceph(dir, name, request, calls));
  } else {
    SPK_ASSIGN(made.file, File::create(dir, name));
    if (request.asks()) {
      made.refused = unsupported(str_cat(fs.name, " takes no stripe layout"));
    }
  }
  auto got = read_stripes(made.file.fd(), fs, calls);
  if (got.ok()) {
    made.got = std::move(got).value();
  } else if (made.refused.ok() && request.asks()) {
    made.refused = std::move(got).status();
  }
  return made;
}

}  // namespace spk
