// Plans made from entries that a test makes up.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "layout/permutation.h"
#include "pipeline/plan.h"
#include "support/test_pack.h"

namespace spk {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// Makes its entries up. Unordered ones come from two threads, in an order of the test's choice.
class FakeSource : public Source {
 public:
  using Make = std::function<SampleEntry(uint64_t)>;
  FakeSource(uint64_t count, Make make) : count_(count), make_(std::move(make)) {
    listing.source_kind = "fake";
    listing.splits = {""};
    listing.label_kind = LabelKind::kInt;
  }
  bool lists_in_order() const override { return listing.ordered; }
  Result<Listing> list(const PackOptions&, const Sink& sink) override {
    if (listing.ordered) {
      for (uint64_t i = 0; i < count_; ++i) {
        SampleEntry entry = make_(i);
        entry.ordinal = i;
        SPK_TRY(sink(std::move(entry)));
      }
      return listing;
    }
    Status statuses[2];
    const auto half = [&](uint64_t begin, uint64_t end, Status* status) {
      for (uint64_t i = begin; i < end && status->ok(); ++i) {
        *status = sink(make_(backwards ? begin + end - 1 - i : i));
      }
    };
    std::thread other(half, 0, count_ / 2, &statuses[0]);
    half(count_ / 2, count_, &statuses[1]);
    other.join();
    SPK_TRY(statuses[0]);
    SPK_TRY(statuses[1]);
    return listing;
  }
  Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const override {
    class Handle : public SampleHandle {
      uint64_t size_bytes() const override { return 77; }
      Status read_at(uint64_t, MutableByteSpan) override { return {}; }
    };
    if (entry.key == "gone") return Status(Code::kNotFound, "not found");
    if (entry.key == "broken") return Status(Code::kIo, "EIO");
    return std::unique_ptr<SampleHandle>(std::make_unique<Handle>());
  }

  Listing listing;
  bool backwards = false;

 private:
  uint64_t count_;
  Make make_;
};

inline SampleEntry entry_of(std::string key, uint64_t size, std::vector<int64_t> labels = {}) {
  SampleEntry entry;
  entry.key = std::move(key);
  entry.size_bytes = size;
  entry.mtime_ns = 1'700'000'000'000'000'000;
  entry.int_labels = std::move(labels);
  return entry;
}

inline SampleEntry synthetic(uint64_t i) {
  return entry_of(str_cat("n", 1000 + i % 1000, "/picture_", i, ".jpg"), 1000 + mix64(i) % 200000,
                  {static_cast<int64_t>(i % 1000)});
}

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

struct Stored {
  PlanInfo info;
  std::vector<SampleEntry> entries;  // in storage order
};
inline Stored load(const std::string& path) {
  Stored stored;
  auto plan = Plan::load(path);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  if (!plan.ok()) return stored;
  stored.info = (*plan)->info();
  for (uint32_t shard = 0; shard < stored.info.geometry.shard_count; ++shard) {
    auto cursor = (*plan)->shard(shard);
    EXPECT_TRUE(cursor.ok()) << cursor.status().to_string();
    const PositionRange range =
        shard_positions(stored.info.sample_count, stored.info.geometry.shard_count, shard);
    EXPECT_EQ(stored.entries.size(), range.begin);
    for (SampleEntry entry;;) {
      auto more = (*cursor)->next(&entry);
      EXPECT_TRUE(more.ok()) << more.status().to_string();
      if (!more.ok() || !*more) break;
      stored.entries.push_back(entry);
    }
    EXPECT_EQ(stored.entries.size(), range.end);
  }
  return stored;
}

class PlanTest : public testing::Test {
 protected:
  // Plans into a folder of its own.
  std::string plan(const PackOptions& options, Source& source) {
    const std::string directory = dir_ / str_cat("p", number_++);
    fs::create_directory(directory);
    auto planned = make_plan(options, source, directory);
    status_ = planned.status();
    if (!planned.ok()) {
      EXPECT_TRUE(fs::is_empty(directory)) << "a failed plan leaves nothing behind";
      return "";
    }
    result_ = std::move(*planned);
    for (const auto& file : fs::recursive_directory_iterator(directory)) {
      if (file.is_regular_file()) {
        EXPECT_EQ(file.path().filename(), "plan.spkp");
      }
    }
    return result_.splits[0].path;
  }
  PackOptions options_with(uint64_t memory_bytes) {
    PackOptions options;
    options.source = "SRC";
    options.memory_bytes = memory_bytes;
    return options;
  }
  test::TempDir dir_;
  int number_ = 0;
  Status status_;
  PlanResult result_;
};

}  // namespace spk
