#include "container/seal.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "container/manifest.h"
#include "container/pack.h"
#include "io/atomic_file.h"
#include "io/file.h"

namespace spk {

namespace {

constexpr size_t kTextBytes = size_t{1} << 20;  // of rejects.tsv, written at once

// Writes the body of an index in order and gathers the checksum of each block on the way.
class BlockWriter {
 public:
  BlockWriter(const File& file, uint64_t start) : file_(file), offset_(start) {
    block_.reserve(kIndexBlockBytes);
  }
  Status append(ByteSpan bytes) {
    while (!bytes.empty()) {
      const uint64_t room = kIndexBlockBytes - block_.size();
      const ByteSpan piece = bytes.first(std::min<uint64_t>(room, bytes.size()));
      block_.insert(block_.end(), piece.begin(), piece.end());
      bytes = bytes.subspan(piece.size());
      if (block_.size() == kIndexBlockBytes) SPK_TRY(flush());
    }
    return {};
  }
  // Zeros up to this offset in the file.
  Status pad_to(uint64_t offset) {
    const std::vector<uint8_t> zeros(offset - (offset_ + block_.size()), 0);
    return append(zeros);
  }
  Status flush() {
    if (block_.empty()) return {};
    checksums_.push_back(xxh3_64(block_));
    SPK_TRY(file_.write_all(offset_, block_));
    offset_ += block_.size();
    block_.clear();
    return {};
  }
  const std::vector<uint64_t>& checksums() const { return checksums_; }

 private:
  const File& file_;
  uint64_t offset_;
  std::vector<uint8_t> block_;
  std::vector<uint64_t> checksums_;
};

// What the first pass learns from every footer.
struct Gathered {
  std::vector<ShardRow> rows;
  FooterHeader first;
  std::vector<uint8_t> fields, classes, settings;
  uint64_t chunks = 0, samples = 0, rejects = 0, payload_bytes = 0;
};

Status check_same_pack(const FooterHeader& footer, const FooterHeader& first, uint32_t shard) {
  if (footer.plan_id_low != first.plan_id_low || footer.plan_id_high != first.plan_id_high ||
      footer.schema_hash_low != first.schema_hash_low ||
      footer.schema_hash_high != first.schema_hash_high ||
      footer.shard_count != first.shard_count || footer.shard != shard ||
      footer.chunk_bytes_log2 != first.chunk_bytes_log2 ||
      footer.blob_align_log2 != first.blob_align_log2) {
    return Status(Code::kMismatch,
                  str_cat("shard ", footer.shard, " of ", footer.shard_count, " of plan ",
                          Hash128{footer.plan_id_low, footer.plan_id_high}.to_hex(),
                          "; expected shard ", shard, " of ", first.shard_count, " of plan ",
                          Hash128{first.plan_id_low, first.plan_id_high}.to_hex()))
        .at_shard(shard);
  }
  return {};
}

std::vector<uint8_t> to_vector(ByteSpan bytes) { return {bytes.begin(), bytes.end()}; }

Result<Gathered> gather(const Directory& dir) {
  Gathered all;
  uint32_t shard_count = 1;
  for (uint32_t shard = 0; shard < shard_count; ++shard) {
    SPK_ASSIGN(const LoadedFooter footer, load_footer(dir, shard));
    const FooterHeader& header = footer.view.header();
    if (shard == 0) {
      all.first = header;
      shard_count = std::clamp<uint32_t>(header.shard_count, 1, kMaxShards);
      SPK_ASSIGN(const ByteSpan fields, footer.view.part(PartKind::kFields));
      SPK_ASSIGN(const ByteSpan classes, footer.view.part(PartKind::kClasses));
      SPK_ASSIGN(const ByteSpan settings, footer.view.part(PartKind::kSettings));
      all.fields = to_vector(fields);
      all.classes = to_vector(classes);
      all.settings = to_vector(settings);
      if (schema_hash(fields, classes) !=
          Hash128{header.schema_hash_low, header.schema_hash_high}) {
        return damaged("the footer's schema contradicts its hash")
            .at_path(dir.path_of(shard_file_name(shard)))
            .at_shard(shard);
      }
    }
    SPK_TRY(check_same_pack(header, all.first, shard).at_path(dir.path_of(shard_file_name(shard))));
    ShardRow row;
    row.file_bytes = footer.file_bytes;
    row.data_bytes = header.data_bytes;
    row.chunk_count = header.chunk_count;
    row.sample_count = header.sample_count;
    row.reject_count = header.reject_count;
    row.digest = {header.digest_low, header.digest_high};
    row.chunks_bytes = footer.view.entry(PartKind::kChunks).bytes;
    row.samples_bytes = footer.view.entry(PartKind::kSamples).bytes;
    row.names_bytes = footer.view.entry(PartKind::kNames).bytes;
    all.rows.push_back(row);
    all.chunks += row.chunk_count;
    all.samples += row.sample_count;
    all.rejects += row.reject_count;
    all.payload_bytes += header.payload_bytes;
  }
  return all;
}

// A temporary file that disappears unless it is renamed to its final name.
class PendingFile {
 public:
  static Result<PendingFile> create(const Directory& dir, std::string_view name) {
    // Two processes may seal one pack at once; each has a file of its own.
    const std::string temporary = str_cat(name, ".tmp-", unique_token());
    SPK_ASSIGN(File file, File::create(dir, temporary));
    return PendingFile(dir, std::move(file), std::string(name), temporary);
  }
  PendingFile(PendingFile&&) = default;
  ~PendingFile() {
    if (file_.is_open()) (void)dir_.unlink(temporary_);
  }
  const File& file() const { return file_; }
  Status publish() {
    SPK_TRY(file_.sync());
    Status status = file_.close();
    if (status.ok()) status = dir_.rename(temporary_, name_);
    if (!status.ok()) (void)dir_.unlink(temporary_);  // the destructor sees it closed
    return status;
  }

