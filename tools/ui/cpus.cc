#include "ui/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

namespace spk {

namespace {

constexpr uint32_t kNoQuota = UINT32_MAX;

uint32_t cpus_of_quota(double quota, double period) {
  if (quota <= 0 || period <= 0) return kNoQuota;
  const double cpus = quota / period;
  const auto whole = static_cast<uint32_t>(std::min(cpus, 1e6));
  return std::max<uint32_t>(1, whole + (cpus > whole ? 1 : 0));
}

// cpu.max of version 2: "max 100000" or "150000 100000".
uint32_t quota_v2(const std::string& directory) {
  std::ifstream file(directory + "/cpu.max");
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period)) return kNoQuota;
  return cpus_of_quota(quota, period);
}

uint32_t quota_v1(const std::string& directory) {
  std::ifstream quota_file(directory + "/cpu.cfs_quota_us");
  std::ifstream period_file(directory + "/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (!(quota_file >> quota) || !(period_file >> period)) return kNoQuota;
  return cpus_of_quota(quota, period);
}

// The least quota from `path` up to the mount point itself. In a container without a namespace of
// its own `path` is the host's and not there; then the mount point alone counts.
template <typename ReadQuota>
uint32_t least_upwards(const std::string& mount, std::string path, ReadQuota read_quota) {
  uint32_t least = kNoQuota;
  for (;;) {
    least = std::min(least, read_quota(mount + path));
    const size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return least;
    path.resize(slash);
  }
}

bool names_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "cpu") return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

uint32_t affinity_cpus() {
  // The kernel refuses a set smaller than its own; machines with more CPUs than a cpu_set_t exist.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    const bool got = sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !got && errno == EINVAL;
    const int count = got ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return static_cast<uint32_t>(count);
    if (!too_small) break;
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

uint32_t cgroup_cpus(const std::string& proc_cgroup, const std::string& root) {
  uint32_t least = kNoQuota;
  std::istringstream lines(proc_cgroup);
  std::string line;
  while (std::getline(lines, line)) {  // "0::/user.slice" or "4:cpu,cpuacct:/docker/0123"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      least = std::min(least, least_upwards(root, path, quota_v2));
      least = std::min(least, least_upwards(root + "/unified", path, quota_v2));
    } else if (names_cpu(controllers)) {
      least = std::min(least, least_upwards(root + "/" + controllers, path, quota_v1));
      least = std::min(least, least_upwards(root + "/cpu", path, quota_v1));
    }
  }
  return least;
}

uint32_t allowed_cpus() {
  std::ifstream file("/proc/self/cgroup");
  std::ostringstream text;
  text << file.rdbuf();
  return std::min(affinity_cpus(), cgroup_cpus(text.str(), "/sys/fs/cgroup"));
}

}  // namespace spk
