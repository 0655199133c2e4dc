// How a loader decides to read.
#include <gmock/gmock.h>

#include "io/filesystem.h"
#include "loader/reading.h"
#include "unit/loader_fixture.h"

namespace spk::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class LoaderReading : public LoaderTest {
 protected:
  // Where the page cache is far too small.
  LoaderOptions cramped() const {
    LoaderOptions cramped = options();
    cramped.cache_bytes = 4096;
    return cramped;
  }
  // Whether the file system below the pack takes direct reads.
  bool takes_direct() const {
    const auto shard = File::open_read(pack_->directory(), shard_file_name(0));
    return shard->can_be_direct() &&
           detect_filesystem(pack_->directory().fd()).kind != FileSystemKind::kTmpfs;
  }
  bool is_network() const { return detect_filesystem(pack_->directory().fd()).network; }
};

TEST_F(LoaderReading, SmallPacksGoThroughThePageCache) {
  const Reading reading = open(options())->reading();
  EXPECT_FALSE(reading.direct);
  EXPECT_EQ(reading.engine, is_network() ? EngineChoice::kPool : EngineChoice::kMmap);
  EXPECT_THAT(reading.why, StartsWith("through the page cache: an epoch's "));
  EXPECT_THAT(reading.why, HasSubstr(" are at most half of the "));
}

TEST_F(LoaderReading, PacksBeyondHalfOfItPassItBy) {
  if (!takes_direct()) GTEST_SKIP() << "this file system takes no direct reads";
  uint64_t chunk_bytes = 0;
  for (uint64_t i = 0; i < pack_->chunk_count(); ++i) chunk_bytes += pack_->chunk(i)->read_bytes;
  LoaderOptions asked = cramped();
  asked.cache_bytes = 2 * chunk_bytes;
  EXPECT_FALSE(open(asked)->reading().direct);
  asked.cache_bytes -= 2;
  const auto usual = rest(*open(options()));
  for (const EngineChoice engine :
       {EngineChoice::kAuto, EngineChoice::kPread, EngineChoice::kPool, EngineChoice::kUring}) {
    asked.engine = engine;
    const auto loader = open(asked);
    EXPECT_TRUE(loader->reading().direct);
    EXPECT_THAT(loader->reading().why, StartsWith("past the page cache: an epoch's "));
    EXPECT_THAT(loader->reading().why, HasSubstr(" are more than half of the "));
    if (engine != EngineChoice::kUring) {
      EXPECT_EQ(loader->reading().engine, EngineChoice::kPool);
    }
    EXPECT_EQ(rest(*loader), usual);
    EXPECT_GT(loader->stats().reads, 0u);
  }
}

TEST_F(LoaderReading, WhatIsAskedForIsDone) {
  LoaderOptions asked = cramped();
  asked.direct = DirectChoice::kOff;
  EXPECT_EQ(open(asked)->reading().why, "through the page cache: as asked");
  asked.direct = DirectChoice::kOn;
  asked.cache_bytes = UINT64_MAX;
  EXPECT_EQ(open(asked)->reading().why, "past the page cache: as asked");
  EXPECT_EQ(open(asked)->reading().engine, EngineChoice::kPool);
  if (is_network()) return;
  asked = cramped();
  asked.engine = EngineChoice::kMmap;
  EXPECT_EQ(open(asked)->reading().why, "through the page cache: files are mapped");
  asked.direct = DirectChoice::kOn;
  const auto refused = Loader::open(pack_, asked);
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.status().message(), "what is mapped cannot pass by the page cache");
}

TEST_F(LoaderReading, ChunksThatOthersWantTooStayInThePageCache) {
  const auto why = [&](auto&& change) {
    LoaderOptions asked = cramped();
    change(asked);
    const auto loader = open(asked);
    EXPECT_FALSE(loader->reading().direct);
    return loader->reading().why;
  };
  const std::string due = "through the page cache: chunks are wanted in part, or more than once";
  EXPECT_EQ(why([](LoaderOptions& o) { o.workers = 2; }), due);
  EXPECT_EQ(why([](LoaderOptions& o) { o.world = 3; }), due);
  EXPECT_EQ(why([](LoaderOptions& o) { o.order = OrderKind::kSequential, o.lanes = 0; }), due);
  EXPECT_EQ(why([](LoaderOptions& o) { o.order = OrderKind::kRandom, o.lanes = 0; }), due);
  if (!takes_direct()) return;
  LoaderOptions asked = cramped();
  asked.world = 2;
  EXPECT_TRUE(open(asked)->reading().direct);
}

}  // namespace
}  // namespace spk::test
