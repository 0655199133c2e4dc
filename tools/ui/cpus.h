// How many CPUs this process may use: what --jobs defaults to.
#pragma once

#include <cstdint>
#include <string>

namespace spk {

// The smaller of the scheduler's affinity mask and the CPU quota of the cgroup (v2 or v1, own or
// any parent's; a part of a CPU counts as one). At least 1.
uint32_t allowed_cpus();

// CPUs that the quotas of a cgroup tree allow, rounded up; UINT32_MAX where there is none.
// `proc_cgroup` is the text of /proc/self/cgroup, `root` where cgroup file systems are mounted
// (/sys/fs/cgroup). Apart from allowed_cpus() so that it can be tested.
uint32_t cgroup_cpus(const std::string& proc_cgroup, const std::string& root);

}  // namespace spk
