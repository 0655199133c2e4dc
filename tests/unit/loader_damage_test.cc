// Loaders of packs that are damaged, and what loaders refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "loader/loader.h"
#include "unit/loader_fixture.h"

namespace spk::test {
namespace {

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
    EXPECT_EQ(batches.size(), (kLoaderSamples + 7) / 8);  // as many as without damage
    EXPECT_EQ(flat(batches).size(), kLoaderSamples - 1);
    EXPECT_EQ(skipping->stats().skipped, 1u);
  }
}

TEST_F(LoaderTest, ADamagedChunkHeadCostsNoSample) {
  flip_byte(path() + "/" + shard_file_name(0), 200);
  LoaderOptions wanted = options();
  wanted.engine = EngineChoice::kPool;
  EXPECT_EQ(sorted(flat(rest(*open(wanted)))), numbers_up_to(kLoaderSamples));
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
  EXPECT_EQ(all.size() + loader->stats().skipped, kLoaderSamples);
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
      "a memory limit of 448 KiB is too small: 4 lanes with windows of 1 chunk and batches of 8 "
      "on 1 rank need 512 KiB");
  wanted.order = OrderKind::kSequential;
  wanted.lanes = 0;
  wanted.memory_bytes = 65536;
  loader = Loader::open(pack_, wanted);
  ASSERT_FALSE(loader.ok());
  EXPECT_EQ(loader.status().message(),
            "a memory limit of 64 KiB is too small: two reads of up to 64 KiB need 128 KiB");
  EXPECT_EQ(loader.status().hint(), "allow more memory");
  wanted = options();
  wanted.memory_bytes = 8 * 65536;
  EXPECT_EQ(sorted(flat(rest(*open(wanted)))), numbers_up_to(kLoaderSamples));
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
  make_pack(image_samples(kLoaderSamples, 500, 6000, 2));
  auto resumed = Loader::resume(pack_, options(), state);
  ASSERT_FALSE(resumed.ok());
  EXPECT_EQ(resumed.status().code(), Code::kMismatch);
  LoaderState other = open(options())->state();
  other.map_digest = 5;
  EXPECT_EQ(Loader::resume(pack_, options(), other).status().code(), Code::kMismatch);
  other.map_digest = 0;
  other.consumed = kLoaderSamples + 1;
  EXPECT_EQ(Loader::resume(pack_, options(), other).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace spk::test
