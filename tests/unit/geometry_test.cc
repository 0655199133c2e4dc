#include "layout/geometry.h"

#include <gtest/gtest.h>

#include "format/constants.h"

namespace spk {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;

Geometry resolve(GeometryRequest request) { return resolve_geometry(request).value(); }

TEST(Geometry, ImageNetGetsTheDefaults) {
  const Geometry geometry =
      resolve({.sample_count = 1281167, .total_bytes = uint64_t{1281167} * 110000});
  EXPECT_EQ(geometry.chunk_bytes, 4 * kMiB);
  EXPECT_EQ(geometry.shard_count, 132u);  // 140.9 GB in shards of 1 GiB
  EXPECT_EQ(geometry.blob_align_bytes, 64u);
}

TEST(Geometry, ChunksGrowForLargeSamples) {
  const auto chunk = [](uint64_t mean) {
    return resolve({.sample_count = 1000000, .total_bytes = 1000000 * mean}).chunk_bytes;
  };
  EXPECT_EQ(chunk(256 * kKiB), 4 * kMiB);  // exactly 16 in a chunk
  EXPECT_EQ(chunk(256 * kKiB + 1), 8 * kMiB);
  EXPECT_EQ(chunk(512 * kKiB + 1), 16 * kMiB);
  EXPECT_EQ(chunk(100 * kMiB), 16 * kMiB);
}

TEST(Geometry, ChunksShrinkForSmallSets) {
  const auto chunk = [](uint64_t count, uint64_t mean) {
    return resolve({.sample_count = count, .total_bytes = count * mean}).chunk_bytes;
  };
  EXPECT_EQ(chunk(256, 4 * kMiB), 16 * kMiB);
  EXPECT_EQ(chunk(16384, 64 * kKiB), 4 * kMiB);  // 256 chunks
  EXPECT_EQ(chunk(16383, 64 * kKiB), 2 * kMiB);
  EXPECT_EQ(chunk(100, 100 * kKiB), 2 * kMiB);  // one more halving would hold fewer than 16
  EXPECT_EQ(chunk(50000, 3000), 512 * kKiB);
  EXPECT_EQ(chunk(10, 10), 256 * kKiB);
}

TEST(Geometry, TinySamplesAreAlignedToEight) {
  EXPECT_EQ(resolve({.sample_count = 10, .total_bytes = 10 * 1023}).blob_align_bytes, 8u);
  EXPECT_EQ(resolve({.sample_count = 10, .total_bytes = 10 * 1024}).blob_align_bytes, 64u);
  EXPECT_EQ(resolve({.sample_count = 0, .total_bytes = 0}).blob_align_bytes, 8u);
}

TEST(Geometry, ShardsAreNeverMoreThanSamples) {
  EXPECT_EQ(resolve({.sample_count = 0}).shard_count, 1u);
  EXPECT_EQ(resolve({.sample_count = 1, .total_bytes = 5 * kGiB}).shard_count, 1u);
  EXPECT_EQ(resolve({.sample_count = 3, .total_bytes = 30, .shard_count = 8}).shard_count, 3u);
  EXPECT_EQ(resolve({.sample_count = 30, .total_bytes = 30, .shard_count = 8}).shard_count, 8u);
}

TEST(Geometry, ShardsAreAtMost960UnlessAskedFor) {
  const GeometryRequest huge = {.sample_count = 100000000, .total_bytes = 10000 * kGiB};
  EXPECT_EQ(resolve(huge).shard_count, 960u);
  GeometryRequest asked = huge;
  asked.shard_bytes = kGiB;
  EXPECT_EQ(resolve(asked).shard_count, 10000u);
  asked.shard_count = 2000;
  EXPECT_EQ(resolve(asked).shard_count, 2000u);
}

TEST(Geometry, ShardsHoldABoundedNumberOfSamples) {
  // 600 million tiny samples: bytes alone would ask for few shards.
  EXPECT_EQ(resolve({.sample_count = 10000000, .total_bytes = 40000000}).shard_count, 20u);
}

TEST(Geometry, AskedForChunksAreTakenOrRefused) {
  for (uint64_t chunk = kMinChunkBytes; chunk <= kMaxChunkBytes; chunk *= 2) {
    EXPECT_EQ(resolve({.sample_count = 1, .total_bytes = 1, .chunk_bytes = chunk}).chunk_bytes,
              chunk);
  }
  for (const uint64_t chunk :
       {uint64_t{1}, 32 * kKiB, 65537 * uint64_t{1}, 3 * kMiB, 128 * kMiB, uint64_t{1} << 40}) {
    const Status status = resolve_geometry({.sample_count = 1, .chunk_bytes = chunk}).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << chunk;
    EXPECT_NE(status.message().find("--chunk-size"), std::string::npos);
  }
  EXPECT_EQ(resolve_geometry({.sample_count = 1, .chunk_bytes = 3 * kMiB}).status().message(),
            "--chunk-size 3 MiB is not a power of two from 64 KiB to 64 MiB");
}

TEST(Geometry, ShardSizeBelowAChunkIsRefused) {
  const Status status =
      resolve_geometry({.sample_count = 9, .chunk_bytes = 4 * kMiB, .shard_bytes = kMiB}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("--shard-size 1 MiB is smaller than a chunk (4 MiB)"),
            std::string::npos);
  EXPECT_EQ(resolve_geometry({.sample_count = 9, .shard_count = kMaxShards + uint64_t{1}})
                .status()
                .code(),
            Code::kInvalidArgument);
}

TEST(Geometry, PositionsAreDealtEvenlyAndCompletely) {
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{1000003},
                               uint64_t{600000000}, UINT64_MAX / 2}) {
    for (const uint32_t shards : {1u, 2u, 3u, 7u, 960u, kMaxShards, UINT32_MAX}) {
      uint64_t end = 0;
      const uint32_t step = shards > 1000 ? shards / 997 : 1;
      for (uint64_t at = 0; at < shards; at += step) {
        const auto shard = static_cast<uint32_t>(at);
        const PositionRange range = shard_positions(count, shards, shard);
        ASSERT_TRUE(step > 1 || range.begin == end);
        end = range.end;
        ASSERT_GE(range.size(), count / shards);
        ASSERT_LE(range.size(), count / shards + 1);
      }
      ASSERT_EQ(shard_positions(count, shards, 0).begin, 0u);
      ASSERT_EQ(shard_positions(count, shards, shards - 1).end, count);
    }
  }
  EXPECT_EQ(shard_positions(10, 4, 1).begin, 2u);  // floor(10 / 4)
  EXPECT_EQ(shard_positions(10, 4, 1).end, 5u);
}

