#include "pipeline/quota.h"

#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/text.h"

namespace spk {

namespace {

constexpr uint64_t kQuotaBlockBytes = 1024;

bool get_quota(int directory_fd, const std::string& device, int type, int id, dqblk* out) {
  const int command = static_cast<int>(QCMD(static_cast<unsigned>(Q_GETQUOTA), type));
#ifdef SYS_quotactl_fd
  if (syscall(SYS_quotactl_fd, directory_fd, command, id, out) == 0) return true;
#else
  (void)directory_fd;
#endif
  return !device.empty() &&
         quotactl(command, device.c_str(), id, reinterpret_cast<caddr_t>(out)) == 0;
}

void take_least(std::optional<uint64_t>* least, uint64_t limit, uint64_t used) {
  if (limit == 0) return;
  const uint64_t left = limit > used ? limit - used : 0;
  *least = std::min(left, least->value_or(left));
}

}  // namespace

std::string mount_device(std::string_view mountinfo, uint32_t major, uint32_t minor) {
  const std::string wanted = str_cat(major, ":", minor);
  std::string device;
  while (!mountinfo.empty()) {
    const std::string_view line = mountinfo.substr(0, mountinfo.find('\n'));
    mountinfo.remove_prefix(std::min(line.size() + 1, mountinfo.size()));
    // ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS ...] - TYPE DEVICE SUPER-OPTIONS
    size_t at = 0;
    for (int field = 0; field < 2 && at != std::string_view::npos; ++field) {
      at = line.find(' ', at);
      if (at != std::string_view::npos) ++at;
    }
    if (at == std::string_view::npos) continue;
    if (line.substr(at, line.find(' ', at) - at) != wanted) continue;
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const size_t begin = line.find(' ', dash + 3);
    if (begin == std::string_view::npos) continue;
    device = line.substr(begin + 1, line.find(' ', begin + 1) - begin - 1);
  }
  return device;
}

QuotaLeft quota_left(int directory_fd) {
  QuotaLeft left;
  struct stat info;
  if (fstat(directory_fd, &info) != 0) return left;
  std::ifstream file("/proc/self/mountinfo");
  const std::string mountinfo(std::istreambuf_iterator<char>(file), {});
  const std::string device = mount_device(mountinfo, major(info.st_dev), minor(info.st_dev));
  for (const auto& [type, id] : {std::pair{USRQUOTA, geteuid()}, std::pair{GRPQUOTA, getegid()}}) {
    dqblk quota = {};
    if (!get_quota(directory_fd, device, type, static_cast<int>(id), &quota)) continue;
    if ((quota.dqb_valid & QIF_BLIMITS) && (quota.dqb_valid & QIF_SPACE)) {
      const uint64_t blocks =
          quota.dqb_bhardlimit != 0 ? quota.dqb_bhardlimit : quota.dqb_bsoftlimit;
      take_least(&left.bytes, blocks * kQuotaBlockBytes, quota.dqb_curspace);
    }
    if ((quota.dqb_valid & QIF_ILIMITS) && (quota.dqb_valid & QIF_INODES)) {
      const uint64_t files =
          quota.dqb_ihardlimit != 0 ? quota.dqb_ihardlimit : quota.dqb_isoftlimit;
      take_least(&left.files, files, quota.dqb_curinodes);
    }
  }
  return left;
}

}  // namespace spk
