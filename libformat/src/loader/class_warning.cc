#include "loader/class_warning.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "layout/class_mix.h"

namespace spk {

namespace {

constexpr uint64_t kUnits = 64;           // that are looked at, evenly spaced
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
  const uint64_t picked = std::min(units, kUnits);
  std::vector<int64_t> labels;
  std::vector<uint64_t> counts;
  for (uint64_t i = 0; i < picked; ++i) {
    const uint64_t unit = i * units / picked;
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
