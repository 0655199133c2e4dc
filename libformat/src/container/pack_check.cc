#include "container/pack_check.h"

#include <algorithm>

#include "base/text.h"
#include "container/manifest.h"
#include "container/not_a_pack.h"
#include "container/pack.h"
#include "container/seal.h"
#include "container/shard_queue.h"

namespace spk {

namespace {

class PackChecker {
 public:
  PackChecker(const Directory& dir, const VerifyOptions& options, const DamageSink& sink,
              const VerifyHooks& hooks)
      : dir_(dir), options_(options), sink_(sink), hooks_(hooks) {}

  Result<PackCheckResult> run(bool need_manifest) {
    SPK_ASSIGN(const std::vector<DirectoryEntry> entries, dir_.list());
    has_manifest_ = std::any_of(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
      return entry.name == kManifestName;
    });
    if (need_manifest && !has_manifest_) return not_a_pack(dir_);
    IndexCheck index(dir_, options_.threads);
    SPK_ASSIGN(result_.facts, gather_facts(dir_, entries, index));
    const PackFacts& facts = result_.facts;
    check_names(entries);
    if (!facts.has_schema) {
      report(make(DamageKind::kFile, Code::kDamaged, std::string(shard_file_name(0)), 0,
                  "the schema is lost with the index and the footers of the first and last shard: "
                  "no chunk can be read"));
    }
    result_.shard_whole.assign(facts.shard_count, true);
    if (hooks_.begin) hooks_.begin(index.head_ok() ? index.head().header.sample_count : 0, bytes_);

    ShardQueue queue(
        facts, options_, hooks_,
        [&](uint32_t shard, std::vector<Damage>& damages, LoadedShard& loaded) {
          load_shard(dir_, facts, index, shard, max_footer_bytes(options_.memory_bytes), damages,
                     loaded);
        },
        [&](ShardSummary& summary, std::vector<Damage>& damages) { take(summary, damages); });
    SPK_TRY(queue.run());
    finish(index);
    VerifyReport& report = result_.report;
    report.plan_id = facts.identity.plan_id;
    report.shards = facts.shard_count;
    report.warnings = std::move(warnings_);
    return std::move(result_);
  }

 private:
  static Damage make(DamageKind kind, Code code, std::string file, uint64_t offset,
                     std::string what) {
    Damage damage;
    damage.kind = kind;
    damage.code = code;
    damage.file = std::move(file);
    damage.offset = offset;
    damage.what = std::move(what);
    return damage;
  }
  void report(const Damage& damage) {
    result_.report.damages += 1;
    result_.report.samples_lost += damage.samples_lost;
    if (damage.shard < result_.shard_whole.size()) result_.shard_whole[damage.shard] = false;
    if (sink_) sink_(damage);
  }

  void check_names(const std::vector<DirectoryEntry>& entries) {
    constexpr std::string_view kKnown[] = {kManifestName, kIndexName, kRejectsName,
                                           kLayoutName,   kRunName,   "SHA256SUMS"};
    for (const DirectoryEntry& entry : entries) {
      const auto info = dir_.stat(entry.name);
      if (info.ok()) bytes_ += info->size_bytes;
      const auto number = shard_number(entry.name);
      if (number && *number < result_.facts.shard_count) continue;
      if (number || (entry.name.starts_with("shard-") && entry.name.ends_with(".spks"))) {
        report(make(DamageKind::kFile, Code::kMismatch, entry.name, 0,
                    str_cat("not a shard of this pack, which has ", result_.facts.shard_count)));
        continue;
      }
      if (std::find(std::begin(kKnown), std::end(kKnown), entry.name) == std::end(kKnown)) {
        warnings_.push_back(
            str_cat("'", escape_bytes(entry.name), "' does not belong to the pack"));
      }
    }
  }

