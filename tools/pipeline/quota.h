// What the user's and group's quotas leave on the file system of a directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spk {

struct QuotaLeft {
  std::optional<uint64_t> bytes;  // nothing: no limit, or it cannot be told
  std::optional<uint64_t> files;
};

// Asks the kernel (quotactl). File systems with quotas of their own (Lustre, BeeGFS, GPFS, NFS
// servers) mostly do not answer: nothing is known then.
QuotaLeft quota_left(int directory_fd);

// The device behind mount number MAJOR:MINOR in the text of /proc/self/mountinfo; empty if there is
// none.
std::string mount_device(std::string_view mountinfo, uint32_t major, uint32_t minor);

}  // namespace spk
