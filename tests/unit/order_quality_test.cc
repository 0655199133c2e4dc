// How well orders shuffle and mix classes: what is measured agrees with what is known beforehand.
#include "commands/order_quality.h"

#include <gtest/gtest.h>

#include <numeric>

#include "commands/order_balance.h"

namespace spk {
namespace {

constexpr uint64_t kUnitSamples = 40;

std::vector<uint64_t> equal_units(uint64_t count) {
  std::vector<uint64_t> first_samples;
  for (uint64_t u = 0; u <= count; ++u) first_samples.push_back(u * kUnitSamples);
  return first_samples;
}

std::vector<int64_t> sorted_labels(uint64_t samples, uint64_t classes) {
  std::vector<int64_t> labels;
  for (uint64_t i = 0; i < samples; ++i) {
    labels.push_back(static_cast<int64_t>(i * classes / samples));
  }
  return labels;
}

std::vector<int64_t> mixed_labels(uint64_t samples, uint64_t classes) {
  const KeyedPermutation shuffle(5, 6, samples);
  std::vector<int64_t> labels(samples);
  for (uint64_t i = 0; i < samples; ++i) {
    labels[shuffle(i)] = static_cast<int64_t>(i * classes / samples);
  }
  return labels;
}

OrderSettings shuffled(uint32_t lanes, uint32_t window) {
  return {.lanes = lanes, .window = window};
}

constexpr OrderSettings kSequential{.kind = OrderKind::kSequential, .lanes = 1};
constexpr OrderSettings kRandom{.kind = OrderKind::kRandom, .lanes = 1};

TEST(PairsAgain, OneForAFullShuffleAndAllOfThemForNone) {
  const std::vector<uint64_t> first_samples = equal_units(2000);
  const OrderUnits units{first_samples, {}};
  const auto random = pairs_again(units, kRandom, 256);
  ASSERT_TRUE(random.ok() && *random);
  EXPECT_NEAR(**random, 1.0, 0.02);
  // The same batches in each epoch: all pairs meet again, of which a full shuffle has 249 / 79,999.
  const auto sequential = pairs_again(units, kSequential, 250);
  ASSERT_TRUE(sequential.ok() && *sequential);
  EXPECT_NEAR(**sequential, 79999.0 / 249, 1e-6);
}

TEST(PairsAgain, FallsWithLanesAndWindow) {
  const std::vector<uint64_t> first_samples = equal_units(8000);
  const OrderUnits units{first_samples, {}};
  double last = 1e9;
  for (const OrderSettings& settings :
       {shuffled(8, 1), shuffled(8, 4), shuffled(64, 1), shuffled(64, 2), shuffled(128, 4)}) {
    const auto again = pairs_again(units, settings, 256);
    ASSERT_TRUE(again.ok() && *again);
    EXPECT_LT(**again, last);
    last = **again;
  }
  EXPECT_NEAR(last, 1, 0.1);
}

TEST(PairsAgain, APartOfTheBatchesTellsAsMuch) {
  const std::vector<uint64_t> first_samples = equal_units(8000);
  const OrderUnits units{first_samples, {}};
  const auto all = pairs_again(units, shuffled(32, 1), 256);
  const auto some = pairs_again(units, shuffled(32, 1), 256, 50'000);
  ASSERT_TRUE(all.ok() && *all && some.ok() && *some);
  EXPECT_NEAR(**some / **all, 1, 0.05);
}

TEST(PairsAgain, NothingWhereNoPairCanMeet) {
  const std::vector<uint64_t> first_samples = equal_units(2);
  const OrderUnits units{first_samples, {}};
  for (const uint64_t batch : {uint64_t{1}, uint64_t{41}, uint64_t{1000}}) {
    const auto again = pairs_again(units, shuffled(4, 1), batch);
    ASSERT_TRUE(again.ok());
    EXPECT_FALSE(again->has_value()) << batch;
  }
  const std::vector<uint64_t> none{0};
  const auto again = pairs_again({none, {}}, shuffled(4, 1), 8);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->has_value());
}

TEST(ClassSpread, OneForMixedStorageInEveryOrder) {
  const std::vector<uint64_t> first_samples = equal_units(4000);
  const OrderUnits units{first_samples, {}};
  const std::vector<int64_t> labels = mixed_labels(units.sample_count(), 50);
  for (const OrderSettings& settings : {shuffled(8, 1), shuffled(64, 1), kRandom, kSequential}) {
    const auto spread = class_spread(units, settings, 64, labels);
    ASSERT_TRUE(spread.ok() && *spread);
    EXPECT_NEAR((*spread)->variance, 1, 0.03);
    EXPECT_NEAR((*spread)->classes_per_batch, (*spread)->classes_per_batch_shuffled, 0.2);
  }
}

TEST(ClassSpread, SortedStorageIsWithinTheEstimate) {
  const std::vector<uint64_t> first_samples = equal_units(20000);
  const OrderUnits units{first_samples, {}};
  const std::vector<int64_t> labels = sorted_labels(units.sample_count(), 500);
  for (const auto& [lanes, window] : {std::pair{16u, 1u}, {64u, 1u}, {64u, 2u}, {128u, 1u}}) {
    const auto spread = class_spread(units, shuffled(lanes, window), 256, labels);
    ASSERT_TRUE(spread.ok() && *spread);
    const double estimate = class_variance_estimate(1, 256, lanes, window);
    EXPECT_DOUBLE_EQ(estimate, 1 + 255.0 / (lanes * window));
    EXPECT_LT((*spread)->variance, estimate);
    EXPECT_GT((*spread)->variance, estimate - 1.2 / window - estimate * 0.3);
    EXPECT_LT((*spread)->classes_per_batch, (*spread)->classes_per_batch_shuffled * 0.95);
  }
}

TEST(ClassSpread, BatchesOfOneClassInStorageOrder) {
  const std::vector<uint64_t> first_samples = equal_units(100);
  const OrderUnits units{first_samples, {}};
  const auto spread =
      class_spread(units, kSequential, kUnitSamples, sorted_labels(units.sample_count(), 100));
  ASSERT_TRUE(spread.ok() && *spread);
  EXPECT_DOUBLE_EQ((*spread)->classes_per_batch, 1);
  // One class has all 40, 99 have none: 40 x 40 x 0.99 a batch; a full shuffle: 40 x 0.99 x (N -
  // 40) / (N - 1).
  EXPECT_NEAR((*spread)->variance, 40.0 * 3999 / 3960, 1e-9);
}

TEST(ClassSpread, NothingForOneClass) {
  const std::vector<uint64_t> first_samples = equal_units(100);
  const OrderUnits units{first_samples, {}};
  const auto spread =
      class_spread(units, shuffled(4, 1), 16, std::vector<int64_t>(units.sample_count(), 3));
  ASSERT_TRUE(spread.ok());
  EXPECT_FALSE(spread->has_value());
}

TEST(ClassMix, TellsSortedFromMixedStorage) {
  const std::vector<uint64_t> first_samples = equal_units(3000);
  const OrderUnits units{first_samples, {}};
  const ClassMix sorted = class_mix_of(units, sorted_labels(units.sample_count(), 100));
  EXPECT_DOUBLE_EQ(sorted.correlation(), 1);
  EXPECT_TRUE(sorted.is_sorted());
  const ClassMix mixed = class_mix_of(units, mixed_labels(units.sample_count(), 100));
  EXPECT_NEAR(mixed.correlation(), 0, 0.01);
  EXPECT_FALSE(mixed.is_sorted());
  // Classes of a third of a unit: a unit has three or four of them.
  const ClassMix small = class_mix_of(units, sorted_labels(units.sample_count(), 9000));
  EXPECT_NEAR(small.correlation(), 0.3, 0.05);
  EXPECT_FALSE(small.is_sorted());
  // As many classes as samples, or one: nothing to be sorted by.
  std::vector<int64_t> different(units.sample_count());
  std::iota(different.begin(), different.end(), -7);
  EXPECT_DOUBLE_EQ(class_mix_of(units, different).correlation(), 0);
  EXPECT_DOUBLE_EQ(class_mix_of(units, std::vector<int64_t>(units.sample_count())).correlation(),
                   0);
  const std::vector<uint64_t> none{0};
  EXPECT_DOUBLE_EQ(class_mix_of({none, {}}, {}).correlation(), 0);
}

TEST(Balance, LanesThatAreAMultipleOfTheTargetsAreEvenWithEqualSizes) {
  const std::vector<uint64_t> sizes{1 << 18};
  const auto balance = simulate_balance(sizes, {.lanes = 64, .targets = 16, .chunks_per_lane = 20});
  ASSERT_TRUE(balance.ok());
  EXPECT_EQ(balance->chunks, 64u * 20);
  EXPECT_EQ(balance->samples, 64u * 20 * 16);
  EXPECT_EQ(balance->slots, 16u);
  EXPECT_DOUBLE_EQ(balance->ideal, 1);
  EXPECT_DOUBLE_EQ(balance->balanced.mean, 1);
  EXPECT_DOUBLE_EQ(balance->balanced.worst, 1);
  EXPECT_GT(balance->plain.mean, 1.5);
}

TEST(Balance, OneTargetBearsEverything) {
  const std::vector<uint64_t> sizes{100'000, 5'000'000, 20};
  const auto balance = simulate_balance(sizes, {.lanes = 7, .targets = 1, .chunks_per_lane = 9});
  ASSERT_TRUE(balance.ok());
  EXPECT_DOUBLE_EQ(balance->ideal, 1);
  EXPECT_DOUBLE_EQ(balance->balanced.mean, 1);
  EXPECT_DOUBLE_EQ(balance->plain.worst, 1);
}

}  // namespace
}  // namespace spk
