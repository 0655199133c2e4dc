#include "container/pack.h"

#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "container/blob_reader.h"
#include "container/not_a_pack.h"
#include "container/pack_index.h"
#include "container/shard_files.h"
#include "format/chunk.h"
#include "io/filesystem.h"

namespace spk {

namespace {

class OpenPack final : public Pack {
 public:
  OpenPack(std::string path, Directory dir, ShardCache cache, Directory cache_dir,
           std::unique_ptr<PackIndex> index, ShardAccess access, std::unique_ptr<ReadEngine> engine,
           bool network, bool check_checksums)
      : path_(std::move(path)),
        dir_(std::move(dir)),
        cache_(std::move(cache)),
        cache_dir_(std::move(cache_dir)),
        index_(std::move(index)),
        identity_(index_->identity()),
        files_(dir_, index_->shards(), cache_, access),
        blobs_(*index_, files_, std::move(engine), network, check_checksums),
        check_checksums_(check_checksums) {}

  const std::string& path() const override { return path_; }
  const Directory& directory() const override { return dir_; }
  const ShardCache& cache() const override { return cache_; }
  const Directory& data_directory() const override {
    return cache_dir_.is_open() ? cache_dir_ : dir_;
  }
  std::string shard_path(uint32_t shard) const override { return files_.path(shard); }
  const IndexHead& index() const override { return index_->head(); }
  PackIdentity identity() const override { return identity_; }
  Hash128 content_id() const override {
    return {index_->head().header.content_id_low, index_->head().header.content_id_high};
  }
  const Schema& schema() const override { return index_->schema(); }
  const Settings& settings() const override { return index_->settings(); }
  const std::vector<ShardRow>& shards() const override { return index_->shards(); }
  uint64_t sample_count() const override { return index_->sample_count(); }
  uint64_t chunk_count() const override { return index_->chunk_count(); }

  Result<ChunkLocation> chunk(uint64_t chunk) const override {
    ChunkLocation location;
    SPK_TRY(index_->chunk(chunk, location));
    return location;
  }
  Result<uint64_t> chunk_of(uint64_t sample) const override {
    uint64_t chunk = 0;
    SPK_TRY(index_->chunk_of(sample, chunk));
    return chunk;
  }
  Result<SampleLocation> locate(uint64_t sample, uint16_t field) const override {
    SPK_TRY(index_->check_blob_field(field));
    SampleLocation location;
    SPK_TRY(index_->locate(sample, field, location));
    return location;
  }
  Result<std::string> key(uint64_t sample) const override { return index_->key(sample); }
  Result<uint64_t> ordinal(uint64_t sample) const override { return index_->ordinal(sample); }
  Result<StoredSample> sample(uint64_t sample) const override { return index_->sample(sample); }
  Result<uint64_t> find_key(std::string_view key) const override { return index_->find_key(key); }
  Result<std::vector<int64_t>> ints(uint64_t sample, uint16_t field) const override {
    return index_->ints(sample, field);
  }
  Result<std::vector<double>> floats(uint64_t sample, uint16_t field) const override {
    return index_->floats(sample, field);
  }
  Status copy_ints(uint16_t field, uint64_t begin, uint64_t count, int64_t* out,
                   uint8_t* present) const override {
    return index_->copy_ints(field, begin, count, out, present);
  }
  Status copy_floats(uint16_t field, uint64_t begin, uint64_t count, double* out,
                     uint8_t* present) const override {
    return index_->copy_floats(field, begin, count, out, present);
  }

  Result<uint64_t> read(uint64_t sample, uint16_t field, MutableByteSpan into) const override {
    return blobs_.read(sample, field, into);
  }
  Status read_many(uint16_t field, std::span<ReadItem> items) const override {
    return blobs_.read_many(field, items);
  }
  Status check_blob(uint64_t sample, uint16_t field, ByteSpan blob) const override;
  Status read_chunk(uint64_t chunk, MutableByteSpan into) const override;
  Status check_chunk_head(const ChunkLocation& location, ByteSpan chunk) const override;

