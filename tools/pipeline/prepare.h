// From an entry of the plan to a sample that is ready to be placed: opened, read, checked, hashed.
// Samples are prepared in groups, so that small ones share a buffer and a visit to the CPU arena.
#pragma once

#include <tbb/task_arena.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "format/sample.h"
#include "image/byte_view.h"
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

struct PreparedSample {
  SampleEntry entry;
  StoredSample stored;  // complete but for blob offsets
  std::string reject;   // not empty: why it cannot be packed
  std::vector<std::string> warnings;
  ByteSpan payload;        // within the group's buffer; empty where it was not kept in memory
  bool in_memory = false;  // payload holds all blobs, one behind the other
  bool kept = false;       // stored by an earlier run; nothing was read
};

// One unit of reading. Filled by the shard builder, worked on by one pool thread, then handed back.
struct SampleGroup {
  std::vector<PreparedSample> samples;
  uint64_t bytes = 0;  // that samples to be read take in the buffer
  std::shared_ptr<GroupBuffer> buffer;
  Status status;          // of the machine or the source as a whole; rejects are not errors
  bool streamed = false;  // one of the samples is read piece by piece
  bool done = false;
};

class Preparer {
 public:
  Preparer(const Source& source, const PackSchema& schema, const PackOptions& options,
           tbb::task_arena& arena, BufferPool& pool, uint64_t in_memory_limit_bytes,
           std::function<bool()> stopping)
      : source_(source),
        schema_(schema),
        options_(options),
        arena_(arena),
        pool_(pool),
        in_memory_limit_bytes_(in_memory_limit_bytes),
        stopping_(std::move(stopping)) {}

  // True where the sample is read into memory whole; larger ones are read piece by piece.
  bool fits_memory(const SampleEntry& entry) const {
    return entry.size_bytes <= in_memory_limit_bytes_;
  }
  // Bytes that the sample takes in a group's buffer.
  static uint64_t buffer_bytes(const SampleEntry& entry);
  // Reads on the calling thread, checks in the arena. Thread-safe for different groups. kCancelled
  // where `stopping` became true in the middle of a large sample.
  void prepare(SampleGroup& group) const;
  const Source& source() const { return source_; }
  const PackSchema& schema() const { return schema_; }

 private:
  Status read_group(SampleGroup& group) const;
  Status check(PreparedSample& sample) const;
  Status prepare_streamed(PreparedSample& sample) const;
  Status take_blob(PreparedSample& sample, size_t blob, ByteView& view, uint64_t checksum) const;
  Status look_at_blob(PreparedSample& sample, size_t blob, ByteView& view) const;
  void fill_numbers(PreparedSample& sample) const;
  const Source& source_;
  const PackSchema& schema_;
  const PackOptions& options_;
  tbb::task_arena& arena_;
  BufferPool& pool_;
  uint64_t in_memory_limit_bytes_;
  std::function<bool()> stopping_;
};

}  // namespace spk
