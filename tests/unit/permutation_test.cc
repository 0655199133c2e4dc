#include "layout/permutation.h"

#include <gtest/gtest.h>

#include <vector>

namespace spk {
namespace {

TEST(Permutation, IsABijectionWithInverse) {
  for (const uint64_t size : {1, 2, 3, 4, 5, 15, 16, 17, 1000, 1024, 1025, 65537}) {
    const KeyedPermutation permutation(42, 7, size);
    std::vector<bool> seen(size);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t image = permutation(i);
      ASSERT_LT(image, size);
      ASSERT_FALSE(seen[image]) << size << " " << i;
      seen[image] = true;
      ASSERT_EQ(permutation.inverse(image), i);
    }
  }
}

TEST(Permutation, WorksAtAnySize) {
  for (const uint64_t size :
       {(uint64_t{1} << 32) + 1, uint64_t{1} << 40, uint64_t{1} << 63, UINT64_MAX}) {
    const KeyedPermutation permutation(1, 2, size);
    for (uint64_t k = 0; k < 100; ++k) {
      for (const uint64_t index : {k, size - 1 - k, size / 2 + k}) {
        const uint64_t image = permutation(index);
        ASSERT_LT(image, size);
        ASSERT_EQ(permutation.inverse(image), index);
      }
    }
  }
}

TEST(Permutation, NumbersAreFrozen) {
  // Part of what makes a pack's bytes: they must never change.
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafu);
  const KeyedPermutation permutation(1, 0, 1000);
  std::vector<uint64_t> first;
  for (uint64_t i = 0; i < 8; ++i) first.push_back(permutation(i));
  EXPECT_EQ(first, (std::vector<uint64_t>{669, 925, 295, 635, 181, 956, 791, 370}));
}

TEST(Permutation, SeedsAndStreamsDiffer) {
  const KeyedPermutation base(1, 0, 1000);
  const KeyedPermutation seed(2, 0, 1000);
  const KeyedPermutation stream(1, 1, 1000);
  const KeyedPermutation swapped(0, 1, 1000);
  uint64_t equal_seed = 0;
  uint64_t equal_stream = 0;
  uint64_t equal_swapped = 0;
  uint64_t fixed = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    equal_seed += base(i) == seed(i);
    equal_stream += base(i) == stream(i);
    equal_swapped += base(i) == swapped(i);
    fixed += base(i) == i;
  }
  // One in a thousand would be chance.
  for (const uint64_t equal : {equal_seed, equal_stream, equal_swapped, fixed}) {
    EXPECT_LT(equal, 10u);
  }
}

}  // namespace
}  // namespace spk
