#include "layout/fill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/checked.h"

namespace spk {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

Schema images(size_t blobs = 1) {
  Schema schema;
  for (size_t i = 0; i < blobs; ++i) {
    schema.fields.push_back({"image" + std::to_string(i), FieldKind::kBlob, 1});
  }
  schema.fields.push_back({"label", FieldKind::kInt64, 1});
  return schema;
}

StoredSample sized(const Schema& schema, uint64_t number, std::vector<uint64_t> blob_bytes) {
  StoredSample sample;
  sample.key = "n01440764/n01440764_" + std::to_string(number) + ".JPEG";
  sample.ordinal = number;
  sample.fields.resize(schema.fields.size());
  for (size_t i = 0; i < blob_bytes.size(); ++i) {
    sample.fields[i].present = true;
    sample.fields[i].bytes = blob_bytes[i];
    sample.fields[i].checksum = ~number;
  }
  const auto label = static_cast<int64_t>(number % 1000);
  sample.set_ints(schema.fields.size() - 1, &label, 1);
  return sample;
}

Geometry geometry(uint64_t chunk_bytes) {
  return {
      .chunk_bytes = static_cast<uint32_t>(chunk_bytes), .shard_count = 1, .blob_align_bytes = 64};
}

std::vector<FilledChunk> fill(const Schema& schema, const std::vector<uint64_t>& sizes,
                              uint64_t chunk_bytes, bool look_ahead) {
  ChunkFiller filler(schema, geometry(chunk_bytes), look_ahead);
  std::vector<FilledChunk> chunks;
  const auto drain = [&] {
    while (std::optional<FilledChunk> chunk = filler.next()) chunks.push_back(std::move(*chunk));
  };
  for (uint64_t i = 0; i < sizes.size(); ++i) {
    drain();
    EXPECT_TRUE(filler.wants_more());
    filler.push(i, sized(schema, i, {sizes[i]}));
  }
  filler.finish();
  drain();
  return chunks;
}

std::vector<std::vector<uint64_t>> items_of(const std::vector<FilledChunk>& chunks) {
  std::vector<std::vector<uint64_t>> items;
  for (const FilledChunk& chunk : chunks) items.push_back(chunk.items);
  return items;
}

using Items = std::vector<std::vector<uint64_t>>;

TEST(Fill, WithoutLookAheadTheOrderIsKept) {
  // The third does not fit; the fourth would, but must not overtake it.
  EXPECT_EQ(items_of(fill(images(), {30000, 20000, 50000, 100, 60000}, 65536, false)),
            (Items{{0, 1}, {2, 3}, {4}}));
}

TEST(Fill, WithLookAheadTheFirstThatFitsIsTaken) {
  EXPECT_EQ(items_of(fill(images(), {30000, 20000, 50000, 100, 60000, 13000, 200}, 65536, true)),
            (Items{{0, 1, 3, 5, 6}, {2}, {4}}));
}

TEST(Fill, TheWindowHas64Samples) {
  // A large one, then many that do not fit with it, then one that would: as the 64th candidate it
  // is seen, as the 65th it is not.
  for (const size_t between : {63, 64}) {
    std::vector<uint64_t> sizes(1, 40000);
    sizes.insert(sizes.end(), between, 50000);
    sizes.push_back(1000);
    const std::vector<FilledChunk> chunks = fill(images(), sizes, 65536, true);
    EXPECT_EQ(chunks[0].items.size(), between == 63 ? 2u : 1u);
  }
}

TEST(Fill, ASampleLargerThanAChunkIsARunOfItsOwn) {
  const std::vector<FilledChunk> chunks =
      fill(images(), {100, 200000, 100, 65536, 100}, 65536, true);
  EXPECT_EQ(items_of(chunks), (Items{{0, 2, 4}, {1}, {3}}));
  EXPECT_EQ(chunks[0].slot, 0u);
  EXPECT_EQ(chunks[0].span_slots, 1u);
  EXPECT_EQ(chunks[1].slot, 1u);
  EXPECT_EQ(chunks[1].span_slots, 4u);
  EXPECT_EQ(chunks[2].slot, 5u);
  EXPECT_EQ(chunks[2].span_slots, 2u);
  EXPECT_EQ(chunks[2].first_sample, 4u);
  // Without look-ahead it stays in its place.
  EXPECT_EQ(items_of(fill(images(), {100, 200000, 100}, 65536, false)), (Items{{0}, {1}, {2}}));
}

TEST(Fill, ASampleMayFillAChunkToTheLastByte) {
  const FilledChunk probe = fill(images(), {60000}, 65536, true).at(0);
  const uint64_t largest = 65536 - probe.payload_offset;
  const FilledChunk full = fill(images(), {largest}, 65536, true).at(0);
  EXPECT_EQ(full.used_bytes, 65536u);
  EXPECT_EQ(full.span_slots, 1u);
  EXPECT_EQ(fill(images(), {largest + 1}, 65536, true).at(0).span_slots, 2u);
}

TEST(Fill, EmptyBlobsHaveAPlace) {
  const std::vector<FilledChunk> chunks = fill(images(), {0, 5, 0, 0}, 65536, true);
  ASSERT_EQ(chunks.size(), 1u);
  const FilledChunk& chunk = chunks[0];
  EXPECT_EQ(chunk.items.size(), 4u);
  EXPECT_EQ(chunk.samples[0].fields[0].offset, chunk.payload_offset);
  EXPECT_EQ(chunk.samples[1].fields[0].offset, chunk.payload_offset);
  EXPECT_EQ(chunk.samples[2].fields[0].offset, chunk.payload_offset + 64);
  EXPECT_EQ(chunk.samples[3].fields[0].offset, chunk.payload_offset + 64);
  EXPECT_EQ(chunk.used_bytes, chunk.payload_offset + 64);
}

TEST(Fill, SamplesOfMoreThan4GiB) {
  const uint64_t huge = (uint64_t{5} << 30) + 3;
  const std::vector<FilledChunk> chunks = fill(images(), {10, huge, 10, huge}, 64 * kMiB, true);
  EXPECT_EQ(items_of(chunks), (Items{{0, 2}, {1}, {3}}));
  EXPECT_EQ(chunks[1].span_slots, 81u);
  EXPECT_EQ(chunks[2].slot, 82u);
  EXPECT_GT(chunks[2].slot * (64 * kMiB), uint64_t{1} << 32);
}

TEST(Fill, TwoBlobsOfWhichTheFirstExceeds4GiB) {
  const Schema schema = images(2);
  ChunkFiller filler(schema, geometry(4 * kMiB), true);
  const uint64_t huge = (uint64_t{4} << 30) + 1;
  filler.push(0, sized(schema, 0, {huge, 100}));
  filler.finish();
  const FilledChunk chunk = filler.next().value();
  EXPECT_GT(chunk.samples[0].fields[1].offset, uint64_t{1} << 32);
  SampleColumns columns(schema);
  columns.append(chunk.samples[0], 0);
  EXPECT_EQ(columns.encode(SampleTableKind::kChunk).size(), chunk.table_bytes);
  EXPECT_EQ(chunk.used_bytes, chunk.samples[0].fields[1].offset + 100);
}

TEST(Fill, NothingGivesNothing) {
  EXPECT_TRUE(fill(images(), {}, 65536, true).empty());
  EXPECT_TRUE(fill(images(), {}, 65536, false).empty());
  EXPECT_EQ(shard_data_bytes(0, 0), 0u);
}

TEST(Fill, ShardDataEndsAtTheNext4KiB) {
  EXPECT_EQ(shard_data_bytes(0, 1), 4096u);
  EXPECT_EQ(shard_data_bytes(65536, 4096), 65536u + 4096);
  EXPECT_EQ(shard_data_bytes(uint64_t{1} << 40, 65536), (uint64_t{1} << 40) + 65536);
}

// What the design promises: sizes as in ImageNet (lognormal, mean 110 KB), chunks of 4 MiB, shards
// of 1 GiB. All that is not payload counts, heads and tables too.
double padding_share(bool look_ahead) {
  std::mt19937_64 random(1);
  const double sigma = 0.7;
  const double mu = std::log(110000.0) - sigma * sigma / 2;
  std::vector<uint64_t> sizes;
  uint64_t payload = 0;
  while (payload < (uint64_t{1} << 30)) {
    // Box and Muller by hand: std::lognormal_distribution differs between libraries.
    const double u = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
    const double v = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
    const double normal = std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
    sizes.push_back(static_cast<uint64_t>(std::exp(mu + sigma * normal)));
    payload += sizes.back();
  }
  const std::vector<FilledChunk> chunks = fill(images(), sizes, 4 * kMiB, look_ahead);
  uint64_t heads = 0;
  for (const FilledChunk& chunk : chunks) heads += chunk.payload_offset;
  const FilledChunk& last = chunks.back();
  const uint64_t stored = shard_data_bytes(last.slot * (4 * kMiB), last.used_bytes);
  return static_cast<double>(stored - payload - heads) / static_cast<double>(stored);
}

TEST(Fill, PaddingOfImageNetIsBelowHalfAPercent) {
  const double share = padding_share(true);
  RecordProperty("padding_percent", std::to_string(100 * share));
  EXPECT_LT(share, 0.005);
  EXPECT_GT(padding_share(false), 0.01);  // what the window is for
}

TEST(Sizer, CandidatesDoNotChangeIt) {
  const Schema schema = images();
  ChunkSizer sizer(schema, 64);
  sizer.add(sized(schema, 1, {100}));
  const uint64_t before = sizer.used_bytes();
  const uint64_t with = sizer.bytes_with(sized(schema, 70000, {5000}));
  EXPECT_EQ(sizer.used_bytes(), before);
  sizer.add(sized(schema, 70000, {5000}));
  EXPECT_EQ(sizer.used_bytes(), with);
  sizer.clear();
  sizer.add(sized(schema, 1, {100}));
  EXPECT_EQ(sizer.used_bytes(), before);
}

}  // namespace
}  // namespace spk
