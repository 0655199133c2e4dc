// Packs that no human would think of: random schemas, keys of any bytes, sizes from 0 bytes to
// several chunks, absent values, rejects, numbers at the edges of their widths.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "golden/recipe.h"

namespace spk::test {

namespace {

constexpr uint64_t kMostBytes = 4000000;  // of all blobs of a pack: the second decoder is slow

Schema random_schema(Dice& dice) {
  Schema schema;
  const uint64_t fields = dice.below(8);
  for (uint64_t i = 0; i < fields; ++i) {
    Field field;
    field.name = str_cat(dice.one_in(3) ? "f\xc3\xbcld-\b" : "field", i);
    field.kind = dice.one_in(2) ? FieldKind::kBlob : static_cast<FieldKind>(1 + dice.below(4));
    if (field.kind != FieldKind::kBlob) field.length = static_cast<uint32_t>(dice.below(4));
    schema.fields.push_back(std::move(field));
  }
  const uint64_t classes = dice.one_in(2) ? 0 : dice.below(30);
  for (uint64_t i = 0; i < classes; ++i) schema.classes.push_back(dice.bytes(dice.below(12)));
  return schema;
}

uint64_t random_blob_bytes(Dice& dice, uint64_t chunk_bytes, uint64_t usual_bytes) {
  if (dice.one_in(8)) return 0;
  if (dice.one_in(100)) return dice.below(3 * chunk_bytes);
  if (dice.one_in(50)) return chunk_bytes - 1024 + dice.below(1024);  // just fits, or just not
  return dice.below(usual_bytes);
}

// Bits of a value whose width varies, so that columns get every width.
uint64_t random_number(Dice& dice, FieldKind kind) {
  switch (kind) {
    case FieldKind::kFloat32: return dice.bits() >> 32;
    case FieldKind::kFloat64: return dice.bits();
    default: break;
  }
  const uint64_t magnitude = dice.bits() >> (dice.one_in(50) ? 1 : 57 - 8 * dice.below(3));
  return dice.one_in(2) ? magnitude : ~magnitude;
}

}  // namespace

Recipe random_recipe(uint64_t seed) {
  Dice dice(seed << 32);
  Recipe recipe;
  recipe.plan_id = {dice.bits(), dice.bits()};
  recipe.schema = random_schema(dice);
  for (uint64_t i = dice.below(6); i > 0; --i) {
    recipe.settings.emplace_back(str_cat("setting ", i), dice.bytes(dice.below(20)));
  }
  const uint32_t chunk_bytes = uint32_t{65536} << dice.below(5);
  recipe.geometry = {.chunk_bytes = chunk_bytes,
                     .shard_count = static_cast<uint32_t>(1 + dice.below(5)),
                     .blob_align_bytes = uint32_t{1} << dice.below(13)};
  recipe.look_ahead = !dice.one_in(3);
  const bool with_absent = dice.one_in(2);
  const bool with_rejects = dice.one_in(3);
  const bool with_flags = dice.one_in(4);
  uint64_t samples = dice.one_in(10) ? dice.below(5) : 1 + dice.below(300);
  uint64_t key_bytes = 24;
  if (dice.one_in(25)) {  // an index of several blocks
    samples = 15000;
    key_bytes = 200;
    recipe.schema.fields.resize(std::min<size_t>(recipe.schema.fields.size(), 2));
  }
  const uint64_t usual_bytes = 1 + dice.below(dice.one_in(2) ? 200 : chunk_bytes / 16);
  uint64_t left = kMostBytes;
  for (uint64_t i = 0; i < samples; ++i) {
    RecipeSample sample = empty_sample(recipe.schema, dice.bytes(dice.below(key_bytes)),
                                       dice.bits() >> (dice.one_in(9) ? 0 : 48));
    if (with_flags && dice.one_in(5)) sample.stored.flags = static_cast<uint8_t>(dice.below(256));
    for (size_t field = 0; field < recipe.schema.fields.size(); ++field) {
      if (with_absent && dice.one_in(4)) continue;
      const Field& shape = recipe.schema.fields[field];
      if (shape.kind == FieldKind::kBlob) {
        const uint64_t bytes = std::min(random_blob_bytes(dice, chunk_bytes, usual_bytes), left);
        left -= bytes;
        set_blob(sample, field, dice.bytes(bytes));
        continue;
      }
      std::vector<uint64_t> bits(shape.length != 0 ? shape.length : dice.below(6));
      for (uint64_t& value : bits) value = random_number(dice, shape.kind);
      set_bits(sample, field, bits);
    }
    if (with_rejects && dice.one_in(4)) {
      sample.reject = str_cat("reason ", dice.below(9), dice.one_in(3) ? "\t\xc2\xb5\n" : "");
      sample.blobs.clear();
    }
    recipe.samples.push_back(std::move(sample));
  }
  return recipe;
}

}  // namespace spk::test
