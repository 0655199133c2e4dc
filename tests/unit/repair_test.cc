#include "container/repair.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/text.h"
#include "container/pack.h"
#include "container/seal.h"
#include "support/test_pack.h"

namespace spk {
namespace {

using test::TempDir;
using test::TestPackOptions;
using test::TestSample;
using Outcome = RepairReport::Outcome;
using Files = std::map<std::string, std::string>;

constexpr const char* kShard0 = "shard-00000.spks";
constexpr const char* kShard1 = "shard-00001.spks";
constexpr const char* kShard2 = "shard-00002.spks";

Files read_files(const std::string& path) {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    files[entry.path().filename()] = test::read_file(entry.path());
  }
  return files;
}

Files read_files_but(const std::string& path, const std::string& left_out) {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename();
    if (name != left_out) files[name] = test::read_file(entry.path());
  }
  return files;
}

void copy_pack(const std::string& from, const std::string& to) {
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

VerifyReport verify(const std::string& path, std::string* damages = nullptr) {
  const auto report = verify_pack(path, {}, [&](const Damage& damage) {
    if (damages != nullptr) *damages += str_cat(damage.file, ": ", damage.what, "\n");
  });
  EXPECT_TRUE(report.ok()) << report.status().to_string();
  return report.ok() ? *report : VerifyReport();
}

Result<RepairReport> repair(const std::string& path, bool drop = false,
                            const std::string& from = "") {
  RepairOptions options;
  options.threads = 2;
  options.drop_damaged = drop;
  options.from = from;
  return repair_pack(path, options);
}

// Three shards of several chunks each, a run of slots in the second, rejects in the first.
class RepairTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = dir_ / "pack";
    samples_ = test::image_samples(40, 2000, 12000);
    for (int i = 0; i < 5; ++i) {
      auto& image = std::get<std::string>(samples_[20].values[0]);
      image += image;
    }
    TestPackOptions options;
    options.schema = test::image_schema();
    options.geometry.shard_count = 3;
    options.rejects = {{"a\\b\xff.jpg", 90, "cut\tshort"}, {"c.jpg", 91, "no picture"}};
    const auto order = test::write_test_pack(path_, samples_, options);
    ASSERT_TRUE(order.ok()) << order.status().to_string();
    order_ = *order;
    original_ = read_files(path_);
    copy_ = dir_ / "copy";
    copy_pack(path_, copy_);
  }

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void expect_original() const {
    const Files now = read_files(path_);
    for (const auto& [name, content] : original_) {
      ASSERT_EQ(now.count(name), 1u) << name;
      EXPECT_TRUE(now.at(name) == content) << name << " differs";
    }
    EXPECT_EQ(now.size(), original_.size());
  }
  // Repairs without options, and expects every byte back.
  void expect_healed(const std::string& what) {
    const auto report = repair(path_);
    ASSERT_TRUE(report.ok()) << what << ": " << report.status().to_string();
    ASSERT_EQ(report->outcome, Outcome::kRepaired) << what;
    EXPECT_EQ(report->lost, std::vector<LostSample>()) << what;
    EXPECT_FALSE(report->identity_changed) << what;
    expect_original();
  }
  uint64_t blob_offset(const std::string& pack_path, uint64_t sample) const {
    const auto pack = Pack::open(pack_path);
    EXPECT_TRUE(pack.ok());
    return (*pack)->locate(sample, 0)->offset;
  }
  uint64_t data_bytes(uint32_t shard) const {
    const auto dir = Directory::open(copy_);
    EXPECT_TRUE(dir.ok());
    return load_footer(*dir, shard)->view.header().data_bytes;
  }
  // First and one-past-last sample of a shard.
  std::pair<uint64_t, uint64_t> samples_of(uint32_t shard) const {
    const auto pack = Pack::open(copy_);
    EXPECT_TRUE(pack.ok());
    uint64_t begin = 0;
    for (uint32_t s = 0; s < shard; ++s) begin += (*pack)->shards()[s].sample_count;
    return {begin, begin + (*pack)->shards()[shard].sample_count};
  }
  const TestSample& sample(uint64_t number) const { return samples_[order_[number]]; }

  // The pack holds exactly the samples that are not in `dropped` (numbers of the original).
  void expect_without(const std::set<uint64_t>& dropped) const {
    std::string damages;
    EXPECT_TRUE(verify(path_, &damages).ok()) << damages;
    const auto pack = Pack::open(path_);
    ASSERT_TRUE(pack.ok()) << pack.status().to_string();
    ASSERT_EQ((*pack)->sample_count(), samples_.size() - dropped.size());
    uint64_t now = 0;
    std::string into(1 << 20, '\0');
    for (uint64_t s = 0; s < samples_.size(); ++s) {
      if (dropped.count(s) != 0) continue;
      ASSERT_EQ(*(*pack)->key(now), sample(s).key);
      const auto got = (*pack)->read(
          now, 0, MutableByteSpan(reinterpret_cast<uint8_t*>(into.data()), into.size()));
      ASSERT_TRUE(got.ok()) << got.status().to_string();
      ASSERT_EQ(into.substr(0, *got), std::get<std::string>(sample(s).values[0]));
      ASSERT_EQ((*pack)->ints(now, 1).value(), std::get<std::vector<int64_t>>(sample(s).values[1]));
      ++now;
    }
    const std::string rejects = test::read_file(file("rejects.tsv"));
    for (const uint64_t s : dropped) {
      EXPECT_NE(rejects.find("\t" + sample(s).key + "\tdamaged, dropped by repair: "), rejects.npos)
          << sample(s).key;
    }
  }

  TempDir dir_;
  std::string path_;
  std::string copy_;
  std::vector<TestSample> samples_;
  std::vector<uint64_t> order_;
  Files original_;
};

