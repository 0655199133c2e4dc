// Everything that a pack's index tells: ids, schema, settings, where each chunk and each sample
// lies, keys and labels. Opening loads the head and the sections whose size follows the number of
// chunks; samples and names are loaded in blocks when they are first asked for.
//
// Every number in the file may be hostile. What is loaded at once is checked at once; what is
// loaded later is checked at each access, so that a place that is given out lies within its shard.
//
// Thread safety: all members may be called by several threads at once, and after fork().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "container/index_body.h"
#include "container/pack.h"
#include "container/shard_tables.h"

namespace spk {

class PackIndex {
 public:
  // Takes the file over. kNotThisFormat, kUnsupported, kDamaged.
  static Result<std::unique_ptr<PackIndex>> open(File file);
  ~PackIndex();
  PackIndex(const PackIndex&) = delete;
  PackIndex& operator=(const PackIndex&) = delete;

  const IndexHead& head() const noexcept { return head_; }
  PackIdentity identity() const noexcept;
  const Schema& schema() const noexcept { return schema_; }
  const Settings& settings() const noexcept { return settings_; }
  const std::vector<ShardRow>& shards() const noexcept { return shards_; }
  uint64_t sample_count() const noexcept { return head_.header.sample_count; }
  uint64_t chunk_count() const noexcept { return head_.header.chunk_count; }

  // As in Pack.
  Status chunk(uint64_t chunk, ChunkLocation& location) const;
  Status chunk_of(uint64_t sample, uint64_t& chunk) const;
  Result<std::string> key(uint64_t sample) const;
  Result<uint64_t> ordinal(uint64_t sample) const;
  Result<StoredSample> sample(uint64_t sample) const;
  Result<uint64_t> find_key(std::string_view key) const;
  Result<std::vector<int64_t>> ints(uint64_t sample, uint16_t field) const;
  Result<std::vector<double>> floats(uint64_t sample, uint16_t field) const;
  Status copy_ints(uint16_t field, uint64_t begin, uint64_t count, int64_t* out,
                   uint8_t* present) const;
  Status copy_floats(uint16_t field, uint64_t begin, uint64_t count, double* out,
                     uint8_t* present) const;

  // kInvalidArgument where there is no such field, or it has another kind.
  Status check_blob_field(uint16_t field) const;
  // REQUIRES that check_blob_field(field) is ok.
  Status locate(uint64_t sample, uint16_t field, SampleLocation& location) const;

  // "sample 'cat/1.jpg'", or "sample 17" where the key cannot be read. For messages.
  std::string describe(uint64_t sample) const;

 private:
  struct Row {
    uint32_t shard = 0;
    uint64_t row = 0;  // within the shard
  };
  // The columns of a shard's chunks table, checked when the pack was opened.
  struct ChunkColumns {
    ColumnView slots, spans, first_samples, sample_counts, checksums, used_bytes;
  };

  PackIndex() = default;
  Status load_small_sections();
  Status load_chunks();
  Status check_shard_row(uint32_t shard) const;
  Status check_chunks(uint32_t shard, const std::vector<ChunkRow>& rows) const;
  Result<ByteSpan> load_section(PartKind kind) const;

  Status find_row(uint64_t sample, Row& row) const;
  Status samples_table(uint32_t shard, const SamplesTable*& table) const;
  Status names_table(uint32_t shard, const NamesTable*& table) const;
  template <typename T>
  Status check_numeric_field(uint16_t field) const;
  template <typename T>
  Status copy_numbers(uint16_t field, uint64_t begin, uint64_t count, T* out,
                      uint8_t* present) const;
  template <typename T>
  Result<std::vector<T>> numbers(uint64_t sample, uint16_t field) const;

  IndexHead head_;
  std::unique_ptr<IndexBody> body_;
  Schema schema_;
  Settings settings_;
  std::vector<ShardRow> shards_;
  std::vector<ChunkColumns> chunks_;      // by shard
  std::vector<uint64_t> samples_before_;  // by shard, and the total behind the last
  std::vector<uint64_t> chunks_before_;
  double shards_per_sample_ = 0;
  // By shard; made at the first use, by whoever is first to publish it.
  mutable std::unique_ptr<std::atomic<const SamplesTable*>[]> samples_tables_;
  mutable std::unique_ptr<std::atomic<const NamesTable*>[]> names_tables_;
};

}  // namespace spk
