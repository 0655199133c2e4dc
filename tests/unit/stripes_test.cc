#include "io/stripes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <string>

#include "io/beegfs_layout.h"
#include "io/ceph_layout.h"
#include "io/lustre_layout.h"
#include "layout/stripe_choice.h"
#include "support/stripe_stand_in.h"

namespace spk {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

void put16(std::vector<uint8_t>& to, uint16_t value) {
  to.resize(to.size() + 2);
  store_le(to.data() + to.size() - 2, value);
}
void put32(std::vector<uint8_t>& to, uint32_t value) {
  to.resize(to.size() + 4);
  store_le(to.data() + to.size() - 4, value);
}
void put64(std::vector<uint8_t>& to, uint64_t value) {
  to.resize(to.size() + 8);
  store_le(to.data() + to.size() - 8, value);
}

// A lov_user_md_v1, or _v3 where POOL is not empty.
std::vector<uint8_t> plain(uint32_t stripe_bytes, uint16_t count, std::vector<uint32_t> targets,
                           std::string pool = "", uint32_t pattern = 1) {
  std::vector<uint8_t> value;
  put32(value, pool.empty() ? 0x0BD10BD0 : 0x0BD30BD0);
  put32(value, pattern);
  put64(value, 77);
  put64(value, 0);
  put32(value, stripe_bytes);
  put16(value, count);
  put16(value, 0);
  if (!pool.empty()) {
    pool.resize(16, '\0');
    value.insert(value.end(), pool.begin(), pool.end());
  }
  for (const uint32_t target : targets) {
    put64(value, 1);
    put64(value, 2);
    put32(value, 0);
    put32(value, target);
  }
  return value;
}

std::vector<uint8_t> composite(
    const std::vector<std::tuple<uint64_t, uint64_t, uint32_t, std::vector<uint8_t>>>& parts) {
  std::vector<uint8_t> value;
  uint32_t offset = static_cast<uint32_t>(32 + 48 * parts.size());
  put32(value, 0x0BD60BD0);
  put32(value, 0);
  put32(value, 3);
  put16(value, 0);
  put16(value, static_cast<uint16_t>(parts.size()));
  put64(value, 0);
  put64(value, 0);
  for (const auto& [begin, end, flags, blob] : parts) {
    put32(value, 1);
    put32(value, flags);
    put64(value, begin);
    put64(value, end);
    put32(value, offset);
    put32(value, static_cast<uint32_t>(blob.size()));
    put64(value, 0);
    put64(value, 0);
    offset += static_cast<uint32_t>(blob.size());
  }
  for (const auto& part : parts) {
    value.insert(value.end(), std::get<3>(part).begin(), std::get<3>(part).end());
  }
  return value;
}

class StripesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "spk_stripes_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    dir_ = Directory::open(path_).value();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  StripedFile make(const StripeCalls& calls, StripeSystem system, const StripeRequest& request) {
    auto made = create_striped(dir_, "shard", calls.identify(dir_.fd()), system, request, calls);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return std::move(made).value();
  }

  std::string path_;
  Directory dir_;
};

TEST(LustreLayout, PlainLayoutTellsTheTargetOfEachStripe) {
  const StripeLayout layout = parse_lustre_layout(plain(4u << 20, 3, {7, 2, 30})).value();
  EXPECT_EQ(layout.system, StripeSystem::kLustre);
  EXPECT_FALSE(layout.composite || layout.released || layout.foreign);
  ASSERT_EQ(layout.components.size(), 1u);
  EXPECT_EQ(layout.components[0].stripe_bytes, 4 * kMiB);
  EXPECT_EQ(layout.components[0].stripe_count, 3u);
  EXPECT_EQ(stripe_target(layout, 0), 7u);
  EXPECT_EQ(stripe_target(layout, 4 * kMiB - 1), 7u);
  EXPECT_EQ(stripe_target(layout, 4 * kMiB), 2u);
  EXPECT_EQ(stripe_target(layout, 11 * kMiB), 30u);
  EXPECT_EQ(stripe_target(layout, 12 * kMiB), 7u);
  EXPECT_FALSE(stripe_object(layout, 0).has_value());
}