 private:
  PendingFile(const Directory& dir, File file, std::string name, std::string temporary)
      : dir_(dir),
        file_(std::move(file)),
        name_(std::move(name)),
        temporary_(std::move(temporary)) {}
  const Directory& dir_;
  File file_;
  std::string name_;
  std::string temporary_;
};

Status write_rejects_of(const Directory& dir, const std::vector<ShardRow>& shards) {
  SPK_ASSIGN(PendingFile file, PendingFile::create(dir, kRejectsName));
  std::string text = rejects_header();
  uint64_t written = 0;
  const auto flush = [&]() -> Status {
    SPK_TRY(file.file().write_all(written, as_bytes(text)));
    written += text.size();
    text.clear();
    return {};
  };
  SPK_TRY(each_reject(dir, shards, [&](const RejectRow& row) -> Status {
    append_reject(text, row);
    return text.size() < kTextBytes ? Status() : flush();
  }));
  SPK_TRY(flush());
  return file.publish();
}

}  // namespace

Status each_reject(const Directory& dir, const std::vector<ShardRow>& shards,
                   const std::function<Status(const RejectRow&)>& take) {
  for (uint32_t shard = 0; shard < shards.size(); ++shard) {
    if (shards[shard].reject_count == 0) continue;
    SPK_ASSIGN(const LoadedFooter footer, load_footer(dir, shard));
    SPK_ASSIGN(const ByteSpan part, footer.view.part(PartKind::kRejects));
    SPK_ASSIGN(const std::vector<RejectRow> rows, decode_reject_rows(part));
    for (const RejectRow& row : rows) SPK_TRY(take(row));
  }
  return {};
}

Status write_rejects(const Directory& dir) {
  SPK_ASSIGN(const Gathered all, gather(dir));
  return write_rejects_of(dir, all.rows);
}

Result<LoadedFooter> load_footer(const Directory& dir, uint32_t shard) {
  const std::string name = shard_file_name(shard);
  const auto here = [&](Status status, uint64_t offset) {
    return std::move(status).at_path(dir.path_of(name)).at_shard(shard).at_offset(offset);
  };
  SPK_ASSIGN(const File file, File::open_read(dir, name));
  LoadedFooter footer;
  SPK_ASSIGN(footer.file_bytes, file.size());
  std::vector<uint8_t> last(std::min<uint64_t>(Trailer::kBytes, footer.file_bytes));
  const uint64_t last_offset = footer.file_bytes - last.size();
  SPK_TRY(file.read_exact(last_offset, last));
  auto trailer = decode_trailer(last, footer.file_bytes);
  if (!trailer.ok()) return here(std::move(trailer).status(), last_offset);
  footer.bytes.resize(trailer->footer_bytes);
  SPK_TRY(file.read_exact(trailer->footer_offset, footer.bytes));
  auto view = FooterView::parse(footer.bytes);
  if (!view.ok()) return here(std::move(view).status(), trailer->footer_offset);
  footer.view = std::move(view).value();
  const FooterHeader& header = footer.view.header();
  if (header.checksum != trailer->footer_checksum || header.data_bytes != trailer->footer_offset ||
      header.shard != trailer->shard || header.plan_id_low != trailer->plan_id_low ||
      header.plan_id_high != trailer->plan_id_high) {
    return here(damaged("footer and trailer contradict each other"), trailer->footer_offset);
  }
  return footer;
}

Result<SealSummary> seal_pack(const Directory& dir) {
  SPK_ASSIGN(Gathered all, gather(dir));
  const IndexPlan plan =
      plan_index(all.rows, all.fields.size(), all.classes.size(), all.settings.size());

  SPK_ASSIGN(PendingFile index, PendingFile::create(dir, kIndexName));
  BlockWriter body(index.file(), plan.head_bytes);
  SPK_TRY(body.append(encode_shard_rows(all.rows)));
  const std::vector<uint8_t>* schema_parts[] = {&all.fields, &all.classes, &all.settings};
  for (size_t i = 0; i < 3; ++i) {
    SPK_TRY(body.pad_to(plan.sections[i + 1].offset));
    SPK_TRY(body.append(*schema_parts[i]));
  }
  constexpr PartKind kShardParts[] = {PartKind::kChunks, PartKind::kSamples, PartKind::kNames};
  for (size_t i = 0; i < 3; ++i) {
    SPK_TRY(body.pad_to(plan.sections[i + 4].offset));
    for (uint32_t shard = 0; shard < all.rows.size(); ++shard) {
      SPK_ASSIGN(const LoadedFooter footer, load_footer(dir, shard));
      SPK_ASSIGN(const ByteSpan part, footer.view.part(kShardParts[i]));
      SPK_TRY(body.append(part));
    }
  }
  SPK_TRY(body.pad_to(plan.file_bytes));
  SPK_TRY(body.flush());

  SealSummary summary;
  IndexHeader& header = summary.header;
  std::vector<Hash128> digests;
  for (const ShardRow& row : all.rows) digests.push_back(row.digest);
  const Hash128 schema{all.first.schema_hash_low, all.first.schema_hash_high};
  const Hash128 content = content_id(schema, digests);
  header.content_id_low = content.low;
  header.content_id_high = content.high;
  header.shard_count = static_cast<uint32_t>(all.rows.size());
  header.chunk_count = all.chunks;
  header.sample_count = all.samples;
  header.reject_count = all.rejects;
  header.payload_bytes = all.payload_bytes;
  header.schema_hash_low = schema.low;
  header.schema_hash_high = schema.high;
  PackIdentity identity;
  identity.plan_id = {all.first.plan_id_low, all.first.plan_id_high};
  identity.chunk_bytes_log2 = all.first.chunk_bytes_log2;
  identity.blob_align_log2 = all.first.blob_align_log2;
  const std::vector<uint8_t> head = encode_index_head(header, identity, plan, body.checksums());
  SPK_TRY(index.file().write_all(0, head));
  SPK_TRY(index.publish());
  SPK_TRY(write_rejects_of(dir, all.rows));

  SPK_ASSIGN(const Schema decoded_schema, decode_schema(all.fields, all.classes));
  SPK_ASSIGN(const Settings settings, decode_settings(all.settings));
  // Index and rejects must be found after a crash wherever the manifest is.
  SPK_TRY(dir.sync());
  SPK_TRY(write_file_atomically(
      dir, kManifestName, as_bytes(render_manifest(header, all.rows, decoded_schema, settings))));
  summary.shards = std::move(all.rows);
  return summary;
}

}  // namespace spk