TEST_F(RepairTest, WholePackIsLeftAlone) {
  const auto report = repair(path_, true, copy_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->outcome, Outcome::kNothingToDo);
  expect_original();
}

TEST_F(RepairTest, IndexRejectsAndManifestAreMadeAgain) {
  for (const char* name : {"index.spki", "rejects.tsv", "manifest.json"}) {
    test::flip_byte(file(name), original_[name].size() / 2);
    expect_healed(str_cat("flip in ", name));
    std::filesystem::remove(file(name));
    expect_healed(str_cat("no ", name));
    std::filesystem::resize_file(file(name), 10);
    expect_healed(str_cat("cut ", name));
  }
  for (const char* name : {"index.spki", "rejects.tsv", "manifest.json"}) {
    std::filesystem::remove(file(name));
  }
  expect_healed("all three");
}

TEST_F(RepairTest, HeadsPaddingAndFootersAreMadeAgain) {
  for (const char* name : {kShard0, kShard1, kShard2}) {
    const uint32_t shard = static_cast<uint32_t>(name[10] - '0');
    const uint64_t data = data_bytes(shard);
    const uint64_t size = original_[name].size();
    for (const uint64_t at : {uint64_t{3}, uint64_t{200}, data - 1, data + 5, data + 170,
                              data + 700, size - 70, size - 3}) {
      test::flip_byte(file(name), at);
      expect_healed(str_cat(name, " byte ", at));
    }
    // The whole footer, and one header.
    std::filesystem::resize_file(file(name), data);
    test::flip_byte(file(name), 65536 + 20);
    expect_healed(str_cat(name, " without footer"));
    // Bytes too many.
    test::write_file(file(name), original_[name] + std::string(5000, 'x'));
    expect_healed(str_cat(name, " too long"));
  }
}

TEST_F(RepairTest, FootersAreMadeFromChunksWhereTheIndexIsGone) {
  for (const char* name : {kShard0, kShard1, kShard2}) {
    const uint32_t shard = static_cast<uint32_t>(name[10] - '0');
    std::filesystem::remove(file("index.spki"));
    test::write_file(file(name), original_[name].substr(0, data_bytes(shard)) +
                                     std::string(original_[name].size() - data_bytes(shard), 'z'));
    // The first shard's rejects come from rejects.tsv.
    expect_healed(str_cat(name, " and the index"));
  }
}

