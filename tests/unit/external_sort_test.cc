#include "pipeline/external_sort.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "support/test_pack.h"

namespace spk {
namespace {

using Records = std::vector<std::pair<std::string, std::string>>;

Records drain(const ExternalSorter& sorter) {
  Records records;
  auto stream = sorter.read();
  EXPECT_TRUE(stream.ok()) << stream.status().to_string();
  for (;;) {
    ByteSpan key, payload;
    auto more = (*stream)->next(&key, &payload);
    EXPECT_TRUE(more.ok()) << more.status().to_string();
    if (!more.ok() || !*more) return records;
    records.emplace_back(as_text(key), as_text(payload));
  }
}

Records sorted(Records records) {
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) {
    const int order = a.first.compare(b.first);  // compares as unsigned bytes
    return order != 0 ? order < 0 : a.second.compare(b.second) < 0;
  });
  return records;
}

// Keys with long common prefixes, with zero bytes, empty ones and repeated ones.
Records awkward_records(unsigned seed, size_t count) {
  std::mt19937_64 random(seed);
  Records records;
  for (size_t i = 0; i < count; ++i) {
    std::string key;
    switch (random() % 5) {
      case 0: key = str_cat("train/n", random() % 30, "/picture_", random() % 1000, ".jpg"); break;
      case 1: key = std::string(random() % 20, 'a'); break;
      case 2: key = std::string("a\0", 2) + std::string(random() % 12, '\0'); break;
      case 3: key = std::string(700, 'x') + str_cat(random() % 50); break;
      default: key = str_cat("\xff", random() % 100, "\x80");
    }
    records.emplace_back(std::move(key), str_cat(random() % 4));
  }
  return records;
}

size_t files_in(const std::string& directory) {
  const auto begin = std::filesystem::directory_iterator(directory);
  return static_cast<size_t>(std::distance(begin, std::filesystem::directory_iterator()));
}

TEST(ExternalSort, OrderDoesNotDependOnMemory) {
  const test::TempDir dir;
  const unsigned seed = 20240611;
  SCOPED_TRACE(str_cat("seed ", seed));
  const Records records = awkward_records(seed, 20000);
  const Records expected = sorted(records);
  // All in memory; several runs; so many runs that they are merged twice over.
  for (const uint64_t memory : {uint64_t{64} << 20, uint64_t{1} << 20, uint64_t{40} << 10}) {
    SCOPED_TRACE(memory);
    ExternalSorter sorter(dir.path(), memory);
    for (const auto& [key, payload] : records) {
      ASSERT_TRUE(sorter.add(as_bytes(key), as_bytes(payload)).ok());
    }
    ASSERT_TRUE(sorter.finish().ok());
    EXPECT_EQ(sorter.count(), records.size());
    EXPECT_EQ(sorter.spilled_bytes() == 0, memory == uint64_t{64} << 20);
    EXPECT_EQ(files_in(dir.path()), 0u) << "spill files have no name";
    EXPECT_TRUE(drain(sorter) == expected);
    EXPECT_TRUE(drain(sorter) == expected) << "a second reading";
  }
}

TEST(ExternalSort, TwoStreamsReadIndependently) {
  const test::TempDir dir;
  ExternalSorter sorter(dir.path(), 64 << 10);
  for (int i = 9999; i >= 0; --i) {
    const std::string key = str_cat(100000 + i);
    ASSERT_TRUE(sorter.add(as_bytes(key), {}).ok());
  }
  ASSERT_TRUE(sorter.finish().ok());
  ASSERT_GT(sorter.spilled_bytes(), 0u);
  auto ahead = sorter.read();
  ASSERT_TRUE(ahead.ok());
  ByteSpan key, payload;
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE((*ahead)->next(&key, &payload).value());
  EXPECT_EQ(as_text(key), "104999");
  EXPECT_EQ(drain(sorter).size(), 10000u);
  ASSERT_TRUE((*ahead)->next(&key, &payload).value());
  EXPECT_EQ(as_text(key), "105000");
}

TEST(ExternalSort, NothingAndOneRecord) {
  ExternalSorter none("", 1 << 20);
  ASSERT_TRUE(none.finish().ok());
  EXPECT_TRUE(drain(none).empty());
  ExternalSorter one("", 1 << 20);
  ASSERT_TRUE(one.add({}, as_bytes("p")).ok());
  ASSERT_TRUE(one.finish().ok());
  EXPECT_EQ(drain(one), (Records{{"", "p"}}));
}

TEST(ExternalSort, SaysWhenItCannotHoldWhatItIsGiven) {
  const test::TempDir dir;
  ExternalSorter small(dir.path(), 64 << 10);
  const std::string large(100 << 10, 'x');
  const Status too_large = small.add(as_bytes("k"), as_bytes(large));
  EXPECT_EQ(too_large.code(), Code::kNoMemory);
  EXPECT_EQ(too_large.hint(), "give more with --memory");

  ExternalSorter nowhere("", 64 << 10);
  Status status;
  const std::string payload(1000, 'x');
  int added = 0;
  while (status.ok() && added < 1000) {
    status = nowhere.add(as_bytes("k"), as_bytes(payload));
    ++added;
  }
  EXPECT_EQ(status.code(), Code::kNoMemory);
  EXPECT_GT(added, 40);

  ExternalSorter lost(dir / "absent", 64 << 10);
  status = Status();
  for (int i = 0; i < 1000 && status.ok(); ++i) status = lost.add({}, as_bytes(payload));
  EXPECT_EQ(status.code(), Code::kNotFound);
}

TEST(ExternalSort, FullDiskIsNoSpace) {
  const test::TempDir dir;
  if (::mount("none", dir.path().c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "a small file system can only be mounted by root";
  }
  Status status;
  {
    ExternalSorter sorter(dir.path(), 128 << 10);
    const std::string payload(1000, 'x');
    for (int i = 0; i < 1000 && status.ok(); ++i) status = sorter.add({}, as_bytes(payload));
  }
  EXPECT_EQ(status.code(), Code::kNoSpace) << status.to_string();
  EXPECT_EQ(files_in(dir.path()), 0u);
  EXPECT_EQ(::umount(dir.path().c_str()), 0);
}

}  // namespace
}  // namespace spk
