// The storage order of `--shuffle blocks`, for sources that are slow to read at random. Consecutive
// ordinals form runs of at least kRunBytes; the runs are permuted; then the samples of each
// kRunsMixed consecutive runs are permuted among themselves. A packer so reads whole runs in
// sequence, and holds few of them at once. The constants are part of the plan: they depend on
// nothing but the sizes, so that the order is the same on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layout/permutation.h"

namespace spk {

class BlockOrder {
 public:
  static constexpr uint64_t kRunBytes = uint64_t{16} << 20;
  static constexpr uint64_t kRunsMixed = 16;

  // First step: the size of each sample, in ordinal order.
  void add(uint64_t size_bytes);
  // Second step. Takes 24 bytes a run.
  void finish(uint64_t seed, uint64_t stream);

  uint64_t sample_count() const noexcept { return samples_; }
  uint64_t run_count() const noexcept { return starts_.size(); }

  // Third step: positions of consecutive ordinals, from 0 on. Several may be used at once.
  class Cursor {
   public:
    // REQUIRES finish(); the order outlives the cursor.
    explicit Cursor(const BlockOrder& order) noexcept : order_(order) {}
    // REQUIRES fewer than sample_count() calls before.
    uint64_t next() noexcept;

   private:
    const BlockOrder& order_;
    uint64_t ordinal_ = 0;
    uint64_t run_ = 0;
    uint64_t group_ = UINT64_MAX;
    std::optional<KeyedPermutation> mix_;
  };

 private:
  uint64_t run_samples(uint64_t run) const noexcept;

  uint64_t seed_ = 0;
  uint64_t stream_ = 0;
  uint64_t samples_ = 0;
  uint64_t open_run_bytes_ = kRunBytes;  // full: the first sample starts a run
  std::vector<uint64_t> starts_;         // first ordinal of each run
  std::vector<uint64_t> places_;         // where each run stands after the permutation
  std::vector<uint64_t> offsets_;        // samples before each run, by place
};

}  // namespace spk
