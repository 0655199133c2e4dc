// The order of an epoch: which sample comes at which position. docs/ORDER.md specifies it; this is
// sections 3 to 5. Pure arithmetic over the sizes of a pack's units.
//
// Nothing is computed before it is asked for: the deal of units to lanes goes only as far as the
// windows that were wanted, so that the first ones of a huge pack are known at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "layout/min_heap.h"
#include "layout/permutation.h"

namespace spk {

inline constexpr uint32_t kOrderVersion = 1;
inline constexpr uint32_t kMaxLanes = 1u << 20;
inline constexpr uint32_t kMaxWindow = 1u << 16;
inline constexpr uint32_t kMaxTargets = 1u << 20;

enum class OrderKind : uint8_t { kShuffled, kSequential, kRandom };
std::string_view order_kind_name(OrderKind kind) noexcept;
// "shuffled", "sequential" or "random"; kInvalidArgument otherwise.
Result<OrderKind> parse_order_kind(std::string_view text);

// The units of a pack. What the spans point to must outlive whoever uses this.
struct OrderUnits {
  // Unit u holds samples [first_samples[u], first_samples[u + 1]): one more entry than units. A
  // pack without samples has the single entry 0.
  std::span<const uint64_t> first_samples;
  // Target of each unit, below kMaxTargets; empty where there is no map.
  std::span<const uint32_t> targets;

  uint64_t unit_count() const noexcept { return first_samples.size() - 1; }
  uint64_t sample_count() const noexcept { return first_samples.back(); }
  uint64_t samples_of(uint64_t unit) const noexcept {
    return first_samples[unit + 1] - first_samples[unit];
  }
};

// XXH3-64 of the targets; 0 where there is no map.
uint64_t target_map_digest(std::span<const uint32_t> targets);

struct OrderSettings {
  OrderKind kind = OrderKind::kShuffled;
  uint64_t seed = 0;
  uint64_t epoch = 0;
  uint32_t lanes = 64;  // 1 for the other kinds
  uint32_t window = 1;  // likewise
};

// L and w for a world of so many ranks, where neither was asked for.
OrderSettings default_order(OrderKind kind, uint64_t world) noexcept;

// A run of consecutive samples of one unit.
struct OrderPiece {
  uint64_t unit = 0;
  uint64_t first_sample = 0;
  uint64_t sample_count = 0;
};

// What is mixed at a time: consecutive pieces of a lane. Fills rows
// [first_row, first_row + row_count).
struct LaneWindow {
  uint32_t lane = 0;
  uint64_t number = 0;  // in the lane
  uint64_t first_row = 0;
  uint64_t row_count = 0;
  std::vector<OrderPiece> pieces;
};

class EpochOrder {
 public:
  // kInvalidArgument where lanes or window are 0 or beyond their limits, or targets do not fit the
  // units. Costs O(targets), with a map O(units).
  static Result<EpochOrder> make(const OrderUnits& units, const OrderSettings& settings);

  const OrderUnits& units() const noexcept { return units_; }
  const OrderSettings& settings() const noexcept { return settings_; }
  uint64_t sample_count() const noexcept { return units_.sample_count(); }
  uint32_t lanes() const noexcept { return settings_.lanes; }
  uint64_t lane_rows(uint32_t lane) const noexcept;

  // Whether there are lanes and windows; else sample_at() is all there is.
  bool has_windows() const noexcept { return settings_.kind == OrderKind::kShuffled; }
  // REQUIRES !has_windows() and position < sample_count().
  uint64_t sample_at(uint64_t position) const noexcept;

  // The window that holds ROW of LANE. Going on where the last call for this lane ended costs O(w);
  // going elsewhere O(windows of the lane). REQUIRES has_windows() and row < lane_rows(lane).
  // Not to be called by two threads at once, as it may carry the deal on.
  const LaneWindow& window_at(uint32_t lane, uint64_t row);
  // The samples of a window in the order in which they fill its rows.
  void window_samples(const LaneWindow& window, std::vector<uint64_t>& samples) const;

  // Carries the deal to its end.
  void finish();
  // The deal so far: every unit dealt to a lane, in the order of the deal. For simulations.
  std::span<const uint32_t> dealt_to(uint32_t lane) const noexcept { return lanes_[lane].units; }

 private:
  // The units of one target, in shuffled order.
  struct Target {
    std::vector<uint32_t> units;  // empty where there is no map: unit j is j
    KeyedPermutation permutation;
    uint64_t next = 0;
  };
  // Key of a target's next unit, place of the target; the smallest is taken first.
  struct Turn {
    uint64_t key;
    uint64_t place;
    uint32_t target;
    bool operator>(const Turn& other) const noexcept {
      return key != other.key ? key > other.key : place > other.place;
    }
  };
  struct LaneTime {
    uint64_t samples;
    uint32_t lane;
    bool operator>(const LaneTime& other) const noexcept {
      return samples != other.samples ? samples > other.samples : lane > other.lane;
    }
  };
  struct Lane {
    std::vector<uint32_t> units;     // as dealt; finish() removes those that were cut whole
    uint64_t last_unit_samples = 0;  // after finish(): what is left of the last one
    std::vector<OrderPiece> taken;   // from the pool
    LaneWindow at;                   // found last
  };

  EpochOrder(const OrderUnits& units, const OrderSettings& settings);
  Status check_targets() const;
  void start();
  uint32_t next_unit();
  bool deal_once();
  void equalise();
  void cut(Lane& lane, uint64_t surplus, std::vector<OrderPiece>& pool);
  uint64_t piece_count(const Lane& lane) const noexcept;
  OrderPiece piece(const Lane& lane, uint64_t number) const noexcept;
  bool load_window(uint32_t lane, uint64_t number, uint64_t first_row);

  OrderUnits units_;
  OrderSettings settings_;
  std::optional<KeyedPermutation> random_;
  std::vector<Target> targets_;
  MinHeap<Turn> turns_;
  MinHeap<LaneTime> times_;
  std::vector<Lane> lanes_;
  uint64_t dealt_units_ = 0;
  bool finished_ = false;
};

}  // namespace spk
