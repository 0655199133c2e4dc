// Writes a damaged shard anew: every chunk from the rows that footer or index kept, every blob from
// wherever it is still whole. Without losses the result is the shard's original bytes.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "container/chunk_bytes.h"
#include "container/shard_load.h"
#include "container/shard_writer.h"

namespace spk {

struct LostSample {
  uint32_t shard = 0;
  uint64_t sample = 0;  // number within the shard as it was
  std::string key;
  uint64_t ordinal = 0;
  std::string reason;
  bool operator==(const LostSample&) const = default;
};

class ShardRewrite {
 public:
  // `own` is the damaged shard, `copy` the same one of a second copy or null. All must outlive the
  // rewrite. kDamaged where the rows are lost on both sides.
  static Result<ShardRewrite> make(const PackFacts& facts, const LoadedShard& own,
                                   const LoadedShard* copy);

  // The samples that have a blob which is whole on neither side. `suspects`: the samples that were
  // found damaged; others are not read. Null: all are read.
  Result<std::vector<LostSample>> find_lost(const std::set<uint64_t>* suspects);
  // What kept bytes of the own side from being read while samples were looked for; ok where all
  // that is lost was read and contradicts its checksum.
  const Status& read_error() const noexcept { return read_error_; }
  // Samples of chunks that nothing tells about any more: they have no names, and are lost.
  uint64_t unknown_samples() const noexcept { return unknown_samples_; }

  // The new shard under `name`, with all samples but those in `drop`; what is not whole and not to
  // be dropped is kDamaged. Complete and on disk when this returns.
  Status write(const Directory& dir, const std::string& name, const ShardContext& context,
               const std::set<uint64_t>& drop, std::span<const RejectRow> rejects);

  uint64_t samples() const noexcept { return samples_; }
  uint64_t blobs_from_copy() const noexcept { return blobs_from_copy_; }
  // The digest that the rewritten shard must have where nothing is dropped; none where only the
  // chunks themselves are left to tell.
  std::optional<Hash128> digest() const;

 private:
  struct Chunk {
    ChunkRow row;
    uint64_t start = 0;
    std::vector<StoredSample> samples;  // blob offsets from the chunk's start
  };

  ShardRewrite(const PackFacts& facts, const LoadedShard& own, const LoadedShard* copy);
  static void open_side(ChunkBytes& bytes, const LoadedShard* side, uint64_t start, uint64_t end);
  Result<Chunk> open_chunk(size_t i);
  // The bytes of one blob of the chunk that is open; nothing where they are whole on neither side.
  std::optional<BlobSource> find_blob(const Chunk& chunk, const StoredField& field);
  Status write_chunk(ShardWriter& writer, Chunk& chunk, const std::set<uint64_t>& drop);

  const PackFacts& facts_;
  const LoadedShard& own_;
  const LoadedShard* copy_;
  const LoadedShard* rows_;  // the side whose rows are believed
  ChunkBytes own_bytes_, copy_bytes_;
  uint64_t samples_ = 0;
  uint64_t unknown_samples_ = 0;
  uint64_t blobs_from_copy_ = 0;
  Status read_error_;
  uint32_t next_slot_ = 0;  // of the shard that is written
  uint64_t next_sample_ = 0;
};

}  // namespace spk
