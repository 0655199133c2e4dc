// MDS datasets and .beton files as sources, from bytes written by their formats' descriptions.
#include <gtest/gtest.h>

#include <bit>
#include <memory>

#include "sources/pieces.h"
#include "unit/source_listing.h"

#if SPK_HAVE_ZLIB
#include <zlib.h>
#endif

namespace spk {
namespace {

class ContainersTest : public SourceTest {};

// --- MDS ---

// Columns: caption str, image jpeg, score float32, y int.
std::string mds_sample(const std::string& caption, const std::string& image, float score,
                       int64_t label) {
  return le(caption.size(), 4) + le(image.size(), 4) + caption + image +
         le(std::bit_cast<uint32_t>(score), 4) + le(static_cast<uint64_t>(label), 8);
}
std::string mds_shard(const std::vector<std::string>& samples) {
  const std::string config = "{}";
  size_t at = 4 + 4 * (samples.size() + 1) + config.size();
  std::string out = le(samples.size(), 4);
  for (const std::string& sample : samples) {
    out += le(at, 4);
    at += sample.size();
  }
  out += le(at, 4) + config;
  for (const std::string& sample : samples) out += sample;
  return out;
}
std::string mds_entry(const std::string& name, uint64_t bytes, uint64_t samples,
                      const std::string& zip = "null") {
  return str_cat(
      R"({"column_encodings":["str","jpeg","float32","int"],)",
      R"("column_names":["caption","image","score","y"],"column_sizes":[null,null,4,8],)",
      R"("compression":)", zip == "null" ? "null" : R"("gz")",
      R"(,"format":"mds","hashes":[],"raw_data":{"basename":")", name, R"(","bytes":)", bytes,
      R"(,"hashes":{}},"samples":)", samples, R"(,"size_limit":67108864,"version":2,"zip_data":)",
      zip, "}");
}
std::string mds_index(const std::vector<std::string>& entries) {
  std::string out = R"({"version":2,"shards":[)";
  for (size_t i = 0; i < entries.size(); ++i) out += (i == 0 ? "" : ",") + entries[i];
  return out + "]}";
}

TEST_F(ContainersTest, MdsColumnsBecomeFields) {
  const std::string first =
      mds_shard({mds_sample("a cat", "jpeg one", 0.5f, 3), mds_sample("", "jpeg two", -1.0f, -4)});
  const std::string second = mds_shard({mds_sample("dog", "jpeg three", 2.0f, 5)});
  write("d/shard.00000.mds", first);
  write("d/shard.00001.mds", second);
  write("d/index.json", mds_index({mds_entry("shard.00000.mds", first.size(), 2),
                                   mds_entry("shard.00001.mds", second.size(), 1)}));
  Listed listed = list("d");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.source_kind, "mds");
  EXPECT_EQ(listed.keys(), (Names{"0", "1", "2"}));
  EXPECT_EQ(listed.labels(), (Labels{3, -4, 5}));
  const std::vector<SourceBlob> blobs = {{"image", BlobContent::kPicture},
                                         {"caption", BlobContent::kAny}};
  EXPECT_TRUE(listed.listing.blobs == blobs);
  EXPECT_EQ(listed.listing.numbers[0].name, "score");
  EXPECT_EQ(listed.entries[1].numbers[0], (NumericValues{std::bit_cast<uint32_t>(-1.0f)}));
  EXPECT_EQ(read(listed, 0), "jpeg onea cat");
  EXPECT_EQ(listed.entries[1].blob_bytes, (std::vector<uint64_t>{8, 0}));
  EXPECT_EQ(read(listed, 2), "jpeg threedog");
  PackOptions options;
  options.features = "image=image,label=y,key=caption";
  listed = list("d", options);
  EXPECT_EQ(listed.keys(), (Names{"a cat", "1", "dog"}));
  EXPECT_EQ(listed.listing.blobs.size(), 1u);
}

TEST_F(ContainersTest, MdsSplitsAreFolders) {
  const std::string shard = mds_shard({mds_sample("c", "j", 0, 1)});
  for (const char* split : {"train", "val"}) {
    write(str_cat("s/", split, "/shard.mds"), shard);
    write(str_cat("s/", split, "/index.json"),
          mds_index({mds_entry("shard.mds", shard.size(), 1)}));
  }
  const Listed listed = list("s");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.splits, (Names{"train", "val"}));
  EXPECT_EQ(listed.entries[1].split, 1u);
}

TEST_F(ContainersTest, MdsThatDoesNotFitIsRefused) {
  const std::string shard =
      mds_shard({mds_sample("c", "jpeg", 0, 1), mds_sample("d", "more", 0, 2)});
  write("d/index.json", mds_index({mds_entry("shard.mds", shard.size(), 2)}));
  EXPECT_EQ(list("d").status.code(), Code::kMismatch);  // it is not there
  for (size_t cut = 0; cut < shard.size(); ++cut) {
    write("d/shard.mds", shard.substr(0, cut));
    EXPECT_EQ(list("d").status.code(), Code::kDamaged) << cut;
    // An index that tells of the cut file: then a sample does not fit.
    write("e/shard.mds", shard.substr(0, cut));
    write("e/index.json", mds_index({mds_entry("shard.mds", cut, 2)}));
    EXPECT_EQ(list("e").status.code(), Code::kDamaged) << cut;
  }
  write("d/shard.mds", shard);
  write("d/index.json", mds_index({mds_entry("shard.mds", shard.size(), 3)}));
  EXPECT_EQ(list("d").warned("an index disagrees with its shard, which was taken as it is"), 1u);
  write("d/index.json", mds_index({mds_entry("../shard.mds", shard.size(), 2)}));
  EXPECT_EQ(list("d").status.message(), "a shard's name leads elsewhere");
}