TEST(LustreLayout, PoolsDefaultsReleasedAndForeignFiles) {
  const StripeLayout pooled = parse_lustre_layout(plain(1u << 20, 2, {1, 0}, "flash")).value();
  EXPECT_EQ(pooled.components[0].pool, "flash");
  EXPECT_EQ(pooled.components[0].targets, (std::vector<uint32_t>{1, 0}));
  // A directory's default: a head alone, -1 for all targets.
  const StripeLayout every = parse_lustre_layout(plain(0, 0xFFFF, {})).value();
  EXPECT_EQ(every.components[0].stripe_count, kAllTargets);
  EXPECT_FALSE(stripe_target(every, 0).has_value());
  const StripeLayout released =
      parse_lustre_layout(plain(1u << 20, 2, {}, "", 1 | 0x80000000)).value();
  EXPECT_TRUE(released.released);
  std::vector<uint8_t> foreign;
  put32(foreign, 0x0BD70BD0);
  EXPECT_TRUE(parse_lustre_layout(foreign)->foreign);
}

TEST(LustreLayout, CompositeLayoutHasComponentsByOffset) {
  const auto value = composite({{0, kMiB, 0x10, plain(1u << 20, 1, {}, "", 0x100)},
                                {kMiB, kGiB, 0x10, plain(1u << 20, 1, {4})},
                                {kGiB, UINT64_MAX, 0, plain(4u << 20, 4, {0, 0, 0, 0}, "big")}});
  const StripeLayout layout = parse_lustre_layout(value).value();
  EXPECT_TRUE(layout.composite);
  ASSERT_EQ(layout.components.size(), 3u);
  EXPECT_FALSE(stripe_target(layout, 0).has_value());  // on the metadata server
  EXPECT_EQ(stripe_target(layout, kMiB), 4u);
  EXPECT_FALSE(stripe_target(layout, kGiB).has_value());  // no objects yet
  EXPECT_EQ(layout.at(2 * kGiB)->pool, "big");
}

TEST(LustreLayout, EveryTruncationAndHostileLengthIsAnError) {
  const auto whole = composite({{0, kMiB, 0x10, plain(1u << 20, 1, {3})},
                                {kMiB, UINT64_MAX, 0x10, plain(1u << 20, 2, {4, 5}, "p")}});
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto cut = parse_lustre_layout(ByteSpan(whole).first(size));
    ASSERT_FALSE(cut.ok()) << size;
    EXPECT_EQ(cut.status().code(), Code::kDamaged) << size;
  }
  EXPECT_EQ(parse_lustre_layout(plain(1u << 20, 3, {1})).status().message(),
            "lustre.lov: its list of objects needs 104 bytes, 56 are there");
  auto outside = whole;
  store_le<uint32_t>(outside.data() + 32 + 24, 0xFFFFFFF0);
  EXPECT_EQ(parse_lustre_layout(outside).status().message(),
            "lustre.lov: component 0 lies at 4294967280 with 56 bytes, of 280");
  auto backwards = whole;
  store_le<uint64_t>(backwards.data() + 32 + 8, 2 * kMiB);
  EXPECT_EQ(parse_lustre_layout(backwards).status().message(),
            "lustre.lov: component 0 is from 2097152 to 1048576");
  auto shared = whole;  // both components tell of the second one's objects
  store_le<uint32_t>(shared.data() + 32 + 24, load_le<uint32_t>(whole.data() + 32 + 48 + 24));
  store_le<uint32_t>(shared.data() + 32 + 28, load_le<uint32_t>(whole.data() + 32 + 48 + 28));
  EXPECT_EQ(parse_lustre_layout(shared).status().message(),
            "lustre.lov: component 1 shares bytes with another");
  std::vector<uint8_t> unknown(32, 0);
  store_le<uint32_t>(unknown.data(), 0x12345678);
  EXPECT_EQ(parse_lustre_layout(unknown).status().message(), "lustre.lov has the magic 0x12345678");
}

TEST(LustreLayout, RandomBytesNeverCrash) {
  const uint32_t seed = 20261130;
  std::mt19937 random(seed);
  const uint32_t magics[] = {0x0BD10BD0, 0x0BD30BD0, 0x0BD50BD0, 0x0BD60BD0, 0x0BD80BD0};
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> value(4 + random() % 200);
    for (uint8_t& byte : value) byte = static_cast<uint8_t>(random() % 3 == 0 ? random() : 0);
    store_le<uint32_t>(value.data(), magics[random() % 5]);
    const auto layout = parse_lustre_layout(value);
    if (layout.ok()) (void)stripe_target(*layout, random());
  }
}

