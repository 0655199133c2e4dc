#include "commands/verify.h"

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "commands/damage_report.h"
#include "commands/options.h"
#include "commands/pack_set.h"
#include "commands/rank_damage.h"
#include "commands/source_options.h"
#include "commands/verify_source.h"
#include "container/layout_record.h"
#include "container/verify.h"
#include "ui/signals.h"

namespace spk {

namespace {

class VerifyCommand : public Command {
 public:
  void add_to(CLI::App& app) override;
  bool chosen() const override { return sub_->parsed(); }
  bool deals_to_ranks() const override { return true; }
  int run(Ui& ui) override;

 private:
  int run_checks(Ui& ui);
  Status verify_one(Ui& ui, Progress& progress, const PackPath& pack);
  Status prove_more(Ui& ui, Progress& progress, const std::vector<NamedPack>& packs);
  Result<std::vector<StripeLayout>> look_by_ranks(const Pack& pack);
  Status compare_layouts(Ui& ui, const NamedPack& pack);
  Result<ProofCounts> decode_by_ranks(Ui& ui, const NamedPack& pack, ProofOptions options);
  void show_fault(Ui& ui, const ProofFault& fault);
  // Of the damages `unreadable` could not be read: they may be whole.
  void show_report(Ui& ui, const PackPath& pack, const VerifyReport& report, uint64_t unreadable);

