// The order of an epoch and its views: every sample once, equal lanes, the same order for any
// number of ranks, resume from every step; and what the code deals is what a plain reading of
// docs/ORDER.md deals.
#include "layout/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <set>

#include "base/checked.h"
#include "layout/steps.h"
#include "layout/streams.h"
#include "property/random.h"

namespace spk::test {
namespace {

struct Case {
  std::vector<uint64_t> first_samples{0};
  std::vector<uint32_t> targets;
  OrderSettings settings;

  OrderUnits units() const { return {first_samples, targets}; }
  uint64_t sample_count() const { return first_samples.back(); }
};

Case random_case(Random& random) {
  Case made;
  const uint64_t units = random.below(random.one_in(4) ? 200 : 12);
  const uint64_t most = random.one_in(3) ? 1 : 1 + random.below(random.one_in(5) ? 1000 : 9);
  for (uint64_t u = 0; u < units; ++u) {
    made.first_samples.push_back(made.first_samples.back() + 1 + random.below(most));
  }
  if (!random.one_in(3)) {
    const uint64_t highest = 1 + random.below(9);  // uneven: some may hold none
    for (uint64_t u = 0; u < units; ++u) {
      made.targets.push_back(static_cast<uint32_t>(random.below(1 + random.below(highest))));
    }
  }
  made.settings.seed = random.bits();
  made.settings.epoch = random.below(5);
  made.settings.lanes = static_cast<uint32_t>(1 + random.below(random.one_in(4) ? 100 : 9));
  made.settings.window = static_cast<uint32_t>(1 + random.below(4));
  return made;
}

EpochOrder order_of(const Case& made) {
  Result<EpochOrder> order = EpochOrder::make(made.units(), made.settings);
  EXPECT_TRUE(order.ok()) << order.status().to_string();
  return std::move(*order);
}

// All of an epoch, position by position.
std::vector<uint64_t> whole_order(EpochOrder& order) {
  std::vector<uint64_t> all(order.sample_count());
  std::vector<uint64_t> samples;
  for (uint32_t lane = 0; lane < order.lanes(); ++lane) {
    for (uint64_t row = 0; row < order.lane_rows(lane);) {
      const LaneWindow& window = order.window_at(lane, row);
      EXPECT_EQ(window.first_row, row);
      order.window_samples(window, samples);
      for (const uint64_t sample : samples) all[row++ * order.lanes() + lane] = sample;
    }
  }
  return all;
}

// docs/ORDER.md word by word, without heaps and without stopping early.
std::vector<uint64_t> plain_order(const Case& made) {
  const uint64_t lanes = made.settings.lanes;
  const uint64_t w = made.settings.window;
  const OrderUnits units = made.units();
  uint64_t target_count = 1;
  for (const uint32_t target : made.targets) {
    target_count = std::max<uint64_t>(target_count, target + 1);
  }
  std::vector<std::vector<uint64_t>> by_target(target_count);
  for (uint64_t u = 0; u < units.unit_count(); ++u) {
    by_target[made.targets.empty() ? 0 : made.targets[u]].push_back(u);
  }
  const KeyedPermutation places(made.settings.seed,
                                stream_of(StreamKind::kTargets, made.settings.epoch), target_count);
  std::vector<std::tuple<uint64_t, uint64_t, uint64_t>> sequence;
  for (uint64_t s = 0; s < target_count; ++s) {
    const uint64_t count = by_target[s].size();
    const KeyedPermutation shuffle(made.settings.seed,
                                   stream_of(StreamKind::kUnits, made.settings.epoch, s), count);
    for (uint64_t j = 0; j < count; ++j) {
      sequence.emplace_back(((2 * j + 1) << 31) / count, places.inverse(s),
                            by_target[s][shuffle(j)]);
    }
  }
  std::sort(sequence.begin(), sequence.end());
  std::vector<std::vector<OrderPiece>> pieces(lanes);
  std::vector<uint64_t> time(lanes);
  for (size_t next = 0; next < sequence.size();) {
    const auto lane = std::min_element(time.begin(), time.end()) - time.begin();
    for (uint64_t i = 0; i < w && next < sequence.size(); ++i, ++next) {
      const uint64_t u = std::get<2>(sequence[next]);
      pieces[lane].push_back({u, units.first_samples[u], units.samples_of(u)});
      time[lane] += units.samples_of(u);
    }
  }
  std::deque<std::pair<uint64_t, uint64_t>> pool;  // unit, sample; sample by sample
  std::vector<uint64_t> due(lanes);
  for (uint64_t l = 0; l < lanes; ++l) {
    due[l] = made.sample_count() / lanes + (l < made.sample_count() % lanes ? 1 : 0);
    std::deque<std::pair<uint64_t, uint64_t>> cut;
    for (; time[l] > due[l]; --time[l]) {
      OrderPiece& last = pieces[l].back();
      cut.emplace_front(last.unit, last.first_sample + --last.sample_count);
      if (last.sample_count == 0) pieces[l].pop_back();
    }
    pool.insert(pool.end(), cut.begin(), cut.end());
  }
  for (uint64_t l = 0; l < lanes; ++l) {
    bool first = true;
    for (; time[l] < due[l]; ++time[l]) {
      const auto [unit, sample] = pool.front();
      pool.pop_front();
      OrderPiece* last = pieces[l].empty() ? nullptr : &pieces[l].back();
      if (!first && last->unit == unit && last->first_sample + last->sample_count == sample) {
        ++last->sample_count;
      } else {
        pieces[l].push_back({unit, sample, 1});
      }
      first = false;
    }
  }
  std::vector<uint64_t> all(made.sample_count());
  for (uint64_t l = 0; l < lanes; ++l) {
    uint64_t row = 0;
    for (uint64_t k = 0; k * w < pieces[l].size(); ++k) {
      std::vector<uint64_t> samples;
      for (uint64_t i = k * w; i < std::min((k + 1) * w, uint64_t{pieces[l].size()}); ++i) {
        for (uint64_t n = 0; n < pieces[l][i].sample_count; ++n) {
          samples.push_back(pieces[l][i].first_sample + n);
        }
      }
      shuffle_table(made.settings.seed, stream_of(StreamKind::kWindow, made.settings.epoch, l, k),
                    std::span<uint64_t>(samples));
      for (const uint64_t sample : samples) all[row++ * lanes + l] = sample;
    }
  }
  return all;
}

bool is_permutation_of_all(std::vector<uint64_t> samples) {
  std::sort(samples.begin(), samples.end());
  for (uint64_t i = 0; i < samples.size(); ++i) {
    if (samples[i] != i) return false;
  }
  return true;
}

TEST(OrderProperty, IsWhatThePageSays) {
  for_random_rounds(3000, [](Random& random) {
    const Case made = random_case(random);
    EpochOrder order = order_of(made);
    const std::vector<uint64_t> all = whole_order(order);
    ASSERT_TRUE(is_permutation_of_all(all));
    ASSERT_EQ(all, plain_order(made));
  });
}

TEST(OrderProperty, WindowsMayBeAskedForInAnyOrder) {
  for_random_rounds(1000, [](Random& random) {
    const Case made = random_case(random);
    if (made.sample_count() == 0) return;
    EpochOrder first = order_of(made);
    first.finish();
    const std::vector<uint64_t> all = whole_order(first);
    EpochOrder second = order_of(made);
    std::vector<uint64_t> samples;
    for (int i = 0; i < 50; ++i) {
      const uint64_t position = random.below(made.sample_count());
      const auto lane = static_cast<uint32_t>(position % second.lanes());
      const uint64_t row = position / second.lanes();
      const LaneWindow& window = second.window_at(lane, row);
      ASSERT_LE(window.first_row, row);
      ASSERT_LT(row, window.first_row + window.row_count);
      second.window_samples(window, samples);
      ASSERT_EQ(samples[row - window.first_row], all[position]);
    }
  });
}

TEST(OrderProperty, EpochsAndSeedsDiffer) {
  Case made;
  for (uint64_t u = 0; u < 100; ++u) made.first_samples.push_back(made.first_samples.back() + 37);
  std::set<std::vector<uint64_t>> seen;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    for (uint64_t epoch = 0; epoch < 20; ++epoch) {
      made.settings.seed = seed;
      made.settings.epoch = epoch;
      EpochOrder order = order_of(made);
      seen.insert(whole_order(order));
    }
  }
  EXPECT_EQ(seen.size(), 100u);
}

// What a whole world delivers from `consumed` on, step by step; each step sorted, as ranks share it
// out in different ways.
std::vector<std::vector<uint64_t>> delivered(const StepRules& like, uint64_t consumed) {
  std::vector<std::vector<uint64_t>> steps;
  std::vector<uint64_t> mine;
  while (like.steps_from(consumed) > 0) {
    std::vector<uint64_t> step;
    std::vector<size_t> counts;
    for (uint64_t rank = 0; rank < like.world; ++rank) {
      StepRules rules = like;
      rules.rank = rank;
      rules.positions(consumed, mine);
      counts.push_back(mine.size());
      step.insert(step.end(), mine.begin(), mine.end());
    }
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    EXPECT_LE(*most - *least, 1u);
    if (step.size() == like.step_samples()) {
      EXPECT_EQ(*least, like.batch);
    }
    std::sort(step.begin(), step.end());
    steps.push_back(std::move(step));
    consumed = like.consumed_after(consumed, 1);
  }
  return steps;
}

TEST(StepProperty, EveryPositionOnceForAnyWorld) {
  for_random_rounds(3000, [](Random& random) {
    StepRules rules;
    rules.sample_count = 1 + random.below(400);
    rules.lanes = 1 + random.below(20);
    rules.world = 1 + random.below(12);
    rules.batch = 1 + random.below(8);
    rules.tail = static_cast<TailRule>(random.below(3));
    ASSERT_TRUE(rules.check().ok());
    std::vector<uint64_t> all;
    for (const std::vector<uint64_t>& step : delivered(rules, 0)) {
      ASSERT_TRUE(rules.tail == TailRule::kExact || step.size() == rules.step_samples());
      all.insert(all.end(), step.begin(), step.end());
    }
    uint64_t due = rules.sample_count;
    if (rules.tail == TailRule::kDrop) due -= due % rules.step_samples();
    if (rules.tail == TailRule::kPad)
      due = divide_up(due, rules.step_samples()) * rules.step_samples();
    ASSERT_EQ(all.size(), due);
    for (uint64_t g = 0; g < all.size(); ++g) ASSERT_EQ(all[g], g);
  });
}

TEST(StepProperty, AnyWorldGoesOnFromEveryStep) {
  for_random_rounds(300, [](Random& random) {
    StepRules before;
    before.sample_count = 1 + random.below(150);
    before.lanes = 1 + random.below(10);
    before.world = 1 + random.below(6);
    before.batch = 1 + random.below(4);
    before.tail = TailRule::kExact;
    for (uint64_t steps = 0; steps <= before.steps_from(0); ++steps) {
      const uint64_t consumed = before.consumed_after(0, steps);
      for (uint64_t world = 1; world <= 4; ++world) {
        StepRules after = before;
        after.world = world;
        uint64_t next = consumed;
        for (const std::vector<uint64_t>& step : delivered(after, consumed)) {
          for (const uint64_t position : step) ASSERT_EQ(position, next++);
        }
        ASSERT_EQ(next, before.sample_count);
      }
    }
  });
}

TEST(Steps, ARankWithItsOwnLanesReadsNoOther) {
  StepRules rules{.sample_count = 1000, .lanes = 12, .rank = 1, .world = 4, .batch = 5};
  std::vector<uint64_t> mine;
  for (uint64_t consumed = 0; rules.steps_from(consumed) > 0;
       consumed = rules.consumed_after(consumed, 1)) {
    rules.positions(consumed, mine);
    for (const uint64_t g : mine) EXPECT_EQ(g % 12 % 4, 1u);
  }
}

}  // namespace
}  // namespace spk::test
