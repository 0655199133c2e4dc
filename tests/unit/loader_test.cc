#include "loader/loader.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "support/sanitizers.h"
#include "unit/loader_fixture.h"

namespace spk::test {
namespace {

TEST_F(LoaderTest, EveryEngineGivesTheSameBatches) {
  const auto usual = rest(*open(options()));
  EXPECT_EQ(sorted(flat(usual)), numbers_up_to(kLoaderSamples));
  EXPECT_EQ(usual.size(), (kLoaderSamples + 7) / 8);
  for (const EngineChoice engine :
       {EngineChoice::kPread, EngineChoice::kPool, EngineChoice::kUring, EngineChoice::kMmap}) {
    for (const bool direct : {false, true}) {
      if (direct && engine == EngineChoice::kMmap) continue;
      LoaderOptions other = options();
      other.engine = engine;
      other.direct = direct ? DirectChoice::kOn : DirectChoice::kOff;
      const auto loader = open(other);
      EXPECT_EQ(rest(*loader), usual) << static_cast<int>(engine) << direct;
      const LoaderStats stats = loader->stats();
      EXPECT_EQ(stats.samples, kLoaderSamples);
      EXPECT_EQ(stats.steps, usual.size());
      EXPECT_LE(stats.ring_peak_bytes, stats.ring_limit_bytes);
      EXPECT_EQ(stats.reads == 0, engine == EngineChoice::kMmap);
    }
  }
}

TEST_F(LoaderTest, FollowsTheOrder) {
  std::vector<uint64_t> first_samples;
  for (uint64_t i = 0; i < pack_->chunk_count(); ++i) {
    first_samples.push_back(pack_->chunk(i)->first_sample);
  }
  first_samples.push_back(kLoaderSamples);
  for (const OrderKind kind : {OrderKind::kShuffled, OrderKind::kSequential, OrderKind::kRandom}) {
    LoaderOptions wanted = options();
    wanted.order = kind;
    wanted.seed = 7;
    wanted.epoch = 3;
    if (kind != OrderKind::kShuffled) wanted.lanes = 1;
    const auto loader = open(wanted);
    const auto all = flat(rest(*loader));
    auto order = EpochOrder::make({first_samples, {}}, loader->order());
    ASSERT_TRUE(order.ok());
    std::vector<uint64_t> due;
    std::vector<uint64_t> window_samples;
    for (uint64_t step = 0; step < kLoaderSamples; step += 8) {
      std::vector<uint64_t> positions;
      loader->rules().positions(step, positions);
      for (const uint64_t g : positions) {
        if (!order->has_windows()) {
          due.push_back(order->sample_at(g));
          continue;
        }
        const LaneWindow& window = order->window_at(static_cast<uint32_t>(g % 4), g / 4);
        order->window_samples(window, window_samples);
        due.push_back(window_samples[g / 4 - window.first_row]);
      }
    }
    EXPECT_EQ(all, due) << order_kind_name(kind);
  }
}

TEST_F(LoaderTest, TheOrderDoesNotDependOnTheWorld) {
  LoaderOptions wanted = options();
  for (const OrderKind kind : {OrderKind::kShuffled, OrderKind::kSequential, OrderKind::kRandom}) {
    wanted.order = kind;
    wanted.lanes = kind == OrderKind::kShuffled ? 4 : 1;
    wanted.batch = 12;
    const auto alone = world(wanted, 1);
    for (const uint64_t ranks : {2, 3, 4, 6}) {
      wanted.batch = 12 / ranks;
      EXPECT_EQ(world(wanted, ranks), alone) << ranks << " ranks, " << order_kind_name(kind);
    }
  }
}

TEST_F(LoaderTest, ResumesAtEveryStepOnAnyWorld) {
  LoaderOptions wanted = options();
  wanted.batch = 24;
  const auto undisturbed = world(wanted, 1);
  const auto loader = open(wanted);
  for (size_t step = 0; step <= undisturbed.size(); step += 3) {
    const LoaderState state = loader->state();
    EXPECT_EQ(state.consumed, std::min<uint64_t>(step * 24, kLoaderSamples));
    auto parsed = LoaderState::parse(state.to_text());
    ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
    for (const uint64_t ranks : {1, 2, 3, 4}) {
      LoaderOptions resumed = wanted;
      resumed.batch = 24 / ranks;
      resumed.seed = 99;  // the state's counts
      const auto left = world(resumed, ranks, &*parsed);
      ASSERT_EQ(left.size(), undisturbed.size() - step);
      EXPECT_TRUE(std::equal(left.begin(), left.end(), undisturbed.begin() + step));
    }
    for (int i = 0; i < 3; ++i) next(*loader);
  }
}

TEST_F(LoaderTest, TwoLoadersFromOneStateGiveTheSame) {
  const auto loader = open(options());
  for (int i = 0; i < 5; ++i) next(*loader);
  const LoaderState state = loader->state();
  const auto left = rest(*loader);
  for (int i = 0; i < 2; ++i) {
    auto resumed = Loader::resume(pack_, options(), state);
    ASSERT_TRUE(resumed.ok());
    EXPECT_EQ(rest(**resumed), left);
  }
}

TEST_F(LoaderTest, WorkersShareTheSteps) {
  const auto alone = rest(*open(options()));
  for (const uint64_t workers : {2, 3, 100}) {
    std::vector<std::vector<uint64_t>> together(alone.size());
    for (uint64_t worker = 0; worker < workers; ++worker) {
      LoaderOptions wanted = options();
      wanted.worker = worker;
      wanted.workers = workers;
      const auto mine = rest(*open(wanted));
      for (size_t i = 0; i < mine.size(); ++i) together[worker + i * workers] = mine[i];
    }
    EXPECT_EQ(together, alone) << workers;
  }
}

TEST_F(LoaderTest, TailRules) {
  LoaderOptions wanted = options();
  wanted.batch = 64;
  wanted.world = 2;
  wanted.tail = TailRule::kDrop;
  EXPECT_EQ(rest(*open(wanted)).size(), kLoaderSamples / 128);
  wanted.tail = TailRule::kPad;
  uint64_t repeated = 0;
  std::map<uint64_t, int> seen;
  for (wanted.rank = 0; wanted.rank < 2; ++wanted.rank) {
    const auto loader = open(wanted);
    const auto batches = rest(*loader);
    EXPECT_EQ(batches.size(), 4u);
    for (const auto& batch : batches) {
      EXPECT_EQ(batch.size(), 64u);
      for (const uint64_t sample : batch) ++seen[sample];
    }
    repeated += loader->stats().repeated;
    EXPECT_EQ(loader->state().consumed, kLoaderSamples);
  }
  EXPECT_EQ(seen.size(), kLoaderSamples);
  EXPECT_EQ(repeated, 4 * 128 - kLoaderSamples);
}

TEST_F(LoaderTest, AWorldLargerThanThePack) {
  make_pack(image_samples(3, 100, 200));
  LoaderOptions wanted = options();
  wanted.world = 7;
  wanted.lanes = 0;
  wanted.batch = 1;
  std::vector<uint64_t> all;
  for (wanted.rank = 0; wanted.rank < 7; ++wanted.rank) {
    const auto loader = open(wanted);
    const auto batches = flat(rest(*loader));
    EXPECT_LE(batches.size(), 1u);
    all.insert(all.end(), batches.begin(), batches.end());
    EXPECT_EQ(loader->state().consumed, 3u);
  }
  EXPECT_EQ(sorted(all), numbers_up_to(3));
  wanted.rank = 6;
  wanted.tail = TailRule::kPad;
  EXPECT_EQ(rest(*open(wanted)).size(), 1u);
  wanted.tail = TailRule::kDrop;
  EXPECT_EQ(rest(*open(wanted)).size(), 0u);
}

TEST_F(LoaderTest, APackWithoutSamples) {
  make_pack({});
  for (const TailRule tail : {TailRule::kDrop, TailRule::kPad, TailRule::kExact}) {
    LoaderOptions wanted = options();
    wanted.tail = tail;
    EXPECT_TRUE(rest(*open(wanted)).empty());
  }
}

TEST_F(LoaderTest, EpochsDifferAndRepeat) {
  const auto loader = open(options());
  const auto first = rest(*loader);
  EXPECT_EQ(next(*loader).size(), 0u);
  ASSERT_TRUE(loader->start_epoch(1).ok());
  const auto second = rest(*loader);
  EXPECT_NE(first, second);
  EXPECT_EQ(sorted(flat(second)), numbers_up_to(kLoaderSamples));
  ASSERT_TRUE(loader->start_epoch(0).ok());
  next(*loader);
  ASSERT_TRUE(loader->start_epoch(0).ok());  // in the middle of another
  EXPECT_EQ(rest(*loader), first);
}

// The first epoch that follows another tells that more may: from then on, what the next one begins
// with is read before it is begun.
TEST_F(LoaderTest, TheNextEpochIsReadAhead) {
  LoaderOptions wanted = options();
  wanted.engine = EngineChoice::kPool;
  wanted.direct = DirectChoice::kOff;
  wanted.memory_bytes = 64 << 20;
  const auto loader = open(wanted);
  uint64_t due = 0;  // reads of the epochs that were asked for so far
  const auto fresh = [&](uint64_t epoch) {
    wanted.epoch = epoch;
    const auto alone = open(wanted);
    auto batches = rest(*alone);
    due += alone->stats().reads;
    return batches;
  };
  EXPECT_EQ(rest(*loader), fresh(0));
  EXPECT_EQ(loader->stats().reads, due);
  ASSERT_TRUE(loader->start_epoch(1).ok());
  EXPECT_EQ(rest(*loader), fresh(1));
  EXPECT_EQ(loader->state().order.epoch, 1u);
  EXPECT_EQ(loader->state().consumed, kLoaderSamples);
  const auto second = fresh(2);
  while (loader->stats().reads < due) std::this_thread::yield();  // there is room for all of it
  ASSERT_TRUE(loader->start_epoch(2).ok());
  EXPECT_EQ(loader->step_count(), second.size());
  EXPECT_EQ(rest(*loader), second);
  fresh(3);
  while (loader->stats().reads < due) std::this_thread::yield();
  // Another than was expected, and one that is left in the middle.
  ASSERT_TRUE(loader->start_epoch(7).ok());
  EXPECT_EQ(rest(*loader), fresh(7));
  EXPECT_EQ(loader->stats().reads, due);
  ASSERT_TRUE(loader->start_epoch(8).ok());
  EXPECT_EQ(next(*loader), fresh(8).front());
  ASSERT_TRUE(loader->start_epoch(9).ok());
  EXPECT_EQ(rest(*loader), fresh(9));
}

// Reading ahead takes what the epoch at hand leaves, never what it needs.
TEST_F(LoaderTest, TheNextEpochIsReadAheadWithinTheLimit) {
  for (const EngineChoice engine : {EngineChoice::kPool, EngineChoice::kUring}) {
    LoaderOptions wanted = options();
    wanted.engine = engine;
    // The least that will do.
    wanted.memory_bytes = 64 << 10;
    while (!Loader::open(pack_, wanted).ok()) wanted.memory_bytes += 64 << 10;
    const auto loader = open(wanted);
    for (uint64_t epoch = 0; epoch < 5; ++epoch) {
      if (epoch > 0) ASSERT_TRUE(loader->start_epoch(epoch).ok());
      LoaderOptions alone = options();
      alone.epoch = epoch;
      EXPECT_EQ(rest(*loader), rest(*open(alone)));
      EXPECT_LE(loader->stats().ring_peak_bytes, wanted.memory_bytes);
    }
  }
}

TEST_F(LoaderTest, SamplesLargerThanAChunk) {
  std::vector<TestSample> samples = image_samples(40, 10, 3000);
  samples[7].values[0] = std::string(300'000, 'x');
  samples[30].values[0] = std::string(65536 * 3, 'y');
  samples[31].values[0] = std::string();
  samples[32].values[0] = std::monostate();
  make_pack(samples);
  samples_[32].values[0] = std::string();
  LoaderOptions wanted = options();
  wanted.memory_bytes = 2 << 20;
  for (const EngineChoice engine : {EngineChoice::kPool, EngineChoice::kMmap}) {
    for (const OrderKind kind : {OrderKind::kShuffled, OrderKind::kRandom}) {
      wanted.engine = engine;
      wanted.order = kind;
      wanted.lanes = kind == OrderKind::kShuffled ? 4 : 1;
      const auto loader = open(wanted);
      EXPECT_EQ(sorted(flat(rest(*loader))), numbers_up_to(40));
    }
  }
}

TEST_F(LoaderTest, EmptyIsNotAbsent) {
  std::vector<TestSample> samples = image_samples(3, 10, 20);
  samples[0].values[0] = std::string();
  samples[1].values[0] = std::monostate();
  make_pack(samples);
  for (const OrderKind kind : {OrderKind::kShuffled, OrderKind::kRandom}) {
    LoaderOptions wanted = options();
    wanted.order = kind;
    wanted.lanes = 1;
    auto batch = open(wanted)->next();
    ASSERT_TRUE(batch.ok());
    ASSERT_EQ((*batch)->size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      const uint64_t which = stored_[(*batch)->sample(i)];
      EXPECT_EQ((*batch)->blob(i, 0).data() == nullptr, which == 1) << which;
      EXPECT_EQ((*batch)->blob(i, 0).empty(), which <= 1) << which;
    }
  }
}

TEST_F(LoaderTest, BatchesOutliveTheLoader) {
  std::shared_ptr<const Batch> kept;
  {
    const auto loader = open(options());
    kept = *loader->next();
  }
  for (size_t i = 0; i < kept->size(); ++i) {
    const ByteSpan bytes = kept->blob(i, 0);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), image(kept->sample(i)));
  }
}

TEST_F(LoaderTest, AForkedChildMakesItsOwn) {
  if (!test::kForkWithThreadsWorks) GTEST_SKIP() << "not with a sanitizer";
  const auto before = open(options());
  const auto begun = open(options());
  const auto due = rest(*open(options()));
  next(*begun);
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    // A loader that has not begun goes on; one that has is refused; a new one serves.
    const bool good = rest(*before) == due &&
                      begun->next().status().code() == Code::kInvalidArgument &&
                      rest(*open(options())) == due;
    _exit(good && !HasFailure() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(rest(*begun).size(), due.size() - 1);
}

TEST(LoaderStateText, IsReadBackAndNothingElseIs) {
  LoaderState state;
  state.content_id = {1, 0xabcdef};
  state.map_digest = 77;
  state.order = {OrderKind::kShuffled, UINT64_MAX, 3, 64, 2};
  state.consumed = 40960;
  const std::string text = state.to_text();
  EXPECT_EQ(text,
            "stripepack-state/1 content=" + state.content_id.to_hex() +
                " map=000000000000004d order=shuffled seed=18446744073709551615 epoch=3 lanes=64 "
                "window=2 consumed=40960");
  auto parsed = LoaderState::parse(text);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->to_text(), text);
  for (size_t size = 0; size < text.size(); ++size) {
    auto cut = LoaderState::parse(text.substr(0, size));
    // A cut number is a number.
    if (size > text.size() - 5) continue;
    EXPECT_FALSE(cut.ok()) << text.substr(0, size);
  }
  EXPECT_FALSE(LoaderState::parse(text + " more=1").ok());
  EXPECT_FALSE(LoaderState::parse(text + "\n").ok());
  std::string newer = text;
  newer[17] = '2';
  EXPECT_EQ(LoaderState::parse(newer).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace spk::test
