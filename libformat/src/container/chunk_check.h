// Checks one whole chunk where it lies in a file: header, table, rows, every blob's checksum, zero
// padding. Resume, verify and repair all judge a chunk by this.
#pragma once

#include <vector>

#include "format/chunk.h"
#include "io/file.h"

namespace spk {

struct ChunkExpectation {
  PackIdentity identity;
  uint32_t shard = 0;
  uint32_t chunk = 0;
  uint32_t slot = 0;
  uint64_t first_sample = 0;
};

struct CheckedChunk {
  ChunkHeader header;
  std::vector<StoredSample> samples;  // blob offsets relative to the chunk
};

// `file_bytes` bounds the reading: the last chunk of a finished shard ends with its data. `buffer`
// is scratch. The error's offset is the place in the file: of the header, the blob, the padding.
// kMismatch: a good chunk, but of another plan or place. Runs larger than a chunk are read in
// pieces, so memory stays within a few MiB beside one chunk.
Result<CheckedChunk> check_chunk_in_file(const File& file, uint64_t offset, uint64_t file_bytes,
                                         const ChunkExpectation& expected, const Schema& schema,
                                         std::vector<uint8_t>& buffer);

// That a good header belongs where it was found.
Status check_chunk_place(const ChunkHeader& header, const ChunkExpectation& expected);

}  // namespace spk
