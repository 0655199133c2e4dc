#include "container/repair.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "base/text.h"
#include "container/not_a_pack.h"
#include "container/pack.h"
#include "container/pack_check.h"
#include "container/pack_index.h"
#include "container/parallel_for.h"
#include "container/reject_rescue.h"
#include "container/repair_files.h"
#include "container/seal.h"

namespace spk {

namespace {

constexpr std::string_view kSha256Name = "SHA256SUMS";

// The second copy, as far as it is whole.
struct Copy {
  Directory dir;
  IndexCheck index;
  PackFacts facts;

  Copy(Directory directory, uint32_t threads) : dir(std::move(directory)), index(dir, threads) {}
};

// A damaged shard on both sides. Its tables take memory, so it is opened to assess it, and again to
// write it.
struct Sides {
  LoadedShard own;
  LoadedShard copy;
  std::optional<ShardRewrite> rewrite;
};

// One shard that has to be written again.
struct Work {
  uint32_t shard = 0;
  std::vector<LostSample> lost;
  uint64_t unknown_lost = 0;
  std::vector<RejectRow> rejects;
  bool rejects_lost = false;
  PositionRange positions;
  uint64_t blobs_from_copy = 0;
  Status status;
};

// The first trouble with reading rather than with what was read. Such a shard may be whole.
const Damage* find_unreadable(const std::vector<Damage>& damages) {
  for (const Damage& damage : damages) {
    if (could_not_be_read(damage.code)) return &damage;
  }
  return nullptr;
}

class Repair {
 public:
  Repair(const Directory& dir, const RepairOptions& options, const DamageSink& sink,
         const VerifyHooks& hooks)
      : dir_(dir), options_(options), sink_(sink), hooks_(hooks) {}

  Result<RepairReport> run() {
    SPK_TRY(lock_for_repair(dir_));
    SPK_TRY(examine());
    report_.damages = checked_.report.damages;
    report_.samples = checked_.report.samples;
    report_.content_id = checked_.report.content_id;
    SPK_ASSIGN(const bool has_manifest, dir_.exists(kManifestName));
    if (checked_.report.ok() && has_manifest) {
      (void)remove_repair_leftovers(dir_);  // they do no harm where they must stay
      return std::move(report_);
    }
    SPK_TRY(refuse_folders(dir_));
    if (!options_.from.empty()) SPK_TRY(open_copy());
    SPK_TRY(complete_facts());
    SPK_TRY(assess());
    if (!options_.drop_damaged && (!report_.lost.empty() || report_.unknown_lost != 0)) {
      report_.outcome = RepairReport::Outcome::kRefused;
      return std::move(report_);
    }
    Status status = write_shards();
    if (!status.ok()) {
      for (const Work& work : work_) (void)dir_.unlink(repair_temporary_name(work.shard));
      return status;
    }
    SPK_TRY(publish());
    report_.outcome = RepairReport::Outcome::kRepaired;
    return std::move(report_);
  }

 private:
  bool cancelled() const { return hooks_.cancel != nullptr && hooks_.cancel->load(); }

  Status examine() {
    SPK_ASSIGN(const std::vector<DirectoryEntry> entries, dir_.list());
    bool any_shard = false;
    for (const DirectoryEntry& entry : entries) {
      any_shard = any_shard || shard_number(entry.name).has_value();
      if (entry.name == "plan.spkp") {
        return Status(Code::kBusy, "this pack is not built yet; its plan is still here")
            .at_path(dir_.path())
            .with_hint("the command line that began it continues it");
      }
    }
    SPK_ASSIGN(const bool has_index, dir_.exists(kIndexName));
    SPK_ASSIGN(const bool has_manifest, dir_.exists(kManifestName));
    if (!any_shard && !has_index && !has_manifest) return not_a_pack(dir_);
    VerifyOptions options;
    options.threads = options_.threads;
    options.memory_bytes = options_.memory_bytes;
    const auto keep = [&](const Damage& damage) {
      if (sink_) sink_(damage);
      if (damage.shard == Status::kNoShard) {
        if (damage.kind == DamageKind::kFile && damage.code == Code::kMismatch) {
          foreign_files_.push_back(damage.file);
        }
        return;
      }
      damages_of_shard_[damage.shard] += 1;
      if (could_not_be_read(damage.code)) unreadable_.emplace(damage.shard, damage);
      if (damage.sample != Damage::kNoSample) suspects_[damage.shard].insert(damage.sample);
    };
    SPK_ASSIGN(checked_, check_pack(dir_, false, options, keep, hooks_));
    return {};
  }

