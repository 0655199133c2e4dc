// How well a pack's storage mixes its classes, and what that means for the batches of a shuffled
// order, which reads whole units (docs/ORDER.md, section 10). Pure arithmetic.
#pragma once

#include <cstdint>
#include <span>

namespace spk {

struct ClassMix {
  double same_in_unit = 0;    // share of equal labels among pairs of samples of one unit
  double same_elsewhere = 0;  // ... among pairs of samples of different units

  // 0 where units are mixed as a full shuffle would mix them, 1 where each holds a single class.
  double correlation() const noexcept;
  bool is_sorted() const noexcept { return correlation() > 0.5; }
};

// `labels` are those of some units, one unit after the other; `unit_samples` how many each has. A
// few hundred units, evenly spaced over the pack, tell enough. REQUIRES that the numbers agree.
ClassMix measure_class_mix(std::span<const int64_t> labels, std::span<const uint64_t> unit_samples);

// Estimate of the variance of a class's number of samples in a batch, as a multiple of that in a
// batch of independent samples. An upper one: up to 30 % too high.
double class_variance_estimate(double correlation, uint64_t batch_samples, uint64_t lanes,
                               uint64_t window) noexcept;

}  // namespace spk
