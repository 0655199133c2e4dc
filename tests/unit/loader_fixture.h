// What the tests of loaders share: a small pack, loaders of it, and what they should give.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "loader/loader.h"
#include "support/test_pack.h"

namespace spk::test {

inline constexpr size_t kLoaderSamples = 500;

// A pack of some thirty chunks in three shards, and what should be read from it.
class LoaderTest : public testing::Test {
 protected:
  void SetUp() override { make_pack(image_samples(kLoaderSamples, 500, 6000)); }

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

inline std::vector<uint64_t> flat(const std::vector<std::vector<uint64_t>>& steps) {
  std::vector<uint64_t> all;
  for (const auto& step : steps) all.insert(all.end(), step.begin(), step.end());
  return all;
}

inline std::vector<uint64_t> sorted(std::vector<uint64_t> all) {
  std::sort(all.begin(), all.end());
  return all;
}

inline std::vector<uint64_t> numbers_up_to(uint64_t count) {
  std::vector<uint64_t> all(count);
  for (uint64_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

}  // namespace spk::test
