// A shard's footer: counts, the shard's share of the index, its rejects, the plan record, and at
// the very end of the file a trailer that tells where it all starts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/chunk.h"

namespace spk {

// Digest of a shard's content: XXH3-128 over each chunk's header checksum in order, then the number
// of chunks and of samples, all as little-endian u64.
Hash128 shard_digest(std::span<const uint64_t> header_checksums, uint64_t sample_count);
// Content id of a pack: XXH3-128 over the schema hash and each shard's digest (low, high) in order.
Hash128 content_id(const Hash128& schema_hash, std::span<const Hash128> shard_digests);

struct ChunkRow {  // one row of the chunks table
  uint32_t slot = 0;
  uint32_t span_slots = 1;
  uint64_t first_sample = 0;
  uint32_t sample_count = 0;
  uint64_t header_checksum = 0;
  uint64_t used_bytes = 0;
  bool operator==(const ChunkRow&) const = default;
};
std::vector<uint8_t> encode_chunk_rows(std::span<const ChunkRow> rows);
// Checks that slots and samples follow one another without gap from 0.
Result<std::vector<ChunkRow>> decode_chunk_rows(ByteSpan table);

struct RejectRow {
  std::string key;
  uint64_t ordinal = 0;
  std::string reason;
  bool operator==(const RejectRow&) const = default;
};
std::vector<uint8_t> encode_reject_rows(std::span<const RejectRow> rows);
Result<std::vector<RejectRow>> decode_reject_rows(ByteSpan table);

// Completes `header` (magic, version, identity, sizes, checksum) and returns the whole footer with
// trailer; its size is a multiple of kFooterAlignBytes. The caller sets shard, shard_count, the
// counts, data_bytes, digest, schema hash and positions.
using Parts = std::vector<std::pair<PartKind, std::vector<uint8_t>>>;
std::vector<uint8_t> encode_footer(FooterHeader& header, const PackIdentity& identity,
                                   const Parts& parts);

// `last` is the last Trailer::kBytes bytes of a shard of file_bytes bytes. kNotThisFormat where
// there is no trailer, kDamaged where it contradicts its checksum or the file's size.
Result<Trailer> decode_trailer(ByteSpan last, uint64_t file_bytes);

class FooterView {
 public:
  // `footer` is all of it, trailer included; must outlive the view. Checks the header's checksum,
  // the parts' places, and that padding is zero; parts are checksummed by part().
  static Result<FooterView> parse(ByteSpan footer);
  const FooterHeader& header() const noexcept { return header_; }
  bool has(PartKind kind) const noexcept;
  // The part, its checksum compared. kDamaged where it is missing or contradicts its checksum.
  Result<ByteSpan> part(PartKind kind) const;
  // Where a part lies, without touching it. REQUIRES has(kind).
  PartEntry entry(PartKind kind) const noexcept;

 private:
  ByteSpan footer_;
  FooterHeader header_;
  std::vector<PartEntry> parts_;
};

}  // namespace spk