TEST_F(StripesTest, LustreFileGetsItsLayoutBeforeItsFirstByte) {
  LustreStandIn lustre;
  const FileSystemInfo fs = lustre.identify(dir_.fd());
  EXPECT_EQ(count_targets(dir_.fd(), fs, lustre), 8u);
  const StripedFile made = make(lustre, StripeSystem::kLustre,
                                {.stripe_bytes = 4 * kMiB, .stripe_count = 2, .start_target = 3});
  EXPECT_TRUE(made.refused.ok()) << made.refused.to_string();
  EXPECT_EQ(lustre.created, std::vector<std::string>{"shard+delayed"});
  ASSERT_EQ(lustre.layouts_set.size(), 1u);
  EXPECT_EQ(lustre.layouts_set[0].size(), 32u);
  ASSERT_EQ(made.got.components.size(), 1u);
  EXPECT_EQ(made.got.components[0].targets, (std::vector<uint32_t>{3, 4}));
}

TEST_F(StripesTest, LustrePoolIsAskedForByV3) {
  LustreStandIn lustre;
  const StripedFile made = make(lustre, StripeSystem::kLustre,
                                {.stripe_bytes = kMiB, .stripe_count = 1, .pool = "flash"});
  EXPECT_EQ(load_le<uint32_t>(lustre.layouts_set.at(0).data()), 0x0BD30BD0u);
  EXPECT_EQ(made.got.components.at(0).pool, "flash");
}

TEST_F(StripesTest, LustreThatRefusesGivesAPlainFileAndSaysSo) {
  LustreStandIn lustre;
  lustre.refuses_layouts = true;
  const StripedFile made =
      make(lustre, StripeSystem::kLustre, {.stripe_bytes = 4 * kMiB, .stripe_count = 1});
  EXPECT_EQ(made.refused.message(),
            "the file system did not take the layout (lustre.lov): Invalid argument");
  // The file without objects is gone; a plain one of the same name is open.
  EXPECT_EQ(lustre.created, (std::vector<std::string>{"shard+delayed", "shard"}));
  EXPECT_TRUE(made.file.write_all(0, as_bytes("x")).ok());
  EXPECT_EQ(std::filesystem::file_size(path_ + "/shard"), 1u);
}

TEST_F(StripesTest, LustreTakesNoOddSizes) {
  const auto refused = [](const StripeRequest& request) {
    return check_stripe_request(StripeSystem::kLustre, request).message();
  };
  EXPECT_EQ(refused({.stripe_bytes = 100000}),
            "--stripe-size 97.66 KiB: Lustre takes multiples of 64 KiB below 4 GiB");
  EXPECT_EQ(refused({.stripe_bytes = 4 * kGiB}),
            "--stripe-size 4 GiB: Lustre takes multiples of 64 KiB below 4 GiB");
  EXPECT_EQ(refused({.stripe_count = 2001}), "--stripe-count 2001: Lustre takes 2000 at most");
  EXPECT_EQ(refused({.pool = "0123456789abcdef"}),
            "--pool '0123456789abcdef': Lustre takes 15 bytes at most");
  EXPECT_EQ(refused({}), "");
}

TEST_F(StripesTest, BeegfsFileIsMadeWithHints) {
  BeegfsStandIn beegfs;
  const StripedFile made =
      make(beegfs, StripeSystem::kBeegfs, {.stripe_bytes = 4 * kMiB, .stripe_count = 2});
  EXPECT_TRUE(made.refused.ok()) << made.refused.to_string();
  EXPECT_EQ(beegfs.made, std::vector<std::string>{"shard 33206 2 4194304"});
  ASSERT_EQ(made.got.components.size(), 1u);
  EXPECT_EQ(made.got.components[0].stripe_bytes, 4 * kMiB);
  EXPECT_EQ(made.got.components[0].targets, (std::vector<uint32_t>{101, 102}));
  EXPECT_EQ(stripe_target(made.got, 5 * kMiB), 102u);
  // Of the directory: its size and number, and no targets.
  const StripeLayout dir = read_stripes(dir_.fd(), beegfs.identify(dir_.fd()), beegfs).value();
  EXPECT_EQ(dir.components.at(0).stripe_count, 4u);
  EXPECT_TRUE(dir.components.at(0).targets.empty());
}