 private:
  Status check_blobs(const ChunkLocation& location, ByteSpan chunk) const;

  const std::string path_;
  const Directory dir_;
  const ShardCache cache_;
  const Directory cache_dir_;  // open where the cache had all shards
  const std::unique_ptr<PackIndex> index_;
  const PackIdentity identity_;
  const ShardFiles files_;
  const BlobReader blobs_;
  const bool check_checksums_;
};

Status OpenPack::check_blob(uint64_t sample, uint16_t field, ByteSpan blob) const {
  SPK_TRY(index_->check_blob_field(field));
  SampleLocation location;
  SPK_TRY(index_->locate(sample, field, location));
  return blobs_.check_blob(sample, location, blob);
}

Status OpenPack::read_chunk(uint64_t chunk, MutableByteSpan into) const {
  ChunkLocation location;
  SPK_TRY(index_->chunk(chunk, location));
  if (into.size() < location.read_bytes) {
    return invalid_argument(str_cat("room for ", into.size(), " bytes, but chunk ", chunk,
                                    " takes ", location.read_bytes));
  }
  const auto here = [&](Status status) {
    return files_.blame(std::move(status), location.shard).at_offset(location.offset);
  };
  ShardFiles::Pin pin;
  SPK_TRY(files_.pin(location.shard, pin));
  const MutableByteSpan bytes = into.first(location.read_bytes);
  SPK_TRY(here(pin->read(location.offset, bytes)));
  SPK_TRY(here(check_chunk_head(location, bytes)));
  if (check_checksums_) SPK_TRY(check_blobs(location, bytes));
  return {};
}

Status OpenPack::check_chunk_head(const ChunkLocation& location, ByteSpan chunk) const {
  auto decoded = decode_chunk_header(chunk);
  if (!decoded.ok()) {
    // A chunk is known to be here, so that bytes of another kind are damage.
    return decoded.status().code() == Code::kNotThisFormat ? damaged(decoded.status().message())
                                                           : std::move(decoded).status();
  }
  const ChunkHeader& header = *decoded;
  if (header.checksum != location.header_checksum) {
    return damaged(str_cat("chunk says its checksum is ", to_hex(header.checksum),
                           ", the index says ", to_hex(location.header_checksum)));
  }
  if (chunk_head_bytes(header) > chunk.size()) return damaged("chunk's sample table is cut off");
  SPK_TRY(spk::check_chunk_head(header, chunk.first(chunk_head_bytes(header))));
  if (header.shard == location.shard && header.chunk == location.chunk_in_shard &&
      header.sample_count == location.sample_count && header.used_bytes == location.used_bytes &&
      header.plan_id_low == identity_.plan_id.low &&
      header.plan_id_high == identity_.plan_id.high) {
    return {};
  }
  return damaged(str_cat("chunk ", header.chunk, " of shard ", header.shard, " with ",
                         count_of(header.sample_count, "sample"), " lies where chunk ",
                         location.chunk_in_shard, " of shard ", location.shard, " with ",
                         location.sample_count, " is expected"));
}

Status OpenPack::check_blobs(const ChunkLocation& location, ByteSpan chunk) const {
  const Schema& schema = index_->schema();
  for (uint64_t sample = location.first_sample;
       sample < location.first_sample + location.sample_count; ++sample) {
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      if (schema.fields[i].kind != FieldKind::kBlob) continue;
      SampleLocation blob;
      SPK_TRY(index_->locate(sample, static_cast<uint16_t>(i), blob));
      if (!blob.present) continue;
      SPK_ASSIGN(const ByteSpan bytes, blob_in_chunk(location, blob, chunk));
      SPK_TRY(blobs_.check_blob(sample, blob, bytes));
    }
  }
  return {};
}

// Beside a manifest an index is known to be, so that anything else in its place is damage.
Status not_its_index(Status status) {
  if (status.code() == Code::kNotThisFormat) {
    status = damaged(status.message()).at_path(status.path());
  }
  if (status.code() != Code::kDamaged) return status;
  return std::move(status).with_hint("`stripepack repair` rebuilds it from the shards");
}

Result<EngineKind> engine_kind(EngineChoice choice) {
  switch (choice) {
    case EngineChoice::kAuto: return EngineKind::kAuto;
    case EngineChoice::kPool: return EngineKind::kPool;
    case EngineChoice::kUring: return EngineKind::kUring;
    case EngineChoice::kPread:
    case EngineChoice::kMmap: return EngineKind::kSync;
  }
  return invalid_argument(str_cat("there is no engine ", static_cast<int>(choice)));
}

}  // namespace

