// Loaders and batches by stripepack.hpp.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "capi_loader_fixture.h"
#include "stripepack/stripepack.hpp"

namespace spk::test {
namespace {

class HppLoader : public CApiLoader {
 protected:
  static stripepack::LoaderOptions options() {
    stripepack::LoaderOptions options;
    options.lanes = 4;
    options.batch = 8;
    options.tail = SPK_TAIL_EXACT;
    return options;
  }
  // All samples that are left, each batch compared with what was packed.
  std::vector<uint64_t> rest(stripepack::Loader& loader) {
    std::vector<uint64_t> all;
    while (const stripepack::Batch batch = loader.next()) {
      const std::vector<std::string_view> blobs = batch.blobs(0);
      const std::vector<int64_t> labels = batch.ints(1);
      EXPECT_EQ(blobs.size(), batch.size());
      EXPECT_EQ(labels.size(), batch.size());
      for (size_t i = 0; i < batch.size(); ++i) {
        EXPECT_EQ(blobs[i], image(batch.samples()[i]));
        EXPECT_EQ(labels[i], label(batch.samples()[i]));
        all.push_back(batch.samples()[i]);
      }
    }
    return all;
  }
};

TEST_F(HppLoader, GivesEverySampleOnceAndItsPosition) {
  stripepack::Loader loader = stripepack::Pack::open(path_).load(options());
  std::vector<uint64_t> positions;
  std::vector<uint64_t> samples;
  while (const stripepack::Batch batch = loader.next()) {
    for (const uint64_t position : batch.positions()) positions.push_back(position);
    for (const uint8_t repeated : batch.repeated()) EXPECT_EQ(repeated, 0);
    samples.insert(samples.end(), batch.samples(), batch.samples() + batch.size());
  }
  EXPECT_EQ(positions, every_sample());
  EXPECT_EQ(sorted(samples), every_sample());
  loader.start_epoch(0);
  EXPECT_EQ(rest(loader), samples);
  EXPECT_EQ(loader.info().samples, 2 * kCApiSamples);
}

TEST_F(HppLoader, GoesOnFromAState) {
  const stripepack::Pack pack = stripepack::Pack::open(path_);
  stripepack::Loader loader = pack.load(options());
  loader.next();
  stripepack::LoaderOptions resumed = options();
  resumed.state = loader.state();
  stripepack::Loader other = pack.load(resumed);
  EXPECT_EQ(rest(other), rest(loader));
}

TEST_F(HppLoader, OnlyTheWantedFields) {
  stripepack::LoaderOptions wanted = options();
  wanted.fields = {"label"};
  const stripepack::Batch batch = stripepack::Pack::open(path_).load(wanted).next();
  EXPECT_EQ(batch.ints(1).size(), 8u);
  stripepack::Error error;
  EXPECT_TRUE(batch.blobs(0, error).empty());
  EXPECT_EQ(error.code(), SPK_INVALID_ARGUMENT);
  EXPECT_TRUE(batch.ints(9, error).empty());
  EXPECT_EQ(error.code(), SPK_INVALID_ARGUMENT);
}

TEST_F(HppLoader, ErrorsAreThrownOrFilled) {
  const stripepack::Pack pack = stripepack::Pack::open(path_);
  stripepack::LoaderOptions wrong = options();
  wrong.rank = 5;
  EXPECT_THROW(pack.load(wrong), stripepack::Error);
  stripepack::Error error;
  EXPECT_FALSE(pack.load(wrong, error));
  EXPECT_EQ(error.code(), SPK_INVALID_ARGUMENT);
  stripepack::Loader none;
  EXPECT_FALSE(none.next(error));
  EXPECT_EQ(error.code(), SPK_INVALID_ARGUMENT);
}

TEST_F(HppLoader, APackOpensWithTheBytesOfItsIndex) {
  std::ifstream file(path_ + "/index.spki", std::ios::binary);
  const std::string index((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const stripepack::Pack pack = stripepack::Pack::open_index(path_, index);
  stripepack::Loader loader = pack.load(options());
  EXPECT_EQ(sorted(rest(loader)), every_sample());
  stripepack::Error error;
  EXPECT_FALSE(stripepack::Pack::open_index(path_, index.substr(0, 100), {}, error));
  EXPECT_TRUE(error);
}

TEST_F(HppLoader, ChunksHoldConsecutiveSamples) {
  spk_info facts = stripepack::Pack::open(path_).info();
  std::vector<uint64_t> firsts(facts.chunk_count);
  ASSERT_EQ(spk_chunk_samples(pack_, 0, firsts.size(), firsts.data(), &err_), SPK_OK);
  ASSERT_GT(firsts.size(), 2u);
  EXPECT_EQ(firsts[0], 0u);
  EXPECT_TRUE(std::is_sorted(firsts.begin(), firsts.end()));
  uint64_t last = 0;
  EXPECT_EQ(spk_chunk_samples(pack_, firsts.size() - 1, 1, &last, &err_), SPK_OK);
  EXPECT_EQ(last, firsts.back());
  EXPECT_EQ(spk_chunk_samples(pack_, firsts.size(), 0, nullptr, &err_), SPK_OK);
  EXPECT_EQ(spk_chunk_samples(pack_, firsts.size(), 1, &last, &err_), SPK_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace spk::test
