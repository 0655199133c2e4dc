// Plans a rank's steps one after the other: which samples in which order, and which reads they need
// that no step before has planned already. Stops where the ring has no room for the next read, and
// goes on from there when it is called again.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "layout/order.h"
#include "layout/steps.h"
#include "loader/read_unit.h"

namespace spk {

struct PlannedSample {
  uint64_t sample = 0;
  uint64_t position = 0;  // in the order; sample_count or more where it is a repetition (pad)
  uint32_t unit = 0;      // in PlannedStep::units
  uint32_t row = 0;       // in the unit
};

struct PlannedStep {
  uint64_t consumed_after = 0;
  std::vector<PlannedSample> samples;
  std::vector<std::shared_ptr<ReadUnit>> units;
};

class StepPlanner {
 public:
  using Submit = std::function<void(std::shared_ptr<ReadUnit>)>;

  // Steps from `consumed` on; of those, the ones that worker `worker` of `workers` yields. SUBMIT
  // is given every unit, once, as soon as it is planned and its share of the ring is reserved.
  StepPlanner(std::shared_ptr<const UnitContext> context, EpochOrder order, const StepRules& rules,
              uint64_t consumed, uint64_t worker, uint64_t workers, Submit submit);

  bool at_end() const noexcept;
  // The next step; false where there is no room for all of it yet. REQUIRES !at_end(). Errors are
  // the index's.
  Result<bool> next(PlannedStep& step);
  // What the read that found no room needs in the ring.
  uint64_t wanted_bytes() const noexcept { return wanted_bytes_; }

 private:
  // Where a lane stands.
  struct LaneCursor {
    uint64_t first_row = 0;
    std::vector<uint64_t> samples;  // of the window, in the order of its rows
    std::vector<OrderPiece> pieces;
    std::vector<std::shared_ptr<ReadUnit>> units;  // by piece; null until, and after, it is needed
    std::vector<uint64_t> left;                    // samples of each piece that no step has taken
  };

  void begin_step();
  Result<bool> plan_windows();
  Result<bool> plan_gathered();
  void load_cursor(LaneCursor& cursor, uint32_t lane, uint64_t row);
  Result<std::shared_ptr<ReadUnit>> unit_of(const OrderPiece& piece) const;
  bool admit(const std::shared_ptr<ReadUnit>& unit);
  uint32_t unit_number(const std::shared_ptr<ReadUnit>& unit);
  Status make_groups();

  const std::shared_ptr<const UnitContext> context_;
  EpochOrder order_;
  const StepRules rules_;
  const uint64_t worker_;
  const uint64_t workers_;
  const Submit submit_;
  uint64_t consumed_;
  uint64_t steps_left_;  // of the rank, other workers' included
  uint64_t step_ = 1;    // that is being planned, counted from 1
  std::vector<LaneCursor> cursors_;

  // The step that is being planned.
  bool begun_ = false;
  std::vector<uint64_t> positions_;
  PlannedStep partial_;
  std::vector<std::vector<uint64_t>> groups_;  // samples that are read together
  uint64_t wanted_bytes_ = 0;
};

}  // namespace spk
