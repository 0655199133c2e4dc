// Packs from a description in memory, and what a reader must find in them. Used for the golden
// packs and for random ones; the oracle compares the second decoder's dump with the expectation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/sample.h"
#include "format/schema.h"
#include "layout/geometry.h"

namespace spk::test {

// What stands at one position of the plan.
struct RecipeSample {
  StoredSample stored;             // without blob offsets, sizes and checksums
  std::vector<std::string> blobs;  // one for each present blob field, in order
  std::string reject;              // not empty: rejected, for this reason
};

struct Recipe {
  Hash128 plan_id;
  Schema schema;
  Settings settings;
  Geometry geometry;
  bool look_ahead = true;
  std::vector<RecipeSample> samples;
};

// Makes the directory `path` with shards, index and manifest. Returns the JSON of all that is in
// them, in the form of `decode.py --json --content`.
Result<std::string> make_pack(const std::string& path, Recipe recipe);

// The checked-in packs, by name.
std::vector<std::string> golden_names();
Result<Recipe> golden_recipe(const std::string& name);
// A recipe that differs in everything from seed to seed. Same seed, same recipe.
Recipe random_recipe(uint64_t seed);

// A random number generator whose numbers are the same everywhere.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t bits();
  // From 0 to limit - 1. REQUIRES limit > 0.
  uint64_t below(uint64_t limit) { return bits() % limit; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  std::string bytes(size_t count);

 private:
  uint64_t state_;
};

// Helpers of recipes: `sample` gets as many fields as the schema has, all absent.
RecipeSample empty_sample(const Schema& schema, std::string key, uint64_t ordinal);
// REQUIRES that blob fields are set in the schema's order.
void set_blob(RecipeSample& sample, size_t field, std::string bytes);
void set_bits(RecipeSample& sample, size_t field, const std::vector<uint64_t>& bits);

}  // namespace spk::test
