// Seeded randomness for property tests. SPK_SEED sets the first seed, SPK_ROUNDS the number of
// rounds; a failure names the seed of its round, and SPK_SEED=that SPK_ROUNDS=1 repeats it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "layout/permutation.h"

namespace spk::test {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix64(seed)) {}
  uint64_t bits() { return mix64(state_++); }
  uint64_t below(uint64_t limit) { return bits() % limit; }  // REQUIRES limit > 0
  bool one_in(uint64_t n) { return below(n) == 0; }
  // All magnitudes are equally likely: small numbers are as frequent as huge ones.
  uint64_t any_magnitude() {
    const uint64_t shift = below(65);
    return shift == 64 ? 0 : bits() >> shift;
  }
  std::string bytes(size_t count) {
    std::string out(count, '\0');
    for (char& c : out) c = static_cast<char>(bits());
    return out;
  }

 private:
  uint64_t state_;
};

inline uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Calls `check(random)` for each round.
template <typename Check>
void for_random_rounds(uint64_t rounds, Check&& check) {
  const uint64_t first = number_from_environment("SPK_SEED", 1);
  const uint64_t count = number_from_environment("SPK_ROUNDS", rounds);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("SPK_SEED=" + std::to_string(seed) + " SPK_ROUNDS=1");
    Random random(seed);
    check(random);
    if (::testing::Test::HasFatalFailure() || ::testing::Test::HasNonfatalFailure()) return;
  }
}

}  // namespace spk::test
