// What the commands that look at an epoch's order share: a pack's units, files of numbers, and the
// sample at each position.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "container/pack.h"
#include "layout/order.h"

namespace spk {

// As OrderUnits::first_samples.
Result<std::vector<uint64_t>> first_samples_of(const Pack& pack);

// The same from the samples of each unit. kInvalidArgument where their sum is beyond 2^62.
Result<std::vector<uint64_t>> first_samples_of(const std::vector<uint64_t>& unit_samples);

// Whole numbers, one a line; lines that are empty are passed over. kInvalidArgument names the line
// that is none, or not within [least, most].
Result<std::vector<uint64_t>> read_numbers(const std::string& path, uint64_t least, uint64_t most);

// The samples of an order by position. Keeps the open window of each lane that is asked for; made
// for positions that mostly ascend. The order must outlive it.
class PositionReader {
 public:
  explicit PositionReader(EpochOrder& order);
  // REQUIRES position < order.sample_count().
  uint64_t sample_at(uint64_t position);

 private:
  struct OpenWindow {
    uint64_t first_row = 0;
    std::vector<uint64_t> samples;  // empty: none is open
  };
  EpochOrder& order_;
  std::vector<OpenWindow> open_;  // by lane
};

}  // namespace spk
