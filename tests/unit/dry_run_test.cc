#include "pipeline/dry_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "layout/permutation.h"
#include "support/test_pack.h"

namespace spk {
namespace {

namespace fs = std::filesystem;

class DryRunTest : public testing::Test {
 protected:
  void write(const std::string& name, size_t bytes) {
    fs::create_directories(fs::path(dir_ / name).parent_path());
    std::ofstream(dir_ / name) << std::string(bytes, 'x');
  }
  DryRunReport run(PackOptions options = {}) {
    options.source = dir_ / "in";
    options.output = dir_ / "not/yet/there/out";
    auto source = open_source(options);
    EXPECT_TRUE(source.ok());
    auto report = dry_run(options, **source);
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    return report.ok() ? std::move(*report) : DryRunReport();
  }
  test::TempDir dir_;
};

TEST_F(DryRunTest, TellsCountsAndNeedAndWritesNothing) {
  for (int i = 0; i < 200; ++i) write(str_cat("in/train/c", i % 4, "/", i, ".jpg"), 2000);
  for (int i = 0; i < 50; ++i) write(str_cat("in/val/c", i % 2, "/", i, ".jpg"), 1000);
  write("in/val/notes.txt", 1);
  const DryRunReport report = run();
  ASSERT_EQ(report.splits.size(), 2u);
  const DryRunReport::Split& train = report.splits[0];
  EXPECT_EQ(train.info.split, "train");
  EXPECT_EQ(train.info.sample_count, 200u);
  EXPECT_EQ(train.info.total_bytes, 400000u);
  EXPECT_EQ(train.info.class_counts, (std::vector<uint64_t>{50, 50, 50, 50}));
  EXPECT_EQ(report.splits[1].info.class_counts, (std::vector<uint64_t>{25, 25, 0, 0}));
  EXPECT_EQ(train.estimate.files, 6u);
  EXPECT_EQ(train.estimate.chunk_count, 2u);
  EXPECT_GT(train.estimate.pack_bytes, 400000u);
  EXPECT_LT(train.estimate.pack_bytes, 500000u);
  EXPECT_EQ(report.files, 12u);
  EXPECT_EQ(report.pack_bytes, train.estimate.pack_bytes + report.splits[1].estimate.pack_bytes);
  EXPECT_EQ(report.output_folder, dir_.path());
  EXPECT_TRUE(report.free_bytes.has_value());
  EXPECT_TRUE(report.fits);
  EXPECT_EQ(report.sequential.samples, TimingChoice::kSamples);
  EXPECT_EQ(report.sequential.bytes, 2000 * TimingChoice::kSamples);
  EXPECT_GT(report.scattered.samples, 0u);
  EXPECT_TRUE(report.read_seconds.has_value());
  EXPECT_FALSE(fs::exists(dir_ / "not"));
}

TEST_F(DryRunTest, TextAndJsonSayTheSame) {
  for (int i = 0; i < 3; ++i) write(str_cat("in/caf\xe9/", i, ".jpg"), 100);
  DryRunReport report = run();
  report.free_bytes = 5 << 20;
  report.quota.bytes = 1 << 10;
  report.fits = false;
  report.read_seconds = 90;
  const std::string text = to_text(report);
  EXPECT_NE(text.find("samples   3 (300 B, largest 100 B)"), std::string::npos) << text;
  EXPECT_NE(text.find("0  caf\\xe9  3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("free: 5 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("quota left: 1 KiB -- NOT ENOUGH"), std::string::npos) << text;
  EXPECT_NE(text.find("about 1.5 min"), std::string::npos) << text;
  const std::string json = to_json(report);
  EXPECT_EQ(json.rfind("{\"type\": \"dry_run\", \"v\": 1, ", 0), 0u) << json;
  EXPECT_NE(json.find("\"name\": \"caf\\\\xe9\", \"samples\": 3"), std::string::npos) << json;
  EXPECT_NE(json.find("\"quota_left_bytes\": 1024"), std::string::npos) << json;
  EXPECT_NE(json.find("\"quota_left_files\": null"), std::string::npos) << json;
  EXPECT_NE(json.find("\"fits\": false"), std::string::npos) << json;
  EXPECT_EQ(json.find('\n'), std::string::npos);
}

TEST_F(DryRunTest, ErrorsAreThoseOfThePlan) {
  fs::create_directories(dir_ / "in/a");
  PackOptions options;
  options.source = dir_ / "in";
  auto source = open_source(options);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(dry_run(options, **source).status().code(), Code::kInvalidArgument);
  write("in/a/1.jpg", 5);
  options.expect = 2;
  EXPECT_EQ(dry_run(options, **source).status().code(), Code::kMismatch);
}

// Padding is estimated by filling chunks with real sizes: for picture-like ones in 4 MiB chunks it
// is small where the order is shuffled, and larger where it must be kept.
TEST(DryRun, PaddingIsThatOfTheOrder) {
  class Sizes : public Source {
   public:
    Result<Listing> list(const PackOptions&, const Sink& sink) override {
      Listing listing;
      listing.source_kind = "fake";
      listing.splits = {""};
      for (uint64_t i = 0; i < 30000; ++i) {
        SampleEntry entry;
        entry.key = str_cat("k", i);
        entry.size_bytes = 20000 + mix64(i) % 180000;
        SPK_TRY(sink(std::move(entry)));
      }
      return listing;
    }
    Result<std::unique_ptr<SampleHandle>> open(const SampleEntry&) const override {
      return Status(Code::kNotFound, "not found");
    }
  } source;
  PackOptions options;
  const auto share = [&] {
    const auto report = dry_run(options, source);
    EXPECT_TRUE(report.ok());
    EXPECT_FALSE(report->read_seconds.has_value()) << "nothing could be read";
    const PackEstimate& estimate = report->splits[0].estimate;
    return static_cast<double>(estimate.padding_bytes) / static_cast<double>(estimate.pack_bytes);
  };
  const double shuffled = share();
  EXPECT_LT(shuffled, 0.005);
  options.shuffle = ShuffleMode::kNone;
  EXPECT_GT(share(), 2 * shuffled);
}

TEST(Quota, DeviceOfAMount) {
  const std::string mounts =
      "22 1 8:1 / / rw - ext4 /dev/root rw\n"
      "30 22 0:45 / /scratch rw,relatime shared:7 - lustre mgs@tcp:/scratch rw\n"
      "31 22 8:1 / /again rw shared:1 master:2 - ext4 /dev/sda1 rw\n"
      "broken line\n";
  EXPECT_EQ(mount_device(mounts, 0, 45), "mgs@tcp:/scratch");
  EXPECT_EQ(mount_device(mounts, 8, 1), "/dev/sda1");
  EXPECT_EQ(mount_device(mounts, 9, 9), "");
  EXPECT_EQ(mount_device("", 9, 9), "");
}

}  // namespace
}  // namespace spk