TEST_F(StripesTest, BeegfsRefusesAndLimits) {
  BeegfsStandIn beegfs;
  beegfs.refuses_hints = true;
  const StripedFile made = make(beegfs, StripeSystem::kBeegfs, {.stripe_bytes = 4 * kMiB});
  EXPECT_EQ(
      made.refused.message(),
      "the file system did not take the layout (MKFILE_STRIPEHINTS): Operation not permitted");
  EXPECT_TRUE(made.file.write_all(0, as_bytes("x")).ok());
  EXPECT_EQ(check_stripe_request(StripeSystem::kBeegfs, {.stripe_bytes = 96 << 10}).message(),
            "--stripe-size 96 KiB: BeeGFS takes powers of two from 64 KiB to 2 GiB");
  EXPECT_EQ(check_stripe_request(StripeSystem::kBeegfs, {.pool = "a"}).message(),
            "--pool: BeeGFS takes pools by directory only");
  beegfs.chunk_bytes = 0;
  EXPECT_EQ(read_stripes(dir_.fd(), beegfs.identify(dir_.fd()), beegfs).status().message(),
            "BeeGFS tells of chunks of 0 bytes on 4 targets");
}

TEST_F(StripesTest, ANameThatIsTakenIsTakenEverywhere) {
  LustreStandIn lustre;
  BeegfsStandIn beegfs;
  (void)make(lustre, StripeSystem::kLustre, {.stripe_bytes = kMiB, .stripe_count = 1});
  const StripeRequest request = {.stripe_bytes = kMiB};
  EXPECT_EQ(create_striped(dir_, "shard", lustre.identify(dir_.fd()), StripeSystem::kLustre,
                           request, lustre)
                .status()
                .code(),
            Code::kExists);
  EXPECT_EQ(create_striped(dir_, "shard", beegfs.identify(dir_.fd()), StripeSystem::kBeegfs,
                           request, beegfs)
                .status()
                .code(),
            Code::kExists);
}

TEST_F(StripesTest, LocalFileSystemsTakeNoLayout) {
  const FileSystemInfo fs = detect_filesystem(dir_.fd());
  EXPECT_EQ(read_stripes(dir_.fd(), fs).value(), StripeLayout());
  auto made = create_striped(dir_, "plain", fs, StripeSystem::kNone, {});
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made->refused.ok());
  auto asked = create_striped(dir_, "asked", fs, StripeSystem::kNone, {.stripe_count = 2});
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(asked->refused.message(), fs.name + " takes no stripe layout");
}

TEST(CephLayout, TextBothWays) {
  const StripeLayout layout =
      parse_ceph_layout("stripe_unit=1048576 stripe_count=3 object_size=4194304 pool=data").value();
  EXPECT_EQ(layout.components.at(0).pool, "data");
  // 9 objects for 32 MiB: sets of 3 objects of 4 stripes each.
  EXPECT_EQ(stripe_object(layout, 0), 0u);
  EXPECT_EQ(stripe_object(layout, kMiB), 1u);
  EXPECT_EQ(stripe_object(layout, 11 * kMiB), 2u);
  EXPECT_EQ(stripe_object(layout, 12 * kMiB), 3u);
  EXPECT_EQ(stripe_object(layout, 31 * kMiB), 7u);
  EXPECT_FALSE(stripe_target(layout, 0).has_value());
  EXPECT_EQ(format_ceph_layout({4 * kMiB, 1, 4 * kMiB, ""}).value(),
            "stripe_unit=4194304 stripe_count=1 object_size=4194304");
  EXPECT_EQ(format_ceph_layout({4 * kMiB, 2, 8 * kMiB, "fast"}).value(),
            "stripe_unit=4194304 stripe_count=2 object_size=8388608 pool=fast");
}

TEST(CephLayout, NonsenseIsAnError) {
  for (const char* text : {"", "stripe_unit=x stripe_count=1 object_size=4194304",
                           "stripe_unit=0 stripe_count=1 object_size=4194304",
                           "stripe_unit=65537 stripe_count=1 object_size=4194304",
                           "stripe_unit=4194304 stripe_count=0 object_size=4194304",
                           "stripe_unit=4194304 stripe_count=1 object_size=4194305",
                           "stripe_unit=99999999999999999999 stripe_count=1 object_size=4194304"}) {
    EXPECT_EQ(parse_ceph_layout(text).status().code(), Code::kDamaged) << text;
  }
  const Status large = format_ceph_layout({256 * kMiB, 1, 256 * kMiB, ""}).status();
  EXPECT_EQ(large.message(), "objects of 256 MiB are more than a Ceph cluster takes (128 MiB)");
  EXPECT_EQ(format_ceph_layout({3 << 15, 1, 3 << 15, ""}).status().code(), Code::kInvalidArgument);
}

