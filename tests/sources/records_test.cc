// TFRecord and RecordIO files as sources, CRC-32C, and JSON from anybody.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <random>

#include "base/json_value.h"
#include "base/varint.h"
#include "sources/crc32c.h"
#include "sources/pieces.h"
#include "unit/source_listing.h"

namespace spk {
namespace {

TEST(Crc32c, HasTheKnownValuesAndBothWaysAgree) {
  EXPECT_EQ(crc32c(0, as_bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c_portable(0, as_bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(0, std::vector<uint8_t>(32, 0)), 0x8a9136aau);
  std::mt19937_64 random(7);
  std::vector<uint8_t> bytes(20000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  for (size_t size : {0u, 1u, 7u, 8u, 9u, 1023u, 3071u, 3072u, 3073u, 6200u, 20000u}) {
    for (size_t begin : {0u, 1u, 5u}) {
      if (begin > size) continue;
      const ByteSpan span = ByteSpan(bytes).first(size).subspan(begin);
      EXPECT_EQ(crc32c(0, span), crc32c_portable(0, span)) << size;
      const size_t half = span.size() / 3;
      EXPECT_EQ(crc32c(crc32c(0, span.first(half)), span.subspan(half)), crc32c(0, span));
    }
  }
}

TEST(JsonValue, ReadsWhatRfc8259Allows) {
  const auto value = JsonValue::parse(
      R"( {"a":[1,-2.5e3,true,null,{}],"b":"\u00fc\ud83d\ude00\n\"","c":{"d":18446744073709551615}} )");
  ASSERT_TRUE(value.ok()) << value.status().to_string();
  EXPECT_EQ(value->find("a")->items().size(), 5u);
  EXPECT_EQ(value->find("a")->items()[1].text(), "-2.5e3");
  EXPECT_EQ(value->find("b")->text(), "\xc3\xbc\xf0\x9f\x98\x80\n\"");
  uint64_t number = 0;
  EXPECT_TRUE(value->find("c")->find("d")->to_u64(&number));
  EXPECT_EQ(number, UINT64_MAX);
  EXPECT_EQ(value->find("x"), nullptr);
}

TEST(JsonValue, RefusesTheRestWithItsPlace) {
  for (const char* text : {"",           "{",           "[1,]",
                           "{\"a\":1,}", "01",          "1.",
                           "1e",         "+1",          "nul",
                           "\"\\x\"",    "\"\\ud800\"", "\"\\udc00\"",
                           "\"a",        "[1] 2",       "{\"a\":1,\"a\":2}",
                           "\"\n\"",     "\"\xff\"",    "{a:1}",
                           "-",          "\"\\u12\"",   "\"\\"}) {
    EXPECT_EQ(JsonValue::parse(text).status().code(), Code::kDamaged) << text;
  }
  EXPECT_TRUE(JsonValue::parse(std::string(63, '[') + std::string(63, ']')).ok());
  EXPECT_EQ(JsonValue::parse(std::string(1000000, '[')).status().offset(), 64u);
}

// --- TFRecord ---

std::string field(uint32_t number, const std::string& bytes) {
  std::string out;
  append_varint(out, number << 3 | 2);
  append_string(out, bytes);
  return out;
}
std::string bytes_feature(const std::string& name, const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += field(1, value);
  return field(1, field(1, name) + field(2, field(1, list)));
}
std::string ints_feature(const std::string& name, const std::vector<int64_t>& values, bool packed) {
  std::string list, all;
  for (const int64_t value : values) {
    if (!packed) append_varint(list, 1 << 3);
    append_varint(packed ? all : list, static_cast<uint64_t>(value));
  }
  if (packed) list = field(1, all);
  return field(1, field(1, name) + field(2, field(3, list)));
}
std::string floats_feature(const std::string& name, const std::vector<float>& values) {
  std::string all;
  for (const float value : values) all += le(std::bit_cast<uint32_t>(value), 4);
  return field(1, field(1, name) + field(2, field(2, field(1, all))));
}
std::string record(const std::string& data) {
  const std::string length = le(data.size(), 8);
  return length + le(masked_crc32c(as_bytes(length)), 4) + data +
         le(masked_crc32c(as_bytes(data)), 4);
}
std::string example(const std::string& features) { return record(field(1, features)); }

class RecordsTest : public SourceTest {
 protected:
  Listed records(const std::string& bytes, PackOptions options = {}) {
    write("a.tfrecord", bytes);
    return list("a.tfrecord", std::move(options));
  }
};

TEST_F(RecordsTest, ImagenetExamples) {
  std::string file;
  for (int i = 1; i <= 3; ++i) {
    file += example(bytes_feature("image/format", {"JPEG"}) +
                    ints_feature("image/class/label", {i}, i % 2 == 0) +
                    bytes_feature("image/encoded", {str_cat("picture ", i)}) +
                    bytes_feature("image/filename", {str_cat("n", i, ".JPEG")}));
  }
  const Listed listed = records(file);
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.keys(), (Names{"n1.JPEG", "n2.JPEG", "n3.JPEG"}));
  EXPECT_EQ(listed.labels(), (Labels{1, 2, 3}));
  EXPECT_EQ(listed.warned("labels count from 1"), 1u);
  EXPECT_EQ(read(listed, 2), "picture 3");
}

TEST_F(RecordsTest, OtherFeaturesByName) {
  PackOptions options;
  options.features = "image=img,label=y,box=bbox,size=hw,text=txt";
  const Listed listed =
      records(example(ints_feature("y", {-1}, true) + bytes_feature("img", {"one"}) +
                      ints_feature("hw", {4, 5}, true)) +
                  example(ints_feature("y", {9}, false) + bytes_feature("img", {"two"}) +
                          floats_feature("bbox", {0.25f, 0.5f}) +
                          ints_feature("hw", {6, 7}, false) + bytes_feature("txt", {"words"})) +
                  example(bytes_feature("img", {"three"})) + example(ints_feature("y", {1}, true)) +
                  example(bytes_feature("img", {"a", "b"}) + ints_feature("y", {1}, true)),
              options);
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  const std::vector<Field> numbers = {{"box", FieldKind::kFloat32, 2},
                                      {"size", FieldKind::kInt64, 2}};
  EXPECT_TRUE(listed.listing.numbers == numbers);
  EXPECT_EQ(listed.labels(), (Labels{-1, 9}));
  EXPECT_FALSE(listed.entries[0].numbers[0].has_value());
  EXPECT_EQ(listed.entries[1].numbers[0],
            (NumericValues{std::bit_cast<uint32_t>(0.25f), std::bit_cast<uint32_t>(0.5f)}));
  EXPECT_EQ(listed.entries[1].numbers[1], (NumericValues{6, 7}));
  EXPECT_EQ(read(listed, 1), "twowords");
  EXPECT_EQ(listed.rejects().at("record 2"), "no label: no feature 'y'");
  EXPECT_EQ(listed.rejects().at("record 3"), "no picture: no feature 'img'");
  EXPECT_EQ(listed.rejects().at("record 4"), "no picture: feature 'img' has 2 values");
}

TEST_F(RecordsTest, DamageCostsARecordOrTheFile) {
  const std::string one =
      example(bytes_feature("image", {"first"}) + ints_feature("label", {0}, 1));
  const std::string two =
      example(bytes_feature("image", {"second"}) + ints_feature("label", {1}, 1));
  for (size_t at = 0; at < two.size(); ++at) {
    std::string file = one + two + one;
    file[one.size() + at] ^= 0x10;
    const Listed listed = records(file);
    if (at < 12) {
      EXPECT_EQ(listed.status.code(), Code::kDamaged) << at;
      EXPECT_EQ(listed.status.offset(), one.size()) << at;
    } else {
      ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
      EXPECT_EQ(listed.labels(), (Labels{0, 0})) << at;
      EXPECT_EQ(listed.rejects().at("record 1"),
                str_cat("data CRC is wrong, in the record at offset ", one.size()));
    }
  }
  PackOptions salvage;
  salvage.salvage = true;
  for (size_t cut = one.size() + 1; cut < one.size() + two.size(); ++cut) {
    const Listed listed = records((one + two).substr(0, cut));
    EXPECT_EQ(listed.status.code(), Code::kDamaged) << cut;
    EXPECT_EQ(listed.status.offset(), one.size()) << cut;
    EXPECT_EQ(records((one + two).substr(0, cut), salvage).labels(), Labels{0}) << cut;
  }
}

TEST_F(RecordsTest, RecordsOfAnySize) {
  const std::string large(uint64_t{9} << 20, 'L');  // more than is held
  std::string file = example(bytes_feature("image", {"small"}));
  file += example(bytes_feature("image", {large}));
  const Listed listed = records(file);
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.keys(), (Names{"record 0", "record 1"}));
  EXPECT_EQ(read(listed, 1), large);
  EXPECT_EQ(listed.warned("no labels"), 1u);
}

TEST_F(RecordsTest, NoExampleNoPicture) {
  EXPECT_EQ(records(record("no protobuf")).status.code(), Code::kInvalidArgument);
  const Listed named = records(example(bytes_feature("jpeg_bytes", {"x"})));
  EXPECT_EQ(named.status.message(),
            "no feature is known to be the picture; --features image=NAME names it");
  EXPECT_EQ(named.status.hint(), "the first record's features are: jpeg_bytes");
  const Listed listed = records(example(bytes_feature("image", {"x"})) + record("no protobuf"));
  EXPECT_EQ(listed.rejects().count("record 1"), 1u);
}

// --- RecordIO ---

constexpr std::string_view kMagic{"\x0a\x23\xd7\xce", 4};

std::string part(uint32_t kind, const std::string& bytes) {
  std::string out = std::string(kMagic) + le(kind << 29 | bytes.size(), 4) + bytes;
  out.resize((out.size() + 3) / 4 * 4);
  return out;
}
// As dmlc writes: cut wherever the magic word stands at a multiple of four.
std::string rec(const std::string& payload) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t at = 0; at + 4 <= payload.size(); at += 4) {
    if (payload.compare(at, 4, kMagic) != 0) continue;
    parts.push_back(payload.substr(begin, at - begin));
    begin = at + 4;
  }
  parts.push_back(payload.substr(begin));
  if (parts.size() == 1) return part(0, parts[0]);
  std::string out = part(1, parts[0]);
  for (size_t i = 1; i + 1 < parts.size(); ++i) out += part(2, parts[i]);
  return out + part(3, parts.back());
}
std::string ir_header(uint32_t flag, float label, uint64_t id) {
  return le(flag, 4) + le(std::bit_cast<uint32_t>(label), 4) + le(id, 8) + le(0, 8);
}

