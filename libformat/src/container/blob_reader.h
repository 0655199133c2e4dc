// Reads blobs of an open pack: one, or many in one call.
//
// Many are sorted by shard and offset first. Then, by engine:
//   mapping  copied from the mapped shard; where pages turn out to come from the disk, what follows
//            is asked for ahead
//   pread    in the calling thread, neighbours by one preadv straight into the items' buffers
//   others   by the engine's threads or ring; neighbours by one read into a scratch buffer
// Neighbours are blobs with so little between them that reading it too is cheaper than another
// read. Where such a read fails, its blobs are read one by one, so that damage costs only the ones
// that it touches.
//
// Per item there is no lock and no allocation; strings are made only for errors.
//
// Thread safety: all members may be called by several threads at once, and after fork().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "container/pack.h"
#include "container/pack_index.h"
#include "container/shard_files.h"
#include "io/read_engine.h"

namespace spk {

class BlobReader {
 public:
  // INDEX and FILES must outlive it. ENGINE null: the calling thread reads, by mapping or
  // descriptor as FILES has them.
  BlobReader(const PackIndex& index, const ShardFiles& files, std::unique_ptr<ReadEngine> engine,
             bool network, bool check_checksums);

  // As in Pack.
  Result<uint64_t> read(uint64_t sample, uint16_t field, MutableByteSpan into) const;
  Status read_many(uint16_t field, std::span<ReadItem> items) const;

  // kDamaged with shard, key and offset where the bytes contradict the checksum. Compares even
  // where reads do not.
  Status check_blob(uint64_t sample, const SampleLocation& location, ByteSpan blob) const;

 private:
  // A blob to be read, by its place.
  struct Wanted {
    uint32_t shard;
    uint32_t item;
    uint64_t offset;
    uint64_t bytes;
    uint64_t checksum;
  };
  using Pin = ShardFiles::Pin;
  // Those of one shard that stand next to each other in order.
  using Group = std::span<const Wanted>;

  Status plan(uint64_t sample, uint16_t field, uint64_t room_bytes, SampleLocation& location) const;
  std::vector<Wanted> plan_many(uint16_t field, std::span<ReadItem> items) const;
  // How many of GROUP, from its first, make one read, and from where to where that goes.
  struct Run {
    size_t count = 0;
    uint64_t offset = 0;
    uint64_t end = 0;
  };
  Run next_run(Group group) const;
  class DiskWatch;
  void copy_mapped(Group group, const OpenShard& shard, std::span<ReadItem> items,
                   DiskWatch& watch) const;
  void read_group(Group group, const OpenShard& shard, std::span<ReadItem> items) const;
  void read_by_engine(std::span<const Wanted> wanted, std::span<ReadItem> items) const;
  void read_alone(const Wanted& wanted, const OpenShard& shard, ReadItem& item) const;
  void check(const Wanted& wanted, ReadItem& item) const;
  Status damage(uint64_t sample, const SampleLocation& location, uint64_t actual) const;
  Status annotate(Status status, uint64_t sample, uint32_t shard, uint64_t offset) const;

  const PackIndex& index_;
  const ShardFiles& files_;
  const std::unique_ptr<ReadEngine> engine_;
  const uint64_t most_gap_bytes_;
  const uint64_t most_run_bytes_;
  const bool check_checksums_;
};

}  // namespace spk