StripeQuestion lustre_question(uint32_t shards, uint32_t targets, uint64_t shard_bytes = kGiB) {
  StripeQuestion question;
  question.directory.system = StripeSystem::kLustre;
  question.chunk_bytes = 4 * kMiB;
  question.pack_bytes = shard_bytes * shards;
  question.shard_count = shards;
  question.target_count = targets;
  return question;
}

TEST(StripeChoice, OneStripeWhereShardsAreAsManyAsTargets) {
  const StripeChoice choice = choose_stripes(lustre_question(248, 248));
  EXPECT_EQ(choice.stripe_bytes, 4 * kMiB);
  EXPECT_EQ(choice.stripe_count, 1u);
  EXPECT_EQ(choice.reasons.back(), "one stripe a shard: 248 shards keep 248 targets busy");
}

TEST(StripeChoice, FewShardsGetMoreStripesUpToTheLimitOfTheirSize) {
  EXPECT_EQ(choose_stripes(lustre_question(64, 248)).stripe_count, 4u);
  EXPECT_EQ(choose_stripes(lustre_question(1, 248)).stripe_count, 8u);
  EXPECT_EQ(choose_stripes(lustre_question(1, 248, 50 * kGiB)).stripe_count, 24u);
  EXPECT_EQ(choose_stripes(lustre_question(1, 248, 500 * kGiB)).stripe_count, 72u);
  EXPECT_EQ(choose_stripes(lustre_question(1, 248, 100 * kMiB)).stripe_count, 1u);
  EXPECT_EQ(choose_stripes(lustre_question(2, 3)).stripe_count, 2u);
  EXPECT_EQ(choose_stripes(lustre_question(2, 0)).stripe_count, 4u);
}

TEST(StripeChoice, SitesThatSetSomethingUpAreLeftAlone) {
  StripeQuestion question = lustre_question(4, 248);
  question.directory.composite = true;
  question.directory.components.resize(2);
  EXPECT_FALSE(choose_stripes(question).sets());
  EXPECT_EQ(choose_stripes(question).reasons.back(),
            "the folder's layout has parts of its own (PFL); it is left alone");
  question.pack_bytes = 4 * 512 * kGiB;
  EXPECT_TRUE(choose_stripes(question).sets());
  StripeQuestion pooled = lustre_question(4, 248);
  pooled.directory.components.resize(1);
  pooled.directory.components[0].pool = "flash";
  EXPECT_FALSE(choose_stripes(pooled).sets());
  StripeQuestion none;
  EXPECT_FALSE(choose_stripes(none).sets());
}

TEST(StripeChoice, CephHasWholeChunksInObjects) {
  StripeQuestion question = lustre_question(4, 0);
  question.directory =
      parse_ceph_layout("stripe_unit=4194304 stripe_count=1 object_size=4194304").value();
  EXPECT_FALSE(choose_stripes(question).sets());
  question.chunk_bytes = 16 * kMiB;
  const StripeChoice choice = choose_stripes(question);
  EXPECT_EQ(choice.stripe_bytes, 16 * kMiB);
  EXPECT_EQ(choice.object_bytes, 16 * kMiB);
  EXPECT_EQ(choice.stripe_count, 1u);
}

TEST(StripeChoice, StartTargetsAreSpreadEvenly) {
  for (const auto& [shards, count, targets] :
       {std::tuple(64u, 4u, 56u), std::tuple(960u, 1u, 248u), std::tuple(3u, 8u, 7u)}) {
    std::vector<uint32_t> load(targets, 0);
    for (uint32_t shard = 0; shard < shards; ++shard) {
      for (uint32_t k = 0; k < count; ++k) {
        load[(start_target(shard, count, targets) + k) % targets] += 1;
      }
    }
    const auto [least, most] = std::minmax_element(load.begin(), load.end());
    EXPECT_LE(*most - *least, 1u) << shards << " x " << count << " on " << targets;
  }
}

}  // namespace
}  // namespace spk
