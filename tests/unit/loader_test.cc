#include "loader/loader.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/text.h"
#include "support/test_pack.h"

namespace spk::test {
namespace {

constexpr size_t kSamples = 500;

// A pack of some thirty chunks in three shards, and what should be read from it.
class LoaderTest : public testing::Test {
 protected:
  void SetUp() override { make_pack(image_samples(kSamples, 500, 6000)); }

  void make_pack(std::vector<TestSample> samples, Schema schema = image_schema()) {
    samples_ = std::move(samples);
    TestPackOptions options;
    options.schema = std::move(schema);
    options.geometry.shard_count = 3;
    std::filesystem::remove_all(path());
    auto order = write_test_pack(path(), samples_, options);
    ASSERT_TRUE(order.ok()) << order.status().to_string();
    stored_ = *order;
    auto pack = Pack::open(path());
    ASSERT_TRUE(pack.ok()) << pack.status().to_string();
    pack_ = *pack;
  }

  std::string path() const { return dir_ / "p"; }
  const std::string& image(uint64_t sample) const {
    return std::get<std::string>(samples_[stored_[sample]].values[0]);
  }

  LoaderOptions options() const {
    LoaderOptions options;
    options.lanes = 4;
    options.batch = 8;
    options.tail = TailRule::kExact;
    options.memory_bytes = 1 << 20;
    return options;
  }

  std::unique_ptr<Loader> open(const LoaderOptions& options) const {
    auto loader = Loader::open(pack_, options);
    EXPECT_TRUE(loader.ok()) << loader.status().to_string();
    return std::move(*loader);
  }

  // The samples of the next batch, each compared with its source; nothing at the end.
  std::vector<uint64_t> next(Loader& loader) const {
    auto batch = loader.next();
    EXPECT_TRUE(batch.ok()) << batch.status().to_string();
    std::vector<uint64_t> samples;
    if (!batch.ok() || *batch == nullptr) return samples;
    for (size_t i = 0; i < (*batch)->size(); ++i) {
      const uint64_t sample = (*batch)->sample(i);
      samples.push_back(sample);
      const ByteSpan bytes = (*batch)->blob(i, 0);
      EXPECT_EQ(std::string(bytes.begin(), bytes.end()), image(sample)) << "sample " << sample;
      const auto label = std::get<std::vector<int64_t>>(samples_[stored_[sample]].values[1]);
      EXPECT_EQ((*batch)->numbers(i, 0).size(), 1u);
      EXPECT_EQ(static_cast<int64_t>((*batch)->numbers(i, 0)[0]), label[0]);
    }
    return samples;
  }

  std::vector<std::vector<uint64_t>> rest(Loader& loader) const {
    std::vector<std::vector<uint64_t>> batches;
    for (auto batch = next(loader); !batch.empty(); batch = next(loader)) batches.push_back(batch);
    return batches;
  }

  // What W ranks are given together, step by step, each step sorted.
  std::vector<std::vector<uint64_t>> world(LoaderOptions options, uint64_t ranks,
                                           const LoaderState* state = nullptr) const {
    std::vector<std::vector<uint64_t>> steps;
    options.world = ranks;
    for (uint64_t rank = 0; rank < ranks; ++rank) {
      options.rank = rank;
      auto loader = state ? Loader::resume(pack_, options, *state) : Loader::open(pack_, options);
      EXPECT_TRUE(loader.ok()) << loader.status().to_string();
      const auto batches = rest(**loader);
      steps.resize(std::max(steps.size(), batches.size()));
      for (size_t i = 0; i < batches.size(); ++i) {
        steps[i].insert(steps[i].end(), batches[i].begin(), batches[i].end());
      }
    }
    for (auto& step : steps) std::sort(step.begin(), step.end());
    return steps;
  }

  void damage(uint64_t sample) const {
    auto place = pack_->locate(sample, 0);
    ASSERT_TRUE(place.ok());
    flip_byte(dir_ / "p" + "/" + shard_file_name(place->shard), place->offset + 3);
  }

