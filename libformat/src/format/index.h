// The index file: a head (header, section table, block checksums) and a body of sections. Alone it
// suffices to read a pack. Its chunks, samples and names sections are the shards' tables one after
// another, byte for byte as they stand in the footers.
#pragma once

#include <cstdint>
#include <vector>

#include "format/footer.h"

namespace spk {

struct ShardRow {  // one row of the shards section
  uint64_t file_bytes = 0;
  uint64_t data_bytes = 0;
  uint64_t chunk_count = 0;
  uint64_t sample_count = 0;
  uint64_t reject_count = 0;
  Hash128 digest;
  // Where this shard's tables lie in the index file.
  uint64_t chunks_offset = 0, chunks_bytes = 0;
  uint64_t samples_offset = 0, samples_bytes = 0;
  uint64_t names_offset = 0, names_bytes = 0;
};
std::vector<uint8_t> encode_shard_rows(std::span<const ShardRow> rows);
Result<std::vector<ShardRow>> decode_shard_rows(ByteSpan table);

// Where everything in an index goes, from the sizes alone. Fills the rows' offsets.
struct IndexPlan {
  uint64_t head_bytes = 0;
  uint64_t file_bytes = 0;
  uint32_t block_count = 0;
  std::vector<PartEntry> sections;  // shards, fields, classes, settings, chunks, samples, names
};
IndexPlan plan_index(std::vector<ShardRow>& rows, uint64_t fields_bytes, uint64_t classes_bytes,
                     uint64_t settings_bytes);

// Completes `header` (magic, version, identity, sizes, checksum) and returns the whole head. The
// caller sets counts, content id and schema hash. block_checksums: XXH3-64 of each block.
std::vector<uint8_t> encode_index_head(IndexHeader& header, const PackIdentity& identity,
                                       const IndexPlan& plan,
                                       std::span<const uint64_t> block_checksums);

struct IndexHead {
  IndexHeader header;
  std::vector<PartEntry> sections;
  std::vector<uint64_t> block_checksums;

  // Zero bytes long where there is no such section.
  PartEntry section(PartKind kind) const noexcept;
};
// Bytes of the head, from the first IndexHeader::kBytes bytes of a file of file_bytes bytes.
// kNotThisFormat, kDamaged as for chunks.
Result<uint64_t> index_head_bytes(ByteSpan first, uint64_t file_bytes);
// `head` is exactly that many bytes. Checks the checksum and every number in it.
Result<IndexHead> decode_index_head(ByteSpan head);

}  // namespace spk
