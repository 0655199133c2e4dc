#include "io/filesystem.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/text.h"
#include "io/file.h"

namespace spk {

namespace {

struct Known {
  const char* name;
  uint32_t magic;
  FileSystemKind kind;
  bool network;
};

constexpr uint32_t kFuseMagic = 0x65735546;

// From the file systems' own headers and linux/magic.h.
constexpr Known kKnown[] = {
    {"lustre", 0x0BD00BD0, FileSystemKind::kLustre, true},
    {"beegfs", 0x19830326, FileSystemKind::kBeegfs, true},
    {"gpfs", 0x47504653, FileSystemKind::kGpfs, true},
    {"cephfs", 0x00C36400, FileSystemKind::kCephfs, true},
    {"panfs", 0xAAD7AAEA, FileSystemKind::kPanfs, true},
    {"orangefs", 0x20030528, FileSystemKind::kOrangefs, true},
    {"nfs", 0x00006969, FileSystemKind::kNfs, true},
    {"cifs", 0xFF534D42, FileSystemKind::kCifs, true},
    {"smb2", 0xFE534D42, FileSystemKind::kCifs, true},
    {"smb", 0x0000517B, FileSystemKind::kCifs, true},
    {"afs", 0x5346414F, FileSystemKind::kAfs, true},
    {"9p", 0x01021997, FileSystemKind::k9p, true},
    {"ocfs2", 0x7461636F, FileSystemKind::kOcfs2, true},
    {"gfs2", 0x01161970, FileSystemKind::kGfs2, true},
    {"fuse", kFuseMagic, FileSystemKind::kFuse, true},
    {"ext4", 0x0000EF53, FileSystemKind::kExt, false},
    {"xfs", 0x58465342, FileSystemKind::kXfs, false},
    {"btrfs", 0x9123683E, FileSystemKind::kBtrfs, false},
    {"zfs", 0x2FC12FC1, FileSystemKind::kZfs, false},
    {"f2fs", 0xF2F52010, FileSystemKind::kF2fs, false},
    {"bcachefs", 0xCA451A4E, FileSystemKind::kBcachefs, false},
    {"tmpfs", 0x01021994, FileSystemKind::kTmpfs, false},
    {"ramfs", 0x858458F6, FileSystemKind::kTmpfs, false},
    {"overlay", 0x794C7630, FileSystemKind::kOverlay, false},
    {"squashfs", 0x73717368, FileSystemKind::kSquashfs, false},
    {"proc", 0x00009FA0, FileSystemKind::kProc, false},
};

constexpr uint64_t kMaxMountinfoBytes = 4u << 20;

// "fuse.sshfs", "fuseblk", "virtiofs": statfs gives all of them one number.
std::string fuse_type(dev_t device) {
  Result<File> file = File::open_read("/proc/self/mountinfo");
  if (!file.ok()) return {};
  std::vector<uint8_t> text(kMaxMountinfoBytes);
  Result<uint64_t> got = file->read_some(0, text);
  if (!got.ok()) return {};
  return mount_type(as_text(ByteSpan(text).first(*got)), major(device), minor(device));
}

std::string unknown_name(uint32_t magic) { return "unknown-0x" + to_hex(magic).substr(8); }

// The fields of struct statx that older C libraries do not name: the mask bit and the places are
// those of linux/stat.h since 6.1.
constexpr unsigned kStatxDirectAlignment = 0x2000;
constexpr size_t kStatxMaskAt = 0;
constexpr size_t kStatxMemoryAlignAt = 152;
constexpr size_t kStatxOffsetAlignAt = 156;

}  // namespace

DirectAlignment direct_alignment(int fd) {
  struct statx facts = {};
  DirectAlignment alignment;
  if (::statx(fd, "", AT_EMPTY_PATH, kStatxDirectAlignment, &facts) != 0) return alignment;
  const auto number_at = [&facts](size_t at) {
    uint32_t number = 0;
    std::memcpy(&number, reinterpret_cast<const uint8_t*>(&facts) + at, sizeof number);
    return number;
  };
  static_assert(sizeof facts >= kStatxOffsetAlignAt + sizeof(uint32_t));
  if ((number_at(kStatxMaskAt) & kStatxDirectAlignment) == 0) return alignment;
  alignment.memory_bytes = number_at(kStatxMemoryAlignAt);
  alignment.offset_bytes = number_at(kStatxOffsetAlignAt);
  return alignment;
}

std::string mount_type(std::string_view mountinfo, uint32_t major, uint32_t minor) {
  // 36 35 98:0 /root /mount/point rw,noatime master:1 - ext3 /dev/root rw,errors=continue
  // Spaces within a field are written \040, so fields are split by single spaces.
  const std::string wanted = str_cat(" ", major, ":", minor, " ");
  std::string type;
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    const std::string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    const size_t first = line.find(' ');
    if (first == std::string_view::npos) continue;
    const size_t second = line.find(' ', first + 1);
    if (second == std::string_view::npos || line.substr(second, wanted.size()) != wanted) continue;
    const size_t separator = line.find(" - ", second);
    if (separator == std::string_view::npos) continue;
    const std::string_view rest = line.substr(separator + 3);
    type = rest.substr(0, rest.find(' '));
  }
  return type;
}

FileSystemInfo detect_filesystem(int fd) {
  FileSystemInfo info;
  info.name = "unknown";
  info.network = true;
  struct statfs found;
  int result;
  do {
    result = ::fstatfs(fd, &found);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return info;
  // f_type is a signed long on some machines, and some numbers have their top bit set.
  info.magic = static_cast<uint32_t>(found.f_type);
  info.name = unknown_name(info.magic);
  info.block_bytes = static_cast<uint64_t>(found.f_bsize);
  const auto unit_bytes =
      static_cast<uint64_t>(found.f_frsize != 0 ? found.f_frsize : found.f_bsize);
  info.free_bytes = unit_bytes * found.f_bavail;
  for (const Known& known : kKnown) {
    if (known.magic != info.magic) continue;
    info.kind = known.kind;
    info.name = known.name;
    info.network = known.network;
  }
  struct stat stat_info;
  if (::fstat(fd, &stat_info) != 0) return info;
  if (stat_info.st_blksize > 0) info.block_bytes = static_cast<uint64_t>(stat_info.st_blksize);
  if (info.kind == FileSystemKind::kFuse) {
    std::string type = fuse_type(stat_info.st_dev);
    if (!type.empty()) info.name = std::move(type);
    info.network = info.name != "fuseblk";  // a local disk through a user-space driver (NTFS)
  }
  return info;
}

}  // namespace spk
