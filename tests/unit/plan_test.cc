#include "pipeline/plan.h"

#include <sys/resource.h>

#include <set>

#include "unit/plan_fixture.h"

namespace spk {
namespace {

TEST_F(PlanTest, MemoryThreadsAndListingOrderDoNotChangeAByte) {
  constexpr uint64_t kCount = 300000;
  FakeSource source(kCount, synthetic);
  source.backwards = true;
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  const std::string small = plan(options_with(uint64_t{64} << 20), source);
  getrusage(RUSAGE_SELF, &after);
  ASSERT_TRUE(status_.ok()) << status_.to_string();
  const Hash128 id = result_.splits[0].info.plan_id;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // Half of --memory. The listing and its order would together take more.
  EXPECT_LE(after.ru_maxrss - before.ru_maxrss, 32 << 10);
#endif
  source.backwards = false;
  const std::string large = plan(options_with(uint64_t{1} << 30), source);
  ASSERT_TRUE(status_.ok()) << status_.to_string();
  EXPECT_EQ(result_.splits[0].info.plan_id, id);
  EXPECT_TRUE(bytes_of(small) == bytes_of(large));

  const Stored stored = load(small);
  EXPECT_EQ(stored.info.plan_id, id);
  EXPECT_EQ(stored.info.sample_count, kCount);
  EXPECT_TRUE(stored.info.shuffled);
  ASSERT_EQ(stored.entries.size(), kCount);
  Strings keys;
  for (uint64_t i = 0; i < kCount; ++i) keys.push_back(synthetic(i).key);
  std::sort(keys.begin(), keys.end());
  const KeyedPermutation permutation(0, xxh3_64({}), kCount);
  for (uint64_t ordinal = 0; ordinal < kCount; ordinal += 997) {
    const SampleEntry& entry = stored.entries[permutation(ordinal)];
    EXPECT_EQ(entry.ordinal, ordinal);
    EXPECT_EQ(entry.key, keys[ordinal]);
  }
}

TEST_F(PlanTest, SpillingDoesNotChangeAByteEither) {
  FakeSource source(60000, [](uint64_t i) {
    SampleEntry entry = synthetic(i);
    entry.path = std::string(200, 'p') + entry.key;
    return entry;
  });
  for (const ShuffleMode mode : {ShuffleMode::kFull, ShuffleMode::kBlocks, ShuffleMode::kNone}) {
    PackOptions options = options_with(uint64_t{16} << 20);
    options.shuffle = mode;
    const std::string small = bytes_of(plan(options, source));
    options.memory_bytes = uint64_t{512} << 20;
    EXPECT_TRUE(small == bytes_of(plan(options, source)));
    EXPECT_FALSE(small.empty());
  }
}

TEST_F(PlanTest, IdentityIsThatOfContentAndSettings) {
  const auto id_with = [&](const std::function<void(PackOptions&, FakeSource&)>& change,
                           FakeSource::Make make = synthetic) {
    PackOptions options = options_with(uint64_t{64} << 20);
    FakeSource source(100, std::move(make));
    change(options, source);
    EXPECT_FALSE(plan(options, source).empty()) << status_.to_string();
    return result_.splits.at(0).info.plan_id.to_hex();
  };
  const std::string id = id_with([](auto&, auto&) {});
  const std::set<std::string> different = {
      id,
      id_with([](auto& o, auto&) { o.seed = 1; }),
      id_with([](auto& o, auto&) { o.shuffle = ShuffleMode::kNone; }),
      id_with([](auto& o, auto&) { o.shuffle = ShuffleMode::kBlocks; }),
      id_with([](auto& o, auto&) { o.check = CheckMode::kDecode; }),
      id_with([](auto& o, auto&) { o.max_pixels = 5; }),
      id_with([](auto& o, auto&) { o.chunk_bytes = 1 << 20; }),
      id_with([](auto& o, auto&) { o.shard_count = 3; }),
      id_with([](auto&, auto& s) { s.listing.form = "csv"; }),
      id_with([](auto&, auto& s) { s.listing.splits = {"train"}; }),
      id_with([](auto&, auto& s) { s.listing.classes = {"a"}; }),
      id_with([](auto&, auto&) {}, [](uint64_t i) { return entry_of(synthetic(i).key, i, {}); }),
      id_with([](auto&, auto&) {},
              [](uint64_t i) {
                SampleEntry entry = synthetic(i);
                entry.int_labels[0] += i == 50;
                return entry;
              }),
      id_with([](auto&, auto&) {},
              [](uint64_t i) {
                SampleEntry entry = synthetic(i);
                if (i == 50) entry.key += "x";
                return entry;
              }),
      id_with([](auto&, auto&) {},
              [](uint64_t i) {
                SampleEntry entry = synthetic(i);
                if (i == 50) entry.reject = "not found";
                return entry;
              })};
  EXPECT_EQ(different.size(), 15u);
  EXPECT_EQ(id, id_with(
                    [](auto& o, auto&) {
                      o.jobs = 7;
                      o.max_rejects = 9;
                      o.source = "elsewhere";
                      o.output = "OUT";
                      o.expect = 100;
                    },
                    [](uint64_t i) {
                      SampleEntry entry = synthetic(i);
                      entry.mtime_ns = static_cast<int64_t>(i);
                      return entry;
                    }));
  // A seed that shuffles nothing is no difference.
  EXPECT_EQ(id_with([](auto& o, auto&) { o.shuffle = ShuffleMode::kNone; }),
            id_with([](auto& o, auto&) { o.shuffle = ShuffleMode::kNone, o.seed = 4; }));
}

TEST_F(PlanTest, CopyOfASourceHasTheSameIdentity) {
  for (int i = 0; i < 60; ++i) {
    const fs::path file = dir_ / str_cat("one/c", i % 3, "/", i, ".jpg");
    fs::create_directories(file.parent_path());
    std::ofstream(file) << std::string(static_cast<size_t>(i), 'x');
  }
  for (int i = 59; i >= 0; --i) {  // another directory order, other mtimes
    const fs::path from = dir_ / str_cat("one/c", i % 3, "/", i, ".jpg");
    const fs::path to = dir_ / str_cat("two/c", i % 3, "/", i, ".jpg");
    fs::create_directories(to.parent_path());
    fs::copy_file(from, to);
    fs::last_write_time(to, fs::file_time_type::clock::now() - std::chrono::hours(i + 1));
  }
  Strings ids;
  for (const char* name : {"one", "two"}) {
    PackOptions options = options_with(uint64_t{64} << 20);
    options.source = dir_ / name;
    auto source = open_source(options);
    ASSERT_TRUE(source.ok());
    ASSERT_FALSE(plan(options, **source).empty()) << status_.to_string();
    ids.push_back(result_.splits[0].info.plan_id.to_hex());
  }
  EXPECT_EQ(ids[0], ids[1]);
}

TEST_F(PlanTest, SplitsAreShuffledByTheirPurpose) {
  FakeSource source(90, [](uint64_t i) {
    SampleEntry entry = synthetic(i);
    entry.split = static_cast<uint32_t>(i % 3);
    if (entry.split == 2) entry.int_labels.clear();
    return entry;
  });
  source.listing.splits = {"test", "train", "val"};
  source.listing.classes.resize(1000);
  PackOptions options = options_with(uint64_t{64} << 20);
  plan(options, source);
  ASSERT_TRUE(status_.ok()) << status_.to_string();
  ASSERT_EQ(result_.splits.size(), 3u);
  for (const PlannedSplit& split : result_.splits) {
    const Stored stored = load(split.path);
    EXPECT_EQ(stored.info.split, split.info.split);
    EXPECT_EQ(stored.info.shuffled, split.info.split == "train");
    EXPECT_EQ(stored.info.label_kind,
              split.info.split == "val" ? LabelKind::kNone : LabelKind::kInt);
    EXPECT_EQ(stored.info.classes.size(), 1000u);
    EXPECT_EQ(stored.info.settings, split.info.settings);
    Strings keys, sorted_keys;
    for (const SampleEntry& entry : stored.entries) keys.push_back(entry.key);
    sorted_keys = keys;
    std::sort(sorted_keys.begin(), sorted_keys.end());
    EXPECT_EQ(keys == sorted_keys, !stored.info.shuffled);
    EXPECT_EQ(keys.size(), 30u);
  }
  EXPECT_NE(result_.splits[0].info.plan_id, result_.splits[2].info.plan_id);
}

TEST_F(PlanTest, CountsAndSettings) {
  FakeSource source(10, [](uint64_t i) {
    SampleEntry entry = entry_of(str_cat("k", i), 100 * i, {static_cast<int64_t>(i % 2)});
    if (i == 9) entry.reject = "no class folder";
    return entry;
  });
  source.listing.classes = {"a", "b", "c"};
  source.listing.form = "csv";
  PackOptions options = options_with(uint64_t{64} << 20);
  options.seed = 42;
  plan(options, source);
  ASSERT_TRUE(status_.ok());
  const PlanInfo& info = result_.splits[0].info;
  EXPECT_EQ(info.sample_count, 10u);
  EXPECT_EQ(info.listed_rejects, 1u);
  EXPECT_EQ(info.total_bytes, 3600u);
  EXPECT_EQ(info.max_sample_bytes, 800u);
  EXPECT_EQ(info.class_counts, (std::vector<uint64_t>{5, 4, 0}));
  using Settings = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(info.settings, (Settings{{"format_version", "1"},
                                     {"source_kind", "fake"},
                                     {"source_form", "csv"},
                                     {"splits", "none"},
                                     {"labels", "int"},
                                     {"check", "structure"},
                                     {"max_pixels", "178956970"},
                                     {"chunk_bytes", "262144"},
                                     {"shard_count", "1"},
                                     {"blob_align_bytes", "8"},
                                     {"shuffle", "full"},
                                     {"seed", "42"}}));
  // A dry run knows the same, but for the identity, and writes nothing.
  auto dry = make_plan(options, source, "");
  ASSERT_TRUE(dry.ok());
  EXPECT_EQ(dry->splits[0].info.settings, info.settings);
  EXPECT_EQ(dry->splits[0].info.class_counts, info.class_counts);
  EXPECT_EQ(dry->splits[0].info.plan_id, Hash128());
  EXPECT_EQ(dry->splits[0].path, "");
}

TEST_F(PlanTest, StopsWhileListingAndAfterIt) {
  for (const bool ordered : {true, false}) {
    for (const uint64_t at : {uint64_t{0}, uint64_t{500}, uint64_t{999}}) {
      std::atomic<bool> cancel{false};
      FakeSource source(1000, [&](uint64_t i) {
        if (i == at) cancel = true;
        return synthetic(i);
      });
      source.listing.ordered = ordered;
      const std::string directory = dir_ / str_cat("stopped", ordered, "-", at);
      fs::create_directory(directory);
      const PackOptions options = options_with(uint64_t{64} << 20);
      EXPECT_EQ(make_plan(options, source, directory, &cancel).status().code(), Code::kCancelled);
      EXPECT_TRUE(fs::is_empty(directory));
    }
  }
}

TEST_F(PlanTest, RefusesWhatCannotBeAPack) {
  PackOptions options = options_with(uint64_t{64} << 20);
  FakeSource none(0, synthetic);
  none.listing.ignored["hidden"] = 3;
  plan(options, none);
  EXPECT_EQ(status_.code(), Code::kInvalidArgument);
  EXPECT_EQ(status_.message(), "nothing to pack: no picture found (left out: 3 hidden)");

  FakeSource half(2, synthetic);
  half.listing.splits = {"train", "val"};
  plan(options, half);
  EXPECT_EQ(status_.message(), "nothing to pack in split 'val': no picture found");

  FakeSource ten(10, synthetic);
  options.expect = 11;
  plan(options, ten);
  EXPECT_EQ(status_.code(), Code::kMismatch);
  EXPECT_EQ(status_.message(), "found 10 samples, but --expect says 11");

  options = options_with(uint64_t{1} << 20);
  plan(options, ten);
  EXPECT_EQ(status_.code(), Code::kInvalidArgument);

  options = options_with(uint64_t{64} << 20);
  options.chunk_bytes = 3;
  plan(options, ten);
  EXPECT_EQ(status_.code(), Code::kInvalidArgument);

  FakeSource twice(10, [](uint64_t i) { return entry_of(str_cat("k", i / 2), 1); });
  plan(options_with(uint64_t{64} << 20), twice);
  EXPECT_EQ(status_.code(), Code::kMismatch);
  EXPECT_EQ(status_.path(), "k0");
}

TEST_F(PlanTest, UnknownSizesAreAskedFor) {
  FakeSource source(3, [](uint64_t i) {
    return entry_of(Strings{"a", "gone", "z"}[i], kUnknownSize);
  });
  const Stored stored = load(plan(options_with(uint64_t{64} << 20), source));
  EXPECT_EQ(stored.info.total_bytes, 154u);
  EXPECT_EQ(stored.info.listed_rejects, 1u);
  FakeSource broken(1, [](uint64_t) { return entry_of("broken", kUnknownSize); });
  plan(options_with(uint64_t{64} << 20), broken);
  EXPECT_EQ(status_.code(), Code::kIo);
}

TEST_F(PlanTest, RepeatedKeysOfAListAreSamplesOfTheirOwn) {
  const Strings keys = {"i0", "i0", "i0", "i1", "i2", "i1"};
  const std::vector<int64_t> labels = {1, 1, 2, 0, 0, 0};
  FakeSource source(6, [&](uint64_t i) { return entry_of(keys[i], 5, {labels[i]}); });
  source.listing.ordered = true;
  PackOptions options = options_with(uint64_t{64} << 20);
  options.shuffle = ShuffleMode::kNone;
  const Stored stored = load(plan(options, source));
  ASSERT_EQ(stored.entries.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(stored.entries[i].key, keys[i]);
    EXPECT_EQ(stored.entries[i].int_labels[0], labels[i]);
    EXPECT_EQ(stored.entries[i].ordinal, i);
  }
  const auto& kinds = result_.listing.warnings.kinds();
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds.at("listed again with another label").count, 2u);
  EXPECT_EQ(kinds.at("listed again with another label").examples, Strings{"i0"});
  EXPECT_EQ(kinds.at("listed more than once").count, 1u);
  EXPECT_EQ(kinds.at("listed more than once").examples, Strings{"i1"});
}

}  // namespace
}  // namespace spk
