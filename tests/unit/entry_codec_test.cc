#include "pipeline/entry_codec.h"

#include <gtest/gtest.h>

#include <string>

namespace spk {
namespace {

TEST(EntryCodec, EntriesComeBackWhole) {
  SampleEntry full;
  full.key = "caf\xe9/\n.jpg";
  full.size_bytes = uint64_t{1} << 40;
  full.int_labels = {-1, INT64_MIN, INT64_MAX};
  full.path = "train/caf\xe9/\n.jpg";
  full.mtime_ns = -1;
  SampleEntry bare;
  bare.key = "";
  bare.reject = "not found";
  SampleEntry other;
  other.key = "k";
  other.size_bytes = 0;
  other.path = "elsewhere";
  other.float_labels = {0.5, -0.0, 1e300};
  other.mtime_ns = kUnknownMtime;
  SampleEntry fields;
  fields.key = "several";
  fields.size_bytes = 12;
  fields.blob_bytes = {12, kAbsentBlob, 0};
  fields.pixels = {3, 4, 1};
  fields.told = {0, 5, UINT32_MAX};
  fields.numbers = {std::nullopt, NumericValues{}, NumericValues{1, UINT64_MAX}};
  for (const SampleEntry& entry : {full, bare, other, fields}) {
    std::string bytes;
    append_entry(bytes, entry);
    ByteSpan rest = as_bytes(bytes);
    SampleEntry back = full;
    ASSERT_TRUE(take_entry(&rest, &back).ok());
    EXPECT_TRUE(rest.empty());
    EXPECT_EQ(back.key, entry.key);
    EXPECT_EQ(back.path, entry.path);
    EXPECT_EQ(back.size_bytes, entry.size_bytes);
    EXPECT_EQ(back.mtime_ns, entry.mtime_ns);
    EXPECT_EQ(back.int_labels, entry.int_labels);
    EXPECT_EQ(back.float_labels, entry.float_labels);
    EXPECT_EQ(back.reject, entry.reject);
    EXPECT_EQ(back.blob_bytes, entry.blob_bytes);
    EXPECT_EQ(back.pixels, entry.pixels);
    EXPECT_EQ(back.told, entry.told);
    EXPECT_EQ(back.numbers, entry.numbers);
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      rest = as_bytes(bytes).first(cut);
      EXPECT_EQ(take_entry(&rest, &back).code(), Code::kDamaged) << cut;
    }
  }
}

}  // namespace
}  // namespace spk
