// What a loader reads in one piece: a chunk, or a few samples that lie close together. Planned by
// one thread, loaded by another, then only looked at.
//
// Ownership: shared by the planner, the steps that deliver its samples, and their batches; its
// memory lives as long as any of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/result.h"
#include "container/pack.h"
#include "container/sample_rows.h"
#include "container/shard_files.h"
#include "io/read_engine.h"
#include "layout/geometry.h"
#include "loader/ring.h"
#include "loader/shared_chunks.h"

namespace spk {

// What all units of a loader share. All of it outlives them.
struct UnitContext {
  std::shared_ptr<const Pack> pack;
  std::unique_ptr<ShardFiles> files;
  std::shared_ptr<Ring> ring;
  std::vector<uint16_t> blob_fields;     // that are delivered
  std::vector<uint16_t> numeric_fields;  // likewise
  bool direct = false;
  bool check = true;
  // Chunks that other loaders of the node want, too; null where they are not shared.
  std::shared_ptr<SharedChunks> shared;
  // Tells apart what loaders compare with checksums: fields. 0: nothing.
  uint64_t check_key = 0;
  // What a unit takes in the ring at least: where most are whole chunks, parts of chunks take as
  // much, so that every buffer fits every unit and none is made anew.
  uint64_t slot_bytes = 0;
  // By chunk: whether it was brought into this process's page tables before. Null where files are
  // not mapped.
  std::unique_ptr<std::atomic<bool>[]> populated;
  mutable std::atomic<uint64_t> live_batches{0};
  mutable std::atomic<uint64_t> reads{0};  // of files; what is mapped is not read
  mutable std::atomic<uint64_t> read_bytes{0};
  mutable std::atomic<uint64_t> shared_reads{0};  // chunks read into shared memory
  mutable std::atomic<uint64_t> shared_hits{0};   // chunks that were there
};

// Where in the step planned last a unit stands. For the planner alone.
struct PlanMark {
  uint64_t step = 0;
  uint32_t place = 0;
};

class ReadUnit {
 public:
  static constexpr uint64_t kNoChunk = UINT64_MAX;
  // All of a chunk.
  static Result<std::shared_ptr<ReadUnit>> whole(std::shared_ptr<const UnitContext> context,
                                                 uint64_t chunk);
  // These samples (ascending, of one shard): one read from the first byte of theirs to the last.
  // CHUNK, where all are in one, is a hint.
  static Result<std::shared_ptr<ReadUnit>> gathered(std::shared_ptr<const UnitContext> context,
                                                    std::vector<uint64_t> samples,
                                                    uint64_t chunk = kNoChunk);
  ReadUnit(const ReadUnit&) = delete;
  ReadUnit& operator=(const ReadUnit&) = delete;

  // What it takes in the ring.
  uint64_t ring_bytes() const noexcept {
    return std::max(buffer_class_bytes(extent_.bytes), context_->slot_bytes);
  }
  uint64_t row_count() const noexcept { return row_count_; }
  uint64_t sample(uint64_t row) const noexcept {
    return samples_.empty() ? first_sample_ + row : samples_[row];
  }

  PlanMark& plan_mark() noexcept { return plan_mark_; }

  // For the pool: whether all that finish_load() does is done and seen by the caller.
  bool is_loaded() const noexcept { return loaded_.load(std::memory_order_acquire); }
  void set_loaded(bool loaded) noexcept { loaded_.store(loaded, std::memory_order_release); }

  // The memory that its bytes are read into, empty where they are mapped. Reserved in the ring
  // before that.
  void hold(RingShare share) noexcept { share_ = std::move(share); }

  // First half of loading: true where read_op() must be read before finish_load() is called with
  // how that went; false where there is nothing to read, and finish_load() takes an ok status.
  bool begin_load();
  // After begin_load(): whether finish_load() waits for another loader that reads the chunk. What
  // the calling thread has begun to load must be finished before, as others may wait for that.
  bool waits_for_other() const noexcept { return shared_.state() == SharedChunk::State::kBusy; }
  ReadOp read_op() const noexcept;
  // Parses, and compares checksums. An error of the file system or of memory is the unit's
  // (status()); damage is the samples' that it touches.
  void finish_load(Status read);
  const Status& status() const noexcept { return status_; }

  // ---- after load(), where status() is ok. `field` counts within context.blob_fields or
  // numeric_fields, whichever is meant.
  const Status& sample_status(uint64_t row) const noexcept;
  // Null data where the sample has no value.
  ByteSpan blob(uint64_t row, size_t field) const noexcept {
    return blobs_[row * context_->blob_fields.size() + field];
  }
  // Bit patterns as in StoredSample::numbers; empty where the sample has no value.
  std::span<const uint64_t> numbers(uint64_t row, size_t field) const noexcept {
    const size_t at = row * context_->numeric_fields.size() + field;
    return std::span(numbers_).subspan(number_ends_[at], number_ends_[at + 1] - number_ends_[at]);
  }

 private:
  explicit ReadUnit(std::shared_ptr<const UnitContext> context) : context_(std::move(context)) {}

  Status take_bytes();
  Status take_memory();
  bool shares() const noexcept;
  void take_shared(SharedChunk found);
  Status wait_and_take(Status& read);
  bool is_checked_already() const noexcept;
  void publish() noexcept;
  void populate() const noexcept;
  Status after_read(Status read);
  Status place_and_check(Status read);
  Status place_whole();
  Status place_gathered();
  Status place_by_index(uint64_t row);
  Status append_index_numbers(uint64_t row);
  Status read_one_by_one();
  Status read_sample(uint64_t row);
  Status check_sample(uint64_t row);
  void set_blob(uint64_t row, size_t field, ByteSpan bytes, uint64_t checksum) noexcept;
  void fail_sample(uint64_t row, Status status);

  const std::shared_ptr<const UnitContext> context_;
  uint32_t shard_ = 0;
  Extent extent_;  // in the shard's file
  bool is_whole_ = false;
  uint64_t chunk_number_ = kNoChunk;  // where it is one, or part of one
  ChunkLocation chunk_;               // where it is whole, or shared
  uint64_t first_sample_ = 0;
  uint64_t row_count_ = 0;
  std::vector<uint64_t> samples_;  // empty where they are consecutive

  PlanMark plan_mark_;
  std::atomic<bool> loaded_{false};

  RingShare share_;
  SharedChunk shared_;
  ShardFiles::Pin pin_;
  MutableByteSpan memory_;                     // that is read into; empty where none is
  uint64_t read_offset_ = 0;                   // of memory_ in the shard's file
  ByteSpan bytes_;                             // of extent_
  std::vector<std::vector<uint8_t>> rescued_;  // of samples that were read one by one
  std::vector<ByteSpan> blobs_;
  std::vector<uint64_t> checksums_;  // of blobs_
  std::vector<uint64_t> numbers_;
  std::vector<uint64_t> number_ends_;
  Status status_;
  std::vector<std::pair<uint64_t, Status>> failed_;  // by row, ascending; mostly empty
};

}  // namespace spk
