// Packs and shares of them, copied and checked.
#include "pipeline/stage_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/text.h"
#include "container/verify.h"
#include "support/test_pack.h"

namespace spk {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uint32_t kShards = 5;

class StageRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    test::TestPackOptions options;
    options.schema = test::image_schema();
    options.geometry.shard_count = kShards;
    // Some are larger than a chunk.
    auto samples = test::image_samples(100, 100, 6000);
    auto large = test::image_samples(4, 150'000, 200'000, 2);
    for (auto& sample : large) {
      sample.key += ".large";
      samples.push_back(std::move(sample));
    }
    ASSERT_TRUE(test::write_test_pack(pack_, samples, options).ok());
    request_.jobs = 3;
  }

  std::vector<StageTask> plan(const std::string& directory) const {
    std::vector<StageTask> tasks(1);
    tasks[0].directory = directory;
    tasks[0].pack = Pack::open(pack_).value();
    choose_shards(request_, tasks);
    const Status looked = look_at_place(tasks[0]);
    EXPECT_TRUE(looked.ok()) << looked.to_string();
    return tasks;
  }
  StageCounts stage(const std::string& directory) {
    std::vector<StageTask> tasks = plan(directory);
    damages_.clear();
    StageRun run(request_, tasks[0], hooks_);
    auto counts = run.run(
        [&](const Damage& damage) { damages_.push_back(damage.file + ": " + damage.what); });
    EXPECT_TRUE(counts.ok()) << counts.status().to_string();
    return counts.ok() ? *counts : StageCounts();
  }
  static std::vector<std::string> names(const std::string& directory) {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(directory)) {
      found.push_back(entry.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  void expect_same(const std::string& directory) const {
    for (const std::string& name : names(directory)) {
      EXPECT_TRUE(test::read_file(directory + "/" + name) == test::read_file(pack_ + "/" + name))
          << name;
    }
  }

  test::TempDir dir_;
  const std::string pack_ = dir_ / "pack";
  const std::string copy_ = dir_ / "disk/copy";
  StageRequest request_;
  StageHooks hooks_;
  std::vector<std::string> damages_;
};

TEST_F(StageRunTest, AWholePackIsAPack) {
  const StageCounts counts = stage(copy_);
  EXPECT_EQ(counts.shards_copied, kShards);
  EXPECT_EQ(counts.damages, 0u);
  EXPECT_EQ(names(copy_), names(pack_));
  expect_same(copy_);
  EXPECT_TRUE(verify_pack(copy_, {}, {}).value().ok());
  EXPECT_EQ(stage(copy_).shards_copied, 0u);
}

TEST_F(StageRunTest, SharesAndWhatTheyCount) {
  request_.node = PackPart{1, 2};
  const std::vector<StageTask> before = plan(copy_);
  EXPECT_EQ(before[0].shards, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(before[0].missing, before[0].shards);
  EXPECT_FALSE(before[0].whole);
  const StageRoom room = find_room(copy_, before);
  EXPECT_EQ(room.needed_bytes, fs::file_size(pack_ + "/shard-00001.spks") +
                                   fs::file_size(pack_ + "/shard-00003.spks"));
  EXPECT_TRUE(room.fits());
  EXPECT_FALSE((StageRoom{2, 1, {}}).fits());
  EXPECT_FALSE((StageRoom{2, {}, {1, {}}}).fits());
  EXPECT_TRUE((StageRoom{2, 2, {2, {}}}).fits());
  std::atomic<uint64_t> bytes{0};
  hooks_.advance = [&](uint64_t, uint64_t more) { bytes += more; };
  EXPECT_EQ(stage(copy_).bytes_copied, room.needed_bytes);
  EXPECT_EQ(bytes, room.needed_bytes);
  EXPECT_EQ(names(copy_), (std::vector<std::string>{"shard-00001.spks", "shard-00003.spks"}));
  expect_same(copy_);
  EXPECT_EQ(find_room(copy_, plan(copy_)).needed_bytes, 0u);
}

TEST_F(StageRunTest, ALimitCountsOverAllPacks) {
  std::vector<StageTask> tasks(2);
  for (StageTask& task : tasks) task.pack = Pack::open(pack_).value();
  uint64_t bytes = 0;
  for (const ShardRow& row : tasks[0].pack->shards()) bytes += row.file_bytes;
  request_.at_most_bytes = bytes + tasks[0].pack->shards()[0].file_bytes;
  choose_shards(request_, tasks);
  EXPECT_TRUE(tasks[0].whole);
  EXPECT_EQ(tasks[1].shards, std::vector<uint32_t>{0});
  EXPECT_FALSE(tasks[1].whole);
}

// Whichever run makes a shard, each returns when all are there.
TEST_F(StageRunTest, SeveralAtOnce) {
  request_.node = PackPart{0, 1};
  for (int round = 0; round < 5; ++round) {
    fs::remove_all(copy_);
    std::vector<std::vector<StageTask>> plans;
    for (int i = 0; i < 3; ++i) plans.push_back(plan(copy_));
    std::atomic<uint64_t> copied{0};
    std::vector<std::thread> threads;
    for (auto& tasks : plans) {
      threads.emplace_back([&] {
        StageRun run(request_, tasks[0], hooks_);
        const auto counts = run.run({});
        ASSERT_TRUE(counts.ok()) << counts.status().to_string();
        EXPECT_EQ(counts->shards_copied + counts->shards_by_others, kShards);
        copied += counts->shards_copied;
        EXPECT_GE(names(copy_).size(), kShards);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(copied, kShards);
    EXPECT_EQ(names(copy_).size(), kShards);
    expect_same(copy_);
  }
}

TEST_F(StageRunTest, DamageIsToldInOrderAndNotCopied) {
  request_.node = PackPart{0, 1};
  for (const uint32_t shard : {3u, 1u}) {
    test::flip_byte(str_cat(pack_, "/", shard_file_name(shard)), 70'000);
  }
  const StageCounts counts = stage(copy_);
  EXPECT_EQ(counts.shards_copied, kShards - 2);
  ASSERT_GE(damages_.size(), 2u);
  EXPECT_TRUE(std::is_sorted(damages_.begin(), damages_.end())) << damages_[0];
  EXPECT_THAT(damages_.front(), HasSubstr("shard-00001.spks: "));
  EXPECT_THAT(damages_.back(), HasSubstr("shard-00003.spks: "));
  EXPECT_EQ(names(copy_),
            (std::vector<std::string>{"shard-00000.spks", "shard-00002.spks", "shard-00004.spks"}));
}

TEST_F(StageRunTest, VerifyingMendsWhatIsThere) {
  request_.node = PackPart{0, 1};
  EXPECT_EQ(stage(copy_).shards_copied, kShards);
  test::flip_byte(copy_ + "/shard-00002.spks", 9000);
  EXPECT_EQ(stage(copy_).shards_copied, 0u);
  request_.verify = true;
  const StageCounts counts = stage(copy_);
  EXPECT_EQ(counts.shards_copied, 1u);
  EXPECT_EQ(counts.shards_mended, 1u);
  EXPECT_EQ(counts.damages, 0u);
  expect_same(copy_);
}

TEST_F(StageRunTest, ItStopsWhenAsked) {
  std::atomic<bool> cancel{false};
  hooks_.cancel = &cancel;
  hooks_.advance = [&](uint64_t, uint64_t) { cancel = true; };
  request_.jobs = 1;
  std::vector<StageTask> tasks = plan(copy_);
  StageRun run(request_, tasks[0], hooks_);
  EXPECT_EQ(run.run({}).status().code(), Code::kCancelled);
  EXPECT_TRUE(names(copy_).empty());
}

TEST_F(StageRunTest, PlacesInThePackAreRefused) {
  EXPECT_EQ(refuse_place_in_pack(pack_, pack_).message(), "this is the pack itself");
  EXPECT_EQ(refuse_place_in_pack(pack_, pack_ + "/").message(), "this is the pack itself");
  EXPECT_EQ(refuse_place_in_pack(pack_, pack_ + "/a/b").message(),
            "this lies within the pack, which is never changed");
  EXPECT_TRUE(refuse_place_in_pack(pack_, pack_ + "-copy").ok());
  EXPECT_TRUE(refuse_place_in_pack(pack_, copy_).ok());
}

}  // namespace
}  // namespace spk