TEST_F(RecordsTest, RecordIoPartsAreJoined) {
  const std::string magic(kMagic);
  const std::vector<std::string> payloads = {
      ir_header(0, 5, 10) + "plain", ir_header(0, 6, 11) + magic + magic + "middle" + "xx" + magic,
      le(0, 4) + le(std::bit_cast<uint32_t>(7.0f), 4) + magic + le(0, 4) + le(0, 8) + "in the id",
      ir_header(0, 8, 13) + "x" + magic + "not at four"};
  std::string file;
  for (const std::string& payload : payloads) file += rec(payload);
  write("a.rec", file);
  const Listed listed = list("a.rec");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.keys(), (Names{"10", "11", str_cat(0xced7230au), "13"}));
  EXPECT_EQ(listed.labels(), (Labels{5, 6, 7, 8}));
  for (size_t i = 0; i < payloads.size(); ++i) {
    EXPECT_EQ(read(listed, i), payloads[i].substr(24)) << i;
    EXPECT_EQ(listed.entries[i].size_bytes, payloads[i].size() - 24);
  }
}

TEST_F(RecordsTest, RecordIoLabelsAndEmptyRecords) {
  const std::string file = rec(ir_header(2, 0, 1) + le(std::bit_cast<uint32_t>(1.5f), 4) +
                               le(std::bit_cast<uint32_t>(-2.0f), 4) + "picture") +
                           rec(ir_header(0, 3, 2)) + rec("short") + rec(ir_header(0, 4, 3) + "p");
  write("a.rec", file);
  PackOptions options;
  options.labels = LabelMode::kFloat;
  Listed listed = list("a.rec", options);
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.entries[0].float_labels, (std::vector<double>{1.5, -2}));
  EXPECT_EQ(listed.listing.label_count, 0u);
  EXPECT_EQ(read(listed, 0), "picture");
  EXPECT_EQ(listed.rejects().at("2"), "no picture (metadata record)");
  EXPECT_EQ(listed.rejects().size(), 2u);
  EXPECT_EQ(list("a.rec").rejects().at("1"),
            "label '1.500000' is not an integer; --labels float takes it");
}

