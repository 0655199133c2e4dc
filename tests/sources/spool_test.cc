// The spool: what lies in it afterwards, and the one that only measures.
#include "sources/spool.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"

namespace spk {
namespace {

TEST(Spool, FilesAreThereOnceTheyAreFinished) {
  const auto spool = Spool::make_temporary();
  {
    auto writer = spool->create("one");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->append(as_bytes(std::string_view("abc"))).ok());
    EXPECT_FALSE(*spool->holds("one"));
    ASSERT_TRUE(writer->finish().ok());
    auto unfinished = spool->create("two");
    ASSERT_TRUE(unfinished.ok());
    ASSERT_TRUE(unfinished->append(as_bytes(std::string_view("abc"))).ok());
  }
  EXPECT_TRUE(*spool->holds("one"));
  EXPECT_EQ(std::filesystem::file_size(spool->path_of("one")), 3u);
  const auto entries = std::filesystem::directory_iterator(spool->path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
  EXPECT_EQ(*spool->sorting_place(), spool->path());
}

TEST(Spool, OneThatMeasuresMakesNothing) {
  const auto spool = Spool::make_measuring();
  for (const std::string_view bytes : {"abc", "abcd"}) {  // read twice, written once
    auto writer = spool->create("one");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->append(as_bytes(bytes)).ok());
    ASSERT_TRUE(writer->append(as_bytes(bytes)).ok());
    ASSERT_TRUE(writer->finish().ok());
  }
  { EXPECT_TRUE(spool->create("never finished")->append(as_bytes(std::string_view("x"))).ok()); }
  auto other = spool->create("two");
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(other->append(as_bytes(std::string_view("12"))).ok());
  ASSERT_TRUE(other->finish().ok());
  EXPECT_EQ(spool->measured_bytes(), 8u + 2u);
  EXPECT_FALSE(*spool->holds("one"));
  EXPECT_FALSE(std::filesystem::exists(spool->path()));
  EXPECT_TRUE(std::filesystem::is_directory(*spool->sorting_place()));
}

}  // namespace
}  // namespace spk
