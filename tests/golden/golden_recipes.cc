// The checked-in packs. Each shows something; all are small. Changing one changes golden bytes,
// which takes an entry in docs/FORMAT_HISTORY.md: rather add another.
#include <bit>
#include <utility>

#include "base/text.h"
#include "golden/recipe.h"

namespace spk::test {

namespace {

Schema picture_schema() {
  Schema schema;
  schema.fields = {{"image", FieldKind::kBlob, 1},
                   {"label", FieldKind::kInt64, 1},
                   {"height", FieldKind::kInt64, 1},
                   {"width", FieldKind::kInt64, 1},
                   {"channels", FieldKind::kInt64, 1}};
  schema.classes = {"cat", "dog"};
  return schema;
}

RecipeSample picture(const Schema& schema, Dice& dice, std::string key, uint64_t ordinal,
                     size_t bytes) {
  RecipeSample sample = empty_sample(schema, std::move(key), ordinal);
  set_blob(sample, 0, dice.bytes(bytes));
  set_bits(sample, 1, {dice.below(2)});
  set_bits(sample, 2, {32 + dice.below(500)});
  set_bits(sample, 3, {32 + dice.below(500)});
  set_bits(sample, 4, {3});
  return sample;
}

Recipe base_recipe(uint64_t number) {
  Recipe recipe;
  recipe.plan_id = {0x0706050403020100 + number, 0x0f0e0d0c0b0a0908};
  recipe.schema = picture_schema();
  recipe.geometry = {.chunk_bytes = 65536, .shard_count = 1, .blob_align_bytes = 64};
  recipe.settings = {{"format_version", "1"}, {"chunk_bytes", "65536"}};
  return recipe;
}

// The worked example of docs/FORMAT.md.
Recipe tiny() {
  Recipe recipe = base_recipe(0);
  recipe.geometry.shard_count = 2;
  Dice dice(1);
  recipe.samples.push_back(picture(recipe.schema, dice, "cat/1.jpg", 0, 100));
  recipe.samples.push_back(picture(recipe.schema, dice, "dog/1.jpg", 2, 60));
  recipe.samples.push_back(picture(recipe.schema, dice, "cat/2.jpg", 1, 33));
  return recipe;
}

// One sample of one byte, no classes, plain order.
Recipe one_sample() {
  Recipe recipe = base_recipe(1);
  recipe.schema.fields.resize(1);
  recipe.schema.classes.clear();
  recipe.look_ahead = false;
  recipe.settings.clear();
  recipe.samples.push_back(empty_sample(recipe.schema, "a", 0));
  set_blob(recipe.samples[0], 0, "x");
  return recipe;
}

// Rejects in every shard; nothing but rejects in the middle one. Keys with any bytes.
Recipe rejects() {
  Recipe recipe = base_recipe(2);
  recipe.geometry.shard_count = 3;
  recipe.schema.classes = {"caf\xc3\xa9", "not UTF-8: \xff\x80", "back\\slash", ""};
  recipe.settings = {{"name", "v\n\t\xfe"}, {"", ""}};
  Dice dice(2);
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes += static_cast<char>(byte);
  const std::string keys[] = {"",       all_bytes, "\xf0\x9f\x90\x88.jpg",     "../escape",
                              "-rf",    "a\nb",    "\xed\xa0\x80 surrogate",   "\xc0\xaf overlong",
                              "a\\x41", "\x7f",    "\xf4\x90\x80\x80 too far", "tab\tquote\""};
  for (uint64_t i = 0; i < 12; ++i) {
    RecipeSample sample = picture(recipe.schema, dice, keys[i], i * 1000, 20 + i);
    if ((i >= 4 && i < 8) || i == 1 || i == 11) {
      sample.reject = i == 11 ? "cut off at 3\tof 7 \xe2\x82\xac" : str_cat("reason ", i);
      sample.blobs.clear();
    }
    recipe.samples.push_back(std::move(sample));
  }
  return recipe;
}

// Every kind of field, fixed and ragged, with absent and empty values, at an alignment of 8.
Recipe kinds() {
  Recipe recipe = base_recipe(3);
  recipe.geometry.blob_align_bytes = 8;
  recipe.schema.fields = {{"image", FieldKind::kBlob, 1},    {"mask", FieldKind::kBlob, 1},
                          {"label", FieldKind::kInt64, 1},   {"box", FieldKind::kInt64, 4},
                          {"tokens", FieldKind::kInt64, 0},  {"mean", FieldKind::kFloat32, 3},
                          {"curve", FieldKind::kFloat32, 0}, {"when", FieldKind::kFloat64, 1},
                          {"track", FieldKind::kFloat64, 0}, {"never", FieldKind::kBlob, 1},
                          {"nothing", FieldKind::kInt64, 2}};
  Dice dice(3);
  for (uint64_t i = 0; i < 16; ++i) {
    RecipeSample sample = empty_sample(recipe.schema, str_cat("k", i), (i * 7) % 16);
    if (i % 5 != 4) set_blob(sample, 0, dice.bytes(i % 3 == 0 ? 0 : 3 * i));
    if (i % 2 == 0) set_blob(sample, 1, dice.bytes(i));
    set_bits(sample, 2, {i - 8});  // from -8 to 7
    if (i % 4 != 1) {
      set_bits(sample, 3,
               {i, ~i, i == 15 ? uint64_t{1} << 63 : 0, i == 15 ? ~uint64_t{0} >> 1 : 1});
    }
    if (i % 3 != 0) set_bits(sample, 4, std::vector<uint64_t>(i % 4, 300 + i));
    if (i % 6 != 5) {
      set_bits(sample, 5, {0x3f800000 + i, i == 2 ? 0x7fa00001u : 0x80000000u, 0x00000001});
    }
    if (i % 2 == 1) set_bits(sample, 6, std::vector<uint64_t>(i % 5, 0xc0490fdb));
    set_bits(sample, 7, {std::bit_cast<uint64_t>(1.5 * static_cast<double>(i))});
    if (i % 7 != 0) set_bits(sample, 8, std::vector<uint64_t>(i % 3, 0x7ff0000000000000 + i));
    recipe.samples.push_back(std::move(sample));
  }
  return recipe;
}

// A sample of three slots between small ones, and one that fills its slot to the last byte.
Recipe run() {
  Recipe recipe = base_recipe(4);
  recipe.schema.fields.insert(recipe.schema.fields.begin() + 1, {"mask", FieldKind::kBlob, 1});
  Dice dice(4);
  const size_t sizes[] = {500, 700, 150000, 300, 65536, 64896, 40, 64895};
  for (uint64_t i = 0; i < std::size(sizes); ++i) {
    RecipeSample sample = empty_sample(recipe.schema, str_cat("r", i), i);
    set_blob(sample, 0, std::string(sizes[i], static_cast<char>('a' + i)));  // compresses well
    if (i % 3 == 2) set_blob(sample, 1, dice.bytes(17 * i));
    for (size_t field = 2; field < 6; ++field) set_bits(sample, field, {dice.below(1000)});
    recipe.samples.push_back(std::move(sample));
  }
  return recipe;
}

// Several chunks a shard, filled from the window; five shards.
Recipe many() {
  Recipe recipe = base_recipe(5);
  recipe.geometry.shard_count = 5;
  Dice dice(5);
  for (uint64_t i = 0; i < 223; ++i) {
    RecipeSample sample = picture(recipe.schema, dice, str_cat(i % 2 ? "dog/" : "cat/", i, ".jpg"),
                                  (i * 97) % 223, 0);
    // Sizes that do not pack well, bytes that compress well.
    sample.blobs[0] = std::string(500 + dice.below(12000), static_cast<char>(i));
    sample.stored.fields[0].bytes = sample.blobs[0].size();
    sample.stored.fields[0].checksum = xxh3_64(as_bytes(sample.blobs[0]));
    recipe.samples.push_back(std::move(sample));
  }
  return recipe;
}

struct Named {
  const char* name;
  Recipe (*make)();
};
constexpr Named kGolden[] = {{"tiny", tiny},       {"one-sample", one_sample},
                             {"rejects", rejects}, {"kinds", kinds},
                             {"run", run},         {"many", many}};

}  // namespace

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const Named& golden : kGolden) names.emplace_back(golden.name);
  return names;
}

Result<Recipe> golden_recipe(const std::string& name) {
  for (const Named& golden : kGolden) {
    if (name == golden.name) return golden.make();
  }
  return Status(Code::kNotFound, str_cat("no golden pack '", name, "'"));
}

}  // namespace spk::test
