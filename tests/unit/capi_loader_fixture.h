// What the tests of the C interface of loaders share: a small pack, owners, and comparisons.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "stripepack/stripepack.h"
#include "support/test_pack.h"

namespace spk::test {

inline constexpr uint64_t kCApiSamples = 120;

template <typename Struct>
Struct sized() {
  Struct made = {};
  made.struct_size = sizeof made;
  return made;
}

struct CloseLoader {
  void operator()(spk_loader* loader) const { spk_loader_close(loader); }
};
struct CloseBatch {
  void operator()(spk_batch* batch) const { spk_batch_close(batch); }
};
using LoaderPtr = std::unique_ptr<spk_loader, CloseLoader>;
using BatchPtr = std::unique_ptr<spk_batch, CloseBatch>;

// A pack in two shards whose storage order is the order of samples_.
class CApiLoader : public ::testing::Test {
 protected:
  void SetUp() override {
    write(path_, samples_);
    ASSERT_EQ(spk_open(path_.c_str(), nullptr, &pack_, &err_), SPK_OK) << err_.message;
  }
  void TearDown() override { spk_close(pack_); }

  static void write(const std::string& path, const std::vector<TestSample>& samples) {
    TestPackOptions options;
    options.schema = image_schema();
    options.geometry.shard_count = 2;
    options.look_ahead = false;
    ASSERT_TRUE(write_test_pack(path, samples, options).ok());
  }
  const std::string& image(uint64_t i) const {
    return std::get<std::string>(samples_[i].values[0]);
  }
  int64_t label(uint64_t i) const {
    return std::get<std::vector<int64_t>>(samples_[i].values[1])[0];
  }

  static spk_loader_options options() {
    auto options = sized<spk_loader_options>();
    options.lanes = 4;
    options.batch = 8;
    options.tail = SPK_TAIL_EXACT;
    return options;
  }
  LoaderPtr open(const spk_loader_options& options) {
    spk_loader* loader = nullptr;
    EXPECT_EQ(spk_loader_open(pack_, &options, &loader, &err_), SPK_OK) << err_.message;
    return LoaderPtr(loader);
  }
  // Null at the end.
  BatchPtr next(spk_loader* loader) {
    spk_batch* batch = nullptr;
    const int32_t code = spk_loader_next(loader, &batch, &err_);
    EXPECT_TRUE(code == SPK_OK || code == SPK_END) << err_.message;
    EXPECT_EQ(batch == nullptr, code != SPK_OK);
    return BatchPtr(batch);
  }
  // The batch's samples, each compared with what was packed.
  std::vector<uint64_t> checked(const spk_batch* batch) {
    const uint64_t size = spk_batch_size(batch);
    std::vector<spk_span> spans(size);
    EXPECT_EQ(spk_batch_blobs(batch, 0, spans.data(), &err_), SPK_OK) << err_.message;
    std::vector<uint64_t> samples(spk_batch_samples(batch), spk_batch_samples(batch) + size);
    for (uint64_t i = 0; i < size; ++i) {
      EXPECT_EQ(std::string_view(static_cast<const char*>(spans[i].data), spans[i].size),
                image(samples[i]));
    }
    return samples;
  }
  std::vector<uint64_t> rest(spk_loader* loader) {
    std::vector<uint64_t> all;
    for (BatchPtr batch = next(loader); batch != nullptr; batch = next(loader)) {
      const auto samples = checked(batch.get());
      all.insert(all.end(), samples.begin(), samples.end());
    }
    return all;
  }
  spk_loader_info info(const spk_loader* loader) {
    auto info = sized<spk_loader_info>();
    EXPECT_EQ(spk_loader_get_info(loader, &info, &err_), SPK_OK) << err_.message;
    return info;
  }
  std::string state(const spk_loader* loader) {
    char text[256];
    EXPECT_EQ(spk_loader_state(loader, text, sizeof text, &err_), SPK_OK) << err_.message;
    return text;
  }
  static std::vector<uint64_t> sorted(std::vector<uint64_t> all) {
    std::sort(all.begin(), all.end());
    return all;
  }
  static std::vector<uint64_t> every_sample() {
    std::vector<uint64_t> all(kCApiSamples);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  TempDir dir_;
  std::string path_ = dir_ / "pack";
  std::vector<TestSample> samples_ = image_samples(kCApiSamples, 0, 8000);
  spk_pack* pack_ = nullptr;
  spk_error err_ = sized<spk_error>();
};

}  // namespace spk::test
