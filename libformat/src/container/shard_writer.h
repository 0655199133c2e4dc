// Writes one shard: chunks, then the footer. Works under a temporary name of its own; finish()
// leaves a file that is on disk and complete, and the caller renames it. A writer that is destroyed
// before that leaves its file behind, for resume() to continue.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/footer.h"
#include "io/direct_writer.h"
#include "io/file.h"
#include "layout/fill.h"

namespace spk {

struct ShardContext {
  PackIdentity identity;
  Schema schema;
  Settings settings;
  uint32_t shard = 0;
  uint32_t shard_count = 1;
  PositionRange positions;  // plan positions dealt to this shard
};

// The bytes of one present blob: in memory, or read piece by piece where they are too many.
struct BlobSource {
  ByteSpan bytes;
  std::function<Status(uint64_t offset, MutableByteSpan into)> read;  // used where set
};

class ShardWriter {
 public:
  // What it takes of memory beside the chunk it is given and the tables of its shard.
  static constexpr uint64_t kBufferBytes = DirectWriter::kBufferBytes;

  // A new file `name` in `dir`, which must outlive the writer; kExists where the name is taken.
  static Result<ShardWriter> create(const Directory& dir, const std::string& name,
                                    const ShardContext& context);
  // The same with a new, empty file that the caller made, with a stripe layout of its own perhaps.
  static ShardWriter create(File file, const ShardContext& context);
  // Continues the file of a run that ended early. Its bytes are first forced to disk and dropped
  // from memory, so that what is checked is what is stored; the longest prefix of good chunks of
  // this very plan is kept, the rest is cut off. kept() tells what need not be written again.
  static Result<ShardWriter> resume(const Directory& dir, const std::string& name,
                                    const ShardContext& context);

  // Samples of the chunks that resume() kept, in storage order.
  const std::vector<StoredSample>& kept() const noexcept { return kept_; }
  void forget_kept() { kept_ = {}; }
  uint32_t kept_chunks() const noexcept { return kept_chunks_; }

  // Takes the next chunk, as the ChunkFiller closed it. Chunks that were kept are counted but not
  // written; for them `blobs` may be empty and must be what was kept (kMismatch otherwise). For
  // others `blobs` has one entry for each present blob, in order. kMismatch where a streamed
  // blob's bytes do not have the checksum in its StoredField: the source changed.
  Status add_chunk(FilledChunk&& chunk, std::span<const BlobSource> blobs);
  // True if the next chunk is one that was kept.
  bool next_is_kept() const noexcept { return rows_.size() < kept_chunks_; }

  // Writes the footer, forces everything to disk and closes the file. Any failure of the disk
  // (kIo, kNoSpace) on the way means that the file must be deleted, not resumed, unless it was
  // kNoSpace before finish(); see must_delete().
  Status finish(std::span<const RejectRow> rejects);
  // True after a failed fsync or close: what is on disk is unknown.
  bool must_delete() const noexcept { return must_delete_; }

  uint64_t sample_count() const noexcept { return sample_count_; }
  uint64_t payload_bytes() const noexcept { return payload_bytes_; }
  uint64_t file_bytes() const noexcept { return file_bytes_; }  // after finish()

 private:
  ShardWriter(File file, const ShardContext& context);
  Status scan_kept();
  Result<uint64_t> check_kept_chunk(uint64_t offset, uint64_t file_bytes,
                                    std::vector<uint8_t>& buffer);
  Status write_chunk(const ChunkHeader& header, const std::vector<uint8_t>& head,
                     const FilledChunk& chunk, std::span<const BlobSource> blobs);
  Status write_streamed(const BlobSource& blob, const StoredField& field, uint64_t file_offset);
  uint64_t slot_offset(uint32_t slot) const noexcept {
    return uint64_t{slot} * context_.identity.chunk_bytes();
  }

  File file_;
  DirectWriter chunks_;  // into file_
  ShardContext context_;
  SampleColumns columns_;
  std::vector<ChunkRow> rows_;
  std::vector<StoredSample> kept_;
  uint32_t kept_chunks_ = 0;
  std::vector<uint64_t> kept_checksums_;
  uint64_t sample_count_ = 0;
  uint64_t payload_bytes_ = 0;
  uint64_t file_bytes_ = 0;
  bool must_delete_ = false;
};

}  // namespace spk
