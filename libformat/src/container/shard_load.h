// What is known about one shard, from its footer or, where that is damaged, from the index.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "container/chunk_verify.h"
#include "container/footer_check.h"
#include "container/index_check.h"
#include "container/pack_facts.h"

namespace spk {

enum class RowSource { kFooter, kIndex, kChunks };

// What is kept of a shard when its tables are let go.
struct ShardSummary {
  uint32_t shard = 0;
  bool known = false;  // rows came from footer or index, so that `row` and `payload_bytes` hold
  ShardRow row;
  uint64_t payload_bytes = 0;
  uint64_t file_bytes = 0;
  uint64_t chunk_count = 0;
  uint64_t sample_count = 0;
  std::optional<std::string> rejects;  // its lines of rejects.tsv, where they are known
};

struct LoadedShard {
  uint32_t shard = 0;
  std::string name;  // set before load_shard: a file that is not called as a shard is yet
  bool differs_from_index = false;  // whole, but the index describes another one
  File file;                        // not open: missing, or cannot be opened
  Code open_error = Code::kNotFound;
  uint64_t file_bytes = 0;
  uint64_t data_bytes = 0;
  FooterCheck footer;
  ShardRow row;  // as the footer has it, or the index; set unless the source is kChunks
  uint64_t payload_bytes = 0;  // likewise

  RowSource source = RowSource::kChunks;
  std::vector<ChunkRow> chunks;
  std::vector<uint32_t> chunk_numbers;  // where the source is kChunks: some may be missing
  SampleRows rows;                      // empty where the source is kChunks
  std::vector<uint8_t> index_samples, index_names;  // what `rows` refers to where source is kIndex

  // Number of chunk `i` of `chunks` within the shard.
  uint32_t chunk_number(size_t i) const noexcept {
    return source == RowSource::kChunks ? chunk_numbers[i] : static_cast<uint32_t>(i);
  }
  // End of chunk `i` in the file.
  uint64_t chunk_end(size_t i, const PackIdentity& identity) const noexcept;
  ShardExtent extent(const PackFacts& facts) const;
  ShardSummary summary() const;
};

// Examines file size, trailer, footer, and footer against index. Where rows can be had from neither
// and `facts` has a schema, the chunks are found by their own headers. Footers larger than
// `max_footer_bytes` are not loaded (kNoMemory). Never fails: what is wrong is appended to
// `damages`.
void load_shard(const Directory& dir, const PackFacts& facts, IndexCheck& index, uint32_t shard,
                uint64_t max_footer_bytes, std::vector<Damage>& damages, LoadedShard& loaded);

}  // namespace spk
