#include "layout/steps.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {

// How many of the positions [begin, end) lie in lane `lane` of `lanes`.
uint64_t positions_in_lane(uint64_t begin, uint64_t end, uint64_t lane, uint64_t lanes) noexcept {
  const auto below = [&](uint64_t bound) { return bound / lanes + (lane < bound % lanes ? 1 : 0); };
  return below(end) - below(begin);
}

}  // namespace

std::string_view tail_rule_name(TailRule tail) noexcept {
  switch (tail) {
    case TailRule::kDrop: return "drop";
    case TailRule::kPad: return "pad";
    case TailRule::kExact: return "exact";
  }
  return "unknown";
}

Result<TailRule> parse_tail_rule(std::string_view text) {
  for (const TailRule tail : {TailRule::kDrop, TailRule::kPad, TailRule::kExact}) {
    if (text == tail_rule_name(tail)) return tail;
  }
  return invalid_argument(
      str_cat("there is no tail rule '", escape_bytes(text), "'; there are drop, pad and exact"));
}

Status StepRules::check() const {
  if (world == 0 || world > UINT32_MAX || rank >= world) {
    return invalid_argument(
        str_cat("there is no rank ", rank, " in a world of ", count_of(world, "rank")));
  }
  if (batch == 0 || batch > UINT32_MAX) {
    return invalid_argument(str_cat("a batch of ", batch, " samples"));
  }
  // Bounds every product below.
  constexpr uint64_t kMostStepSamples = uint64_t{1} << 31;
  if (batch > kMostStepSamples / world) {
    return invalid_argument(str_cat("a global batch of ", world, " x ", batch, " samples; at most ",
                                    kMostStepSamples, " are possible"));
  }
  return {};
}

uint64_t StepRules::steps_from(uint64_t consumed) const noexcept {
  const uint64_t left = sample_count - std::min(consumed, sample_count);
  return tail == TailRule::kDrop ? left / step_samples() : divide_up(left, step_samples());
}

uint64_t StepRules::consumed_after(uint64_t consumed, uint64_t steps) const noexcept {
  const uint64_t taken = std::min(steps, steps_from(consumed));
  return std::min(consumed + taken * step_samples(), std::max(sample_count, consumed));
}

void StepRules::positions(uint64_t consumed, std::vector<uint64_t>& out) const {
  out.clear();
  const uint64_t begin = consumed;
  const uint64_t full = begin + step_samples();
  const uint64_t end = tail == TailRule::kPad ? full : std::min(full, sample_count);
  if (own_lanes()) {
    const uint64_t first = begin + (rank + world - begin % world) % world;
    for (uint64_t g = first; g < end; g += world) out.push_back(g);
    return;
  }
  // Lane by lane, ascending; those before the rank's slice are passed over.
  const uint64_t n = end - begin;
  const uint64_t slice_begin = rank * n / world;
  const uint64_t slice_end = (rank + 1) * n / world;
  uint64_t place = 0;
  for (uint64_t lane = 0; lane < lanes && place < slice_end; ++lane) {
    const uint64_t count = positions_in_lane(begin, end, lane, lanes);
    const uint64_t from = std::max(place, slice_begin);
    const uint64_t to = std::min(place + count, slice_end);
    const uint64_t first = begin + (lane + lanes - begin % lanes) % lanes;
    for (uint64_t i = from; i < to; ++i) out.push_back(first + (i - place) * lanes);
    place += count;
  }
}

}  // namespace spk