TEST_F(RepairTest, LostRejectsAreSaidToBeLost) {
  std::filesystem::remove(file("index.spki"));
  std::filesystem::remove(file("rejects.tsv"));
  std::filesystem::resize_file(file(kShard0), data_bytes(0));
  const auto report = repair(path_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->outcome, Outcome::kRepaired);
  EXPECT_EQ(report->steps.front(), "rewrote shard-00000.spks; its list of rejects is lost");
  EXPECT_EQ(report->reject_lists_lost, 1u);
  EXPECT_TRUE(verify(path_).ok());
  const std::string line = "0\t\tunknown: lost with the footer and rejects.tsv\n";
  EXPECT_EQ(test::read_file(file("rejects.tsv")), "ordinal\tkey\treason\n" + line + line);
  EXPECT_EQ(read_files(path_)[kShard1], original_[kShard1]);
}

TEST_F(RepairTest, NothingIsDroppedUnasked) {
  test::flip_byte(file(kShard0), blob_offset(copy_, 2) + 5);
  test::flip_byte(file("manifest.json"), 5);
  const Files before = read_files(path_);
  const auto report = repair(path_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->outcome, Outcome::kRefused);
  ASSERT_EQ(report->lost.size(), 1u);
  EXPECT_EQ(report->lost[0].key, sample(2).key);
  EXPECT_EQ(report->lost[0].shard, 0u);
  EXPECT_EQ(report->lost[0].sample, 2u);
  EXPECT_EQ(report->lost[0].ordinal, order_[2]);
  EXPECT_EQ(read_files(path_), before);
}

TEST_F(RepairTest, DamagedSamplesAreDropped) {
  const uint64_t in_run = 20;  // of the list
  const uint64_t run =
      static_cast<uint64_t>(std::find(order_.begin(), order_.end(), in_run) - order_.begin());
  const auto [begin, end] = samples_of(1);
  ASSERT_TRUE(run >= begin && run < end);
  const uint64_t other = run == begin ? begin + 1 : begin;
  test::flip_byte(file(kShard1), blob_offset(copy_, run) + 100000);
  test::flip_byte(file(kShard1), blob_offset(copy_, other));
  test::write_file(file("SHA256SUMS"), "no longer true");
  const VerifyReport before = verify(copy_);
  const auto report = repair(path_, true);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->outcome, Outcome::kRepaired);
  EXPECT_TRUE(report->identity_changed);
  EXPECT_EQ(report->lost.size(), 2u);
  EXPECT_EQ(report->samples, 38u);
  expect_without({run, other});
  const VerifyReport after = verify(path_);
  EXPECT_EQ(after.plan_id, before.plan_id);
  EXPECT_NE(after.content_id, before.content_id);
  EXPECT_EQ(after.content_id, report->content_id);
  EXPECT_EQ(after.rejects, 4u);
  const Files now = read_files(path_);
  EXPECT_EQ(now.at(kShard0), original_[kShard0]);
  EXPECT_EQ(now.at(kShard2), original_[kShard2]);
  EXPECT_EQ(now.size(), original_.size());  // SHA256SUMS went, nothing was left behind
  EXPECT_EQ(repair(path_)->outcome, Outcome::kNothingToDo);
}

TEST_F(RepairTest, ACutOrMissingShardIsDroppedOrTakenFromACopy) {
  const auto [begin, end] = samples_of(2);
  std::filesystem::resize_file(file(kShard2), blob_offset(copy_, end - 2) + 1);
  auto report = repair(path_, false, copy_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->outcome, Outcome::kRepaired);
  EXPECT_EQ(report->blobs_from_copy, 2u);
  expect_original();

  std::filesystem::remove(file(kShard2));
  EXPECT_EQ(repair(path_)->outcome, Outcome::kRefused);
  report = repair(path_, false, copy_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->outcome, Outcome::kRepaired);
  expect_original();

  std::filesystem::resize_file(file(kShard2), blob_offset(copy_, end - 2) + 1);
  report = repair(path_, true);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  expect_without({end - 2, end - 1});

  std::filesystem::remove(file(kShard2));
  report = repair(path_, true);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  std::set<uint64_t> dropped;
  for (uint64_t s = begin; s < end; ++s) dropped.insert(s);
  expect_without(dropped);
}