TEST_F(RecordsTest, RecordIoIndexIsAHint) {
  const std::string one = rec(ir_header(0, 1, 1) + "picture");
  write("a.rec", one + one);
  const auto warned = [&](const std::string& index) {
    write("a.idx", index);
    return list("a.rec").warned(
        "an index disagrees with its records, which were taken as they are");
  };
  EXPECT_EQ(warned(str_cat("0\t0\n1\t", one.size(), "\n")), 0u);
  EXPECT_EQ(warned("0\t0\n1\t18446744073709551615\n"), 1u);
  EXPECT_EQ(warned("0\t0\n"), 1u);
  EXPECT_EQ(warned(str_cat("0\t0\n1\t", one.size(), "\n2\t99\n")), 1u);
  EXPECT_EQ(warned("nonsense"), 1u);
}

TEST_F(RecordsTest, RecordIoThatIsCutOrOutOfOrderIsRefused) {
  const std::string one = rec(ir_header(0, 1, 1) + "picture");
  const std::string two = rec(ir_header(0, 2, 2) + std::string(kMagic) + "more");
  PackOptions salvage;
  salvage.salvage = true;
  for (size_t cut = one.size() + 1; cut < one.size() + two.size() - 3; ++cut) {
    write("a.rec", (one + two).substr(0, cut));
    EXPECT_EQ(list("a.rec").status.code(), Code::kDamaged) << cut;
    EXPECT_EQ(list("a.rec", salvage).labels(), Labels{1}) << cut;
  }
  for (const std::string& wrong :
       {one + part(3, "x"), one + part(1, "x") + one, one + "nomagic!"}) {
    write("a.rec", wrong);
    EXPECT_EQ(list("a.rec").status.code(), Code::kDamaged);
  }
}

}  // namespace
}  // namespace spk