TEST(Geometry, TargetsAndRanksGetTheirShards) {
  const GeometryRequest base = {.sample_count = 1000000, .total_bytes = 100 * kGiB};
  EXPECT_EQ(resolve(base).shard_count, 100u);
  const auto with = [&](uint64_t targets, uint64_t ranks) {
    GeometryRequest request = base;
    request.target_count = targets;
    request.rank_count = ranks;
    return resolve(request).shard_count;
  };
  EXPECT_EQ(with(40, 0), 100u);  // two for each already
  EXPECT_EQ(with(56, 0), 112u);
  EXPECT_EQ(with(248, 0), 400u);  // of 256 MiB
  EXPECT_EQ(with(0, 64), 128u);
  EXPECT_EQ(with(56, 64), 128u);
  EXPECT_EQ(with(0, 401), 100u);  // too many: units are dealt instead of shards
  // Beyond 960 only for targets.
  GeometryRequest huge = {.sample_count = 100000000, .total_bytes = 10000 * kGiB};
  EXPECT_EQ(resolve(huge).shard_count, 960u);
  huge.target_count = 1000;
  EXPECT_EQ(resolve(huge).shard_count, 2000u);
  huge.shard_count = 7;
  EXPECT_EQ(resolve(huge).shard_count, 7u);
}

}  // namespace
}  // namespace spk
