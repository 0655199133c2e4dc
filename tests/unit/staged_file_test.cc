#include "pipeline/staged_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.h"
#include "support/test_pack.h"

namespace spk {
namespace {

std::vector<std::string> names(const Directory& dir) {
  std::vector<std::string> found;
  const std::vector<DirectoryEntry> entries = dir.list().value();
  for (const DirectoryEntry& entry : entries) found.push_back(entry.name);
  return found;
}

TEST(StagedFile, IsThereWhenItIsWhole) {
  const test::TempDir temp;
  const Directory dir = Directory::open(temp.path()).value();
  {
    auto claimed = StagedFile::claim(dir, "a").value();
    ASSERT_TRUE(claimed);
    ASSERT_TRUE(claimed->file().write_all(0, as_bytes("text")).ok());
    EXPECT_EQ(names(dir), std::vector<std::string>{"a.staging"});
    ASSERT_TRUE(claimed->publish().ok());
  }
  EXPECT_EQ(names(dir), std::vector<std::string>{"a"});
  EXPECT_EQ(test::read_file(temp / "a"), "text");
  {
    auto given_up = StagedFile::claim(dir, "b").value();
    ASSERT_TRUE(given_up);
  }
  EXPECT_EQ(names(dir), std::vector<std::string>{"a"});
}

TEST(StagedFile, OneAtATime) {
  const test::TempDir temp;
  const Directory dir = Directory::open(temp.path()).value();
  auto first = StagedFile::claim(dir, "a").value();
  ASSERT_TRUE(first);
  EXPECT_FALSE(StagedFile::claim(dir, "a").value());
  EXPECT_TRUE(StagedFile::claim(dir, "b").value());
  ASSERT_TRUE(first->publish().ok());
  EXPECT_TRUE(StagedFile::claim(dir, "a").value());
}

TEST(StagedFile, WhatADeadProcessLeftIsTakenOver) {
  const test::TempDir temp;
  const Directory dir = Directory::open(temp.path()).value();
  test::write_file(temp / "a.staging", "half of it");
  auto claimed = StagedFile::claim(dir, "a").value();
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->file().size().value(), 0u);
}

TEST(StagedFile, LeftoversGoUnlessTheyAreHeld) {
  const test::TempDir temp;
  const Directory dir = Directory::open(temp.path()).value();
  for (const char* name : {"a.staging", "b.staging", "c", "d.staging-host-1"}) {
    test::write_file(temp / name, "x");
  }
  auto held = StagedFile::claim(dir, "b").value();
  ASSERT_TRUE(held);
  ASSERT_TRUE(remove_staging_leftovers(dir).ok());
  EXPECT_EQ(names(dir), (std::vector<std::string>{"b.staging", "c", "d.staging-host-1"}));
  EXPECT_TRUE(is_staging_name("d.staging-host-1"));
  EXPECT_TRUE(is_staging_name("b.staging"));
  EXPECT_FALSE(is_staging_name("staging.spks"));
}

TEST(StagedFile, NoLinkIsFollowed) {
  const test::TempDir temp;
  const Directory dir = Directory::open(temp.path()).value();
  test::write_file(temp / "other", "keep");
  ASSERT_EQ(::symlink((temp / "other").c_str(), (temp / "a.staging").c_str()), 0);
  EXPECT_FALSE(StagedFile::claim(dir, "a").ok());
  ASSERT_TRUE(remove_staging_leftovers(dir).ok());
  EXPECT_EQ(test::read_file(temp / "other"), "keep");
}

}  // namespace
}  // namespace spk
