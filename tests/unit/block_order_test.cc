#include "layout/block_order.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace spk {
namespace {

TEST(BlockOrder, RunsStayTogetherAndAllPositionsAreTaken) {
  const uint64_t seed = 7;
  BlockOrder order;
  const uint64_t count = 40000;
  for (uint64_t i = 0; i < count; ++i)
    order.add(i % 1000 == 0 ? BlockOrder::kRunBytes * 3 : 64 << 10);
  order.finish(seed, 3);
  EXPECT_GT(order.run_count(), 2 * BlockOrder::kRunsMixed);
  BlockOrder::Cursor cursor(order);
  std::vector<uint64_t> ordinal_at(count, UINT64_MAX);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t position = cursor.next();
    ASSERT_LT(position, count);
    ASSERT_EQ(ordinal_at[position], UINT64_MAX);
    ordinal_at[position] = i;
  }
  // Any 2000 consecutive positions come from few places of the source: at most 16 runs of at most
  // 257 samples make a group, and a slice of 2000 touches few groups.
  std::set<uint64_t> thousands;
  for (uint64_t position = 0; position < 2000; ++position) {
    thousands.insert(ordinal_at[position] / 257);
  }
  EXPECT_LT(thousands.size(), 120u);
  uint64_t neighbours = 0;
  for (uint64_t position = 1; position < count; ++position) {
    neighbours += ordinal_at[position] == ordinal_at[position - 1] + 1;
  }
  EXPECT_LT(neighbours, count / 100) << "samples are mixed within a group";

  BlockOrder empty;
  empty.finish(seed, 3);
  EXPECT_EQ(empty.run_count(), 0u);
  BlockOrder one;
  one.add(UINT64_MAX);
  one.finish(seed, 3);
  EXPECT_EQ(BlockOrder::Cursor(one).next(), 0u);
}

}  // namespace
}  // namespace spk
