#include "commands/rank_damage.h"

#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <thread>

#include "container/layout_record.h"
#include "container/pack.h"
#include "io/stripes.h"
#include "support/stripe_stand_in.h"
#include "support/test_pack.h"

namespace spk {
namespace {

// What the ranks of a team have in common.
struct Meeting {
  explicit Meeting(uint32_t ranks) : told(ranks), barrier(ranks) {}
  std::vector<std::string> told;
  std::barrier<> barrier;
  std::atomic<bool> stop = false;
};

// One of several ranks that are threads of the test.
class ThreadTeam : public Team {
 public:
  ThreadTeam(Meeting& meeting, uint32_t rank) : meeting_(meeting), rank_(rank) {}
  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return static_cast<uint32_t>(meeting_.told.size()); }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override {
    meeting_.told[rank_] = mine;
    meeting_.barrier.arrive_and_wait();
    std::vector<std::string> all = meeting_.told;
    meeting_.barrier.arrive_and_wait();
    return all;
  }
  void tell_stop() override { meeting_.stop = true; }
  const std::atomic<bool>& stop_flag() const override { return meeting_.stop; }

 private:
  Meeting& meeting_;
  const uint32_t rank_;
};

void run_ranks(Meeting& meeting, const std::function<void(Team&)>& body) {
  std::vector<std::jthread> threads;
  for (uint32_t rank = 0; rank < meeting.told.size(); ++rank) {
    threads.emplace_back([&, rank] {
      ThreadTeam team(meeting, rank);
      body(team);
    });
  }
}

TEST(RankProofs, AllRanksGetWhatAllFoundInOneOrder) {
  const std::vector<ProofFault> all = {{"a", 3, "k3", "first"},     {"a", 3, "k3", "second"},
                                       {"a", 7, "k7", "differs"},   {"a", UINT64_MAX, "gone", "no"},
                                       {"b", 0, "k0", "differs"},   {"b", UINT64_MAX, "a", "no"},
                                       {"b", UINT64_MAX, "z", "no"}};
  const std::vector<std::vector<size_t>> found_by = {{6, 3, 5}, {4}, {2, 0, 1}};
  Meeting meeting(3);
  std::vector<std::vector<std::string>> shown(3);
  std::vector<ProofCounts> counted(3);
  run_ranks(meeting, [&](Team& team) {
    std::vector<ProofFault> own;
    for (const size_t i : found_by[team.rank()]) own.push_back(all[i]);
    const auto combined = combine_proofs(
        team, Status(), {10, own.size(), team.rank(), 1}, own, [&](const ProofFault& fault) {
          shown[team.rank()].push_back(fault.split + fault.key + fault.what);
        });
    if (combined.ok()) counted[team.rank()] = *combined;
  });
  std::vector<std::string> expected;
  for (const ProofFault& fault : all) expected.push_back(fault.split + fault.key + fault.what);
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(shown[rank], expected);
    EXPECT_EQ(counted[rank].samples, 30u);
    EXPECT_EQ(counted[rank].faults, 7u);
    EXPECT_EQ(counted[rank].unreadable, 3u);
    EXPECT_EQ(counted[rank].skipped, 3u);
  }
  EXPECT_FALSE(meeting.stop);
}

TEST(RankProofs, OneRanksTroubleEndsAllAndHidesNoFault) {
  Meeting meeting(2);
  std::vector<Status> ended(2);
  std::vector<size_t> shown(2);
  run_ranks(meeting, [&](Team& team) {
    const Status mine = team.first() ? Status() : Status(Code::kIo, "no such disk").at_shard(4);
    ended[team.rank()] =
        combine_proofs(team, mine, {}, {{"", 1, "k", "differs"}}, [&](const ProofFault&) {
          ++shown[team.rank()];
        }).status();
  });
  EXPECT_TRUE(meeting.stop);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ended[rank].code(), Code::kIo);
    EXPECT_EQ(ended[rank].message(), "no such disk");
    EXPECT_EQ(shown[rank], 2u);
  }
}

// A folder of seven shards whose stripes lie on targets of their own.
class RankLayouts : public testing::Test {
 protected:
  static constexpr uint32_t kShards = 7;
  void SetUp() override {
    directory_ = Directory::open(folder_.path()).value();
    lustre_.target_count = 16;
    const FileSystemInfo fs = lustre_.identify(directory_.fd());
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      StripeRequest request;
      request.stripe_bytes = 4u << 20;
      request.stripe_count = 1 + shard % 2;
      request.start_target = static_cast<int32_t>(shard);
      const auto made = create_striped(directory_, shard_file_name(shard), fs,
                                       StripeSystem::kLustre, request, lustre_);
      ASSERT_TRUE(made.ok() && made->refused.ok());
    }
  }
  std::vector<std::string> told_by(uint32_t ranks) {
    std::vector<std::string> told;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      told.push_back(
          encode_layouts(look_at_shards(directory_, kShards, {rank, ranks}, lustre_).value()));
    }
    return told;
  }

  test::TempDir folder_;
  Directory directory_;
  LustreStandIn lustre_;
};

TEST_F(RankLayouts, AnyNumberOfRanksTellsWhatOneTells) {
  const auto alone = look_at_shards(directory_, kShards, {}, lustre_).value();
  ASSERT_EQ(alone.size(), kShards);
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    EXPECT_EQ(alone[shard].components.at(0).targets.at(0), shard);
  }
  for (const uint32_t ranks : {1u, 2u, 3u, 7u, 10u}) {
    const auto merged = merge_layouts(told_by(ranks), kShards);
    ASSERT_TRUE(merged.ok()) << merged.status().to_string();
    EXPECT_EQ(*merged, alone) << ranks;
  }
}

TEST_F(RankLayouts, WhatIsNotWhatRanksTellIsAnError) {
  EXPECT_EQ(merge_layouts(told_by(2), kShards + 1).status().message(),
            "a rank did not tell of all its shards");
  EXPECT_EQ(merge_layouts({"{"}, 0).status().message(), "garbled layouts");
}

TEST_F(RankLayouts, OfMissingShardsTheLowestIsTold) {
  ASSERT_TRUE(directory_.unlink(shard_file_name(3)).ok());
  const Status status = look_at_shards(directory_, kShards, {1, 2}, lustre_).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.shard(), 3u);
  EXPECT_TRUE(look_at_shards(directory_, kShards, {0, 2}, lustre_).ok());
}

}  // namespace
}  // namespace spk
