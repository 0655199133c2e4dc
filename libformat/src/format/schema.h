// The schema of a pack: its named fields and its class names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "format/constants.h"

namespace spk {

struct Field {
  std::string name;  // not empty, UTF-8, unique
  FieldKind kind = FieldKind::kBlob;
  uint32_t length = 1;  // numeric: values a sample, 0 = ragged; blob: 1
  bool operator==(const Field&) const = default;
};

struct Schema {
  std::vector<Field> fields;         // a field's number is its place here
  std::vector<std::string> classes;  // names of labels 0, 1, ...; any bytes; may be empty

  // The field's number, or kNoField.
  uint16_t find(std::string_view name) const noexcept;
  bool operator==(const Schema&) const = default;
};

// The parts `fields` and `classes` of a footer or index, and the way back.
std::vector<uint8_t> encode_fields(const Schema& schema);
std::vector<uint8_t> encode_classes(const Schema& schema);
Result<Schema> decode_schema(ByteSpan fields_part, ByteSpan classes_part);
// XXH3-128 of the fields part followed by the classes part.
Hash128 schema_hash(ByteSpan fields_part, ByteSpan classes_part);

// The plan record: resolved settings in a fixed order.
using Settings = std::vector<std::pair<std::string, std::string>>;
std::vector<uint8_t> encode_settings(const Settings& settings);
Result<Settings> decode_settings(ByteSpan part);

}  // namespace spk
