// Random schemas and samples for property tests. Sizes only: there are no payloads.
#pragma once

#include <string>

#include "format/sample.h"
#include "format/schema.h"
#include "property/random.h"

namespace spk::test {

inline Schema random_schema(Random& random) {
  Schema schema;
  for (uint64_t i = random.below(7); i > 0; --i) {
    Field field;
    field.name = "field" + std::to_string(i);
    field.kind = static_cast<FieldKind>(1 + random.below(4));
    if (field.kind != FieldKind::kBlob) field.length = static_cast<uint32_t>(random.below(4));
    schema.fields.push_back(std::move(field));
  }
  return schema;
}

inline StoredSample random_sample(Random& random, const Schema& schema, uint64_t most_bytes) {
  StoredSample sample;
  sample.key = random.bytes(random.below(30));
  sample.ordinal = random.one_in(20) ? random.bits() : random.below(100000);
  if (random.one_in(500)) sample.flags = static_cast<uint8_t>(random.bits());
  sample.fields.resize(schema.fields.size());
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const Field& shape = schema.fields[i];
    StoredField& field = sample.fields[i];
    field.present = !random.one_in(30);
    if (!field.present) continue;
    if (shape.kind == FieldKind::kBlob) {
      field.bytes = random.one_in(10) ? 0 : random.below(most_bytes);
      field.checksum = random.bits();
      continue;
    }
    field.first = static_cast<uint32_t>(sample.numbers.size());
    field.count = shape.length != 0 ? shape.length : static_cast<uint32_t>(random.below(9));
    for (uint32_t n = 0; n < field.count; ++n) {
      uint64_t value = random.one_in(100) ? random.any_magnitude() : random.below(100);
      if (random.one_in(4)) value = ~value;
      sample.numbers.push_back(shape.kind == FieldKind::kFloat32 ? value & UINT32_MAX : value);
    }
  }
  return sample;
}

}  // namespace spk::test
