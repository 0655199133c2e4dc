#include "loader/class_warning.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "layout/class_mix.h"

namespace spk {

namespace {

// What is looked at: evenly spaced groups of units that lie close to each other, so that few
// shards' parts of the index need be loaded.
constexpr uint64_t kGroups = 8;
constexpr uint64_t kUnitsOfGroup = 8;
constexpr uint64_t kMostStride = 4;       // from one unit of a group to the next
constexpr uint64_t kSamplesOfUnit = 128;  // the first ones
constexpr double kWorthTelling = 1.1;
constexpr double kTooMuch = 2;

}  // namespace

std::string class_warning(const Pack& pack, std::span<const uint64_t> first_samples,
                          const OrderSettings& order, uint64_t global_batch) {
  if (order.kind != OrderKind::kShuffled || first_samples.size() < 2) return {};
  // The most that it could be, which needs no look at the labels.
  if (class_variance_estimate(1, global_batch, order.lanes, order.window) < kWorthTelling) {
    return {};
  }
  const uint16_t field = pack.schema().find("label");
  if (field == kNoField || pack.schema().fields[field].kind != FieldKind::kInt64 ||
      pack.schema().fields[field].length != 1) {
    return {};
  }
  const uint64_t units = first_samples.size() - 1;
  const uint64_t groups = std::min(units, kGroups);
  std::vector<int64_t> labels;
  std::vector<uint64_t> counts;
  for (uint64_t i = 0; i < groups * kUnitsOfGroup; ++i) {
    const uint64_t group = i / kUnitsOfGroup;
    const uint64_t first = group * units / groups;
    const uint64_t next = (group + 1) * units / groups;
    const uint64_t stride = std::clamp<uint64_t>((next - first) / kUnitsOfGroup, 1, kMostStride);
    const uint64_t unit = first + i % kUnitsOfGroup * stride;
    if (unit >= next) continue;
    const uint64_t begin = first_samples[unit];
    counts.push_back(std::min(first_samples[unit + 1] - begin, kSamplesOfUnit));
    const size_t at = labels.size();
    labels.resize(at + counts.back());
    if (!pack.copy_ints(field, begin, counts.back(), labels.data() + at, nullptr).ok()) return {};
  }
  const ClassMix mix = measure_class_mix(labels, counts);
  if (!mix.is_sorted()) return {};
  const double estimate =
      class_variance_estimate(mix.correlation(), global_batch, order.lanes, order.window);
  if (estimate < kWorthTelling) return {};
  return str_cat("storage is sorted by class: expect a class variance up to ",
                 format_fixed(estimate, 1), " x that of a full shuffle",
                 estimate > kTooMuch ? "; pack with --shuffle full, or use a random order" : "");
}

}  // namespace spk