  void take(ShardSummary& summary, std::vector<Damage>& damages) {
    for (const Damage& damage : damages) report(damage);
    VerifyReport& report = result_.report;
    report.chunks += summary.chunk_count;
    report.samples += summary.sample_count;
    report.rejects += summary.row.reject_count;
    report.bytes_checked +=
        options_.level == VerifyLevel::kFull
            ? summary.file_bytes
            : summary.file_bytes - std::min(summary.file_bytes, summary.row.data_bytes);
    payload_bytes_ += summary.payload_bytes;
    rows_known_ = rows_known_ && summary.known;
    rejects_known_ = rejects_known_ && summary.rejects.has_value();
    if (summary.rejects) rejects_ += *summary.rejects;
    rows_.push_back(summary.row);
    result_.shards.push_back(std::move(summary));
  }

  // Index, rejects.tsv and manifest.json against what the shards say.
  void finish(IndexCheck& index) {
    std::optional<IndexHeader> header;
    if (rows_known_) header = compare_index(index);
    if (index.head_ok()) header = index.head().header;
    for (const Damage& damage : index.damages()) report(damage);
    result_.report.bytes_checked += index.file_bytes();
    if (rejects_known_) {
      compare_file(DamageKind::kRejects, kRejectsName, rejects_header() + rejects_);
    } else {
      warnings_.push_back("rejects.tsv was not compared: a shard's list of rejects is damaged");
    }
    if (!has_manifest_) return;
    const PackFacts& facts = result_.facts;
    if (rows_known_ && header && facts.has_schema && facts.has_settings) {
      const auto settings = decode_settings(facts.settings);
      if (settings.ok()) {
        compare_file(DamageKind::kManifest, kManifestName,
                     render_manifest(*header, rows_, facts.schema, *settings));
        return;
      }
    }
    warnings_.push_back("manifest.json was not compared: index or footers are damaged");
  }

  // The index header that goes with the shards, where that can be told.
  std::optional<IndexHeader> compare_index(IndexCheck& index) {
    const PackFacts& facts = result_.facts;
    IndexHeader header;
    std::vector<Hash128> digests;
    for (const ShardRow& row : rows_) {
      digests.push_back(row.digest);
      header.chunk_count += row.chunk_count;
      header.sample_count += row.sample_count;
      header.reject_count += row.reject_count;
    }
    const Hash128 content = content_id(facts.schema_hash, digests);
    result_.report.content_id = content;
    if (!facts.has_schema || !facts.has_settings) return std::nullopt;
    header.content_id_low = content.low;
    header.content_id_high = content.high;
    header.shard_count = facts.shard_count;
    header.payload_bytes = payload_bytes_;
    header.schema_hash_low = facts.schema_hash.low;
    header.schema_hash_high = facts.schema_hash.high;
    const IndexPlan plan =
        plan_index(rows_, facts.fields.size(), facts.classes.size(), facts.settings.size());
    if (index.head_ok() && same_sections(index.head(), plan)) {
      const std::vector<uint8_t> shards = encode_shard_rows(rows_);
      const ByteSpan bodies[] = {shards, facts.fields, facts.classes, facts.settings};
      for (size_t i = 0; i < plan.sections.size(); ++i) {
        const PartEntry& section = plan.sections[i];
        if (i < std::size(bodies)) {
          index.compare(section.offset, bodies[i], "what the shards say");
        }
        const uint64_t end = section.offset + section.bytes;
        const uint64_t next =
            i + 1 < plan.sections.size() ? plan.sections[i + 1].offset : plan.file_bytes;
        index.compare(end, std::vector<uint8_t>(next - end, 0), "zero padding");
      }
      if (index.row(0) == nullptr) compare_tables(index);
    }
    return index.compare_head(header, facts.identity, plan);
  }

