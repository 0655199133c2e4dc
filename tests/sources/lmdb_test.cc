// LMDB environments as sources: Caffe's Datum and plain pictures, and files that are cut or lie.
#include "sources/lmdb.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "sources/caffe_datum.h"
#include "sources/listed.h"
#include "sources/lmdb_file.h"
#include "sources/lmdb_tree.h"
#include "support/test_pack.h"

namespace spk {
namespace {

namespace fs = std::filesystem;
using test::LmdbFileOptions;
using test::LmdbPairs;
using test::proto_bytes;
using test::proto_number;

std::string raw_datum(int64_t label, uint64_t channels, uint64_t height, uint64_t width,
                      const std::string& data) {
  return proto_number(1, channels) + proto_number(2, height) + proto_number(3, width) +
         proto_bytes(4, data) + proto_number(5, static_cast<uint64_t>(label));
}
std::string encoded_datum(int64_t label, const std::string& data) {
  return proto_bytes(4, data) + proto_number(5, static_cast<uint64_t>(label)) + proto_number(7, 1);
}
std::string jpeg(size_t bytes) { return "\xff\xd8\xff\xe0" + std::string(bytes, 'j'); }

class LmdbTest : public testing::Test {
 protected:
  LmdbTest() { options_.source = dir_ / "env"; }
  Result<test::Listed> list(const std::string& file) {
    fs::create_directories(options_.source);
    std::ofstream(options_.source + "/data.mdb", std::ios::binary) << file;
    return test::list_all(options_);
  }
  test::TempDir dir_;
  PackOptions options_;
};

TEST_F(LmdbTest, EncodedDatumKeepsItsBytes) {
  const auto listed = list(test::make_lmdb_file(
      {{"0_a.jpg", encoded_datum(-3, jpeg(20))}, {"1_b.jpg", encoded_datum(7, jpeg(9000))}}));
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->listing.source_kind, "lmdb");
  EXPECT_EQ(listed->listing.form, "datum");
  ASSERT_EQ(listed->entries.size(), 2u);
  EXPECT_EQ(listed->entries[0].key, "0_a.jpg");
  EXPECT_EQ(listed->entries[0].int_labels, std::vector<int64_t>{-3});
  EXPECT_EQ(listed->entries[1].int_labels, std::vector<int64_t>{7});
  EXPECT_EQ(listed->payloads[0], jpeg(20));
  EXPECT_EQ(listed->payloads[1], jpeg(9000));
}

TEST_F(LmdbTest, RawPlanesBecomePixels) {
  // Two rows of three: blue 0..5, green 10..15, red 20..25.
  std::string planes, wanted;
  for (char plane : {0, 10, 20}) {
    for (char i = 0; i < 6; ++i) planes += static_cast<char>(plane + i);
  }
  for (char i = 0; i < 6; ++i) {
    for (char plane : {20, 10, 0}) wanted += static_cast<char>(plane + i);
  }
  const auto listed = list(test::make_lmdb_file({{"a", raw_datum(1, 3, 2, 3, planes)},
                                                 {"b", raw_datum(2, 1, 2, 3, "greyed")},
                                                 {"c", raw_datum(2, 2, 1, 3, "abcABC")}}));
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->listing.blobs[0].content, BlobContent::kPixels);
  EXPECT_EQ(listed->payloads[0], wanted);
  EXPECT_EQ(listed->payloads[1], "greyed");
  EXPECT_EQ(listed->payloads[2], "aAbBcC");
  EXPECT_TRUE(listed->entries[0].pixels == (PixelDimensions{2, 3, 3}));
}

