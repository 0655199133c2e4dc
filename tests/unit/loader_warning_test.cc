// Storage that is sorted by class, of which loaders warn.
#include <gmock/gmock.h>

#include "loader/class_warning.h"
#include "unit/loader_fixture.h"

namespace spk::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class LoaderWarning : public LoaderTest {
 protected:
  // `classes` of equal size, in storage order where sorted.
  void make_classes(int64_t classes, bool sorted) {
    std::vector<TestSample> samples = image_samples(kLoaderSamples, 500, 6000);
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto n = static_cast<int64_t>(i);
      samples[i].values[1] = std::vector<int64_t>{
          sorted ? n * classes / static_cast<int64_t>(kLoaderSamples) : n * 7 % classes};
    }
    TestPackOptions options;
    options.schema = image_schema();
    options.geometry.shard_count = 3;
    options.look_ahead = false;
    std::filesystem::remove_all(path());
    ASSERT_TRUE(write_test_pack(path(), samples, options).ok());
    auto pack = Pack::open(path());
    ASSERT_TRUE(pack.ok()) << pack.status().to_string();
    pack_ = *pack;
  }
  std::string warning(LoaderOptions options) const { return open(options)->warning(); }
};

TEST_F(LoaderWarning, TellsHowMuchWhereStorageIsSorted) {
  make_classes(10, true);
  LoaderOptions asked = options();
  asked.batch = 16;
  asked.world = 2;
  asked.memory_bytes = 8 << 20;
  EXPECT_THAT(warning(asked), StartsWith("storage is sorted by class: expect a class variance up "
                                         "to "));
  EXPECT_THAT(warning(asked), HasSubstr(" x that of a full shuffle; pack with --shuffle full, or "
                                        "use a random order"));
  const auto estimate_of = [&](const LoaderOptions& options) {
    const std::string text = warning(options);
    const size_t at = text.find("up to ");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + 6));
  };
  // At most 1 + (B - 1) / (L w), and not much less, for chunks hold a class and a bit.
  EXPECT_GT(estimate_of(asked), 1 + 0.6 * 31 / 4);
  EXPECT_LE(estimate_of(asked), 1 + 31.0 / 4 + 0.05);
  asked.window = 2;
  EXPECT_GT(estimate_of(asked), 1 + 0.6 * 31 / 8);
  EXPECT_LE(estimate_of(asked), 1 + 31.0 / 8 + 0.05);
  // As much as that needs no other pack.
  asked.lanes = 32;
  EXPECT_GT(estimate_of(asked), 1.1);
  EXPECT_THAT(warning(asked), testing::Not(HasSubstr("pack with")));
}

TEST_F(LoaderWarning, IsSilentElsewhere) {
  make_classes(10, true);
  LoaderOptions asked = options();
  asked.batch = 1;
  EXPECT_EQ(warning(asked), "");
  asked.batch = 32;
  asked.memory_bytes = 0;
  asked.lanes = 512;
  EXPECT_EQ(warning(asked), "");
  asked.lanes = 0;
  asked.order = OrderKind::kRandom;
  EXPECT_EQ(warning(asked), "");
  asked.order = OrderKind::kSequential;
  EXPECT_EQ(warning(asked), "");

  asked = options();
  asked.batch = 64;
  EXPECT_NE(warning(asked), "");
  make_classes(10, false);
  EXPECT_EQ(warning(asked), "");
  make_classes(1, true);
  EXPECT_EQ(warning(asked), "");
}

TEST_F(LoaderWarning, NothingIsKnownWithoutLabels) {
  make_pack({{"a", {std::string("bytes")}}, {"b", {std::string("more")}}},
            Schema{{{"image", FieldKind::kBlob, 1}}, {}});
  LoaderOptions asked = options();
  asked.batch = 64;
  EXPECT_EQ(warning(asked), "");
  make_pack({});
  EXPECT_EQ(warning(asked), "");
}

}  // namespace
}  // namespace spk::test
