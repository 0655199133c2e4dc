// Whether a shuffled order of a pack deserves a warning, because its storage is sorted by class.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "container/pack.h"
#include "layout/order.h"

namespace spk {

// What to tell people, with the estimate of docs/ORDER.md, section 10; empty where there is nothing
// to tell: the order is of another kind, the pack has no field "label" of one integer, its storage
// is mixed, or lanes and windows are so many that batches are all the same. Looks at the labels of
// a few units only. Labels that cannot be read are no error here.
// FIRST_SAMPLES: of all units, and the number of samples behind them. GLOBAL_BATCH: samples of a
// step, of all ranks.
std::string class_warning(const Pack& pack, std::span<const uint64_t> first_samples,
                          const OrderSettings& order, uint64_t global_batch);

}  // namespace spk