#if SPK_HAVE_ZLIB
TEST_F(ContainersTest, PackedMdsShardsAreSpooled) {
  const std::string shard = mds_shard({mds_sample("c", "jpeg bytes", 0, 1)});
  folder("p");
  gzFile out = gzopen((dir_ / "p/shard.mds.gz").c_str(), "wb");
  ASSERT_GT(gzwrite(out, shard.data(), static_cast<unsigned>(shard.size())), 0);
  gzclose(out);
  write("p/index.json",
        mds_index({mds_entry("shard.mds", shard.size(), 1,
                             R"({"basename":"shard.mds.gz","bytes":1,"hashes":{}})")}));
  const Listed listed = list("p", {}, std::make_shared<Spool>(dir_ / "spool"));
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(read(listed, 0), "jpeg bytesc");
}
#endif

// --- .beton ---

std::string beton_field(uint8_t type, const std::string& name) {
  std::string out(1041, '\0');
  out[0] = static_cast<char>(type);
  out.replace(1, name.size(), name);
  return out;
}
struct BetonSample {
  uint8_t mode = 0;
  uint16_t width = 0, height = 0;
  std::string image, text;
  int64_t label = 0;
};
// Fields image, label, text (bytes): rows of 13 bytes, 8 at 16, 16 at 24.
std::string beton(const std::vector<BetonSample>& samples) {
  const std::string fields =
      beton_field(2, "image") + beton_field(1, "label") + beton_field(3, "text");
  const size_t data = 4096;
  std::string rows, pages, table;
  for (size_t i = 0; i < samples.size(); ++i) {
    const BetonSample& one = samples[i];
    const size_t image_at = data + pages.size();
    const size_t text_at = image_at + one.image.size();
    pages += one.image + one.text;
    rows += le(one.mode, 1) + le(one.width, 2) + le(one.height, 2) + le(image_at, 8) +
            std::string(3, '\0') + le(static_cast<uint64_t>(one.label), 8) + le(text_at, 8) +
            le(one.text.size(), 8);
    // The table is in no order.
    table = le(i, 8) + le(text_at, 8) + le(one.text.size(), 8) + le(i, 8) + le(image_at, 8) +
            le(one.image.size(), 8) + table;
  }
  std::string out = le(2, 2) + le(3, 2) + le(uint64_t{1} << 21, 4) + le(samples.size(), 8) +
                    le(data + pages.size(), 8) + fields + rows;
  EXPECT_LE(out.size(), data);
  out.resize(data);
  return out + pages + table;
}

TEST_F(ContainersTest, BetonOfJpegs) {
  write("a.beton", beton({{0, 4, 3, "jpeg one", "words", 7}, {0, 2, 2, "jpeg", "", -1}}));
  const Listed listed = list("a.beton");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.source_kind, "beton");
  EXPECT_EQ(listed.labels(), (Labels{7, -1}));
  const std::vector<SourceBlob> blobs = {{"image", BlobContent::kPicture},
                                         {"text", BlobContent::kAny}};
  EXPECT_TRUE(listed.listing.blobs == blobs);
  EXPECT_EQ(read(listed, 0), "jpeg onewords");
  EXPECT_EQ(listed.entries[1].blob_bytes, (std::vector<uint64_t>{4, 0}));
}

TEST_F(ContainersTest, BetonOfPixels) {
  const std::string pixels(2 * 3 * 3, 'p');
  write("a.beton", beton({{1, 3, 2, pixels, "", 1}, {1, 3, 2, "few", "", 2}}));
  const Listed listed = list("a.beton");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.blobs[0].content, BlobContent::kPixels);
  EXPECT_EQ(listed.entries[0].pixels, (PixelDimensions{2, 3, 3}));
  EXPECT_EQ(read(listed, 0), pixels);
  EXPECT_EQ(listed.rejects().at("1"), "pixels of 3 bytes for 3 x 2");
  write("b.beton", beton({{1, 3, 2, pixels, "", 1}, {0, 3, 2, "jpeg", "", 2}}));
  EXPECT_EQ(list("b.beton").status.code(), Code::kUnsupported);
}

TEST_F(ContainersTest, BetonThatWasNotFinishedIsRefused) {
  const std::string good = beton({{0, 4, 3, "jpeg one", "words", 7}});
  std::string unfinished = good;
  unfinished.replace(16, 8, 8, '\0');
  write("a.beton", unfinished);
  EXPECT_EQ(list("a.beton").status.message(),
            "the file has no table of allocations: its writer did not finish");
  for (size_t cut = 64; cut < good.size(); ++cut) {
    if ((good.size() - cut) % 24 == 0 && good.size() - cut <= 48) continue;
    write("a.beton", good.substr(0, cut));
    EXPECT_EQ(list("a.beton").status.code(), Code::kDamaged) << cut;
  }
  write("a.beton", good.substr(0, good.size() - 24));  // a table that lacks a row
  EXPECT_EQ(list("a.beton").rejects().at("0"), "the size of field image is not in the table");
}

}  // namespace
}  // namespace spk
