// From an entry of the plan to a sample that is ready to be placed: opened, read, checked, hashed.
// Samples are prepared in groups, so that small ones share a buffer and a visit to the CPU arena.
#pragma once

#include <tbb/task_arena.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "format/sample.h"
#include "image/byte_view.h"
#include "image/transform.h"
#include "pipeline/pack_schema.h"
#include "sources/source.h"

namespace spk {

// Buffers for groups. Freed ones are kept for the next, up to a limit, because fresh memory costs
// about as much as the copy into it. Thread-safe.
class BufferPool {
 public:
  BufferPool(uint64_t buffer_bytes, size_t kept) : buffer_bytes_(buffer_bytes), kept_(kept) {}
  uint64_t buffer_bytes() const { return buffer_bytes_; }
  Result<AlignedBuffer> take(uint64_t bytes);
  void give_back(AlignedBuffer buffer);

 private:
  const uint64_t buffer_bytes_;
  const size_t kept_;
  std::mutex mutex_;
  std::vector<AlignedBuffer> free_;
};

// The memory that a group's payloads lie in; goes back to the pool with the last sample.
class GroupBuffer {
 public:
  GroupBuffer(BufferPool& pool, AlignedBuffer buffer) : pool_(pool), buffer_(std::move(buffer)) {}
  ~GroupBuffer() { pool_.give_back(std::move(buffer_)); }
  GroupBuffer(const GroupBuffer&) = delete;
  GroupBuffer& operator=(const GroupBuffer&) = delete;
  MutableByteSpan span() { return buffer_.span(); }

 private:
  BufferPool& pool_;
  AlignedBuffer buffer_;
};

// Payloads that transforms made and that wait for their chunk. What exceeds the limit is not kept
// but made again.
class MadeBudget {
 public:
  explicit MadeBudget(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  bool take(uint64_t bytes) {
    if (taken_bytes_.fetch_add(bytes) + bytes <= limit_bytes_) return true;
    taken_bytes_ -= bytes;
    return false;
  }
  void give_back(uint64_t bytes) { taken_bytes_ -= bytes; }

 private:
  const uint64_t limit_bytes_;
  std::atomic<uint64_t> taken_bytes_{0};
};

class MadeBytes {
 public:
  // What BYTES takes was taken from the budget.
  MadeBytes(MadeBudget& budget, std::vector<uint8_t> bytes)
      : budget_(budget), bytes_(std::move(bytes)) {}
  ~MadeBytes() { budget_.give_back(bytes_.size()); }
  MadeBytes(const MadeBytes&) = delete;
  MadeBytes& operator=(const MadeBytes&) = delete;
  ByteSpan span() const { return bytes_; }

 private:
  MadeBudget& budget_;
  const std::vector<uint8_t> bytes_;
};

struct PreparedSample {
  SampleEntry entry;
  StoredSample stored;  // complete but for blob offsets
  std::string reject;   // not empty: why it cannot be packed
  std::vector<std::string> warnings;
  ByteSpan payload;  // in the group's buffer or `made`; empty where it was not kept in memory
  bool transformed = false;               // the payload is not the source's
  std::shared_ptr<const MadeBytes> made;  // where it was kept in memory
  bool in_memory = false;                 // payload holds all blobs, one behind the other
  bool kept = false;                      // stored by an earlier run; nothing was read
};

// One unit of reading. Filled by the shard builder, worked on by one pool thread, then handed back.
struct SampleGroup {
  std::vector<PreparedSample> samples;
  uint64_t bytes = 0;       // that samples to be read take in the buffer
  uint64_t made_bytes = 0;  // about what transforms make of them
  std::shared_ptr<GroupBuffer> buffer;
  Status status;          // of the machine or the source as a whole; rejects are not errors
  bool streamed = false;  // one of the samples is read piece by piece
  bool done = false;
};

class Preparer {
 public:
  Preparer(const Source& source, const PackSchema& schema, const PackOptions& options,
           tbb::task_arena& arena, BufferPool& pool, uint64_t in_memory_limit_bytes,
           uint64_t made_limit_bytes, std::function<bool()> stopping);

  // True where the sample is read into memory whole; larger ones are read piece by piece.
  bool fits_memory(const SampleEntry& entry) const {
    return entry.size_bytes <= in_memory_limit_bytes_;
  }
  // Bytes that the sample takes in a group's buffer.
  static uint64_t buffer_bytes(const SampleEntry& entry);
  // Reads on the calling thread, checks in the arena. Thread-safe for different groups. kCancelled
  // where `stopping` became true in the middle of a large sample.
  void prepare(SampleGroup& group) const;
  // About what the samples' payloads become beside those bytes; 0 without transforms.
  uint64_t made_bytes(uint64_t bytes) const {
    return options_.transform.on() ? estimated_bytes(options_.transform, bytes) : 0;
  }
  // The payload of a sample that was transformed and not kept: the same bytes as before, or
  // kMismatch. Reads on the calling thread, works in the arena.
  Result<std::vector<uint8_t>> make_again(const SampleEntry& entry, uint64_t bytes) const;
  const Source& source() const { return source_; }
  const PackSchema& schema() const { return schema_; }

 private:
  Status read_group(SampleGroup& group) const;
  Status check(PreparedSample& sample) const;
  Status prepare_streamed(PreparedSample& sample) const;
  Status take_blob(PreparedSample& sample, size_t blob, ByteView& view, uint64_t checksum) const;
  Status look_at_blob(PreparedSample& sample, size_t blob, ByteView& view) const;
  void fill_numbers(PreparedSample& sample) const;
  BlobContent input_content(const SampleEntry& entry, size_t blob) const;
  Result<std::vector<uint8_t>> read_whole(const SampleEntry& entry, SampleHandle& handle) const;
  Status prepare_whole(PreparedSample& sample, SampleHandle& handle) const;
  // What transforms make of a sample: `blobs` has those that change.
  struct Remade {
    Transformed picture;  // but for its bytes
    std::map<size_t, std::vector<uint8_t>> blobs;
    std::string reject;
  };
  Result<Remade> remake(const SampleEntry& entry, ByteSpan payload) const;
  Status remake_masks(const SampleEntry& entry, ByteSpan payload, Remade* remade) const;
  static std::vector<uint8_t> with_blobs(const SampleEntry& entry, ByteSpan payload,
                                         size_t blob_count, const Remade& remade);
  Status transform(PreparedSample& sample) const;
  const Source& source_;
  const PackSchema& schema_;
  const PackOptions& options_;
  tbb::task_arena& arena_;
  BufferPool& pool_;
  uint64_t in_memory_limit_bytes_;
  std::function<bool()> stopping_;
  std::unique_ptr<const Transformer> transformer_;  // null: nothing is transformed
  size_t picture_blob_ = 0;                         // which it is that is transformed
  std::vector<size_t> mask_blobs_;                  // which go where the picture goes
  mutable MadeBudget made_budget_;
  mutable std::mutex whole_mutex_;  // held while a large sample is in memory as a whole
};

}  // namespace spk