  Status open_copy() {
    SPK_ASSIGN(Directory dir, Directory::open(options_.from));
    copy_ = std::make_unique<Copy>(std::move(dir), options_.threads);
    SPK_ASSIGN(const std::vector<DirectoryEntry> entries, copy_->dir.list());
    auto facts = gather_facts(copy_->dir, entries, copy_->index);
    if (!facts.ok()) return not_a_pack(copy_->dir);
    copy_->facts = std::move(facts).value();
    const Hash128& theirs = copy_->facts.identity.plan_id;
    const Hash128& ours = checked_.facts.identity.plan_id;
    if (theirs == ours && copy_->facts.shard_count == checked_.facts.shard_count) return {};
    return Status(Code::kMismatch, str_cat("not a copy of this pack: it is of plan ",
                                           theirs.to_hex(), ", this pack of ", ours.to_hex()))
        .at_path(options_.from);
  }

  Status complete_facts() {
    PackFacts& facts = checked_.facts;
    if (copy_ != nullptr && !facts.has_schema && copy_->facts.has_schema) {
      facts.has_schema = true;
      facts.schema = copy_->facts.schema;
      facts.fields = copy_->facts.fields;
      facts.classes = copy_->facts.classes;
      facts.schema_hash = copy_->facts.schema_hash;
    }
    if (copy_ != nullptr && !facts.has_settings && copy_->facts.has_settings) {
      facts.has_settings = true;
      facts.settings = copy_->facts.settings;
    }
    if (!facts.has_schema || !facts.has_settings) {
      return damaged("schema or plan record are lost with the index and the footers")
          .at_path(dir_.path())
          .with_hint("--from COPY takes them from a second copy");
    }
    SPK_ASSIGN(settings_, decode_settings(facts.settings));
    if (encode_fields(facts.schema) != facts.fields ||
        encode_classes(facts.schema) != facts.classes ||
        encode_settings(settings_) != facts.settings) {
      return unsupported("schema or plan record hold columns that this version cannot write again")
          .at_path(dir_.path());
    }
    return {};
  }

  // Which shards have to be written again, and what is lost.
  Status assess() {
    const PackFacts& facts = checked_.facts;
    index_ = std::make_unique<IndexCheck>(dir_, options_.threads);
    SPK_ASSIGN(const std::vector<DirectoryEntry> entries, dir_.list());
    SPK_TRY(gather_facts(dir_, entries, *index_).status());  // disowns a foreign index
    for (uint32_t shard = 0; shard < facts.shard_count; ++shard) {
      if (checked_.shard_whole[shard]) continue;
      if (cancelled()) return Status(Code::kCancelled, "stopped on request");
      Sides sides;
      if (const auto trouble = load_sides(shard, sides)) unreadable_.emplace(shard, *trouble);
      if (sides.own.differs_from_index && damages_of_shard_[shard] == 1) {
        report_.steps.push_back(str_cat(sides.own.name,
                                        " is whole, but not what the index described; index and "
                                        "manifest now follow it"));
        report_.identity_changed = true;
        continue;
      }
      Work work;
      work.shard = shard;
      SPK_TRY(make_rewrite(sides));
      SPK_TRY(assess(sides, work));
      SPK_TRY(refuse_unreadable(work));
      work_.push_back(std::move(work));
    }
    return {};
  }

  // What kept the own side from being read; other damage was reported when the pack was examined.
  std::optional<Damage> load_sides(uint32_t shard, Sides& sides) {
    std::vector<Damage> own, ignored;
    const uint64_t most = max_footer_bytes(options_.memory_bytes);
    load_shard(dir_, checked_.facts, *index_, shard, most, own, sides.own);
    if (copy_ != nullptr) {
      load_shard(copy_->dir, checked_.facts, copy_->index, shard, most, ignored, sides.copy);
    }
    const Damage* const trouble = find_unreadable(own);
    return trouble != nullptr ? std::optional(*trouble) : std::nullopt;
  }