Result<ByteSpan> blob_in_chunk(const ChunkLocation& chunk, const SampleLocation& blob,
                               ByteSpan bytes) {
  if (blob.shard == chunk.shard && blob.offset >= chunk.offset &&
      range_fits(blob.offset - chunk.offset, blob.bytes, bytes.size())) {
    return bytes.subspan(blob.offset - chunk.offset, blob.bytes);
  }
  return damaged(str_cat("the index places a blob of ", blob.bytes, " bytes at ", blob.offset,
                         ", outside its chunk (", chunk.offset, " with ", bytes.size(), ")"))
      .at_shard(chunk.shard)
      .at_offset(chunk.offset);
}

namespace {

Result<std::shared_ptr<Pack>> open_with(const std::string& path, Directory dir, File index_file,
                                        const OpenOptions& options) {
  SPK_ASSIGN(ShardCache cache, ShardCache::open(options.cache));
  auto opened = PackIndex::open(std::move(index_file));
  if (!opened.ok()) return not_its_index(std::move(opened).status());
  std::unique_ptr<PackIndex> index = std::move(opened).value();
  Directory cache_dir;
  if (cache.has_all(index->shards())) {
    SPK_ASSIGN(cache_dir, Directory::open(cache.path()));
  }
  const FileSystemInfo fs = detect_filesystem(cache_dir.is_open() ? cache_dir.fd() : dir.fd());

  ShardAccess access = ShardAccess::kDescriptor;
  std::unique_ptr<ReadEngine> engine;
  if (options.engine == EngineChoice::kMmap && fs.network) {
    return unsupported(str_cat("the mmap engine is for local file systems; this is ", fs.name))
        .at_path(path)
        .with_hint("choose engine auto or pool");
  }
  if (options.engine == EngineChoice::kMmap ||
      (options.engine == EngineChoice::kAuto && !fs.network)) {
    access = ShardAccess::kMapping;
  } else {
    SPK_ASSIGN(const EngineKind kind, engine_kind(options.engine));
    if (kind != EngineKind::kSync) {
      SPK_ASSIGN(engine, make_read_engine(kind, options.threads, fs.network));
    }
  }
  return std::shared_ptr<Pack>(std::make_shared<OpenPack>(
      path, std::move(dir), std::move(cache), std::move(cache_dir), std::move(index), access,
      std::move(engine), fs.network, options.check_checksums));
}

}  // namespace

Result<std::shared_ptr<Pack>> Pack::open(const std::string& path, const OpenOptions& options) {
  auto opened = Directory::open(path);
  if (!opened.ok()) return not_a_directory(path, std::move(opened).status());
  Directory dir = std::move(opened).value();
  // The manifest is written last: without it nothing else counts.
  SPK_ASSIGN(const bool has_manifest, dir.exists(kManifestName));
  if (!has_manifest) return not_a_pack(dir);
  auto file = File::open_read(dir, kIndexName);
  if (!file.ok()) {
    if (file.status().code() == Code::kNotFound) return not_a_pack(dir);
    return not_its_index(std::move(file).status());
  }
  return open_with(path, std::move(dir), std::move(file).value(), options);
}

Result<std::shared_ptr<Pack>> Pack::open_index(const std::string& path, ByteSpan index,
                                               const OpenOptions& options) {
  SPK_ASSIGN(Directory dir, Directory::open(path));
  SPK_ASSIGN(File file, File::create_in_memory(dir.path_of(kIndexName)));
  SPK_TRY(file.write_all(0, index));
  return open_with(path, std::move(dir), std::move(file), options);
}

}  // namespace spk
