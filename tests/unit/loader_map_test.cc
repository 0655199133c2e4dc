// Which target map a loader goes by: the one recorded beside the pack, unless it is told another.
#include "base/text.h"
#include "container/layout_record.h"
#include "io/atomic_file.h"
#include "layout/order.h"
#include "loader/target_map.h"
#include "loader_fixture.h"

namespace spk::test {
namespace {

class LoaderMapTest : public LoaderTest {
 protected:
  // Shard i with its chunks on TARGETS_OF_SHARD[i], in turn.
  LayoutMap map_of(const std::vector<std::vector<uint32_t>>& targets_of_shard) const {
    LayoutMap map;
    map.made = "2026-11-30T12:00:00Z";
    map.file_system = "lustre";
    for (const std::vector<uint32_t>& targets : targets_of_shard) {
      StripeLayout layout;
      layout.system = StripeSystem::kLustre;
      StripeComponent component;
      component.stripe_bytes = pack_->identity().chunk_bytes();
      component.stripe_count = static_cast<uint32_t>(targets.size());
      component.targets = targets;
      layout.components.push_back(std::move(component));
      map.shards.push_back(std::move(layout));
    }
    map.digest = target_map_digest(targets_by(map));
    return map;
  }
  std::vector<uint32_t> targets_by(const LayoutMap& map) const {
    const auto places = chunk_places(*pack_);
    EXPECT_TRUE(places.ok());
    return chunk_targets(map.shards, *places);
  }
  void record(std::vector<LayoutMap> maps) const {
    LayoutRecord record;
    record.chunk_bytes = pack_->identity().chunk_bytes();
    record.maps = std::move(maps);
    ASSERT_TRUE(write_layout_record(pack_->directory(), record).ok());
  }
  std::vector<std::vector<uint64_t>> epoch(const LoaderOptions& options) const {
    const auto loader = open(options);
    return rest(*loader);
  }
};

TEST_F(LoaderMapTest, TheRecordedMapIsUsedUnlessToldOtherwise) {
  const auto without = epoch(options());
  const LayoutMap map = map_of({{7, 9}, {9, 3}, {3}});
  LoaderOptions given = options();
  given.targets = targets_by(map);
  const auto with = epoch(given);
  ASSERT_NE(with, without);

  record({map});
  EXPECT_EQ(epoch(options()), with);
  EXPECT_EQ(open(options())->state().map_digest, map.digest);
  LoaderOptions none = options();
  none.use_recorded_map = false;
  EXPECT_EQ(epoch(none), without);
  EXPECT_EQ(open(none)->state().map_digest, 0u);

  // What is given counts, whatever is recorded.
  given.targets.assign(given.targets.size(), 0);
  given.targets[0] = 1;
  EXPECT_EQ(open(given)->state().map_digest, target_map_digest(given.targets));
}

TEST_F(LoaderMapTest, OrdersOfSamplesKnowNoMap) {
  record({map_of({{7, 9}, {9, 3}, {3}})});
  for (const OrderKind order : {OrderKind::kSequential, OrderKind::kRandom}) {
    LoaderOptions samples = options();
    samples.order = order;
    samples.lanes = 0;
    EXPECT_EQ(open(samples)->state().map_digest, 0u);
  }
}

TEST_F(LoaderMapTest, ARunKeepsItsMapWhenANewOneIsRecorded) {
  const LayoutMap old_map = map_of({{1, 2}, {2, 3}, {3, 1}});
  const LayoutMap new_map = map_of({{1}, {2}, {3}});
  ASSERT_NE(old_map.digest, new_map.digest);
  record({old_map});
  const auto whole = epoch(options());
  const auto loader = open(options());
  for (int i = 0; i < 3; ++i) next(*loader);
  const LoaderState state = loader->state();

  record({old_map, new_map});
  EXPECT_EQ(open(options())->state().map_digest, new_map.digest);
  const auto resumed = Loader::resume(pack_, options(), state);
  ASSERT_TRUE(resumed.ok()) << resumed.status().to_string();
  EXPECT_EQ(rest(**resumed), std::vector(whole.begin() + 3, whole.end()));
  // The one that was open all the time, too, and in its next epoch.
  EXPECT_EQ(rest(*loader), std::vector(whole.begin() + 3, whole.end()));
  ASSERT_TRUE(loader->start_epoch(1).ok());
  EXPECT_EQ(loader->state().map_digest, old_map.digest);

  record({new_map});
  const Status gone = Loader::resume(pack_, options(), state).status();
  EXPECT_EQ(gone.code(), Code::kMismatch);
  EXPECT_NE(gone.to_string().find(str_cat("the target map with digest ", to_hex(old_map.digest),
                                          ", which layout.json does not have")),
            std::string::npos)
      << gone.to_string();
}

TEST_F(LoaderMapTest, ARunWithoutAMapGoesOnWithoutOne) {
  const auto whole = epoch(options());
  const auto loader = open(options());
  next(*loader);
  record({map_of({{1}, {2}, {3}})});
  const auto resumed = Loader::resume(pack_, options(), loader->state());
  ASSERT_TRUE(resumed.ok()) << resumed.status().to_string();
  EXPECT_EQ(rest(**resumed), std::vector(whole.begin() + 1, whole.end()));
}

TEST_F(LoaderMapTest, TargetsThatAreNotKnownGiveNoMap) {
  LayoutMap untold = map_of({{1}, {2}, {3}});
  for (StripeLayout& layout : untold.shards) layout.components[0].targets.clear();
  untold.digest = 0;
  record({untold});
  EXPECT_EQ(open(options())->state().map_digest, 0u);
  EXPECT_TRUE(current_targets(*pack_)->empty());
}

TEST_F(LoaderMapTest, ARecordThatMakesNoSenseIsDamage) {
  LayoutMap map = map_of({{1}, {2}, {3}});
  map.digest += 1;
  record({map});
  const Status other = Loader::open(pack_, options()).status();
  EXPECT_EQ(other.code(), Code::kDamaged);
  EXPECT_NE(other.to_string().find("have another digest"), std::string::npos) << other.to_string();
  ASSERT_TRUE(write_file_atomically(pack_->directory(), kLayoutName, as_bytes("{")).ok());
  const Status torn = Loader::open(pack_, options()).status();
  EXPECT_NE(torn.to_string().find("layout.json"), std::string::npos) << torn.to_string();
  EXPECT_NE(torn.to_string().find("--refresh"), std::string::npos) << torn.to_string();
  LoaderOptions none = options();
  none.use_recorded_map = false;
  EXPECT_TRUE(Loader::open(pack_, none).ok());
}

TEST(MapDigestTest, IsSixteenHexadecimalDigits) {
  EXPECT_EQ(*parse_map_digest("00000000000000ff"), 255u);
  EXPECT_EQ(*parse_map_digest("fedcba9876543210"), 0xFEDCBA9876543210u);
  for (const char* wrong :
       {"", "ff", "00000000000000fg", "-000000000000001", "00000000000000ff0"}) {
    EXPECT_EQ(parse_map_digest(wrong).status().code(), Code::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace spk::test
