#include "layout/order.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/text.h"
#include "layout/streams.h"

namespace spk {

namespace {

uint64_t turn_key(uint64_t number, uint64_t count) noexcept {
  return ((2 * number + 1) << 31) / count;
}

}  // namespace

std::string_view order_kind_name(OrderKind kind) noexcept {
  switch (kind) {
    case OrderKind::kShuffled: return "shuffled";
    case OrderKind::kSequential: return "sequential";
    case OrderKind::kRandom: return "random";
  }
  return "unknown";
}

Result<OrderKind> parse_order_kind(std::string_view text) {
  for (const OrderKind kind : {OrderKind::kShuffled, OrderKind::kSequential, OrderKind::kRandom}) {
    if (text == order_kind_name(kind)) return kind;
  }
  return invalid_argument(str_cat("there is no order '", escape_bytes(text),
                                  "'; there are shuffled, sequential and random"));
}

uint64_t target_map_digest(std::span<const uint32_t> targets) {
  if (targets.empty()) return 0;
  std::vector<uint8_t> bytes(targets.size() * 4);
  for (size_t i = 0; i < targets.size(); ++i) store_le<uint32_t>(bytes.data() + 4 * i, targets[i]);
  return xxh3_64(bytes);
}

OrderSettings default_order(OrderKind kind, uint64_t world) noexcept {
  constexpr uint64_t kLanes = 64;
  OrderSettings settings;
  settings.kind = kind;
  if (kind != OrderKind::kShuffled || world == 0) {
    settings.lanes = 1;
  } else if (kLanes % world == 0) {
    settings.lanes = kLanes;
  } else {
    settings.lanes = static_cast<uint32_t>(divide_up(kLanes, world) * world);
    settings.window = 4;
  }
  return settings;
}

EpochOrder::EpochOrder(const OrderUnits& units, const OrderSettings& settings)
    : units_(units), settings_(settings) {}

Result<EpochOrder> EpochOrder::make(const OrderUnits& units, const OrderSettings& settings) {
  const bool shuffled = settings.kind == OrderKind::kShuffled;
  if (settings.lanes == 0 || settings.lanes > kMaxLanes) {
    return invalid_argument(str_cat("lanes must be 1 to ", kMaxLanes, ", not ", settings.lanes));
  }
  if (settings.window == 0 || settings.window > kMaxWindow) {
    return invalid_argument(str_cat("window must be 1 to ", kMaxWindow, ", not ", settings.window));
  }
  if (!shuffled && (settings.lanes != 1 || settings.window != 1)) {
    return invalid_argument(str_cat("the order '", order_kind_name(settings.kind),
                                    "' has no lanes and no window: leave both at 1"));
  }
  EpochOrder order(units, settings);
  SPK_TRY(order.check_targets());
  if (settings.kind == OrderKind::kRandom) {
    order.random_.emplace(settings.seed, stream_of(StreamKind::kRandom, settings.epoch),
                          units.sample_count());
  }
  if (shuffled) order.start();
  return order;
}

Status EpochOrder::check_targets() const {
  if (units_.unit_count() > UINT32_MAX) {
    return unsupported(str_cat("a pack of ", count_of(units_.unit_count(), "chunk")));
  }
  if (units_.targets.empty()) return {};
  if (units_.targets.size() != units_.unit_count()) {
    return invalid_argument(str_cat("the target map has ", count_of(units_.targets.size(), "chunk"),
                                    ", the pack ", units_.unit_count()));
  }
  const uint32_t largest = *std::max_element(units_.targets.begin(), units_.targets.end());
  if (largest < kMaxTargets) return {};
  return invalid_argument(str_cat("the target map names target ", largest,
                                  "; the largest possible is ", kMaxTargets - 1));
}

// Makes the heaps. Without a map there is no table: unit j of the one target is j.
void EpochOrder::start() {
  const uint64_t seed = settings_.seed;
  const uint64_t epoch = settings_.epoch;
  const auto largest = std::max_element(units_.targets.begin(), units_.targets.end());
  const uint32_t count = units_.targets.empty() ? 1 : *largest + 1;
  std::vector<std::vector<uint32_t>> by_target(count);
  if (!units_.targets.empty()) {
    std::vector<uint32_t> sizes(count);
    for (const uint32_t target : units_.targets) ++sizes[target];
    for (uint32_t s = 0; s < count; ++s) by_target[s].reserve(sizes[s]);
    for (uint64_t u = 0; u < units_.targets.size(); ++u) {
      by_target[units_.targets[u]].push_back(static_cast<uint32_t>(u));
    }
  }
  const KeyedPermutation places(seed, stream_of(StreamKind::kTargets, epoch), count);
  std::vector<Turn> turns;
  for (uint32_t s = 0; s < count; ++s) {
    const uint64_t size = units_.targets.empty() ? units_.unit_count() : by_target[s].size();
    targets_.push_back({std::move(by_target[s]),
                        KeyedPermutation(seed, stream_of(StreamKind::kUnits, epoch, s), size)});
    if (size > 0) turns.push_back({turn_key(0, size), places.inverse(s), s});
  }
  turns_ = MinHeap<Turn>(std::move(turns));
  lanes_.resize(settings_.lanes);
  std::vector<LaneTime> times(settings_.lanes);
  for (uint32_t lane = 0; lane < settings_.lanes; ++lane) times[lane] = {0, lane};
  times_ = MinHeap<LaneTime>(std::move(times));
}

uint64_t EpochOrder::lane_rows(uint32_t lane) const noexcept {
  return sample_count() / lanes() + (lane < sample_count() % lanes() ? 1 : 0);
}

uint64_t EpochOrder::sample_at(uint64_t position) const noexcept {
  return random_ ? (*random_)(position) : position;
}

// REQUIRES that there is one left.
uint32_t EpochOrder::next_unit() {
  Turn turn = turns_.top();
  Target& target = targets_[turn.target];
  const uint64_t place = target.permutation(target.next++);
  if (target.next < target.permutation.size()) {
    turn.key = turn_key(target.next, target.permutation.size());
    turns_.replace_top(turn);
  } else {
    turns_.pop();
  }
  ++dealt_units_;
  return target.units.empty() ? static_cast<uint32_t>(place) : target.units[place];
}

// One deal; false where no unit was left.
bool EpochOrder::deal_once() {
  if (dealt_units_ == units_.unit_count()) return false;
  LaneTime time = times_.top();
  std::vector<uint32_t>& lane = lanes_[time.lane].units;
  for (uint32_t i = 0; i < settings_.window && dealt_units_ < units_.unit_count(); ++i) {
    lane.push_back(next_unit());
    time.samples += units_.samples_of(lane.back());
  }
  times_.replace_top(time);
  return true;
}

void EpochOrder::cut(Lane& lane, uint64_t surplus, std::vector<OrderPiece>& pool) {
  const size_t pool_before = pool.size();
  while (surplus > 0) {
    const uint32_t unit = lane.units.back();
    const uint64_t have = lane.last_unit_samples;
    const uint64_t lost = std::min(surplus, have);
    pool.push_back({unit, units_.first_samples[unit] + have - lost, lost});
    surplus -= lost;
    lane.last_unit_samples -= lost;
    if (lane.last_unit_samples > 0) break;
    lane.units.pop_back();
    if (lane.units.empty()) break;
    lane.last_unit_samples = units_.samples_of(lane.units.back());
  }
  std::reverse(pool.begin() + static_cast<ptrdiff_t>(pool_before), pool.end());
}

void EpochOrder::equalise() {
  std::vector<uint64_t> have(lanes());
  for (const LaneTime& time : times_.items()) have[time.lane] = time.samples;
  std::vector<OrderPiece> pool;
  for (uint32_t l = 0; l < lanes(); ++l) {
    Lane& lane = lanes_[l];
    if (!lane.units.empty()) lane.last_unit_samples = units_.samples_of(lane.units.back());
    if (have[l] > lane_rows(l)) cut(lane, have[l] - lane_rows(l), pool);
  }
  size_t front = 0;
  for (uint32_t l = 0; l < lanes(); ++l) {
    for (uint64_t samples = have[l]; samples < lane_rows(l);) {
      OrderPiece& run = pool[front];
      const uint64_t taken = std::min(run.sample_count, lane_rows(l) - samples);
      lanes_[l].taken.push_back({run.unit, run.first_sample, taken});
      samples += taken;
      run.first_sample += taken;
      run.sample_count -= taken;
      if (run.sample_count == 0) ++front;
    }
  }
}

void EpochOrder::finish() {
  if (finished_ || !has_windows()) return;
  while (deal_once()) {
  }
  equalise();
  finished_ = true;
}

uint64_t EpochOrder::piece_count(const Lane& lane) const noexcept {
  return lane.units.size() + lane.taken.size();
}

OrderPiece EpochOrder::piece(const Lane& lane, uint64_t number) const noexcept {
  if (number >= lane.units.size()) return lane.taken[number - lane.units.size()];
  const uint32_t unit = lane.units[number];
  const bool may_be_cut = finished_ && number + 1 == lane.units.size();
  return {unit, units_.first_samples[unit],
          may_be_cut ? lane.last_unit_samples : units_.samples_of(unit)};
}

// Makes window NUMBER, which begins at FIRST_ROW, the lane's current one; false where the lane has
// no such window.
bool EpochOrder::load_window(uint32_t lane_number, uint64_t number, uint64_t first_row) {
  const uint64_t w = settings_.window;
  Lane& lane = lanes_[lane_number];
  // Only the last deal of a lane is ever cut: a window is certain once the lane was dealt another.
  while (!finished_ && lane.units.size() <= (number + 1) * w) {
    if (!deal_once()) finish();
  }
  if (number * w >= piece_count(lane)) return false;
  LaneWindow& window = lane.at;
  window.lane = lane_number;
  window.number = number;
  window.first_row = first_row;
  window.row_count = 0;
  window.pieces.clear();
  const uint64_t end = std::min((number + 1) * w, piece_count(lane));
  for (uint64_t i = number * w; i < end; ++i) {
    window.pieces.push_back(piece(lane, i));
    window.row_count += window.pieces.back().sample_count;
  }
  return true;
}

const LaneWindow& EpochOrder::window_at(uint32_t lane_number, uint64_t row) {
  const LaneWindow& at = lanes_[lane_number].at;
  uint64_t number = at.number;
  uint64_t first_row = at.first_row;
  if (row >= first_row && row < first_row + at.row_count) return at;
  if (row < first_row || at.row_count == 0) {
    number = 0;
    first_row = 0;
  } else {
    number += 1;
    first_row += at.row_count;
  }
  while (load_window(lane_number, number, first_row)) {
    if (row < first_row + at.row_count) break;
    number += 1;
    first_row += at.row_count;
  }
  return at;
}

void EpochOrder::window_samples(const LaneWindow& window, std::vector<uint64_t>& samples) const {
  samples.clear();
  samples.reserve(window.row_count);
  for (const OrderPiece& piece : window.pieces) {
    for (uint64_t i = 0; i < piece.sample_count; ++i) samples.push_back(piece.first_sample + i);
  }
  shuffle_table(settings_.seed,
                stream_of(StreamKind::kWindow, settings_.epoch, window.lane, window.number),
                std::span<uint64_t>(samples));
}

}  // namespace spk