  TempDir dir_;
  std::vector<TestSample> samples_;
  std::vector<uint64_t> stored_;
  std::shared_ptr<Pack> pack_;
};

std::vector<uint64_t> flat(const std::vector<std::vector<uint64_t>>& steps) {
  std::vector<uint64_t> all;
  for (const auto& step : steps) all.insert(all.end(), step.begin(), step.end());
  return all;
}

std::vector<uint64_t> sorted(std::vector<uint64_t> all) {
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<uint64_t> numbers_up_to(uint64_t count) {
  std::vector<uint64_t> all(count);
  for (uint64_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

TEST_F(LoaderTest, EveryEngineGivesTheSameBatches) {
  const auto usual = rest(*open(options()));
  EXPECT_EQ(sorted(flat(usual)), numbers_up_to(kSamples));
  EXPECT_EQ(usual.size(), (kSamples + 7) / 8);
  for (const EngineChoice engine :
       {EngineChoice::kPread, EngineChoice::kPool, EngineChoice::kUring, EngineChoice::kMmap}) {
    for (const bool direct : {false, true}) {
      if (direct && engine == EngineChoice::kMmap) continue;
      LoaderOptions other = options();
      other.engine = engine;
      other.direct = direct;
      const auto loader = open(other);
      EXPECT_EQ(rest(*loader), usual) << static_cast<int>(engine) << direct;
      const LoaderStats stats = loader->stats();
      EXPECT_EQ(stats.samples, kSamples);
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
  first_samples.push_back(kSamples);
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
    for (uint64_t step = 0; step < kSamples; step += 8) {
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
    EXPECT_EQ(state.consumed, std::min<uint64_t>(step * 24, kSamples));
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
  EXPECT_EQ(rest(*open(wanted)).size(), kSamples / 128);
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
    EXPECT_EQ(loader->state().consumed, kSamples);
  }
  EXPECT_EQ(seen.size(), kSamples);
  EXPECT_EQ(repeated, 4 * 128 - kSamples);
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
  EXPECT_EQ(sorted(flat(second)), numbers_up_to(kSamples));
  ASSERT_TRUE(loader->start_epoch(0).ok());
  next(*loader);
  ASSERT_TRUE(loader->start_epoch(0).ok());  // in the middle of another
  EXPECT_EQ(rest(*loader), first);
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

TEST_F(LoaderTest, ADamagedSampleIsNamed) {
  damage(123);
  for (const EngineChoice engine : {EngineChoice::kPool, EngineChoice::kMmap}) {
    LoaderOptions wanted = options();
    wanted.engine = engine;
    const auto loader = open(wanted);
    auto batch = loader->next();
    while (batch.ok() && *batch != nullptr) batch = loader->next();
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(batch.status().code(), Code::kDamaged);
    EXPECT_NE(batch.status().message().find(*pack_->key(123)), std::string::npos)
        << batch.status().to_string();
    const LoaderState stopped = loader->state();
    EXPECT_EQ(loader->next().status().code(), Code::kDamaged);  // it stands where it stood
    EXPECT_EQ(loader->state().consumed, stopped.consumed);

    wanted.skip_damaged = true;
    const auto skipping = open(wanted);
    const auto batches = rest(*skipping);
    EXPECT_EQ(batches.size(), (kSamples + 7) / 8);  // as many as without damage
    EXPECT_EQ(flat(batches).size(), kSamples - 1);
    EXPECT_EQ(skipping->stats().skipped, 1u);
  }
}

TEST_F(LoaderTest, ADamagedChunkHeadCostsNoSample) {
  flip_byte(path() + "/" + shard_file_name(0), 200);
  LoaderOptions wanted = options();
  wanted.engine = EngineChoice::kPool;
  EXPECT_EQ(sorted(flat(rest(*open(wanted)))), numbers_up_to(kSamples));
}

TEST_F(LoaderTest, ACutShardCostsWhatLiesBehindTheCut) {
  auto place = pack_->locate(100, 0);
  ASSERT_TRUE(place.ok());
  const std::string file = path() + "/" + shard_file_name(place->shard);
  std::filesystem::resize_file(file, place->offset + 1);
  LoaderOptions wanted = options();
  wanted.skip_damaged = true;
  const auto loader = open(wanted);
  const auto all = flat(rest(*loader));
  EXPECT_EQ(all.size() + loader->stats().skipped, kSamples);
  EXPECT_EQ(std::count(all.begin(), all.end(), 100u), 0);
  EXPECT_EQ(std::count(all.begin(), all.end(), 99u), 1);
}

TEST_F(LoaderTest, AMissingShardIsNamed) {
  std::filesystem::remove(path() + "/" + shard_file_name(1));
  const auto loader = open(options());
  auto batch = loader->next();
  while (batch.ok() && *batch != nullptr) batch = loader->next();
  ASSERT_FALSE(batch.ok());
  EXPECT_NE(batch.status().to_string().find(shard_file_name(1)), std::string::npos)
      << batch.status().to_string();
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

TEST_F(LoaderTest, HeldBatchesAreAnErrorNotAHang) {
  LoaderOptions wanted = options();
  wanted.engine = EngineChoice::kPool;
  wanted.memory_bytes = 9 * 65536;
  const auto loader = open(wanted);
  std::vector<std::shared_ptr<const Batch>> held;
  Status status;
  for (;;) {
    auto batch = loader->next();
    if (!batch.ok()) {
      status = batch.status();
      break;
    }
    ASSERT_NE(*batch, nullptr);
    held.push_back(*batch);
  }
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_LE(loader->stats().ring_peak_bytes, 9u * 65536);
  held.clear();
  EXPECT_EQ(next(*loader).size(), 8u);
}

TEST_F(LoaderTest, RefusesTooLittleMemoryAndSaysHowMuchIsNeeded) {
  LoaderOptions wanted = options();
  wanted.memory_bytes = 7 * 65536;
  auto loader = Loader::open(pack_, wanted);
  ASSERT_FALSE(loader.ok());
  EXPECT_EQ(loader.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(
      loader.status().message(),
      "a memory limit of 448 KiB is too small: 4 lanes with windows of 1 chunks and batches of 8 "
      "on 1 ranks need 512 KiB");
  wanted.memory_bytes = 8 * 65536;
  EXPECT_EQ(sorted(flat(rest(*open(wanted)))), numbers_up_to(kSamples));
}

TEST_F(LoaderTest, RefusesWhatCannotBe) {
  const auto refusal = [&](auto&& change) {
    LoaderOptions wanted = options();
    change(wanted);
    auto loader = Loader::open(pack_, wanted);
    return loader.ok() ? std::string("accepted") : loader.status().message();
  };
  EXPECT_EQ(refusal([](auto& o) { o.rank = 2, o.world = 2; }),
            "there is no rank 2 in a world of 2 ranks");
  EXPECT_EQ(refusal([](auto& o) { o.world = 0; }), "there is no rank 0 in a world of 0 ranks");
  EXPECT_EQ(refusal([](auto& o) { o.batch = 0; }), "a batch of 0 samples");
  EXPECT_EQ(refusal([](auto& o) { o.workers = 0; }), "there is no worker 0 of 0");
  EXPECT_EQ(refusal([](auto& o) { o.lanes = 1 << 30; }),
            "lanes must be 1 to 1048576, not 1073741824");
  EXPECT_EQ(refusal([](auto& o) { o.fields = {"mask"}; }),
            "the pack has no field 'mask'; there are image, label, height, width, channels");
  EXPECT_EQ(refusal([](auto& o) {
              o.targets = {0, 1};
            }).substr(0, 29),
            "the target map has 2 chunks, ");
}

TEST_F(LoaderTest, AStateOfAnotherPackIsRefused) {
  const LoaderState state = open(options())->state();
  make_pack(image_samples(kSamples, 500, 6000, 2));
  auto resumed = Loader::resume(pack_, options(), state);
  ASSERT_FALSE(resumed.ok());
  EXPECT_EQ(resumed.status().code(), Code::kMismatch);
  LoaderState other = open(options())->state();
  other.map_digest = 5;
  EXPECT_EQ(Loader::resume(pack_, options(), other).status().code(), Code::kMismatch);
  other.map_digest = 0;
  other.consumed = kSamples + 1;
  EXPECT_EQ(Loader::resume(pack_, options(), other).status().code(), Code::kInvalidArgument);
}

TEST_F(LoaderTest, AForkedChildMakesItsOwn) {
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