TEST_F(LmdbTest, DatumThatDoesNotFitIsRejectedByName) {
  const auto listed = list(test::make_lmdb_file(
      {{"a", raw_datum(0, 3, 2, 2, "123456789012")},
       {"b", raw_datum(0, 3, 2, 2, "12345678901")},
       {"c", raw_datum(0, 3, 2, 2, jpeg(30))},
       {"d", proto_number(1, 1) + proto_bytes(6, std::string(16, '\0')) + proto_number(5, 0)},
       {"e", encoded_datum(0, jpeg(10))},
       {"f", proto_bytes(4, "123456789012")},
       {"g", raw_datum(0, 1 << 20, 1 << 30, 1 << 30, "x")},
       {"h", raw_datum(0, uint64_t(-1), 1, 1, "x")},
       {"i", raw_datum(0, 3, 2, 2, "abcdefghijkl")}}));
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  std::vector<std::string> rejects;
  for (const SampleEntry& entry : listed->entries) rejects.push_back(entry.reject);
  EXPECT_EQ(rejects[0], "");
  EXPECT_EQ(rejects[1], "data size: 11 bytes, 12 expected for 3 x 2 x 2");
  EXPECT_EQ(rejects[2],
            "data size: 34 bytes, 12 expected for 3 x 2 x 2; it is a jpeg with encoded=false");
  EXPECT_EQ(rejects[3], "float_data instead of bytes");
  EXPECT_EQ(rejects[4], "encoded, but the first sample is raw pixels");
  EXPECT_EQ(rejects[5], "no label");
  EXPECT_EQ(rejects[6], "too many pixels: 1048576 x 1073741824 x 1073741824");
  EXPECT_EQ(rejects[7], "data size: 1 bytes, 0 expected for -1 x 1 x 1");
  EXPECT_EQ(rejects[8], "");
}

TEST_F(LmdbTest, PlainPicturesAndTheirLabels) {
  const LmdbPairs pairs = {{"cat/1", jpeg(5)}, {"cow_2", jpeg(6)}, {"dog/3", jpeg(70)}};
  auto listed = list(test::make_lmdb_file(pairs));
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->listing.form, "pictures");
  EXPECT_EQ(listed->listing.label_kind, LabelKind::kNone);
  EXPECT_EQ(listed->listing.warnings.total(), 1u);
  EXPECT_EQ(listed->payloads[2], jpeg(70));

  options_.label_from = LabelFrom::kKeyPrefix;
  listed = list(test::make_lmdb_file(pairs));
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->listing.classes, (std::vector<std::string>{"cat", "cow", "dog"}));
  EXPECT_EQ(listed->entries[1].int_labels, std::vector<int64_t>{1});
  const Status none = list(test::make_lmdb_file({{"cat", jpeg(5)}})).status();
  EXPECT_EQ(none.code(), Code::kInvalidArgument);
  EXPECT_NE(none.message().find("'cat'"), std::string::npos);

  options_.label_from = LabelFrom::kAuto;  // every key has a slash
  listed = list(test::make_lmdb_file({{"a/1", jpeg(5)}, {"b/1", jpeg(5)}}));
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->entries[1].int_labels, std::vector<int64_t>{1});
}

TEST_F(LmdbTest, OtherThingsAreRefusedAsAWhole) {
  const Status text =
      list(test::make_lmdb_file({{"image-1", jpeg(5)}, {"label-1", "word"}, {"num-samples", "1"}}))
          .status();
  EXPECT_EQ(text.code(), Code::kNotThisFormat);
  EXPECT_NE(text.message().find("key 'label-1' is neither"), std::string::npos);
  LmdbPairs pairs;  // beyond what is looked at first
  for (int i = 1000; i < 1100; ++i) pairs.emplace_back("i" + std::to_string(i), jpeg(5));
  for (int i = 1000; i < 1100; ++i) pairs.emplace_back("l" + std::to_string(i), "word");
  EXPECT_EQ(list(test::make_lmdb_file(pairs)).status().code(), Code::kNotThisFormat);
  pairs.resize(103);
  const auto listed = list(test::make_lmdb_file(pairs));
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->entries[102].reject, "not a picture");
}

