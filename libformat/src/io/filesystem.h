// Which file system a file or directory lies on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spk {

enum class FileSystemKind : uint8_t {
  kUnknown,
  kLustre,
  kBeegfs,
  kGpfs,
  kCephfs,  // the kernel's client; ceph-fuse is kFuse with the name "fuse.ceph-fuse"
  kPanfs,
  kOrangefs,
  kNfs,
  kCifs,
  kAfs,
  k9p,
  kOcfs2,
  kGfs2,
  kFuse,
  kExt,  // ext2, ext3 and ext4 share one number
  kXfs,
  kBtrfs,
  kZfs,
  kF2fs,
  kBcachefs,
  kTmpfs,
  kOverlay,
  kSquashfs,
  kProc,
};

struct FileSystemInfo {
  FileSystemKind kind = FileSystemKind::kUnknown;
  // "lustre", "ext4", "fuse.sshfs", ...; "unknown-0x12345678" by its number where we have no name.
  std::string name;
  uint32_t magic = 0;    // f_type
  bool network = false;  // other machines serve it: reads wait for a network, mmap is a bad idea
  uint64_t block_bytes = 0;  // preferred transfer size
  uint64_t free_bytes = 0;   // available to this user
};

// Never fails: where the kernel does not say, kind is kUnknown, name "unknown" and network true,
// the careful assumption.
FileSystemInfo detect_filesystem(int fd);

// What direct I/O must be aligned to, as the kernel tells (statx); zeros where it does not, or
// where the file system has none.
struct DirectAlignment {
  uint32_t memory_bytes = 0;
  uint32_t offset_bytes = 0;
};
DirectAlignment direct_alignment(int fd);

// The type of the mount with device number MAJOR:MINOR in the text of /proc/self/mountinfo, such as
// "fuse.sshfs"; the last such line wins, as later mounts hide earlier ones. Empty if there is none.
std::string mount_type(std::string_view mountinfo, uint32_t major, uint32_t minor);

}  // namespace spk
