#include "io/cache_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/test_pack.h"

namespace spk::test {
namespace {

// What the kernel tells, played by files.
class CacheMemory : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  uint64_t found() const { return cache_memory_bytes(root_.path()); }

  TempDir root_;
};

TEST_F(CacheMemory, NothingIsKnown) { EXPECT_EQ(found(), UINT64_MAX); }

TEST_F(CacheMemory, WhatTheSystemHasAvailable) {
  write("proc/meminfo", "MemTotal:       24609276 kB\nMemAvailable:   23000000 kB\nCached: 5 kB\n");
  EXPECT_EQ(found(), uint64_t{23000000} * 1024);
  write("proc/meminfo", "MemTotal:       24609276 kB\n");
  EXPECT_EQ(found(), UINT64_MAX);
  write("proc/meminfo", "MemAvailable: 99999999999999999999999 kB\n");
  EXPECT_EQ(found(), UINT64_MAX);
}

TEST_F(CacheMemory, LimitsOfGroupsAndOfThoseAbove) {
  write("proc/meminfo", "MemAvailable:   8000 kB\n");
  write("proc/self/cgroup", "0::/job/step\n");
  EXPECT_EQ(found(), 8000u * 1024);  // no file tells a limit
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  EXPECT_EQ(found(), 8000u * 1024);
  write("sys/fs/cgroup/job/memory.max", "5000000\n");
  EXPECT_EQ(found(), 5000000u);
  write("sys/fs/cgroup/job/step/memory.high", "4000000\n");
  EXPECT_EQ(found(), 4000000u);
  write("sys/fs/cgroup/memory.max", "3000000\n");  // the root, as a container sees it
  EXPECT_EQ(found(), 3000000u);
  write("proc/self/cgroup", "0::/elsewhere\n");
  EXPECT_EQ(found(), 3000000u);
}

TEST_F(CacheMemory, Version1) {
  write("proc/self/cgroup", "11:cpu,cpuacct:/\n4:hugetlb,memory:/slurm/job_7\n1:name=x:/a\n0::/\n");
  write("sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(found(), 9223372036854771712u);
  write("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "7000\n");
  EXPECT_EQ(found(), 7000u);
  write("proc/self/cgroup", "4:cpuset:/slurm/job_7\nnonsense\n5:memory");
  EXPECT_EQ(found(), UINT64_MAX);
}

TEST(CacheMemoryHere, IsSomething) {
  EXPECT_GT(cache_memory_bytes(), 1u << 20);
  EXPECT_LT(cache_memory_bytes(), UINT64_MAX);
}

}  // namespace
}  // namespace spk::test
