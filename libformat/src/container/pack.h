// An open pack: where every sample lies, and reading it. Immutable after open; every const member
// may be called from any thread at once. Nothing is written, locked, or kept beside the data, and
// no thread is started before the first bulk read that needs one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/result.h"
#include "container/shard_cache.h"
#include "format/index.h"
#include "io/directory.h"
#include "layout/geometry.h"

namespace spk {

enum class EngineChoice { kAuto, kPread, kPool, kUring, kMmap };

struct OpenOptions {
  EngineChoice engine = EngineChoice::kAuto;
  uint32_t threads = 0;         // for the pool engine; 0: chosen
  bool check_checksums = true;  // compare each blob's checksum when it is read
  // A directory with copies of some or all shards (container/shard_cache.h), which are read instead
  // of the pack's own. Empty: none.
  std::string cache;
};

struct SampleLocation {
  bool present = false;  // false: the sample has no value in this field
  uint32_t shard = 0;
  uint64_t offset = 0;  // in the shard's file
  uint64_t bytes = 0;
  uint64_t checksum = 0;
};

struct ChunkLocation {
  uint32_t shard = 0;
  uint32_t chunk_in_shard = 0;
  uint64_t offset = 0;      // in the shard's file; a multiple of the chunk size
  uint64_t read_bytes = 0;  // what to read for all of it, zero padding included
  uint64_t used_bytes = 0;
  uint64_t first_sample = 0;  // number within the pack
  uint32_t sample_count = 0;
  uint64_t header_checksum = 0;
};

// One item of a bulk read. `into` has room for the blob; `bytes` tells how much of it was filled.
// Where `into` is too small: kInvalidArgument, `bytes` says how much is needed.
struct ReadItem {
  uint64_t sample = 0;
  MutableByteSpan into;
  uint64_t bytes = 0;
  Status status;
};

class Pack {
 public:
  // `path`: a pack's directory. kNotThisFormat where there is no manifest.json (unfinished packs
  // and other folders: the message tells which); a folder of splits names them in its hint.
  static Result<std::shared_ptr<Pack>> open(const std::string& path,
                                            const OpenOptions& options = {});
  // With the bytes of index.spki at hand: they are copied, and the manifest is not asked for.
  static Result<std::shared_ptr<Pack>> open_index(const std::string& path, ByteSpan index,
                                                  const OpenOptions& options = {});
  virtual ~Pack() = default;

  virtual const std::string& path() const = 0;
  virtual const Directory& directory() const = 0;
  virtual const ShardCache& cache() const = 0;
  // Where shards are read from, as to what kind of storage that is: the cache where it had all of
  // them when the pack was opened, otherwise the pack.
  virtual const Directory& data_directory() const = 0;
  // Of the file that a shard is read from. REQUIRES a shard of the pack.
  virtual std::string shard_path(uint32_t shard) const = 0;
  virtual const IndexHead& index() const = 0;  // ids, counts, version
  virtual PackIdentity identity() const = 0;
  virtual Hash128 content_id() const = 0;
  virtual const Schema& schema() const = 0;
  virtual const Settings& settings() const = 0;
  virtual const std::vector<ShardRow>& shards() const = 0;
  virtual uint64_t sample_count() const = 0;
  virtual uint64_t chunk_count() const = 0;

  // Chunks and samples are numbered through the pack in storage order.
  virtual Result<ChunkLocation> chunk(uint64_t chunk) const = 0;
  virtual Result<uint64_t> chunk_of(uint64_t sample) const = 0;
  virtual Result<SampleLocation> locate(uint64_t sample, uint16_t field) const = 0;
  virtual Result<std::string> key(uint64_t sample) const = 0;
  virtual Result<uint64_t> ordinal(uint64_t sample) const = 0;
  // Everything the index knows of a sample (blob offsets are in the shard's file).
  virtual Result<StoredSample> sample(uint64_t sample) const = 0;
  // First sample with this key; a scan of all keys. kNotFound names the key.
  virtual Result<uint64_t> find_key(std::string_view key) const = 0;
  // Numeric values of one sample; empty where absent.
  virtual Result<std::vector<int64_t>> ints(uint64_t sample, uint16_t field) const = 0;
  virtual Result<std::vector<double>> floats(uint64_t sample, uint16_t field) const = 0;
  // Numbers of `count` samples from `begin` on, of a field of fixed length: that many a sample go
  // to `out`. An absent one gives zeros; `present`, where not null, gets 1 or 0 a sample.
  virtual Status copy_ints(uint16_t field, uint64_t begin, uint64_t count, int64_t* out,
                           uint8_t* present) const = 0;
  virtual Status copy_floats(uint16_t field, uint64_t begin, uint64_t count, double* out,
                             uint8_t* present) const = 0;

  // Reads one blob. `into` as in ReadItem; the result is the blob's size. An absent field is
  // kNotFound. Damage names shard, key and offset.
  virtual Result<uint64_t> read(uint64_t sample, uint16_t field, MutableByteSpan into) const = 0;
  // Reads many blobs of one field in one call: neighbours are coalesced. Each item has its own
  // status; the result is ok, kPartial where some failed, or a fault of the whole call.
  virtual Status read_many(uint16_t field, std::span<ReadItem> items) const = 0;
  // Reads a whole chunk and compares its head with the index; blobs are checked where
  // check_checksums. The buffer must hold ChunkLocation::read_bytes.
  // kDamaged does not mean that all of it is: each sample may be judged by check_blob().
  virtual Status read_chunk(uint64_t chunk, MutableByteSpan into) const = 0;
  // That `bytes`, read from the chunk's place, begin with the header and sample table that the
  // index expects there. kDamaged otherwise.
  virtual Status check_chunk_head(const ChunkLocation& chunk, ByteSpan bytes) const = 0;
  // Compares a blob's bytes with its checksum in the index. Damage is reported as by read().
  virtual Status check_blob(uint64_t sample, uint16_t field, ByteSpan blob) const = 0;

  // Contiguous part `rank` of `world` equal parts: sizes differ by one at most.
  PositionRange part(uint32_t rank, uint32_t world) const {
    return shard_positions(sample_count(), world, rank);
  }
};

// Where a sample's blob lies in the bytes of its chunk, which read_chunk() filled. kDamaged where
// the index places it elsewhere.
Result<ByteSpan> blob_in_chunk(const ChunkLocation& chunk, const SampleLocation& blob,
                               ByteSpan bytes);

// "shard-00007.spks"
std::string shard_file_name(uint32_t shard);
inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kIndexName = "index.spki";
inline constexpr std::string_view kRejectsName = "rejects.tsv";
inline constexpr std::string_view kLayoutName = "layout.json";
inline constexpr std::string_view kRunName = "run.json";

}  // namespace spk
