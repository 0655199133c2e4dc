// Measures how well an order shuffles, against a full shuffle of all samples (docs/ORDER.md,
// section 10). For `stripepack order --quality` and `stripepack bench`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "container/pack.h"
#include "layout/class_mix.h"
#include "layout/order.h"

namespace spk {

// Of the pairs of samples that are in one global batch, the share that is in one global batch again
// in the next epoch, as a multiple of what a full shuffle gives. Looks at whole batches, evenly
// spaced, of about `most_samples` samples; memory follows that number, time the whole epoch.
// Nothing where no pair could meet again: fewer than two batches, or batches of one sample.
Result<std::optional<double>> pairs_again(const OrderUnits& units, const OrderSettings& settings,
                                          uint64_t global_batch,
                                          uint64_t most_samples = uint64_t{1} << 22);

struct ClassSpread {
  // Variance of a class's samples in a batch, summed over classes, as a multiple of what a full
  // shuffle gives. 1 is best.
  double variance = 1;
  double classes_per_batch = 0;
  double classes_per_batch_shuffled = 0;  // what a full shuffle gives
};
// `labels[i]` is the class of sample i. Nothing where there is a single class or batch.
Result<std::optional<ClassSpread>> class_spread(const OrderUnits& units,
                                                const OrderSettings& settings,
                                                uint64_t global_batch,
                                                const std::vector<int64_t>& labels);

// The label of each sample: the field `label`, where it is one whole number a sample. Nothing where
// the pack has no such field.
Result<std::optional<std::vector<int64_t>>> sample_labels(const Pack& pack);

// Of up to 512 units, evenly spaced. `labels` are those of all samples.
ClassMix class_mix_of(const OrderUnits& units, const std::vector<int64_t>& labels);

// What to say of a shuffled order over storage that is sorted by class; `estimate` as from
// class_variance_estimate().
std::string sorted_storage_text(double estimate);

}  // namespace spk