  Status cannot_read(const Damage& trouble) const {
    return Status(trouble.code, str_cat("cannot be read, which is no damage: ", trouble.what))
        .at_path(dir_.path_of(trouble.file))
        .with_hint(
            "nothing was changed; see to permissions, limits and the disk (of one that fails, copy "
            "what can be read elsewhere and repair that), or take it from a second copy: --from");
  }

  // What could not be read may be whole, and is never dropped.
  Status refuse_unreadable(const Work& work) const {
    const auto trouble = unreadable_.find(work.shard);
    if (trouble == unreadable_.end() || (work.lost.empty() && work.unknown_lost == 0)) return {};
    return cannot_read(trouble->second);
  }

  Status make_rewrite(Sides& sides) const {
    const LoadedShard* copy = copy_ != nullptr ? &sides.copy : nullptr;
    auto rewrite = ShardRewrite::make(checked_.facts, sides.own, copy);
    if (!rewrite.ok()) {
      const auto trouble = unreadable_.find(sides.own.shard);
      if (trouble != unreadable_.end()) return cannot_read(trouble->second);
      return std::move(rewrite).status().at_path(sides.own.name);
    }
    sides.rewrite.emplace(std::move(rewrite).value());
    return {};
  }

  Status assess(Sides& sides, Work& work) {
    // Without rows of its own the damaged samples are not known one by one.
    const bool rows_are_own = sides.own.source != RowSource::kChunks;
    SPK_ASSIGN(work.lost,
               sides.rewrite->find_lost(rows_are_own ? &suspects_[work.shard] : nullptr));
    if (const Status& trouble = sides.rewrite->read_error(); !trouble.ok()) {
      Damage damage;
      damage.code = trouble.code();
      damage.file = sides.own.name;
      damage.what = trouble.message();
      unreadable_.emplace(work.shard, std::move(damage));
    }
    work.unknown_lost = sides.rewrite->unknown_samples();
    report_.lost.insert(report_.lost.end(), work.lost.begin(), work.lost.end());
    report_.unknown_lost += work.unknown_lost;

    const RejectRescue rescue(dir_, checked_.shards);
    std::optional<std::vector<RejectRow>> known = RejectRescue::of_footer(sides.own.footer);
    if (!known) known = RejectRescue::of_footer(sides.copy.footer);
    if (!known) known = rescue.of_file(work.shard);
    const uint64_t samples = sides.rewrite->samples() + work.unknown_lost;
    const auto positions = find_positions(sides, known ? samples + known->size() : samples);
    if (!positions) {
      return damaged("it is lost which part of the plan this shard holds")
          .at_path(sides.own.name)
          .with_hint("--from COPY takes it from a second copy");
    }
    work.positions = *positions;
    work.rejects_lost = !known && positions->size() > samples;
    if (known) work.rejects = std::move(*known);
    for (uint64_t i = samples; work.rejects_lost && i < positions->size(); ++i) {
      work.rejects.push_back({"", 0, "unknown: lost with the footer and rejects.tsv"});
    }
    for (const LostSample& lost : work.lost) {
      work.rejects.push_back(
          {lost.key, lost.ordinal, str_cat(kDroppedByRepair, ": ", lost.reason)});
    }
    for (uint64_t i = 0; i < work.unknown_lost; ++i) {
      work.rejects.push_back({"", 0, str_cat(kDroppedByRepair, ": name and place are lost")});
    }
    return {};
  }

