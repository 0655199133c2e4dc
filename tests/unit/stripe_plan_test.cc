#include "pipeline/stripe_plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/stripe_stand_in.h"

namespace spk {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

class StripePlanTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "spk_stripe_plan_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    dir_ = Directory::open(path_).value();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  StripePlan plan(const StripeOptions& options, uint32_t shards, uint64_t bytes,
                  const StripeCalls& calls) {
    Geometry geometry;
    geometry.chunk_bytes = 4 * kMiB;
    geometry.shard_count = shards;
    auto made = plan_stripes(dir_.fd(), options, geometry, bytes, calls);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return std::move(made).value();
  }

  std::string path_;
  Directory dir_;
};

TEST_F(StripePlanTest, LustreShardsBeginOnTargetsInTurn) {
  LustreStandIn lustre;
  lustre.target_count = 4;
  const StripePlan planned = plan({}, 2, 2 * kGiB, lustre);
  EXPECT_EQ(planned.asked(), "stripe_size=4194304 stripe_count=2 start=in turn");
  ShardFileMaker maker(planned, lustre);
  for (uint32_t shard = 0; shard < 2; ++shard) {
    auto file = maker.create(dir_, "s" + std::to_string(shard), shard);
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    const StripeLayout got = read_stripes(file->fd(), lustre.identify(dir_.fd()), lustre).value();
    EXPECT_EQ(got.components.at(0).targets, (std::vector<uint32_t>{2 * shard, 2 * shard + 1}));
  }
  EXPECT_EQ(maker.refused(), "");
}

TEST_F(StripePlanTest, RefusedOnceWithItsStartThenAltogether) {
  LustreStandIn lustre;
  lustre.refuses_layouts = true;
  ShardFileMaker maker(plan({}, 8, 8 * kGiB, lustre), lustre);
  auto file = maker.create(dir_, "s", 3);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_TRUE(file->write_all(0, as_bytes("x")).ok());
  EXPECT_EQ(maker.refused(),
            "the file system did not take the layout (lustre.lov): Invalid argument");
  ASSERT_EQ(lustre.layouts_set.size(), 2u);
  EXPECT_EQ(load_le<uint16_t>(lustre.layouts_set[0].data() + 30), 3);
  EXPECT_EQ(load_le<uint16_t>(lustre.layouts_set[1].data() + 30), 0xFFFF);
}

TEST_F(StripePlanTest, WhatIsAskedForGoesBeforeWhatIsChosen) {
  LustreStandIn lustre;
  StripeOptions options;
  options.stripe_bytes = kMiB;
  options.stripe_count = kAllTargets;
  options.pool = "flash";
  const StripePlan planned = plan(options, 2, 2 * kGiB, lustre);
  EXPECT_EQ(planned.asked(), "stripe_size=1048576 stripe_count=-1 pool=flash");
  EXPECT_FALSE(planned.spreads_starts);
}

TEST_F(StripePlanTest, KeepAndNoneSetNothing) {
  LustreStandIn lustre;
  for (const StripeMode mode : {StripeMode::kKeep, StripeMode::kNone}) {
    StripeOptions options;
    options.mode = mode;
    const StripePlan planned = plan(options, 2, 2 * kGiB, lustre);
    EXPECT_EQ(planned.asked(), "the folder's own");
    ShardFileMaker maker(planned, lustre);
    ASSERT_TRUE(maker.create(dir_, mode == StripeMode::kKeep ? "a" : "b", 0).ok());
  }
  EXPECT_TRUE(lustre.layouts_set.empty());
}

TEST_F(StripePlanTest, ImpossibleSizesAreRefusedBeforeAnythingIsMade) {
  LustreStandIn lustre;
  StripeOptions options;
  options.stripe_bytes = 100000;
  Geometry geometry;
  geometry.chunk_bytes = 4 * kMiB;
  const Status status = plan_stripes(dir_.fd(), options, geometry, kGiB, lustre).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(StripePlanTest, LocalFileSystemsWarnOnlyWhereALayoutWasAskedFor) {
  ShardFileMaker quiet(plan({}, 2, kGiB, kernel_stripe_calls()));
  ASSERT_TRUE(quiet.create(dir_, "quiet", 0).ok());
  EXPECT_EQ(quiet.refused(), "");
  StripeOptions options;
  options.stripe_count = 2;
  ShardFileMaker asked(plan(options, 2, kGiB, kernel_stripe_calls()));
  ASSERT_TRUE(asked.create(dir_, "asked", 0).ok());
  EXPECT_EQ(asked.refused(), detect_filesystem(dir_.fd()).name + " takes no stripe layout");
}

}  // namespace
}  // namespace spk
