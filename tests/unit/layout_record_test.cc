#include "container/layout_record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "container/pack.h"
#include "io/atomic_file.h"
#include "io/lustre_layout.h"
#include "layout/order.h"
#include "support/stripe_stand_in.h"
#include "support/test_pack.h"

namespace spk {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

StripeLayout lustre(std::vector<uint32_t> targets, uint64_t stripe_bytes = 4 * kMiB) {
  StripeComponent component;
  component.stripe_bytes = stripe_bytes;
  component.stripe_count = static_cast<uint32_t>(targets.size());
  component.targets = std::move(targets);
  StripeLayout layout;
  layout.system = StripeSystem::kLustre;
  layout.components.push_back(std::move(component));
  return layout;
}

LayoutMap map_of(std::vector<StripeLayout> shards, uint64_t digest) {
  LayoutMap map;
  map.digest = digest;
  map.made = "2026-11-30T12:00:00Z";
  map.file_system = "lustre";
  map.asked = "stripe_size=4194304";
  map.shards = std::move(shards);
  return map;
}

TEST(LayoutRecord, TextReadsBackToTheSame) {
  StripeLayout composite;
  composite.system = StripeSystem::kLustre;
  composite.composite = true;
  composite.components.resize(2);
  composite.components[0] = {0, kMiB, 1 << 20, 1, 0, "", {}};
  composite.components[1] = {kMiB, UINT64_MAX, 4 << 20, kAllTargets, 0, "big \"pool\" \\\x01", {}};
  StripeLayout ceph;
  ceph.system = StripeSystem::kCeph;
  ceph.released = ceph.foreign = true;
  ceph.components.push_back({0, UINT64_MAX, 4 << 20, 1, 4 << 20, "data", {}});
  LayoutRecord record;
  record.chunk_bytes = 4 * kMiB;
  record.maps.push_back(map_of({lustre({3, 0xFFFFFFFF}), composite, ceph}, 0xFEDCBA9876543210));
  record.maps.push_back(map_of({}, 0));
  record.maps[1].asked = "pool=a\\b";
  record.maps[1].refused = "no\n";
  record.maps[1].file_system = "fuse.a\\x";
  const std::string text = layout_record_text(record);
  const LayoutRecord read = parse_layout_record(text).value();
  ASSERT_EQ(read.maps.size(), 2u);
  EXPECT_EQ(read.chunk_bytes, 4 * kMiB);
  EXPECT_EQ(read.maps[0].digest, 0xFEDCBA9876543210u);
  EXPECT_EQ(read.maps[0].shards, record.maps[0].shards);
  EXPECT_EQ(read.maps[0].asked, "stripe_size=4194304");
  EXPECT_EQ(read.maps[1].asked, "pool=a\\b");
  EXPECT_EQ(read.maps[1].refused, "no\n");
  EXPECT_EQ(read.maps[1].file_system, "fuse.a\\x");
  EXPECT_EQ(layout_record_text(read), text);
  EXPECT_EQ(read.current(), &read.maps[1]);
  EXPECT_EQ(read.find(0xFEDCBA9876543210), &read.maps[0]);
  EXPECT_EQ(read.find(7), nullptr);
}

TEST(LayoutRecord, WhatOlderProgramsWroteHasNoMaps) {
  const char* old = R"({"chunk_bytes": 4194304, "file_system": "ext4",
                        "asked": "directory default", "shards": []})";
  EXPECT_TRUE(parse_layout_record(old)->maps.empty());
}

TEST(LayoutRecord, NonsenseIsDamage) {
  const auto said = [](const char* text) { return parse_layout_record(text).status().message(); };
  EXPECT_EQ(said("[]"), "layout record: it is no object");
  EXPECT_EQ(said("{}"), "layout record: 'chunk_bytes' is no number");
  EXPECT_EQ(said(R"({"chunk_bytes": 1, "version": 2, "maps": []})"),
            "layout record of version 2, known is 1");
  EXPECT_EQ(said(R"({"chunk_bytes": 1, "version": 1})"), "layout record: 'maps' is no list");
  EXPECT_EQ(said(R"({"chunk_bytes": 1, "version": 1, "maps": [{"digest": "12"}]})"),
            "layout record: 'digest' is not 16 hexadecimal digits");
  EXPECT_EQ(said(R"({"chunk_bytes": 1, "version": 1, "maps": [
                     {"digest": "0000000000000000", "shards": [{"system": "zfs"}]}]})"),
            "layout record: unknown system 'zfs'");
  const Status escape = parse_layout_record(R"({"chunk_bytes": 1, "version": 1, "maps": [
      {"digest": "0000000000000000", "made": "\\q", "shards": []}]})")
                            .status();
  EXPECT_EQ(escape.code(), Code::kDamaged);
  EXPECT_EQ(escape.message(), "layout record: 'made' has an escape that is none");
  EXPECT_EQ(said(R"({"chunk_bytes": 1, "version": 1, "maps": [{"digest": "0000000000000000",
                     "shards": [{"system": "ceph", "components": [{"stripe_bytes": -1}]}]}]})"),
            "layout record: 'stripe_bytes' is no number");
}