TEST_F(RepairTest, AMissingShardNeedsTheCopyEvenWithoutAnIndex) {
  std::filesystem::remove(file(kShard1));
  std::filesystem::remove(file("index.spki"));
  std::filesystem::remove(file("manifest.json"));
  const auto refused = repair(path_, true);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kDamaged);
  EXPECT_EQ(refused.status().hint(), "--from COPY takes it from a second copy");
  const auto report = repair(path_, false, copy_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  expect_original();
}

TEST_F(RepairTest, TwoDamagedCopiesMakeAWholeOne) {
  test::flip_byte(file(kShard0), blob_offset(copy_, 1));
  std::filesystem::remove(file("index.spki"));
  std::filesystem::resize_file(file(kShard1), 1000);
  const uint64_t third = blob_offset(copy_, 3);
  test::flip_byte(copy_ + "/" + kShard0, third);
  test::flip_byte(copy_ + "/" + kShard0, 10);
  std::filesystem::remove(copy_ + "/" + kShard2);
  std::filesystem::remove(copy_ + "/manifest.json");
  const auto report = repair(path_, false, copy_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->outcome, Outcome::kRepaired);
  expect_original();
}

TEST_F(RepairTest, AnotherPackIsNoCopy) {
  const std::string other = dir_ / "other";
  TestPackOptions options;
  options.schema = test::image_schema();
  options.plan_id = {1, 2};
  ASSERT_TRUE(test::write_test_pack(other, test::image_samples(5, 10, 20), options).ok());
  test::flip_byte(file(kShard0), blob_offset(path_, 1));
  const auto report = repair(path_, false, other);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::kMismatch);
  // A shard of it in ours is found out, and replaced.
  std::filesystem::copy_file(other + "/" + kShard0, file(kShard0),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(repair(path_)->outcome, Outcome::kRefused);
  const auto healed = repair(path_, false, copy_);
  ASSERT_TRUE(healed.ok()) << healed.status().to_string();
  expect_original();
  // One beyond the count is put aside.
  std::filesystem::copy_file(other + "/" + kShard0, file("shard-00003.spks"));
  ASSERT_EQ(repair(path_)->outcome, Outcome::kRepaired);
  EXPECT_TRUE(std::filesystem::exists(file("shard-00003.spks.foreign")));
  // The same once more, with damage beside it: it gets a name that is free.
  std::filesystem::copy_file(other + "/" + kShard0, file("shard-00003.spks"));
  test::flip_byte(file(kShard1), blob_offset(path_, 15));
  ASSERT_EQ(repair(path_, false, copy_)->outcome, Outcome::kRepaired);
  std::filesystem::remove(file("shard-00003.spks.foreign"));
  std::filesystem::remove(file("shard-00003.spks.foreign-2"));
  expect_original();
}

TEST_F(RepairTest, WhatCannotBeReadIsNotDropped) {
  // A link to a name that is too long: the system opens it for nobody.
  const std::string whole = dir_ / "whole.spks";
  std::filesystem::rename(file(kShard1), whole);
  std::filesystem::create_symlink(std::string(300, 'x'), file(kShard1));
  const Files before = read_files_but(path_, kShard1);
  for (const bool drop : {false, true}) {
    const auto report = repair(path_, drop);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.status().code(), Code::kIo);
    EXPECT_NE(report.status().message().find("cannot be read, which is no damage"),
              std::string::npos)
        << report.status().to_string();
    EXPECT_NE(report.status().hint().find("--from"), std::string::npos);
    EXPECT_EQ(read_files_but(path_, kShard1), before);
  }
  // A copy has it all: then nothing is lost.
  ASSERT_EQ(repair(path_, false, copy_)->outcome, Outcome::kRepaired);
  expect_original();
}

