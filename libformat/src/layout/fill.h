// Which samples share a chunk, and where in it they lie. Works on sizes alone, never on payloads,
// so that the outcome depends on nothing but the samples themselves. docs/FORMAT.md, "Chunks".
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "format/sample.h"
#include "format/schema.h"
#include "layout/geometry.h"

namespace spk {

// Exact size of a chunk that holds the samples added so far.
class ChunkSizer {
 public:
  ChunkSizer(const Schema& schema, uint32_t blob_align_bytes);
  // Size with one more sample; does not add it.
  uint64_t bytes_with(const StoredSample& sample) const;
  void add(const StoredSample& sample);
  void clear();
  uint64_t table_bytes() const { return table_bytes(state_); }
  uint64_t payload_offset() const;
  uint64_t used_bytes() const { return payload_offset() + state_.payload_bytes; }
  bool is_blob(size_t field) const { return shapes_[field].kind == FieldKind::kBlob; }

 private:
  struct FieldState {
    bool any_absent = false;
    uint64_t bytes_max = 0;
    int64_t min = 0, max = 0;
    uint64_t numbers = 0;
  };
  struct State {
    uint64_t rows = 0, key_bytes = 0, ordinal_max = 0;
    uint64_t blob_bytes = 0;     // of all blobs
    uint64_t payload_bytes = 0;  // the same with the padding between them
    uint8_t flags_max = 0;
    std::vector<FieldState> fields;
  };
  void extend(State& state, const StoredSample& sample) const;
  uint64_t table_bytes(const State& state) const;
  uint64_t payload_offset(const State& state) const;

  struct FieldShape {
    FieldKind kind;
    uint32_t length;
  };
  std::vector<FieldShape> shapes_;
  uint32_t blob_align_bytes_;
  State state_;
  mutable State trial_;  // scratch, kept to spare an allocation a candidate
};

// A chunk whose members are settled. `items` are the caller's numbers for them; the samples' blob
// offsets are set, relative to the chunk's start.
struct FilledChunk {
  std::vector<uint64_t> items;
  std::vector<StoredSample> samples;
  uint32_t slot = 0;  // where it starts, in slots
  uint32_t span_slots = 1;
  uint64_t first_sample = 0;
  uint64_t table_bytes = 0;
  uint64_t payload_offset = 0;
  uint64_t used_bytes = 0;
};

// Deals a shard's accepted samples, pushed in order, to chunks. With look-ahead a chunk takes,
// again and again, the first of the 64 earliest unplaced samples that still fits, and is closed
// when none does; a new chunk always starts with the earliest, so nothing waits for ever. Without
// look-ahead (an order that must be kept) the window is one sample wide. A sample that does not fit
// into an empty chunk gets a run of slots to itself.
class ChunkFiller {
 public:
  static constexpr size_t kLookAhead = 64;

  ChunkFiller(const Schema& schema, const Geometry& geometry, bool look_ahead);
  // True while next() cannot decide without another sample or finish().
  bool wants_more() const { return !finished_ && window_.size() < window_limit_; }
  // REQUIRES wants_more().
  void push(uint64_t item, StoredSample sample);
  void finish() { finished_ = true; }
  // The next chunk, or nothing where more samples are wanted or all are placed.
  std::optional<FilledChunk> next();

 private:
  struct Candidate {
    uint64_t item;
    StoredSample sample;
  };
  FilledChunk close();
  void place(size_t window_index);

  uint64_t chunk_bytes_;
  uint32_t blob_align_bytes_;
  size_t window_limit_;
  bool finished_ = false;
  std::deque<Candidate> window_;
  ChunkSizer sizer_;
  FilledChunk open_;
  uint32_t next_slot_ = 0;
  uint64_t next_sample_ = 0;
};

// Bytes of the shard's data: all slots, but the last chunk ends at the next kFooterAlignBytes.
uint64_t shard_data_bytes(uint64_t last_chunk_start, uint64_t last_chunk_used_bytes) noexcept;

}  // namespace spk
