#include "commands/order_balance.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "base/text.h"
#include "commands/order_samples.h"
#include "layout/geometry.h"
#include "layout/order.h"
#include "ui/signals.h"

namespace spk {

namespace {

constexpr uint64_t kSlotsLeftOut = 2;  // at either end

// Random numbers of a simulation: the n-th of one kind.
uint64_t draw(uint64_t seed, uint64_t kind, uint64_t number) noexcept {
  return mix64(mix64(mix64(seed) ^ kind) ^ number);
}

struct Chunks {
  std::vector<uint64_t> first_samples{0};
  std::vector<uint64_t> slots;  // of each
  std::vector<uint32_t> targets;

  uint64_t samples() const { return first_samples.back(); }
  uint64_t samples_of(uint64_t chunk) const {
    return first_samples[chunk + 1] - first_samples[chunk];
  }
};

Chunks fill_chunks(std::span<const uint64_t> sample_bytes, const BalanceSettings& settings) {
  const uint64_t count = settings.lanes * settings.chunks_per_lane;
  Chunks chunks;
  uint64_t samples = 0;
  uint64_t used = 0;
  while (chunks.slots.size() < count) {
    const uint64_t bytes = sample_bytes[draw(settings.seed, 1, samples) % sample_bytes.size()];
    if (used > 0 && bytes > settings.chunk_bytes - std::min(used, settings.chunk_bytes)) {
      chunks.first_samples.push_back(samples);
      chunks.slots.push_back(divide_up(used, settings.chunk_bytes));
      used = 0;
    }
    used += bytes;
    ++samples;
  }
  for (uint64_t u = 0; u < count; ++u) {
    uint64_t target = u;
    if (settings.random_shards > 0) {
      const uint64_t shard = u * settings.random_shards / count;
      const uint64_t begin = divide_up(shard * count, settings.random_shards);
      target =
          draw(settings.seed, 2, shard) % settings.targets + (u - begin) % settings.stripe_count;
    }
    chunks.targets.push_back(static_cast<uint32_t>(target % settings.targets));
  }
  return chunks;
}

// Reads by time slot and target.
class Timetable {
 public:
  Timetable(const Chunks& chunks, const BalanceSettings& settings)
      : chunks_(chunks),
        targets_(settings.targets),
        slot_rows_(static_cast<double>(chunks.samples()) /
                   static_cast<double>(chunks.slots.size()) * static_cast<double>(settings.window)),
        slots_(settings.chunks_per_lane / settings.window),
        reads_(slots_ * targets_) {}

  uint64_t counted_slots() const { return slots_ - 2 * kSlotsLeftOut; }

  void read(uint64_t chunk, uint64_t row) {
    const auto slot = static_cast<uint64_t>(static_cast<double>(row) / slot_rows_);
    if (slot < slots_) reads_[slot * targets_ + chunks_.targets[chunk]] += chunks_.slots[chunk];
  }

  TargetLoad load() const {
    TargetLoad load;
    for (uint64_t slot = kSlotsLeftOut; slot < slots_ - kSlotsLeftOut; ++slot) {
      const std::span<const uint64_t> reads(reads_.data() + slot * targets_, targets_);
      uint64_t heaviest = 0;
      uint64_t sum = 0;
      for (const uint64_t count : reads) {
        heaviest = std::max(heaviest, count);
        sum += count;
      }
      const double ratio = static_cast<double>(heaviest * targets_) /
                           static_cast<double>(std::max<uint64_t>(sum, 1));
      load.mean += ratio / static_cast<double>(counted_slots());
      load.worst = std::max(load.worst, ratio);
    }
    return load;
  }