TEST_F(RepairTest, WhatKilledOnesLeftGoes) {
  const char* const left[] = {"manifest.json.before-repair", "index.spki.tmp-a-1-2",
                              "rejects.tsv.tmp-a-1-2", "manifest.json.tmp-a-1-2",
                              "shard-00001.spks.repair.tmp"};
  for (const char* name : left) test::write_file(file(name), "x");
  test::write_file(file("notes.txt"), "mine");
  EXPECT_EQ(repair(path_)->outcome, Outcome::kNothingToDo);
  for (const char* name : left) EXPECT_FALSE(std::filesystem::exists(file(name))) << name;
  EXPECT_EQ(test::read_file(file("notes.txt")), "mine");
  std::filesystem::remove(file("notes.txt"));
  expect_original();
}

TEST_F(RepairTest, SumsOfOtherBytesDoNotStay) {
  // Kept where all is again what it was.
  test::write_file(file("SHA256SUMS"), "sums");
  std::filesystem::remove(file(std::string(kIndexName)));
  ASSERT_EQ(repair(path_)->outcome, Outcome::kRepaired);
  EXPECT_EQ(test::read_file(file("SHA256SUMS")), "sums");
  // A list of rejects that is lost: the same samples, but other bytes.
  std::filesystem::remove(file(std::string(kRejectsName)));
  const uint64_t size = std::filesystem::file_size(file(kShard0));
  std::filesystem::resize_file(file(kShard0), size - 200);
  const auto report = repair(path_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->reject_lists_lost, 1u);
  EXPECT_FALSE(report->identity_changed);
  EXPECT_FALSE(std::filesystem::exists(file("SHA256SUMS")));
}

TEST_F(RepairTest, ShardsOfAnotherPackAllOverAreTold) {
  const std::string other = dir_ / "other";
  TestPackOptions options;
  options.schema = test::image_schema();
  options.geometry.shard_count = 3;
  options.plan_id = {1, 2};
  ASSERT_TRUE(test::write_test_pack(other, test::image_samples(40, 2000, 9000), options).ok());
  const std::string before = Pack::open(path_).value()->content_id().to_hex();
  for (const char* shard : {kShard0, kShard1, kShard2}) {
    std::filesystem::copy_file(other + "/" + shard, file(shard),
                               std::filesystem::copy_options::overwrite_existing);
  }
  const auto report = repair(path_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->outcome, Outcome::kRepaired);
  EXPECT_TRUE(report->identity_changed);
  EXPECT_EQ(report->steps.back(),
            "the index was of another pack than the shards: content id " + before);
  EXPECT_EQ(report->content_id, Pack::open(other).value()->content_id());
}

TEST_F(RepairTest, AKilledRepairGoesOn) {
  // Two shards with damage; the repair died when the first had taken its place.
  const auto [begin1, end1] = samples_of(1);
  const uint64_t other = begin1 + 1;
  test::flip_byte(file(kShard0), blob_offset(copy_, 2));
  test::flip_byte(file(kShard1), blob_offset(copy_, other));
  const std::string done = dir_ / "done";
  copy_pack(path_, done);
  ASSERT_TRUE(repair(done, true).ok());
  std::filesystem::rename(file("manifest.json"), file("manifest.json.before-repair"));
  test::write_file(file(kShard0), test::read_file(done + "/" + kShard0));
  test::write_file(file("shard-00001.spks.repair.tmp"), "half");
  test::write_file(file("shard-00002.spks.repair.tmp"), "half");
  const auto verified = verify_pack(path_, {}, {});
  ASSERT_FALSE(verified.ok());
  EXPECT_EQ(verified.status().code(), Code::kNotThisFormat);
  const auto report = repair(path_, true);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->outcome, Outcome::kRepaired);
  EXPECT_EQ(read_files(path_), read_files(done));
  expect_without({2, other});
}

TEST_F(RepairTest, OtherFoldersAreLeftAlone) {
  const std::string other = dir_ / "other";
  std::filesystem::create_directory(other);
  test::write_file(other + "/a.txt", "a");
  const auto report = repair(other);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::kNotThisFormat);
  EXPECT_EQ(repair(dir_ / "nowhere").status().code(), Code::kNotFound);
  // A pack that is being built is no damaged one.
  test::write_file(file("plan.spkp"), "plan");
  EXPECT_EQ(repair(path_).status().code(), Code::kBusy);
}

}  // namespace
}  // namespace spk
