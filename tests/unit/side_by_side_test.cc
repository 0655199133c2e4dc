#include "pipeline/side_by_side.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <numeric>
#include <vector>

namespace spk {
namespace {

TEST(SideBySide, EveryTurnIsTakenOnce) {
  for (const uint32_t threads : {0u, 1u, 3u, 50u}) {
    std::vector<std::atomic<int>> taken(20);
    const Status status = side_by_side(threads, taken.size(), [&](uint64_t i) -> Status {
      taken[i] += 1;
      return {};
    });
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(std::accumulate(taken.begin(), taken.end(), 0), 20);
  }
}

TEST(SideBySide, TheFirstFailureEndsIt) {
  uint64_t turns = 0;
  const Status status = side_by_side(1, 20, [&](uint64_t i) -> Status {
    turns += 1;
    return i == 4 ? damaged("the fifth") : Status();
  });
  EXPECT_EQ(status.message(), "the fifth");
  EXPECT_EQ(turns, 5u);
}

TEST(SideBySide, WantOfMemoryIsAFailure) {
  const Status status = side_by_side(3, 20, [](uint64_t) -> Status { throw std::bad_alloc(); });
  EXPECT_EQ(status.code(), Code::kNoMemory);
}

}  // namespace
}  // namespace spk
