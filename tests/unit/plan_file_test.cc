#include "pipeline/plan_file.h"

#include "unit/plan_fixture.h"

namespace spk {
namespace {

TEST_F(PlanTest, EveryFlippedByteAndEveryCutIsFound) {
  FakeSource source(40, synthetic);
  PackOptions options = options_with(uint64_t{64} << 20);
  options.shard_count = 3;
  const std::string path = plan(options, source);
  const std::string good = bytes_of(path);
  const std::string bad_path = dir_ / "bad.spkp";
  const auto outcome = [&](const std::string& bytes) {
    std::ofstream(bad_path, std::ios::binary) << bytes;
    auto plan = Plan::load(bad_path);
    if (!plan.ok()) return plan.status().code();
    for (uint32_t shard = 0; shard < 3; ++shard) {
      auto cursor = (*plan)->shard(shard);
      if (!cursor.ok()) return cursor.status().code();
    }
    return Code::kOk;
  };
  EXPECT_EQ(outcome(good), Code::kOk);
  EXPECT_EQ(outcome(good + "x"), Code::kDamaged);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    const Code expected = at < 8    ? Code::kNotThisFormat
                          : at < 12 ? Code::kUnsupported
                                    : Code::kDamaged;
    ASSERT_EQ(outcome(bad), expected) << at;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    ASSERT_EQ(outcome(good.substr(0, size)), size < 8 ? Code::kNotThisFormat : Code::kDamaged);
  }
}

TEST_F(PlanTest, DifferencesAreTold) {
  PackOptions options = options_with(uint64_t{64} << 20);
  FakeSource source(10, [](uint64_t i) { return entry_of(str_cat("k", i), 10, {0}); });
  const std::string before = plan(options, source);
  EXPECT_EQ(describe_plan_difference(before, plan(options, source)).value(), "");

  options.seed = 2;
  options.check = CheckMode::kDecode;
  FakeSource changed(11, [](uint64_t i) {
    SampleEntry entry = entry_of(str_cat("k", i), 10, {0});
    if (i == 1) entry.size_bytes = 12;
    if (i == 2) entry.int_labels = {7};
    if (i == 3) entry.mtime_ns += 1;
    if (i == 4) entry.reject = "not found";
    if (i == 5) entry.key = "new";
    return entry;
  });
  EXPECT_EQ(
      describe_plan_difference(before, plan(options, changed)).value(),
      "check: structure before, decode now\n"
      "seed: 0 before, 2 now\n"
      "samples added: 2 (k10, new)\n"
      "samples removed: 1 (k5)\n"
      "samples changed in size: 1 (k1: 10 bytes before, 12 bytes now)\n"
      "samples changed in label: 1 (k2: 0 before, 7 now)\n"
      "samples changed in mtime: 1 (k3)\n"
      "samples changed in what can be read of them: 1 (k4: readable before, not found now)\n");

  options.shuffle = ShuffleMode::kNone;
  FakeSource more(20, [](uint64_t i) { return entry_of(str_cat("k", i), 10, {0}); });
  more.listing.classes = {"a"};
  EXPECT_EQ(describe_plan_difference(before, plan(options, more)).value(),
            "check: structure before, decode now\n"
            "shuffle: full before, none now\n"
            "seed: 0 before, not set now\n"
            "classes added: 1 (a)\n"
            "samples added: 10 (k10, k11, k12, k13, k14 ...)\n");
}

TEST_F(PlanTest, ReorderedListIsADifference) {
  PackOptions options = options_with(uint64_t{64} << 20);
  FakeSource source(4, [](uint64_t i) { return entry_of(str_cat("k", i), 10); });
  FakeSource turned(4, [](uint64_t i) { return entry_of(str_cat("k", 3 - i), 10); });
  source.listing.ordered = turned.listing.ordered = true;
  const std::string before = plan(options, source);
  EXPECT_EQ(describe_plan_difference(before, plan(options, turned)).value(),
            "the order of the samples differs\n");
}

}  // namespace
}  // namespace spk
