#include "loader/step_planner.h"

#include <algorithm>

namespace spk {

namespace {

// What may lie between two samples that are read together: reading it too is cheaper than another
// read.
constexpr uint64_t kMostGapBytes = uint64_t{64} << 10;

}  // namespace

StepPlanner::StepPlanner(std::shared_ptr<const UnitContext> context, EpochOrder order,
                         const StepRules& rules, uint64_t consumed, uint64_t worker,
                         uint64_t workers, Submit submit)
    : context_(std::move(context)),
      order_(std::move(order)),
      rules_(rules),
      worker_(worker),
      workers_(workers),
      submit_(std::move(submit)),
      consumed_(consumed),
      steps_left_(rules.steps_from(consumed)) {
  if (order_.has_windows()) cursors_.resize(order_.lanes());
  const uint64_t skipped = std::min(worker, steps_left_);
  consumed_ = rules_.consumed_after(consumed_, skipped);
  steps_left_ -= skipped;
}

bool StepPlanner::at_end() const noexcept { return steps_left_ == 0; }

void StepPlanner::begin_step() {
  rules_.positions(consumed_, positions_);
  partial_ = {};
  partial_.samples.reserve(positions_.size());
  groups_.clear();
}

Result<bool> StepPlanner::next(PlannedStep& step) {
  if (!begun_) begin_step();
  if (!begun_ && !order_.has_windows()) SPK_TRY(make_groups());
  begun_ = true;
  SPK_ASSIGN(const bool whole, order_.has_windows() ? plan_windows() : plan_gathered());
  if (!whole) return false;
  partial_.consumed_after = rules_.consumed_after(consumed_, 1);
  step = std::move(partial_);
  begun_ = false;
  ++step_;
  const uint64_t steps = std::min(workers_, steps_left_);
  consumed_ = rules_.consumed_after(consumed_, steps);
  steps_left_ -= steps;
  return true;
}

// Reserves its memory and hands it over; false where there is no room.
bool StepPlanner::admit(const std::shared_ptr<ReadUnit>& unit) {
  RingShare share;
  if (!context_->ring->reserve(unit->ring_bytes(), share)) {
    wanted_bytes_ = unit->ring_bytes();
    return false;
  }
  unit->hold(std::move(share));
  submit_(unit);
  return true;
}

// The unit's place in the step that is being planned.
uint32_t StepPlanner::unit_number(const std::shared_ptr<ReadUnit>& unit) {
  PlanMark& mark = unit->plan_mark();
  if (mark.step != step_) {
    mark = {step_, static_cast<uint32_t>(partial_.units.size())};
    partial_.units.push_back(unit);
  }
  return mark.place;
}

void StepPlanner::load_cursor(LaneCursor& cursor, uint32_t lane, uint64_t row) {
  const LaneWindow& window = order_.window_at(lane, row);
  cursor.first_row = window.first_row;
  cursor.pieces = window.pieces;
  cursor.units.assign(window.pieces.size(), nullptr);
  cursor.left.clear();
  for (const OrderPiece& piece : window.pieces) cursor.left.push_back(piece.sample_count);
  order_.window_samples(window, cursor.samples);
}

Result<std::shared_ptr<ReadUnit>> StepPlanner::unit_of(const OrderPiece& piece) const {
  if (piece.sample_count == order_.units().samples_of(piece.unit)) {
    return ReadUnit::whole(context_, piece.unit);
  }
  std::vector<uint64_t> samples(piece.sample_count);
  for (uint64_t i = 0; i < piece.sample_count; ++i) samples[i] = piece.first_sample + i;
  return ReadUnit::gathered(context_, std::move(samples), piece.unit);
}

Result<bool> StepPlanner::plan_windows() {
  for (size_t i = partial_.samples.size(); i < positions_.size(); ++i) {
    const uint64_t position = rules_.sample_position(positions_[i]);
    const auto lane = static_cast<uint32_t>(position % order_.lanes());
    const uint64_t row = position / order_.lanes();
    LaneCursor& cursor = cursors_[lane];
    if (row < cursor.first_row || row - cursor.first_row >= cursor.samples.size()) {
      load_cursor(cursor, lane, row);
    }
    const uint64_t sample = cursor.samples[row - cursor.first_row];
    size_t piece = 0;
    while (sample < cursor.pieces[piece].first_sample ||
           sample - cursor.pieces[piece].first_sample >= cursor.pieces[piece].sample_count) {
      ++piece;
    }
    std::shared_ptr<ReadUnit>& unit = cursor.units[piece];
    if (unit == nullptr) {
      SPK_ASSIGN(const std::shared_ptr<ReadUnit> fresh, unit_of(cursor.pieces[piece]));
      if (!admit(fresh)) return false;
      unit = fresh;
    }
    partial_.samples.push_back({sample, positions_[i], unit_number(unit),
                                static_cast<uint32_t>(sample - cursor.pieces[piece].first_sample)});
    // Its steps and batches own it from now on.
    if (--cursor.left[piece] == 0) unit = nullptr;
  }
  return true;
}

// The step's samples in storage order, those together that lie close to each other.
Status StepPlanner::make_groups() {
  const Pack& pack = *context_->pack;
  std::vector<uint64_t> samples;
  samples.reserve(positions_.size());
  for (const uint64_t position : positions_) {
    samples.push_back(order_.sample_at(rules_.sample_position(position)));
  }
  std::sort(samples.begin(), samples.end());
  samples.erase(std::unique(samples.begin(), samples.end()), samples.end());
  uint32_t shard = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  for (const uint64_t sample : samples) {
    uint64_t sample_begin = UINT64_MAX;
    uint64_t sample_end = 0;
    uint32_t sample_shard = shard;
    for (const uint16_t field : context_->blob_fields) {
      SPK_ASSIGN(const SampleLocation blob, pack.locate(sample, field));
      if (!blob.present) continue;
      sample_shard = blob.shard;
      sample_begin = std::min(sample_begin, blob.offset);
      sample_end = std::max(sample_end, blob.offset + blob.bytes);
    }
    if (sample_begin > sample_end) sample_begin = sample_end = end;  // nothing to read
    const bool joins = !groups_.empty() && sample_shard == shard && sample_begin >= end &&
                       sample_begin - end <= kMostGapBytes &&
                       sample_end - begin <= pack.identity().chunk_bytes();
    if (!joins) {
      groups_.emplace_back();
      begin = sample_begin;
    }
    groups_.back().push_back(sample);
    shard = sample_shard;
    end = sample_end;
  }
  return {};
}

Result<bool> StepPlanner::plan_gathered() {
  while (partial_.units.size() < groups_.size()) {
    SPK_ASSIGN(std::shared_ptr<ReadUnit> unit,
               ReadUnit::gathered(context_, groups_[partial_.units.size()]));
    if (!admit(unit)) return false;
    partial_.units.push_back(std::move(unit));
  }
  for (const uint64_t position : positions_) {
    const uint64_t sample = order_.sample_at(rules_.sample_position(position));
    const auto group = std::prev(std::upper_bound(
        groups_.begin(), groups_.end(), sample,
        [](uint64_t wanted, const auto& samples) { return wanted < samples.front(); }));
    const auto row = std::lower_bound(group->begin(), group->end(), sample) - group->begin();
    partial_.samples.push_back({sample, position, static_cast<uint32_t>(group - groups_.begin()),
                                static_cast<uint32_t>(row)});
  }
  return true;
}

}  // namespace spk