TEST_F(LmdbTest, NamedDatabases) {
  LmdbFileOptions file;
  file.named = "train";
  const std::string bytes = test::make_lmdb_file({{"a/x", jpeg(9)}}, file);
  auto listed = list(bytes);  // the only one there is
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->entries.size(), 1u);
  EXPECT_EQ(listed->listing.decisions[0].second, "train");
  options_.database = "train";
  listed = list(bytes);
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->payloads[0], jpeg(9));
  options_.database = "val";
  EXPECT_EQ(list(bytes).status().code(), Code::kNotFound);
}

TEST_F(LmdbTest, BranchesAndValuesWithPagesOfTheirOwnAreWalkedInOrder) {
  std::mt19937 random(1);
  LmdbFileOptions file;
  file.page_bytes = 512;
  file.pairs_a_leaf = 3;
  LmdbPairs pairs;
  for (int i = 100; i < 150; ++i) {
    pairs.emplace_back("a/" + std::to_string(i), jpeg(random() % 1500));
  }
  const auto listed = list(test::make_lmdb_file(pairs, file));
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  ASSERT_EQ(listed->entries.size(), pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(listed->entries[i].key, pairs[i].first);
    EXPECT_EQ(listed->payloads[i], pairs[i].second);
  }
}

TEST_F(LmdbTest, ACutFileIsRefusedOrSalvaged) {
  LmdbFileOptions file;
  file.page_bytes = 512;
  file.pairs_a_leaf = 2;
  LmdbPairs pairs;
  for (int i = 100; i < 120; ++i) pairs.emplace_back("a/" + std::to_string(i), jpeg(700));
  const std::string whole = test::make_lmdb_file(pairs, file);
  for (size_t bytes = 2 * 512; bytes < whole.size(); bytes += 100) {
    const Status status = list(whole.substr(0, bytes)).status();
    EXPECT_EQ(status.code(), Code::kDamaged) << bytes;
    EXPECT_EQ(status.offset(), bytes);
    EXPECT_NE(status.message().find("truncated"), std::string::npos);
  }
  // The last page is the root, so without it nothing can be found; with a root that stands
  // elsewhere the rest can.
  options_.salvage = true;
  std::string holed = whole;
  holed.replace(4 * 512 + 3 * 512, 512, std::string(512, '\0'));
  const auto listed = list(holed);
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_LE(listed->entries.size(), 20u);
  EXPECT_GE(listed->entries.size(), 18u);
}

TEST_F(LmdbTest, UnusualFilesAreNamed) {
  LmdbFileOptions file;
  file.flags = LmdbDatabase::kDuplicates;
  EXPECT_EQ(list(test::make_lmdb_file({{"a/x", jpeg(9)}}, file)).status().code(),
            Code::kUnsupported);
  std::string later = test::make_lmdb_file({{"a/x", jpeg(9)}});
  later[20] = 2;
  EXPECT_EQ(list(later).status().code(), Code::kUnsupported);
  std::string big_endian = test::make_lmdb_file({{"a/x", jpeg(9)}});
  big_endian.replace(16, 4, "\xbe\xef\xc0\xde");
  EXPECT_EQ(list(big_endian).status().code(), Code::kUnsupported);
  const auto other = list("no data");  // a folder without pictures
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->listing.source_kind, "folder");
}

TEST_F(LmdbTest, DamagedBytesNeverCrashNorGoOnForEver) {
  LmdbFileOptions file;
  file.page_bytes = 512;
  file.pairs_a_leaf = 2;
  LmdbPairs pairs;
  for (int i = 100; i < 106; ++i) {
    pairs.emplace_back("a/" + std::to_string(i), encoded_datum(i, jpeg(30 * (i - 99))));
  }
  const std::string whole = test::make_lmdb_file(pairs, file);
  for (const unsigned seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 100; ++round) {
      std::string bytes = whole;
      for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
      options_.salvage = round % 2 == 0;
      const auto listed = list(bytes);
      EXPECT_TRUE(!listed.ok() || listed->entries.size() <= 300u);
    }
  }
}

}  // namespace
}  // namespace spk
