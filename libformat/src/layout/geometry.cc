#include "layout/geometry.h"

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "format/constants.h"

namespace spk {

namespace {

constexpr uint64_t kDefaultChunkBytes = uint64_t{4} << 20;
constexpr uint64_t kLargestDefaultChunkBytes = uint64_t{16} << 20;
constexpr uint64_t kSmallestDefaultChunkBytes = uint64_t{256} << 10;
constexpr uint64_t kMeanSamplesPerChunk = 16;
constexpr uint64_t kWantedChunks = 256;
constexpr uint64_t kDefaultShardBytes = uint64_t{1} << 30;
constexpr uint64_t kMostDefaultShards = 960;
constexpr uint64_t kLeastDividedShardBytes = uint64_t{256} << 20;
constexpr uint64_t kShardsPerTarget = 2;
constexpr uint64_t kTinySampleBytes = 1024;
constexpr uint32_t kBlobAlignBytes = 64;
constexpr uint32_t kTinyBlobAlignBytes = 8;

uint64_t default_chunk_bytes(uint64_t mean_bytes, uint64_t total_bytes) {
  uint64_t chunk = kDefaultChunkBytes;
  while (chunk < kLargestDefaultChunkBytes && chunk < kMeanSamplesPerChunk * mean_bytes) chunk *= 2;
  while (chunk > kSmallestDefaultChunkBytes && total_bytes / chunk < kWantedChunks &&
         chunk / 2 >= kMeanSamplesPerChunk * mean_bytes) {
    chunk /= 2;
  }
  return chunk;
}

// More shards, for targets and ranks, as long as none gets too small for its own open.
uint64_t divide_among(const GeometryRequest& request, uint64_t shards) {
  const uint64_t most =
      std::min<uint64_t>(request.total_bytes / kLeastDividedShardBytes, kMaxShards);
  if (request.target_count != 0) {
    shards = std::max(shards, std::min(kShardsPerTarget * request.target_count, most));
  }
  if (request.rank_count != 0) {
    const uint64_t even = round_up(shards, request.rank_count);
    if (even <= most) shards = even;
  }
  return shards;
}

}  // namespace

Result<Geometry> resolve_geometry(const GeometryRequest& request) {
  const uint64_t samples = std::max<uint64_t>(request.sample_count, 1);
  const uint64_t mean_bytes = request.total_bytes / samples;
  Geometry geometry;

  uint64_t chunk = request.chunk_bytes;
  if (chunk == 0) chunk = default_chunk_bytes(mean_bytes, request.total_bytes);
  if (!std::has_single_bit(chunk) || chunk < kMinChunkBytes || chunk > kMaxChunkBytes) {
    return invalid_argument(str_cat("--chunk-size ", format_size(chunk),
                                    " is not a power of two from ", format_size(kMinChunkBytes),
                                    " to ", format_size(kMaxChunkBytes)));
  }
  geometry.chunk_bytes = static_cast<uint32_t>(chunk);
  geometry.blob_align_bytes = mean_bytes < kTinySampleBytes ? kTinyBlobAlignBytes : kBlobAlignBytes;

  if (request.shard_bytes != 0 && request.shard_bytes < chunk) {
    return invalid_argument(str_cat("--shard-size ", format_size(request.shard_bytes),
                                    " is smaller than a chunk (", format_size(chunk),
                                    "); choose a larger one or a smaller --chunk-size"));
  }
  if (request.shard_count > kMaxShards) {
    return invalid_argument(
        str_cat("--shards ", request.shard_count, " is more than ", kMaxShards));
  }
  uint64_t shards = request.shard_count;
  if (shards == 0) {
    const uint64_t shard_bytes =
        request.shard_bytes != 0 ? request.shard_bytes : kDefaultShardBytes;
    shards = std::max(divide_up(request.total_bytes, shard_bytes),
                      divide_up(samples, kMaxSamplesPerShard));
    const uint64_t most = request.shard_bytes != 0 ? kMaxShards : kMostDefaultShards;
    shards = std::clamp<uint64_t>(shards, 1, most);
    if (request.shard_bytes == 0) shards = divide_among(request, shards);
  }
  geometry.shard_count = static_cast<uint32_t>(std::min(shards, samples));
  return geometry;
}

PositionRange shard_positions(uint64_t sample_count, uint32_t shard_count,
                              uint32_t shard) noexcept {
  // floor(s N / K) without overflow: N = q K + r gives s q + floor(s r / K).
  const uint64_t quotient = sample_count / shard_count;
  const uint64_t rest = sample_count % shard_count;
  const auto start = [&](uint64_t s) { return s * quotient + s * rest / shard_count; };
  return {start(shard), start(uint64_t{shard} + 1)};
}

}  // namespace spk