  // The shards' tables, where their places were not known while the shards were at hand, because
  // the index lost its own table of them.
  void compare_tables(IndexCheck& index) {
    for (uint32_t shard = 0; shard < rows_.size(); ++shard) {
      const auto footer = load_footer(dir_, shard);
      if (!footer.ok()) continue;
      const std::pair<PartKind, uint64_t> places[] = {
          {PartKind::kChunks, rows_[shard].chunks_offset},
          {PartKind::kSamples, rows_[shard].samples_offset},
          {PartKind::kNames, rows_[shard].names_offset}};
      for (const auto& [kind, offset] : places) {
        const auto part = footer->view.part(kind);
        if (part.ok()) index.compare(offset, *part, str_cat("the footer of shard ", shard));
      }
    }
  }

  static bool same_sections(const IndexHead& head, const IndexPlan& plan) {
    return head.header.head_bytes == plan.head_bytes &&
           std::equal(head.sections.begin(), head.sections.end(), plan.sections.begin(),
                      plan.sections.end(), [](const PartEntry& a, const PartEntry& b) {
                        return a.kind == b.kind && a.offset == b.offset && a.bytes == b.bytes;
                      });
  }

  void compare_file(DamageKind kind, std::string_view name, const std::string& expected) {
    const auto fail = [&](Code code, uint64_t offset, std::string what) {
      report(make(kind, code, std::string(name), offset, std::move(what)));
    };
    const auto file = File::open_read(dir_, name);
    if (!file.ok()) {
      const bool missing = file.status().code() == Code::kNotFound;
      return fail(file.status().code(), 0,
                  missing ? str_cat(name, " is missing") : file.status().message());
    }
    const auto size = file->size();
    if (!size.ok()) return fail(size.status().code(), 0, size.status().message());
    std::string actual(std::min<uint64_t>(*size, expected.size()), '\0');
    const MutableByteSpan into(reinterpret_cast<uint8_t*>(actual.data()), actual.size());
    if (Status status = file->read_exact(0, into); !status.ok()) {
      return fail(status.code(), 0, status.message());
    }
    result_.report.bytes_checked += actual.size();
    const auto differs = std::mismatch(actual.begin(), actual.end(), expected.begin()).first;
    const auto offset = static_cast<uint64_t>(differs - actual.begin());
    if (differs != actual.end()) {
      fail(Code::kDamaged, offset, str_cat(name, " differs from what the shards say"));
    } else if (*size != expected.size()) {
      fail(Code::kDamaged, offset,
           str_cat(name, " has ", *size, " bytes, expected ", expected.size()));
    }
  }

  const Directory& dir_;
  const VerifyOptions& options_;
  const DamageSink& sink_;
  const VerifyHooks& hooks_;
  bool has_manifest_ = false;
  uint64_t bytes_ = 0;
  PackCheckResult result_;
  std::vector<std::string> warnings_;
  // Gathered shard by shard.
  std::vector<ShardRow> rows_;
  uint64_t payload_bytes_ = 0;
  std::string rejects_;
  bool rows_known_ = true;
  bool rejects_known_ = true;
};

}  // namespace

uint64_t max_footer_bytes(uint64_t memory_bytes) noexcept {
  // No real footer comes near the lower bound; the upper one keeps a hostile file in check.
  return std::clamp<uint64_t>(memory_bytes, uint64_t{256} << 20, uint64_t{1} << 30);
}

void check_shard(const PackFacts& facts, const LoadedShard& shard, ChunkBytes& buffer,
                 std::vector<Damage>& damages) {
  const ShardExtent extent = shard.extent(facts);
  ChunkVerifier verifier(buffer);
  for (size_t i = 0; i < shard.chunks.size(); ++i) {
    verifier.verify(extent, shard.chunk_number(i), shard.chunks[i],
                    shard.chunk_end(i, facts.identity), damages);
  }
}

Result<PackCheckResult> check_pack(const Directory& dir, bool need_manifest,
                                   const VerifyOptions& options, const DamageSink& sink,
                                   const VerifyHooks& hooks) {
  return PackChecker(dir, options, sink, hooks).run(need_manifest);
}

}  // namespace spk