  CLI::App* sub_ = nullptr;
  std::string path_;
  bool quick_ = false;
  bool decode_ = false;
  bool layout_ = false;
  PackOptions against_;  // .source is empty where nothing is compared
  uint32_t jobs_ = 0;
  uint64_t memory_bytes_ = uint64_t{512} << 20;
  ProgressMode progress_ = ProgressMode::kAuto;
  uint64_t faults_ = 0;  // of every kind, in all packs
  bool source_failed_ = false;
  uint64_t unreadable_ = 0;  // of these, bytes that could not be read, so that nothing is proven
};

void VerifyCommand::add_to(CLI::App& app) {
  sub_ = app.add_subcommand("verify", "Prove a pack: every byte, every picture, every source file");
  sub_->add_option("PACK", path_, "A pack, or a folder of splits")->required();
  CLI::Option* quick =
      sub_->add_flag("--quick", quick_, "Names, sizes, footers, index and manifest only");
  sub_->add_flag("--decode", decode_, "Also decode every picture")->excludes(quick);
  sub_->add_flag("--layout", layout_,
                 "Also compare how the shards are striped with what was asked for and recorded");
  CLI::Option* against =
      sub_->add_option("--against", against_.source, "Also compare every file of this source")
          ->type_name("SRC")
          ->excludes(quick);
  for (CLI::Option* option : add_source_options(*sub_, &against_)) option->needs(against);
  add_jobs_option(*sub_, &jobs_);
  add_size_option(*sub_, "--memory", &memory_bytes_, "Memory to use at most; default 512MiB");
  add_json_option(*sub_);
  add_progress_option(*sub_, &progress_);
}

void VerifyCommand::show_report(Ui& ui, const PackPath& pack, const VerifyReport& report,
                                uint64_t unreadable) {
  for (const std::string& warning : report.warnings) {
    ui.note(str_cat("warning: ", escape_bytes(with_split(pack.split, warning))));
  }
  if (ui.json_mode()) {
    JsonWriter json = json_line("verify");
    if (!pack.split.empty()) json.member_bytes("split", pack.split);
    json.member("ok", report.ok()).member("quick", quick_);
    json.member("content_id", report.content_id.to_hex());
    json.member("shards", report.shards).member("chunks", report.chunks);
    json.member("samples", report.samples).member("rejects", report.rejects);
    json.member("bytes_checked", report.bytes_checked).member("damages", report.damages);
    json.member("samples_lost", report.samples_lost);
    (void)ui.json(json.end_object());
    return;
  }
  const std::string name = pack.split.empty() ? "" : escape_bytes(pack.split) + ": ";
  const std::string size =
      str_cat(count_of(report.samples, "sample"), " in ", count_of(report.chunks, "chunk"), " of ",
              count_of(report.shards, "shard"));
  if (report.ok()) {
    (void)ui.out(str_cat(name, "ok: ", size, ", ", format_size(report.bytes_checked), " checked",
                         quick_ ? " (quick: payloads not read)" : ""));
    return;
  }
  if (unreadable == report.damages) {
    (void)ui.out(str_cat(name, "NOT PROVEN: ", count_of(unreadable, "place"), " in ", size,
                         " cannot be read; see to permissions, limits and the disk, then verify "
                         "again"));
    return;
  }
  (void)ui.out(str_cat(name, "DAMAGED: ", count_of(report.damages, "place"), " in ", size, "; ",
                       count_of(report.samples_lost, "sample is", "samples are"),
                       unreadable == 0 ? " lost" : " lost, or cannot be read"));
}

Status VerifyCommand::verify_one(Ui& ui, Progress& progress, const PackPath& pack) {
  VerifyOptions options;
  options.level = quick_ ? VerifyLevel::kQuick : VerifyLevel::kFull;
  options.threads = jobs_;
  options.memory_bytes = memory_bytes_;
  VerifyHooks hooks;
  hooks.cancel = &team().stop_flag();
  hooks.begin = [&](uint64_t samples, uint64_t bytes) {
    StageTotals totals;
    totals.samples = samples / team().size();
    totals.bytes = bytes / team().size();
    progress.stage("verifying", totals);
  };
  hooks.advance = [&](uint64_t samples, uint64_t bytes) { progress.add(samples, bytes); };
  options.reads_chunks = [this](uint32_t shard) { return shard % team().size() == team().rank(); };
  std::vector<Damage> found;
  uint64_t unreadable = 0;
  const auto show = [&](const Damage& damage) {
    unreadable += could_not_be_read(damage.code) ? 1 : 0;
    show_damage(ui, pack.split, damage);
  };
  const bool alone = team().size() == 1;
  auto checked = verify_pack(
      pack.path, options,
      [&](const Damage& damage) {
        if (alone) {
          show(damage);
        } else {
          found.push_back(damage);
        }
      },
      hooks);
  progress.finish();
  // One rank's trouble is no answer for the others to wait for.
  if (!checked.ok()) team().tell_stop();
  SPK_ASSIGN(const std::vector<std::string> told,
             agree(team(), checked.status(), encode_damages(found)));
  VerifyReport report = std::move(checked).value();
  if (!alone) {
    std::vector<std::vector<Damage>> by_rank(told.size());
    for (size_t rank = 0; rank < told.size(); ++rank) {
      if (!decode_damages(told[rank], &by_rank[rank])) return internal_error("garbled damages");
    }
    report.damages = report.samples_lost = 0;
    for (const Damage& damage : merge_damages(std::move(by_rank))) {
      report.damages += 1;
      report.samples_lost += damage.samples_lost;
      show(damage);
    }
  }
  faults_ += report.damages;
  unreadable_ += unreadable;
  show_report(ui, pack, report, unreadable);
  return {};
}

void VerifyCommand::show_fault(Ui& ui, const ProofFault& fault) {
  if (ui.json_mode()) {
    JsonWriter json = json_line("fault");
    if (!fault.split.empty()) json.member_bytes("split", fault.split);
    if (fault.sample != UINT64_MAX) json.member("sample", fault.sample);
    json.member_bytes("key", fault.key).member_bytes("what", fault.what);
    (void)ui.json(json.end_object());
    return;
  }
  (void)ui.out(str_cat("'", escape_bytes(with_split(fault.split, fault.key)), "' ",
                       escape_bytes(fault.what)));
}

// Each rank asks for the layouts of its share of the shards.
Result<std::vector<StripeLayout>> VerifyCommand::look_by_ranks(const Pack& pack) {
  const auto shard_count = static_cast<uint32_t>(pack.shards().size());
  const auto own = look_at_shards(pack.directory(), shard_count, {team().rank(), team().size()});
  if (!own.ok()) team().tell_stop();
  SPK_ASSIGN(const std::vector<std::string> told,
             agree(team(), own.status(), own.ok() ? encode_layouts(*own) : std::string()));
  return merge_layouts(told, shard_count);
}

// None of it is damage, but a pack that lies wrongly is read slowly.
Status VerifyCommand::compare_layouts(Ui& ui, const NamedPack& pack) {
  SPK_ASSIGN(const std::vector<StripeLayout> now, look_by_ranks(*pack.pack));
  if (!team().first()) return {};
  SPK_ASSIGN(const std::vector<LayoutFinding> findings, check_layout(*pack.pack, now));
  const std::string name = pack.split.empty() ? "" : escape_bytes(pack.split) + ": ";
  for (const LayoutFinding& finding : findings) {
    if (!ui.json_mode()) {
      (void)ui.out(str_cat(name, "layout: ", finding.what, "; ", finding.help));
      continue;
    }
    JsonWriter json = json_line("layout");
    if (!pack.split.empty()) json.member_bytes("split", pack.split);
    json.member("what", finding.what).member("help", finding.help);
    (void)ui.json(json.end_object());
  }
  faults_ += findings.size();
  if (findings.empty() && !ui.json_mode()) (void)ui.out(name + "layout: ok");
  return {};
}

// Each rank decodes its share of the chunks.
Result<ProofCounts> VerifyCommand::decode_by_ranks(Ui& ui, const NamedPack& pack,
                                                   ProofOptions options) {
  std::vector<ProofFault> faults;
  options.rank = team().rank();
  options.ranks = team().size();
  options.fault = [&](const ProofFault& fault) { faults.push_back(fault); };
  const auto decoded = decode_all(*pack.pack, pack.split, options);
  return combine_proofs(team(), decoded.status(), decoded.ok() ? *decoded : ProofCounts(), faults,
                        [&](const ProofFault& fault) { show_fault(ui, fault); });
}

Status VerifyCommand::prove_more(Ui& ui, Progress& progress, const std::vector<NamedPack>& packs) {
  for (const NamedPack& pack : packs) {
    if (!layout_) break;
    SPK_TRY(agree(team(), compare_layouts(ui, pack), "").status());
  }
  ProofOptions options;
  options.jobs = jobs_;
  options.cancel = &team().stop_flag();
  options.advance = [&](uint64_t samples, uint64_t bytes) { progress.add(samples, bytes); };
  options.fault = [&](const ProofFault& fault) { show_fault(ui, fault); };
  const auto conclude = [&](const std::string& what, uint64_t before) {
    progress.finish();
    if (ui.json_mode()) {
      (void)ui.json(json_line(what)
                        .member("ok", faults_ == before)
                        .member("faults", faults_ - before)
                        .end_object());
    } else {
      (void)ui.out(str_cat(what, faults_ == before ? ": ok" : ": FAULTS: ",
                           faults_ == before ? "" : format_count(faults_ - before)));
    }
  };
  if (decode_) {
    const uint64_t before = faults_;
    for (const NamedPack& pack : packs) {
      StageTotals totals;
      totals.samples = pack.pack->sample_count() / team().size();
      progress.stage("decoding", totals);
      SPK_ASSIGN(const ProofCounts counts, decode_by_ranks(ui, pack, options));
      faults_ += counts.faults;
      if (counts.skipped != 0) {
        ui.note(str_cat("not decoded, too large: ", count_of(counts.skipped, "sample")));
      }
    }
    conclude("decode", before);
  }
  if (!against_.source.empty()) {
    const uint64_t before = faults_;
    against_.jobs = jobs_;
    against_.memory_bytes = memory_bytes_;
    const auto proof = prove_by_source(team(), progress, packs, against_, options);
    // PACK is one; it is SRC that is something else.
    source_failed_ = !proof.ok() && exit_code_of(proof.status()) == kExitNotAPack;
    if (!proof.ok()) return proof.status();
    faults_ += proof->counts.faults;
    unreadable_ += proof->counts.unreadable;
    conclude("against", before);
    if (faults_ != before && !proof->other_features.empty()) {
      ui.note(str_cat("the pack was made with --features '", escape_bytes(proof->other_features),
                      "'; --against needs the same"));
    }
  }
  return {};
}

int VerifyCommand::run(Ui& ui) {
  jobs_ = resolve_jobs(jobs_);
  const int code = run_checks(ui);
  // The first rank has seen what all found.
  auto told = team().all_gather(std::to_string(code));
  return told.ok() ? std::stoi(told->front()) : ui.fail(told.status());
}

int VerifyCommand::run_checks(Ui& ui) {
  auto paths = pack_paths(path_);
  const Status found = agree(team(), paths.status(), "").status();
  if (!found.ok()) return ui.fail(found);
  Progress progress(ui, progress_);
  Status status;
  for (const PackPath& pack : *paths) {
    status = verify_one(ui, progress, pack);
    if (!status.ok()) break;
  }
  if (status.ok() && (decode_ || layout_ || !against_.source.empty())) {
    // What is so damaged that it does not open has been reported; there is nothing to compare.
    auto packs = open_packs(path_);
    status = agree(team(), packs.status(), "").status();
    if (status.ok()) status = prove_more(ui, progress, *packs);
  }
  progress.finish();
  // "No" is an answer only where something was seen to be wrong.
  if (status.ok() && faults_ != 0) return faults_ == unreadable_ ? kExitFailed : kExitNo;
  if (status.ok()) return kExitDone;
  if (status.code() == Code::kCancelled) return ui.fail(cancel_status());
  if (source_failed_) return ui.fail(status, kExitFailed);
  return ui.fail(status, status.code() == Code::kDamaged ? kExitNo : exit_code_of(status));
}

}  // namespace

std::unique_ptr<Command> make_verify_command() { return std::make_unique<VerifyCommand>(); }

}  // namespace spk
