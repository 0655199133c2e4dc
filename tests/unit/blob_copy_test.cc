#include "sinks/blob_copy.h"

#include <gtest/gtest.h>

#include "support/test_pack.h"

namespace spk {
namespace {

TEST(BlobCopy, LargeBlobsComeInPiecesCheckedBeforeTheFirst) {
  const test::TempDir dir;
  test::TestPackOptions options;
  options.schema = test::image_schema();
  std::string large(kWholeBlobBytes + 12345, '\0');
  for (size_t i = 0; i < large.size(); i += 7) large[i] = static_cast<char>(i / 7);
  const std::vector<int64_t> one = {1};
  const std::vector<test::TestSample> samples = {
      {"large", {large, one, one, one, one}, 0},
      {"small", {std::string("bytes"), one, one, one, one}, 0},
      {"absent", {std::monostate(), one, one, one, one}, 0}};
  ASSERT_TRUE(test::write_test_pack(dir / "pack", samples, options).ok());
  auto pack = Pack::open(dir / "pack");
  ASSERT_TRUE(pack.ok()) << pack.status().to_string();

  std::string got;
  size_t pieces = 0;
  const ByteSink collect = [&](ByteSpan bytes) {
    got += as_text(bytes);
    ++pieces;
    return Status();
  };
  const auto copy = [&](const std::string& key) {
    got.clear();
    pieces = 0;
    return copy_blob(**pack, (*pack)->find_key(key).value(), 0, collect);
  };
  ASSERT_TRUE(copy("large").ok());
  EXPECT_EQ(pieces, 17u);
  EXPECT_TRUE(got == large);
  ASSERT_TRUE(copy("small").ok());
  EXPECT_EQ(got, "bytes");
  const Status absent = copy("absent");
  EXPECT_EQ(absent.code(), Code::kNotFound);
  EXPECT_EQ(pieces, 0u);

  const uint64_t number = (*pack)->find_key("large").value();
  const SampleLocation place = (*pack)->locate(number, 0).value();
  test::flip_byte(dir / "pack" + "/shard-00000.spks", place.offset + place.bytes - 1);
  const Status status = copy("large");
  EXPECT_EQ(status.code(), Code::kDamaged);
  EXPECT_EQ(status.offset(), place.offset);
  EXPECT_EQ(status.path(), dir / "pack" + "/shard-00000.spks");
  EXPECT_EQ(pieces, 0u);
}

}  // namespace
}  // namespace spk
