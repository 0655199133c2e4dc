// What a rank is given in one step. Bytes are not copied: they lie in the loader's buffers, or in
// the mapped shards, and stay there as long as the batch lives.
//
// Thread safety: immutable; may outlive its loader.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "loader/step_planner.h"

namespace spk {

class Batch {
 public:
  Batch(std::shared_ptr<const UnitContext> context, PlannedStep step, uint64_t sample_count)
      : context_(std::move(context)), step_(std::move(step)), sample_count_(sample_count) {
    ++context_->live_batches;
  }
  ~Batch() { --context_->live_batches; }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  size_t size() const noexcept { return step_.samples.size(); }
  uint64_t sample(size_t i) const noexcept { return step_.samples[i].sample; }
  // In the order of the epoch.
  uint64_t position(size_t i) const noexcept { return step_.samples[i].position % sample_count_; }
  // Given a second time, to fill the last batch.
  bool is_repeated(size_t i) const noexcept { return step_.samples[i].position >= sample_count_; }
  // Null data where the sample has no value. `field` counts within blob_fields().
  ByteSpan blob(size_t i, size_t field) const noexcept {
    const PlannedSample& at = step_.samples[i];
    return step_.units[at.unit]->blob(at.row, field);
  }
  // As ReadUnit::numbers().
  std::span<const uint64_t> numbers(size_t i, size_t field) const noexcept {
    const PlannedSample& at = step_.samples[i];
    return step_.units[at.unit]->numbers(at.row, field);
  }
  const std::vector<uint16_t>& blob_fields() const noexcept { return context_->blob_fields; }
  const std::vector<uint16_t>& numeric_fields() const noexcept { return context_->numeric_fields; }

 private:
  const std::shared_ptr<const UnitContext> context_;
  const PlannedStep step_;
  const uint64_t sample_count_;
};

}  // namespace spk