 private:
  const Chunks& chunks_;
  const uint64_t targets_;
  const double slot_rows_;
  const uint64_t slots_;
  std::vector<uint64_t> reads_;
};

Result<TargetLoad> balanced_load(const Chunks& chunks, const BalanceSettings& settings) {
  OrderSettings order_settings;
  order_settings.seed = settings.seed;
  order_settings.lanes = static_cast<uint32_t>(settings.lanes);
  order_settings.window = static_cast<uint32_t>(settings.window);
  SPK_ASSIGN(EpochOrder order,
             EpochOrder::make({chunks.first_samples, chunks.targets}, order_settings));
  Timetable table(chunks, settings);
  for (uint32_t lane = 0; lane < order.lanes(); ++lane) {
    if (cancel_flag()) return cancel_status();
    for (uint64_t row = 0; row < order.lane_rows(lane);) {
      const LaneWindow& window = order.window_at(lane, row);
      for (const OrderPiece& piece : window.pieces) table.read(piece.unit, row);
      row += window.row_count;
    }
  }
  return table.load();
}

TargetLoad plain_load(const Chunks& chunks, const BalanceSettings& settings) {
  Timetable table(chunks, settings);
  const auto lanes = static_cast<uint32_t>(settings.lanes);
  const KeyedPermutation shuffle(settings.seed, 3, chunks.slots.size());
  uint32_t lane = 0;
  PositionRange cut = shard_positions(chunks.samples(), lanes, lane);
  uint64_t begin = 0;
  for (uint64_t i = 0; i < shuffle.size(); ++i) {
    const uint64_t chunk = shuffle(i);
    const uint64_t end = begin + chunks.samples_of(chunk);
    // Each lane that has a part of the chunk reads it.
    for (uint64_t at = begin; at < end; at = std::min(end, cut.end)) {
      while (at >= cut.end) cut = shard_positions(chunks.samples(), lanes, ++lane);
      table.read(chunk, at - cut.begin);
    }
    begin = end;
  }
  return table.load();
}

double ideal_load(const Chunks& chunks, const BalanceSettings& settings) {
  const uint64_t reads = settings.lanes * settings.window;
  const auto targets = static_cast<double>(settings.targets);
  const double whole_reads = static_cast<double>(divide_up(reads, settings.targets)) * targets /
                             static_cast<double>(reads);
  std::vector<uint64_t> held(settings.targets);
  uint64_t sum = 0;
  for (size_t u = 0; u < chunks.slots.size(); ++u) {
    held[chunks.targets[u]] += chunks.slots[u];
    sum += chunks.slots[u];
  }
  const double heaviest = static_cast<double>(*std::max_element(held.begin(), held.end()));
  return std::max(whole_reads, heaviest * targets / static_cast<double>(sum));
}

Status check(std::span<const uint64_t> sample_bytes, const BalanceSettings& settings) {
  constexpr uint64_t kMostChunks = uint64_t{1} << 26;
  if (sample_bytes.empty() || *std::max_element(sample_bytes.begin(), sample_bytes.end()) == 0) {
    return invalid_argument("there are no sizes to draw from");
  }
  if (*std::max_element(sample_bytes.begin(), sample_bytes.end()) > uint64_t{1} << 40) {
    return invalid_argument("a sample of more than 1 TiB");
  }
  if (settings.lanes > kMostChunks / settings.chunks_per_lane) {
    return invalid_argument(str_cat(count_of(settings.lanes, "lane"), " of ",
                                    count_of(settings.chunks_per_lane, "chunk"), ": more than ",
                                    kMostChunks, " are not simulated"));
  }
  if (settings.chunks_per_lane / settings.window <= 2 * kSlotsLeftOut) {
    return invalid_argument(str_cat("a lane has ",
                                    count_of(settings.chunks_per_lane / settings.window, "window"),
                                    "; the first two and the last two are left out"))
        .with_hint("give --chunks-per-lane a larger number");
  }
  if (settings.random_shards > settings.lanes * settings.chunks_per_lane) {
    return invalid_argument("there are more shards than chunks").with_hint("lower --shards");
  }
  return {};
}

}  // namespace

Result<Balance> simulate_balance(std::span<const uint64_t> sample_bytes,
                                 const BalanceSettings& settings) {
  SPK_TRY(check(sample_bytes, settings));
  const Chunks chunks = fill_chunks(sample_bytes, settings);
  Balance balance;
  balance.chunks = chunks.slots.size();
  balance.samples = chunks.samples();
  balance.slots = Timetable(chunks, settings).counted_slots();
  balance.ideal = ideal_load(chunks, settings);
  SPK_ASSIGN(balance.balanced, balanced_load(chunks, settings));
  balance.plain = plain_load(chunks, settings);
  return balance;
}

}  // namespace spk