  // From a footer of either side; from the index, where the counts of all shards before add up to
  // it; from the shards on both sides. `count`: samples and rejects, as far as they are known.
  std::optional<PositionRange> find_positions(const Sides& sides, uint64_t count) const {
    const uint32_t shard = sides.own.shard;
    for (const LoadedShard* side : {&sides.own, &sides.copy}) {
      if (!side->footer.usable) continue;
      const FooterHeader& header = side->footer.header();
      return PositionRange{header.first_position, header.first_position + header.position_count};
    }
    const IndexCheck* indexes[] = {index_.get(), copy_ != nullptr ? &copy_->index : nullptr};
    for (const IndexCheck* rows : indexes) {
      if (rows == nullptr || rows->row(shard) == nullptr) continue;
      uint64_t begin = 0;
      for (uint32_t s = 0; s < shard; ++s) {
        begin += rows->row(s)->sample_count + rows->row(s)->reject_count;
      }
      const ShardRow& row = *rows->row(shard);
      return PositionRange{begin, begin + row.sample_count + row.reject_count};
    }
    const auto neighbour = [&](uint32_t other) -> std::optional<PositionRange> {
      const auto footer = load_footer(dir_, other);
      if (!footer.ok()) return std::nullopt;
      const FooterHeader& header = footer->view.header();
      return PositionRange{header.first_position, header.first_position + header.position_count};
    };
    PositionRange range;
    if (shard > 0) {
      const auto before = neighbour(shard - 1);
      if (!before) return std::nullopt;
      range.begin = before->end;
    }
    range.end = range.begin + count;
    if (shard + 1 < checked_.facts.shard_count) {
      const auto after = neighbour(shard + 1);
      if (!after || after->begin < range.begin + count) return std::nullopt;
      range.end = after->begin;
    }
    return range;
  }

  Status write_shards() {
    const uint64_t by_memory = options_.memory_bytes / 4 / checked_.facts.identity.chunk_bytes();
    const auto threads = static_cast<uint32_t>(
        std::clamp<uint64_t>(by_memory, 1, std::max<uint32_t>(1, options_.threads)));
    parallel_for(threads, work_.size(), [&](uint64_t i) {
      Work& work = work_[i];
      work.status = cancelled() ? Status(Code::kCancelled, "stopped on request") : write(work);
    });
    for (const Work& work : work_) {
      if (!work.status.ok()) return work.status;
    }
    return {};
  }

  Status write(Work& work) {
    const std::string name = repair_temporary_name(work.shard);
    SPK_TRY(dir_.remove_tree(name));  // of a repair that was killed
    Sides sides;
    const auto trouble = load_sides(work.shard, sides);
    if (trouble && unreadable_.count(work.shard) == 0) return cannot_read(*trouble);
    SPK_TRY(make_rewrite(sides));
    const ShardContext context{
        checked_.facts.identity,    checked_.facts.schema, settings_, work.shard,
        checked_.facts.shard_count, work.positions};
    std::set<uint64_t> drop;
    for (const LostSample& lost : work.lost) drop.insert(lost.sample);
    SPK_TRY(sides.rewrite->write(dir_, name, context, drop, work.rejects));
    work.blobs_from_copy = sides.rewrite->blobs_from_copy();

    LoadedShard written;
    written.name = name;
    IndexCheck no_index;
    std::vector<Damage> damages;
    load_shard(dir_, checked_.facts, no_index, work.shard, max_footer_bytes(options_.memory_bytes),
               damages, written);
    SPK_ASSIGN(ChunkBytes buffer, ChunkBytes::make(checked_.facts.identity.chunk_bytes()));
    check_shard(checked_.facts, written, buffer, damages);
    if (!damages.empty() || written.source != RowSource::kFooter) {
      return internal_error(str_cat("the rewritten shard is not whole: ",
                                    damages.empty() ? "no footer" : damages[0].what))
          .at_path(name);
    }
    const auto digest = sides.rewrite->digest();
    if (drop.empty() && work.unknown_lost == 0 && digest && *digest != written.row.digest) {
      return Status(Code::kMismatch,
                    str_cat("the rewritten shard has digest ", written.row.digest.to_hex(),
                            ", the index says ", digest->to_hex()))
          .at_path(name);
    }
    return {};
  }

