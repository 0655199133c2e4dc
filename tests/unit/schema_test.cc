#include "format/schema.h"

#include <gtest/gtest.h>

#include "format/table.h"

namespace spk {
namespace {

Schema full_schema() {
  Schema schema;
  schema.fields = {{"image", FieldKind::kBlob, 1},
                   {"label", FieldKind::kInt64, 1},
                   {"box", FieldKind::kFloat32, 4},
                   {"tr\xc3\xa4ger", FieldKind::kFloat64, 0}};
  schema.classes = {"cat", "", "\xff\\\n", "cat"};
  return schema;
}

Status decode_status(const Schema& schema) {
  const std::vector<uint8_t> fields = encode_fields(schema);
  const std::vector<uint8_t> classes = encode_classes(schema);
  return decode_schema(fields, classes).status();
}

TEST(Schema, ReadsBackWhatWasWritten) {
  const Schema schema = full_schema();
  const std::vector<uint8_t> fields = encode_fields(schema);
  const std::vector<uint8_t> classes = encode_classes(schema);
  EXPECT_EQ(decode_schema(fields, classes).value(), schema);
  EXPECT_EQ(schema.find("box"), 2);
  EXPECT_EQ(schema.find("boxes"), kNoField);
  EXPECT_EQ(decode_status(Schema()).code(), Code::kOk);
}

TEST(Schema, HashIsOfBothPartsTogether) {
  const Schema schema = full_schema();
  std::vector<uint8_t> both = encode_fields(schema);
  const std::vector<uint8_t> fields = both;
  const std::vector<uint8_t> classes = encode_classes(schema);
  both.insert(both.end(), classes.begin(), classes.end());
  EXPECT_EQ(schema_hash(fields, classes), xxh3_128(both));
  Schema other = schema;
  other.classes[0] = "dog";
  EXPECT_NE(schema_hash(encode_fields(other), encode_classes(other)), schema_hash(fields, classes));
}

TEST(Schema, BadNamesAreDamage) {
  Schema schema = full_schema();
  schema.fields[1].name = "image";
  EXPECT_EQ(decode_status(schema).message(),
            "field 1 has the name 'image', which is empty, repeated or not UTF-8");
  schema.fields[1].name = "";
  EXPECT_EQ(decode_status(schema).code(), Code::kDamaged);
  schema.fields[1].name = "caf\xe9";
  EXPECT_EQ(decode_status(schema).message(),
            "field 1 has the name 'caf\\xe9', which is empty, repeated or not UTF-8");
}

TEST(Schema, KindsAndLengthsAreChecked) {
  Schema schema = full_schema();
  schema.fields[1].kind = static_cast<FieldKind>(5);
  EXPECT_EQ(decode_status(schema).code(), Code::kUnsupported);
  schema.fields[1].kind = static_cast<FieldKind>(0);
  EXPECT_EQ(decode_status(schema).code(), Code::kUnsupported);
  schema = full_schema();
  schema.fields[0].length = 2;
  EXPECT_EQ(decode_status(schema).message(), "field 'image' has length 2");
  schema = full_schema();
  schema.fields[2].length = UINT32_MAX;
  EXPECT_EQ(decode_status(schema).code(), Code::kOk);
}

TEST(Schema, AtMostSoManyFields) {
  Schema schema;
  for (uint32_t i = 0; i < kMaxFields; ++i) {
    schema.fields.push_back({"f" + std::to_string(i), FieldKind::kInt64, 1});
  }
  EXPECT_EQ(decode_status(schema).code(), Code::kOk);
  schema.fields.push_back({"one more", FieldKind::kInt64, 1});
  EXPECT_EQ(decode_status(schema).message(), "schema announces 1025 fields");
}

TEST(Schema, SettingsKeepTheirOrder) {
  const Settings settings = {{"z", "1"}, {"a", ""}, {"", "\xff\n"}, {"z", "2"}};
  EXPECT_EQ(decode_settings(encode_settings(settings)).value(), settings);
  EXPECT_EQ(decode_settings(encode_settings({})).value(), Settings());
  EXPECT_EQ(decode_settings(encode_fields(full_schema())).status().code(), Code::kDamaged);
}

}  // namespace
}  // namespace spk
