#include "commands/repair.h"

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "commands/damage_report.h"
#include "commands/options.h"
#include "commands/pack_set.h"
#include "container/repair.h"
#include "ui/signals.h"

namespace spk {

namespace {

const char* outcome_name(RepairReport::Outcome outcome) {
  switch (outcome) {
    case RepairReport::Outcome::kNothingToDo: return "nothing_to_do";
    case RepairReport::Outcome::kRepaired: return "repaired";
    case RepairReport::Outcome::kRefused: return "refused";
  }
  return "unknown";
}

class RepairCommand : public Command {
 public:
  void add_to(CLI::App& app) override;
  bool chosen() const override { return sub_->parsed(); }
  int run(Ui& ui) override;

 private:
  Result<RepairReport> repair_one(Ui& ui, Progress& progress, const PackPath& pack);
  void show_json(Ui& ui, const PackPath& pack, const RepairReport& report);
  void show(Ui& ui, const PackPath& pack, const RepairReport& report);

  CLI::App* sub_ = nullptr;
  std::string path_;
  std::string from_;
  bool drop_damaged_ = false;
  uint32_t jobs_ = 0;
  uint64_t memory_bytes_ = uint64_t{512} << 20;
  ProgressMode progress_ = ProgressMode::kAuto;
};

void RepairCommand::add_to(CLI::App& app) {
  sub_ = app.add_subcommand("repair", "Mend a pack from what is left of it, or from a copy");
  sub_->add_option("PACK", path_, "A pack, or a folder of splits")->required();
  sub_->add_option("--from", from_, "Take what is damaged from this second copy of the pack")
      ->type_name("COPY");
  sub_->add_flag("--drop-damaged", drop_damaged_,
                 "Publish without the samples that are lost, listing them in rejects.tsv");
  add_jobs_option(*sub_, &jobs_);
  add_size_option(*sub_, "--memory", &memory_bytes_, "Memory to use at most; default 512MiB");
  add_json_option(*sub_);
  add_progress_option(*sub_, &progress_);
}

Result<RepairReport> RepairCommand::repair_one(Ui& ui, Progress& progress, const PackPath& pack) {
  RepairOptions options;
  options.threads = jobs_;
  options.memory_bytes = memory_bytes_;
  options.drop_damaged = drop_damaged_;
  if (!from_.empty()) options.from = pack.split.empty() ? from_ : str_cat(from_, "/", pack.split);
  VerifyHooks hooks;
  hooks.cancel = &cancel_flag();
  hooks.begin = [&](uint64_t samples, uint64_t bytes) {
    StageTotals totals;
    totals.samples = samples;
    totals.bytes = bytes;
    progress.stage("examining", totals);
  };
  hooks.advance = [&](uint64_t samples, uint64_t bytes) { progress.add(samples, bytes); };
  auto report = repair_pack(
      pack.path, options, [&](const Damage& damage) { show_damage(ui, pack.split, damage); },
      hooks);
  progress.finish();
  return report;
}

void RepairCommand::show_json(Ui& ui, const PackPath& pack, const RepairReport& report) {
  JsonWriter json = json_line("repair");
  if (!pack.split.empty()) json.member_bytes("split", pack.split);
  json.member("outcome", outcome_name(report.outcome)).member("damages", report.damages);
  json.key("steps").begin_array();
  for (const std::string& step : report.steps) json.bytes(step);
  json.end_array();
  json.key("lost").begin_array();
  for (const LostSample& lost : report.lost) {
    json.begin_object().member("shard", lost.shard).member("ordinal", lost.ordinal);
    json.member_bytes("key", lost.key).member_bytes("reason", lost.reason).end_object();
  }
  json.end_array();
  json.member("unknown_lost", report.unknown_lost);
  json.member("shards_rewritten", report.shards_rewritten);
  json.member("blobs_from_copy", report.blobs_from_copy);
  json.member("samples", report.samples).member("content_id", report.content_id.to_hex());
  json.member("identity_changed", report.identity_changed);
  (void)ui.json(json.end_object());
}

void RepairCommand::show(Ui& ui, const PackPath& pack, const RepairReport& report) {
  const std::string name = pack.split.empty() ? "" : escape_bytes(pack.split) + ": ";
  for (const std::string& step : report.steps) (void)ui.out(name + escape_bytes(step));
  const bool refused = report.outcome == RepairReport::Outcome::kRefused;
  for (const LostSample& lost : report.lost) {
    (void)ui.out(str_cat(name, refused ? "would be dropped: '" : "dropped: '",
                         escape_bytes(lost.key), "': ", escape_bytes(lost.reason)));
  }
  if (report.unknown_lost != 0) {
    (void)ui.out(str_cat(name, count_of(report.unknown_lost, "more sample is", "more samples are"),
                         " lost, and the names with them"));
  }
  switch (report.outcome) {
    case RepairReport::Outcome::kNothingToDo:
      (void)ui.out(name + "no damage, nothing to do");
      break;
    case RepairReport::Outcome::kRefused:
      (void)ui.out(str_cat(name, "nothing was changed: ",
                           count_of(report.lost.size() + report.unknown_lost, "sample"),
                           " cannot be restored from this pack"));
      (void)ui.out(name + "  with a second copy of the pack: --from COPY");
      (void)ui.out(name + "  to publish without them: --drop-damaged");
      break;
    case RepairReport::Outcome::kRepaired:
      (void)ui.out(str_cat(name, "repaired: ", count_of(report.samples, "sample"), ", content id ",
                           report.content_id.to_hex(),
                           report.identity_changed ? " (another pack than before)" : ""));
      break;
  }
}

int RepairCommand::run(Ui& ui) {
  jobs_ = resolve_jobs(jobs_);
  auto paths = pack_paths(path_);
  if (!paths.ok()) return ui.fail(paths.status());
  Progress progress(ui, progress_);
  bool refused = false;
  for (const PackPath& pack : *paths) {
    auto report = repair_one(ui, progress, pack);
    if (!report.ok()) {
      if (report.status().code() == Code::kCancelled) {
        return ui.fail(Status(cancel_status()).with_hint("the same command line continues"));
      }
      return ui.fail(report.status());
    }
    refused = refused || report->outcome == RepairReport::Outcome::kRefused;
    if (ui.json_mode()) {
      show_json(ui, pack, *report);
    } else {
      show(ui, pack, *report);
    }
  }
  return refused ? kExitNo : kExitDone;
}

}  // namespace

std::unique_ptr<Command> make_repair_command() { return std::make_unique<RepairCommand>(); }

}  // namespace spk
