#include "layout/class_mix.h"

#include <algorithm>
#include <unordered_map>

namespace spk {

namespace {

double ordered_pairs(double count) { return count * (count - 1); }

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

double ClassMix::correlation() const noexcept {
  return same_elsewhere < 1 ? (same_in_unit - same_elsewhere) / (1 - same_elsewhere) : 0;
}

ClassMix measure_class_mix(std::span<const int64_t> labels,
                           std::span<const uint64_t> unit_samples) {
  std::unordered_map<int64_t, uint64_t> all;
  std::unordered_map<int64_t, uint64_t> in_unit;
  double pairs_in_units = 0;
  double same_in_units = 0;
  size_t at = 0;
  for (const uint64_t count : unit_samples) {
    in_unit.clear();
    for (const int64_t label : labels.subspan(at, count)) ++in_unit[label];
    at += count;
    pairs_in_units += ordered_pairs(static_cast<double>(count));
    for (const auto& [label, times] : in_unit) {
      same_in_units += ordered_pairs(static_cast<double>(times));
      all[label] += times;
    }
  }
  double same = 0;
  for (const auto& [label, times] : all) same += ordered_pairs(static_cast<double>(times));
  const double pairs = ordered_pairs(static_cast<double>(labels.size()));
  return {share(same_in_units, pairs_in_units),
          share(same - same_in_units, pairs - pairs_in_units)};
}

double class_variance_estimate(double correlation, uint64_t batch_samples, uint64_t lanes,
                               uint64_t window) noexcept {
  const double others = static_cast<double>(std::max<uint64_t>(batch_samples, 1) - 1);
  return 1 + std::max(correlation, 0.0) * others / static_cast<double>(lanes * window);
}

}  // namespace spk