  // Everything is written and proven; now it takes its places.
  Status publish() {
    const bool drops = !report_.lost.empty() || report_.unknown_lost != 0;
    report_.identity_changed = report_.identity_changed || drops;
    bool aside = report_.identity_changed;
    for (const Work& work : work_) aside = aside || work.rejects_lost;
    const std::optional<Hash128> before = claimed_content_id();
    // Before anything changes: sums of other bytes must not survive a repair that is killed.
    if (aside || (before && *before != report_.content_id)) SPK_TRY(remove(kSha256Name));
    SPK_ASSIGN(const bool has_manifest, dir_.exists(kManifestName));
    if (aside && has_manifest) {
      SPK_TRY(dir_.rename(kManifestName, kManifestAsideName));
      SPK_TRY(dir_.sync());
    }
    for (const Work& work : work_) {
      SPK_TRY(dir_.rename(repair_temporary_name(work.shard), shard_file_name(work.shard)));
      report_.shards_rewritten += 1;
      report_.blobs_from_copy += work.blobs_from_copy;
      report_.reject_lists_lost += work.rejects_lost ? 1 : 0;
      report_.steps.push_back(describe(work));
    }
    for (const std::string& name : foreign_files_) {
      SPK_ASSIGN(const std::string away, put_aside_foreign(dir_, name));
      report_.steps.push_back(str_cat("renamed ", name, " to ", away));
    }
    SPK_TRY(dir_.sync());
    SPK_ASSIGN(const SealSummary sealed, seal_pack(dir_));
    report_.steps.push_back("wrote index.spki, rejects.tsv and manifest.json");
    report_.content_id = {sealed.header.content_id_low, sealed.header.content_id_high};
    if (before && *before != report_.content_id && !report_.identity_changed) {
      report_.steps.push_back(
          str_cat("the index was of another pack than the shards: content id ", before->to_hex()));
      report_.identity_changed = true;
    }
    if (report_.identity_changed) SPK_TRY(remove(kSha256Name));
    SPK_TRY(remove_repair_leftovers(dir_));
    SPK_TRY(dir_.sync());
    report_.samples = sealed.header.sample_count;
    return check_result();
  }

  Status remove(std::string_view name) const {
    Status status = dir_.unlink(name);
    if (status.code() == Code::kNotFound) return {};
    return status;
  }

  // What the index says that the pack is, where it can be read.
  std::optional<Hash128> claimed_content_id() const {
    auto file = File::open_read(dir_, kIndexName);
    if (!file.ok()) return std::nullopt;
    const auto index = PackIndex::open(std::move(file).value());
    if (!index.ok()) return std::nullopt;
    const IndexHeader& header = (*index)->head().header;
    return Hash128{header.content_id_low, header.content_id_high};
  }

  static std::string describe(const Work& work) {
    std::string text = str_cat("rewrote ", shard_file_name(work.shard));
    if (const uint64_t blobs = work.blobs_from_copy; blobs != 0) {
      text += str_cat(", ", count_of(blobs, "blob"), " from the copy");
    }
    const uint64_t dropped = work.lost.size() + work.unknown_lost;
    if (dropped != 0) {
      text += str_cat(", without ", count_of(dropped, "damaged sample"));
    }
    if (work.rejects_lost) text += "; its list of rejects is lost";
    return text;
  }

  Status check_result() {
    VerifyOptions options;
    options.level = VerifyLevel::kQuick;
    options.threads = options_.threads;
    options.memory_bytes = options_.memory_bytes;
    std::string first;
    const auto keep = [&](const Damage& damage) {
      if (first.empty()) first = str_cat(damage.file, ": ", damage.what);
    };
    SPK_ASSIGN(const PackCheckResult result, check_pack(dir_, true, options, keep, {}));
    if (result.report.ok()) return {};
    return internal_error("damage is left after the repair: " + first).at_path(dir_.path());
  }

  const Directory& dir_;
  const RepairOptions& options_;
  const DamageSink& sink_;
  const VerifyHooks& hooks_;
  PackCheckResult checked_;
  Settings settings_;
  std::unique_ptr<Copy> copy_;
  std::unique_ptr<IndexCheck> index_;  // made by assess()
  std::map<uint32_t, std::set<uint64_t>> suspects_;
  std::map<uint32_t, uint64_t> damages_of_shard_;
  std::map<uint32_t, Damage> unreadable_;  // what kept a shard, or some of it, from being read
  std::vector<std::string> foreign_files_;
  std::vector<Work> work_;
  RepairReport report_;
};

}  // namespace

Result<RepairReport> repair_pack(const std::string& path, const RepairOptions& options,
                                 const DamageSink& sink, const VerifyHooks& hooks) {
  auto dir = Directory::open(path);
  if (!dir.ok()) return not_a_directory(path, std::move(dir).status());
  return Repair(*dir, options, sink, hooks).run();
}

}  // namespace spk