TEST(LayoutRecord, TargetsOfChunksAreNumberedByTheirPlaceAmongThoseUsed) {
  const std::vector<StripeLayout> shards = {lustre({40, 7}), lustre({9}, 8 * kMiB)};
  const std::vector<ChunkPlace> chunks = {
      {0, 0}, {0, 4 * kMiB}, {0, 8 * kMiB}, {1, 0}, {1, 9 * kMiB}};
  EXPECT_EQ(chunk_targets(shards, chunks), (std::vector<uint32_t>{2, 0, 2, 1, 1}));
  // Not known for one chunk: for none. One target alone orders nothing.
  EXPECT_TRUE(chunk_targets({shards.data(), 1}, chunks).empty());
  const std::vector<StripeLayout> single = {lustre({5}), lustre({5})};
  EXPECT_TRUE(chunk_targets(single, chunks).empty());
  EXPECT_TRUE(chunk_targets({}, {}).empty());
}

TEST(LayoutRecord, FileIsReadAndWrittenWhole) {
  std::string path = testing::TempDir() + "spk_layout_XXXXXX";
  ASSERT_NE(::mkdtemp(path.data()), nullptr);
  const Directory dir = Directory::open(path).value();
  EXPECT_TRUE(read_layout_record(dir)->maps.empty());
  LayoutRecord record;
  record.chunk_bytes = kMiB;
  record.maps.push_back(map_of({lustre({1, 2})}, 5));
  ASSERT_TRUE(write_layout_record(dir, record).ok());
  EXPECT_EQ(read_layout_record(dir)->maps.at(0).shards, record.maps[0].shards);
  ASSERT_TRUE(write_file_atomically(dir, kLayoutName, as_bytes("{")).ok());
  const Status status = read_layout_record(dir).status();
  EXPECT_EQ(status.code(), Code::kDamaged);
  EXPECT_EQ(status.path(), dir.path_of(kLayoutName));
  std::filesystem::remove_all(path);
}

// A pack of three shards, looked at through a stand-in.
class LayoutCheck : public testing::Test {
 protected:
  void SetUp() override {
    test::TestPackOptions options;
    options.schema = test::image_schema();
    options.geometry.shard_count = 3;
    const std::string path = dir_ / "pack";
    ASSERT_TRUE(test::write_test_pack(path, test::image_samples(60, 9000, 9000), options).ok());
    pack_ = Pack::open(path).value();
  }
  std::vector<std::string> found() {
    std::vector<std::string> whats;
    const auto now = look_at_shards(pack_->directory(), 3, {}, lustre_);
    EXPECT_TRUE(now.ok()) << now.status().to_string();
    const auto findings = check_layout(*pack_, *now, lustre_);
    EXPECT_TRUE(findings.ok()) << findings.status().to_string();
    for (const LayoutFinding& finding : *findings) whats.push_back(finding.what);
    return whats;
  }
  void record(const std::string& refused) {
    LayoutRecord record;
    record.chunk_bytes = pack_->identity().chunk_bytes();
    record.maps.push_back(look_at_layout(*pack_, lustre_).value());
    record.maps.back().asked = "stripe_count=2";
    record.maps.back().refused = refused;
    ASSERT_TRUE(write_layout_record(pack_->directory(), record).ok());
  }
  // What every shard answers: COUNT stripes on targets 4, 5, ...
  void answer(uint32_t stripe_bytes, uint16_t count, uint32_t pattern = 1) {
    lustre_.answer.assign(32, 0);
    store_le<uint32_t>(lustre_.answer.data(), kLustreMagicV1);
    store_le<uint32_t>(lustre_.answer.data() + 4, pattern);
    store_le<uint32_t>(lustre_.answer.data() + 24, stripe_bytes);
    store_le<uint16_t>(lustre_.answer.data() + 28, count);
    for (uint32_t i = 0; i < count; ++i) {
      lustre_.answer.resize(lustre_.answer.size() + 24);
      store_le<uint32_t>(lustre_.answer.data() + lustre_.answer.size() - 4, 4 + i);
    }
  }

  test::TempDir dir_;
  std::shared_ptr<Pack> pack_;
  LustreStandIn lustre_;
};

TEST_F(LayoutCheck, WhatLiesAsRecordedIsRight) {
  answer(65536, 2);
  EXPECT_EQ(found(), std::vector<std::string>{"no layout is recorded"});
  record("");
  EXPECT_TRUE(found().empty());
  const LayoutMap map = look_at_layout(*pack_, lustre_).value();
  const auto places = chunk_places(*pack_).value();
  EXPECT_EQ(map.digest, target_map_digest(chunk_targets(map.shards, places)));
  EXPECT_NE(map.digest, 0u);
}

TEST_F(LayoutCheck, EachFaultIsNamed) {
  answer(65536, 2);
  record("no room");
  EXPECT_EQ(found(), std::vector<std::string>{"asked for stripe_count=2, not given: no room"});
  record("");
  answer(65536, 1);
  EXPECT_EQ(found(), std::vector<std::string>{
                         "3 shards (the first: shard-00000.spks) lie otherwise than is recorded "
                         "(file system then: lustre, now: lustre): was the pack copied?"});
  answer(32768, 2);
  record("");
  EXPECT_EQ(found(), std::vector<std::string>{
                         "3 shards (the first: shard-00000.spks): stripes divide chunks of 64 KiB, "
                         "so that reading one asks several targets"});
  answer(65536, 1, 1 | kLustrePatternReleased);
  record("");
  EXPECT_EQ(found(), std::vector<std::string>{
                         "3 shards (the first: shard-00000.spks) released to an archive: the first "
                         "read waits for it"});
}

}  // namespace
}  // namespace spk
