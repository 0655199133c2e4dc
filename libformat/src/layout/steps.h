// How an order's positions go to ranks, step by step (docs/ORDER.md, section 6). Pure arithmetic.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spk {

enum class TailRule : uint8_t { kDrop, kPad, kExact };
std::string_view tail_rule_name(TailRule tail) noexcept;
// "drop", "pad" or "exact"; kInvalidArgument otherwise.
Result<TailRule> parse_tail_rule(std::string_view text);

struct StepRules {
  uint64_t sample_count = 0;
  uint64_t lanes = 1;
  uint64_t rank = 0;
  uint64_t world = 1;
  uint64_t batch = 1;  // samples of one rank
  TailRule tail = TailRule::kDrop;

  // kInvalidArgument names what is impossible: a rank outside the world, a batch of 0, numbers
  // whose product overflows.
  Status check() const;
  uint64_t step_samples() const noexcept { return batch * world; }
  // Whether each rank has lanes of its own.
  bool own_lanes() const noexcept { return lanes % world == 0; }

  // Steps from `consumed` on; ranks agree on it.
  uint64_t steps_from(uint64_t consumed) const noexcept;
  // `consumed` after `steps` of them.
  uint64_t consumed_after(uint64_t consumed, uint64_t steps) const noexcept;
  // The rank's positions of the step that starts at `consumed`, in the order in which they are
  // delivered. With the tail rule `pad` some may be >= sample_count: sample_position() of them.
  // With `exact` there may be none. REQUIRES steps_from(consumed) > 0.
  void positions(uint64_t consumed, std::vector<uint64_t>& out) const;
  uint64_t sample_position(uint64_t position) const noexcept { return position % sample_count; }
};

}  // namespace spk
