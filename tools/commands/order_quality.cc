#include "commands/order_quality.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/text.h"
#include "commands/order_samples.h"
#include "ui/signals.h"

namespace spk {

namespace {

constexpr uint64_t kCancelEvery = 1u << 16;

uint64_t pairs_of(uint64_t count) noexcept { return count * (count - 1) / 2; }

// A sample, and the batches that hold it in two epochs.
struct PickedSample {
  uint64_t sample;
  uint64_t batch;
  uint64_t next_batch;
};

// Whole batches, evenly spaced, of about `most_samples` samples.
Result<std::vector<PickedSample>> pick_batches(const OrderUnits& units,
                                               const OrderSettings& settings, uint64_t global_batch,
                                               uint64_t most_samples) {
  SPK_ASSIGN(EpochOrder order, EpochOrder::make(units, settings));
  PositionReader reader(order);
  const uint64_t batches = units.sample_count() / global_batch;
  const uint64_t picked = std::clamp<uint64_t>(most_samples / global_batch, 1, batches);
  std::vector<PickedSample> samples;
  samples.reserve(picked * global_batch);
  for (uint64_t i = 0; i < picked; ++i) {
    const uint64_t batch = i * batches / picked;
    for (uint64_t k = 0; k < global_batch; ++k) {
      samples.push_back({reader.sample_at(batch * global_batch + k), batch, 0});
      if (samples.size() % kCancelEvery == 0 && cancel_flag()) return cancel_status();
    }
  }
  return samples;
}

}  // namespace

Result<std::optional<double>> pairs_again(const OrderUnits& units, const OrderSettings& settings,
                                          uint64_t global_batch, uint64_t most_samples) {
  const uint64_t samples = units.sample_count();
  const uint64_t batches = samples / global_batch;
  if (batches < 2 || global_batch < 2) return std::optional<double>();
  SPK_ASSIGN(std::vector<PickedSample> picked,
             pick_batches(units, settings, global_batch, most_samples));
  std::sort(picked.begin(), picked.end(),
            [](const PickedSample& a, const PickedSample& b) { return a.sample < b.sample; });
  OrderSettings next = settings;
  ++next.epoch;
  SPK_ASSIGN(EpochOrder order, EpochOrder::make(units, next));
  PositionReader reader(order);
  for (uint64_t position = 0; position < samples; ++position) {
    if (position % kCancelEvery == 0 && cancel_flag()) return cancel_status();
    const uint64_t sample = reader.sample_at(position);
    const auto at =
        std::lower_bound(picked.begin(), picked.end(), sample,
                         [](const PickedSample& a, uint64_t number) { return a.sample < number; });
    if (at != picked.end() && at->sample == sample) at->next_batch = position / global_batch;
  }
  std::sort(picked.begin(), picked.end(), [](const PickedSample& a, const PickedSample& b) {
    return a.batch != b.batch ? a.batch < b.batch : a.next_batch < b.next_batch;
  });
  uint64_t again = 0;
  for (size_t begin = 0, end = 0; begin < picked.size(); begin = end) {
    while (end < picked.size() && picked[end].batch == picked[begin].batch &&
           picked[end].next_batch == picked[begin].next_batch) {
      ++end;
    }
    again += pairs_of(end - begin);
  }
  const uint64_t picked_batches = picked.size() / global_batch;
  const double pairs =
      static_cast<double>(pairs_of(global_batch)) * static_cast<double>(picked_batches);
  // Two places of an epoch are in one batch with this probability; the last batch may be short.
  const double together =
      (static_cast<double>(batches) * static_cast<double>(pairs_of(global_batch)) +
       static_cast<double>(pairs_of(samples % global_batch))) /
      (static_cast<double>(samples) * (static_cast<double>(samples) - 1) / 2);
  return std::optional<double>(static_cast<double>(again) / pairs / together);
}

Result<std::optional<ClassSpread>> class_spread(const OrderUnits& units,
                                                const OrderSettings& settings,
                                                uint64_t global_batch,
                                                const std::vector<int64_t>& labels) {
  const uint64_t samples = units.sample_count();
  const uint64_t batches = samples / global_batch;
  // Classes by numbers from 0 on, so that counting needs no look-up.
  std::unordered_map<int64_t, uint32_t> numbers;
  std::vector<uint32_t> class_of;
  std::vector<uint64_t> sizes;
  class_of.reserve(labels.size());
  for (const int64_t label : labels) {
    const auto [at, fresh] = numbers.try_emplace(label, static_cast<uint32_t>(sizes.size()));
    if (fresh) sizes.push_back(0);
    class_of.push_back(at->second);
    ++sizes[at->second];
  }
  if (sizes.size() < 2 || batches < 2) return std::optional<ClassSpread>();

  const auto n = static_cast<double>(samples);
  const auto b = static_cast<double>(global_batch);
  double mean_squares = 0;  // sum over classes of the squared mean
  double variance_shuffled = 0;
  ClassSpread spread;
  for (const uint64_t size : sizes) {
    const double share = static_cast<double>(size) / n;
    mean_squares += b * share * b * share;
    variance_shuffled += b * share * (1 - share) * (n - b) / (n - 1);
    // A batch without the class: b samples drawn from the others.
    const double others = n - static_cast<double>(size);
    const double absent = others < b
                              ? 0
                              : std::exp(std::lgamma(others + 1) - std::lgamma(others - b + 1) -
                                         std::lgamma(n + 1) + std::lgamma(n - b + 1));
    spread.classes_per_batch_shuffled += 1 - absent;
  }

  SPK_ASSIGN(EpochOrder order, EpochOrder::make(units, settings));
  PositionReader reader(order);
  std::vector<uint64_t> counts(sizes.size());
  std::vector<uint32_t> seen;
  double squares = 0;
  double deviations = 0;
  uint64_t distinct = 0;
  for (uint64_t batch = 0; batch < batches; ++batch) {
    if (cancel_flag()) return cancel_status();
    for (uint64_t k = 0; k < global_batch; ++k) {
      const uint32_t number = class_of[reader.sample_at(batch * global_batch + k)];
      if (counts[number]++ == 0) seen.push_back(number);
    }
    distinct += seen.size();
    // Sum over classes of (count - mean)^2 = sum count^2 - 2 sum count mean + sum mean^2.
    squares += mean_squares;
    for (const uint32_t number : seen) {
      const auto count = static_cast<double>(counts[number]);
      deviations += count * (count - 2 * b * static_cast<double>(sizes[number]) / n);
      counts[number] = 0;
    }
    seen.clear();
  }
  const auto batch_count = static_cast<double>(batches);
  spread.variance = (squares + deviations) / batch_count / variance_shuffled;
  spread.classes_per_batch = static_cast<double>(distinct) / batch_count;
  return std::optional<ClassSpread>(spread);
}

Result<std::optional<std::vector<int64_t>>> sample_labels(const Pack& pack) {
  const uint16_t field = pack.schema().find("label");
  if (field == kNoField) return std::optional<std::vector<int64_t>>();
  const Field& found = pack.schema().fields[field];
  if (found.kind != FieldKind::kInt64 || found.length != 1) {
    return std::optional<std::vector<int64_t>>();
  }
  std::vector<int64_t> labels(pack.sample_count());
  SPK_TRY(pack.copy_ints(field, 0, labels.size(), labels.data(), nullptr));
  return std::optional<std::vector<int64_t>>(std::move(labels));
}

ClassMix class_mix_of(const OrderUnits& units, const std::vector<int64_t>& labels) {
  const uint64_t picked = std::min<uint64_t>(units.unit_count(), 512);
  std::vector<int64_t> some;
  std::vector<uint64_t> counts;
  for (uint64_t i = 0; i < picked; ++i) {
    const uint64_t unit = i * units.unit_count() / picked;
    counts.push_back(units.samples_of(unit));
    const auto begin = labels.begin() + static_cast<ptrdiff_t>(units.first_samples[unit]);
    some.insert(some.end(), begin, begin + static_cast<ptrdiff_t>(counts.back()));
  }
  return measure_class_mix(some, counts);
}

std::string sorted_storage_text(double estimate) {
  return str_cat("storage is sorted by class: expect a class variance up to ",
                 format_fixed(estimate, 1), " x that of a full shuffle",
                 estimate > 2 ? "; pack with --shuffle full, or use a random order" : "");
}

}  // namespace spk
