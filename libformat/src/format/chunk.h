// A chunk's head (header and sample table): made by the writer, checked by every reader.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "format/sample.h"
#include "format/structs.h"
#include "format/version.h"

namespace spk {

// What all chunks of a pack share.
struct PackIdentity {
  Hash128 plan_id;
  uint8_t chunk_bytes_log2 = 22;
  uint8_t blob_align_log2 = 6;
  uint64_t chunk_bytes() const noexcept { return uint64_t{1} << chunk_bytes_log2; }
  uint64_t blob_align_bytes() const noexcept { return uint64_t{1} << blob_align_log2; }
};

// Completes `header` (magic, version, identity, table_bytes, checksum) and returns header + table.
// The caller sets shard, chunk, slot, span_slots, sample_count, first_sample, payload_offset and
// used_bytes.
std::vector<uint8_t> encode_chunk_head(ChunkHeader& header, const PackIdentity& identity,
                                       ByteSpan table);

// Checks a header by itself: magic (kNotThisFormat), and that its numbers are possible (kDamaged).
// `first` holds at least ChunkHeader::kBytes bytes.
// The checksum is not looked at yet: header.table_bytes tells how much to read for that.
Result<ChunkHeader> decode_chunk_header(ByteSpan first);
// Size of header and table. REQUIRES a header from decode_chunk_header.
uint64_t chunk_head_bytes(const ChunkHeader& header) noexcept;
// Compares the checksum over header and table (`head` is exactly chunk_head_bytes long), then, as
// the bytes are what was written, the version and features (kUnsupported).
Status check_chunk_head(const ChunkHeader& header, ByteSpan head);

// Checks that every blob lies between the table and used_bytes, aligned, in order and without
// overlap, that table padding and the numbers of absent blobs are zero, and that counts agree. For
// whole-chunk verification.
Status check_chunk_rows(const ChunkHeader& header, ByteSpan table, const SampleTable& samples,
                        const Schema& schema);

}  // namespace spk
