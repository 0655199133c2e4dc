// Chunk filling: nothing is lost, nothing overlaps, everything is aligned, sizes are predicted to
// the byte, and the filler does what a plain reading of the rule does.
#include "layout/fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>

#include "base/checked.h"
#include "format/chunk.h"
#include "property/samples.h"

namespace spk::test {
namespace {

struct Case {
  Schema schema;
  Geometry geometry;
  bool look_ahead = true;
  std::vector<StoredSample> samples;
};

Case random_case(Random& random) {
  Case made;
  made.schema = random_schema(random);
  made.geometry.chunk_bytes = uint32_t{65536} << random.below(11);  // to 64 MiB
  made.geometry.blob_align_bytes = uint32_t{1} << random.below(13);
  made.look_ahead = !random.one_in(3);
  const uint64_t typical = 1 + made.geometry.chunk_bytes / (1 + random.below(40));
  for (uint64_t i = random.below(300); i > 0; --i) {
    const bool huge = random.one_in(60);
    made.samples.push_back(random_sample(random, made.schema, huge ? uint64_t{1} << 34 : typical));
  }
  return made;
}

std::vector<FilledChunk> fill(const Case& made) {
  ChunkFiller filler(made.schema, made.geometry, made.look_ahead);
  std::vector<FilledChunk> chunks;
  const auto drain = [&] {
    while (std::optional<FilledChunk> chunk = filler.next()) chunks.push_back(std::move(*chunk));
  };
  for (uint64_t i = 0; i < made.samples.size(); ++i) {
    drain();
    filler.push(i, made.samples[i]);
  }
  filler.finish();
  drain();
  return chunks;
}

std::vector<uint8_t> encode_table(const Schema& schema, const std::vector<StoredSample>& samples) {
  SampleColumns columns(schema);
  for (const StoredSample& sample : samples) columns.append(sample, 0);
  return columns.encode(SampleTableKind::kChunk);
}

TEST(FillProperty, EverySampleIsPlacedOnce) {
  for_random_rounds(200, [](Random& random) {
    const Case made = random_case(random);
    std::vector<uint64_t> items;
    for (const FilledChunk& chunk : fill(made)) {
      items.insert(items.end(), chunk.items.begin(), chunk.items.end());
    }
    ASSERT_TRUE(made.look_ahead || std::is_sorted(items.begin(), items.end()));
    std::sort(items.begin(), items.end());
    ASSERT_EQ(items.size(), made.samples.size());
    for (uint64_t i = 0; i < items.size(); ++i) ASSERT_EQ(items[i], i);
  });
}

TEST(FillProperty, ChunksAreAlignedDisjointAndExactlyPredicted) {
  for_random_rounds(200, [](Random& random) {
    const Case made = random_case(random);
    const uint64_t align = made.geometry.blob_align_bytes;
    uint64_t next_slot = 0;
    uint64_t next_sample = 0;
    for (const FilledChunk& chunk : fill(made)) {
      ASSERT_EQ(chunk.slot, next_slot);
      ASSERT_EQ(chunk.first_sample, next_sample);
      ASSERT_FALSE(chunk.samples.empty());
      ASSERT_EQ(chunk.span_slots, divide_up(chunk.used_bytes, made.geometry.chunk_bytes));
      ASSERT_TRUE(chunk.span_slots == 1 || chunk.samples.size() == 1);
      next_slot += chunk.span_slots;
      next_sample += chunk.samples.size();
      // The sizer's arithmetic is that of the encoder.
      const std::vector<uint8_t> table = encode_table(made.schema, chunk.samples);
      ASSERT_EQ(table.size(), chunk.table_bytes);
      ASSERT_EQ(chunk.payload_offset, round_up(ChunkHeader::kBytes + table.size(), align));
      uint64_t end = chunk.payload_offset;
      for (const StoredSample& sample : chunk.samples) {
        for (size_t i = 0; i < sample.fields.size(); ++i) {
          const StoredField& field = sample.fields[i];
          if (made.schema.fields[i].kind != FieldKind::kBlob || !field.present) continue;
          ASSERT_EQ(field.offset % align, 0u);
          ASSERT_GE(field.offset, end);
          ASSERT_LT(field.offset - end, align);
          end = field.offset + field.bytes;
        }
      }
      ASSERT_EQ(end, chunk.used_bytes);
    }
  });
}

TEST(FillProperty, ReadersAcceptWhatIsFilled) {
  for_random_rounds(100, [](Random& random) {
    const Case made = random_case(random);
    PackIdentity identity;
    identity.chunk_bytes_log2 = static_cast<uint8_t>(__builtin_ctz(made.geometry.chunk_bytes));
    identity.blob_align_log2 = static_cast<uint8_t>(__builtin_ctz(made.geometry.blob_align_bytes));
    for (const FilledChunk& chunk : fill(made)) {
      ChunkHeader header;
      header.slot = chunk.slot;
      header.span_slots = chunk.span_slots;
      header.sample_count = static_cast<uint32_t>(chunk.samples.size());
      header.payload_offset = chunk.payload_offset;
      header.used_bytes = chunk.used_bytes;
      const std::vector<uint8_t> table = encode_table(made.schema, chunk.samples);
      const std::vector<uint8_t> head = encode_chunk_head(header, identity, table);
      const auto decoded = decode_chunk_header(head);
      ASSERT_TRUE(decoded.ok()) << decoded.status().to_string();
      ASSERT_TRUE(check_chunk_head(*decoded, head).ok());
      const auto samples = SampleTable::parse(table, made.schema);
      ASSERT_TRUE(samples.ok()) << samples.status().to_string();
      const Status rows = check_chunk_rows(*decoded, table, *samples, made.schema);
      ASSERT_TRUE(rows.ok()) << rows.to_string();
      for (uint64_t row = 0; row < samples->size(); ++row) {
        const StoredSample& wrote = chunk.samples[row];
        const StoredSample read = samples->row(row);
        ASSERT_EQ(read.key, wrote.key);
        ASSERT_EQ(read.ordinal, wrote.ordinal);
        ASSERT_EQ(read.flags, wrote.flags);
        ASSERT_EQ(read.numbers, wrote.numbers);
        for (size_t i = 0; i < wrote.fields.size(); ++i) {
          ASSERT_EQ(read.fields[i].present, wrote.fields[i].present);
          ASSERT_EQ(read.fields[i].offset, wrote.fields[i].offset);
          ASSERT_EQ(read.fields[i].bytes, wrote.fields[i].bytes);
          ASSERT_EQ(read.fields[i].checksum, wrote.fields[i].checksum);
          ASSERT_EQ(read.fields[i].count, wrote.fields[i].count);
        }
      }
    }
  });
}

// The rule of docs/FORMAT.md, read plainly and with the encoder as its only measure.
Case with_small_samples(Random& random) {
  Case made = random_case(random);
  made.geometry.chunk_bytes = 65536;
  made.samples.resize(std::min<size_t>(made.samples.size(), 100));
  return made;
}

uint64_t used_bytes(const Case& made, const std::vector<uint64_t>& items) {
  std::vector<StoredSample> samples;
  for (const uint64_t item : items) samples.push_back(made.samples[item]);
  const uint64_t align = made.geometry.blob_align_bytes;
  uint64_t end = round_up(ChunkHeader::kBytes + encode_table(made.schema, samples).size(), align);
  for (const StoredSample& sample : samples) {
    for (size_t i = 0; i < sample.fields.size(); ++i) {
      if (made.schema.fields[i].kind != FieldKind::kBlob || !sample.fields[i].present) continue;
      end = round_up(end, align) + sample.fields[i].bytes;
    }
  }
  return end;
}

TEST(FillProperty, FollowsTheRuleOfTheDocument) {
  for_random_rounds(60, [](Random& random) {
    const Case made = with_small_samples(random);
    std::list<uint64_t> unplaced;
    for (uint64_t i = 0; i < made.samples.size(); ++i) unplaced.push_back(i);
    std::vector<std::vector<uint64_t>> expected;
    while (!unplaced.empty()) {
      std::vector<uint64_t> chunk = {unplaced.front()};
      unplaced.pop_front();
      bool open = used_bytes(made, chunk) <= made.geometry.chunk_bytes;
      while (open) {
        open = false;
        size_t seen = 0;
        for (auto at = unplaced.begin(); at != unplaced.end(); ++at, ++seen) {
          if (seen == (made.look_ahead ? 64u : 1u)) break;
          chunk.push_back(*at);
          if (used_bytes(made, chunk) <= made.geometry.chunk_bytes) {
            unplaced.erase(at);
            open = true;
            break;
          }
          chunk.pop_back();
        }
      }
      expected.push_back(chunk);
    }
    const std::vector<FilledChunk> chunks = fill(made);
    ASSERT_EQ(chunks.size(), expected.size());
    for (size_t i = 0; i < chunks.size(); ++i) ASSERT_EQ(chunks[i].items, expected[i]);
  });
}

}  // namespace
}  // namespace spk::test
