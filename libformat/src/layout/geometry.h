// Where things go: the only place that rounds, pads or divides. Pure arithmetic, no I/O.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "base/result.h"

namespace spk {

// Bounds the memory that a shard's part of the index takes while the shard is built.
inline constexpr uint64_t kMaxSamplesPerShard = uint64_t{1} << 19;

// What is asked for; 0 means "choose from the data".
struct GeometryRequest {
  uint64_t sample_count = 0;
  uint64_t total_bytes = 0;  // payload bytes of all samples, as listed
  uint64_t chunk_bytes = 0;
  uint64_t shard_bytes = 0;
  uint64_t shard_count = 0;
  // Only where neither shard_bytes nor shard_count is given; 0: not known.
  uint64_t target_count = 0;  // storage targets that are all to work
  uint64_t rank_count = 0;    // readers that shards are to be divided among
};

struct Geometry {
  uint32_t chunk_bytes = 0;  // a power of two, kMinChunkBytes .. kMaxChunkBytes
  uint32_t shard_count = 1;
  uint32_t blob_align_bytes = 64;  // 64, or 8 where the mean sample is below 1 KiB
};

// Defaults: chunk 4 MiB; doubled while it holds fewer than 16 mean samples, up to 16 MiB; halved
// while the set has fewer than 256 chunks, but not below 16 mean samples nor 256 KiB. Shards of
// 1 GiB and at most kMaxSamplesPerShard samples, at most 960 of them. For so many targets, two
// shards for each, where they are of 256 MiB and more; for so many ranks, a multiple of them, under
// the same condition. Never more shards than samples, except that there is always one.
// kInvalidArgument names the option (--chunk-size,
// --shard-size, --shards) that cannot be met.
Result<Geometry> resolve_geometry(const GeometryRequest& request);

// The smallest range of whole pages of kDirectAlignBytes around [offset, offset + bytes): what
// reads that pass by the page cache must ask for. All of it lies within a shard, whose parts begin
// and end at such pages.
inline constexpr uint64_t kDirectAlignBytes = 4096;
struct Extent {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
constexpr Extent align_outward(uint64_t offset, uint64_t bytes) noexcept {
  const uint64_t begin = offset / kDirectAlignBytes * kDirectAlignBytes;
  return {begin, divide_up(offset + bytes - begin, kDirectAlignBytes) * kDirectAlignBytes};
}

// Buffers are made in few sizes, so that one fits where another was: rounded up to pages and by
// less than an eighth.
constexpr uint64_t buffer_class_bytes(uint64_t bytes) noexcept {
  uint64_t step = kDirectAlignBytes;
  while (step < bytes / 8) step *= 2;
  return divide_up(bytes, step) * step;
}

struct PositionRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const noexcept { return end - begin; }
};
// Shard s of K holds positions floor(s N / K) .. floor((s + 1) N / K) - 1.
PositionRange shard_positions(uint64_t sample_count, uint32_t shard_count, uint32_t shard) noexcept;

}  // namespace spk
