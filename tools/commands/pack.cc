#include "commands/pack.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <optional>

#include "base/text.h"
#include "commands/job_options.h"
#include "commands/named_file.h"
#include "commands/options.h"
#include "commands/pack_report.h"
#include "commands/source_options.h"
#include "commands/stripe_options.h"
#include "commands/transform_options.h"
#include "format/constants.h"
#include "pipeline/dry_run.h"
#include "pipeline/pack_run.h"
#include "pipeline/sha256.h"
#include "ui/signals.h"

namespace spk {

namespace {

// The library tells of limits, but not of options.
Status with_own_hint(Status status) {
  if (status.os_errno() != EFBIG) return status;
  Status told(status.code(), status.message());
  told = std::move(told).at_path(status.path()).at_offset(status.offset()).at_shard(status.shard());
  return std::move(told).with_hint(status.hint() + ", or pack with a smaller --shard-size");
}

// `pack`, and `repack`, which is pack for packs: nothing is looked at again but checksums.
class PackCommand : public Command {
 public:
  explicit PackCommand(bool repacks) : repacks_(repacks) {}
  void add_to(CLI::App& app) override;
  bool chosen() const override { return sub_->parsed(); }
  // Parts do not talk to each other, whoever started them.
  bool deals_to_ranks() const override { return job_.part.empty() && !job_.print_sbatch; }
  int run(Ui& ui) override;

 private:
  void add_geometry_options();
  void add_listing_options();
  int run_dry(Ui& ui);
  int exit_code(const Status& status) const;

  void add_places(CLI::App& app);
  void take_places();

  const bool repacks_;
  CLI::App* sub_ = nullptr;
  std::vector<std::string> places_;  // repack: packs, then OUT
  PackOptions options_;
  JobOptions job_;
  ProgressMode progress_ = ProgressMode::kAuto;
  bool no_shuffle_ = false;
  uint64_t expect_ = 0;
};

void PackCommand::add_places(CLI::App& app) {
  if (repacks_) {
    sub_ = app.add_subcommand("repack", "Make packs into another one: merged, selected, reshaped");
    sub_->add_option("PACK... OUT", places_,
                     "Packs, or folders of splits; then the directory to make")
        ->required()
        ->expected(2, 1'000'000);
    options_.source_kind = "pack";
    options_.check = CheckMode::kNone;
    return;
  }
  sub_ = app.add_subcommand("pack", "Pack a folder or list of pictures");
  sub_->add_option("SRC", options_.source, "Folder (first level = class) or list of pictures")
      ->required();
  sub_->add_option("OUT", options_.output, "Directory to make; built in OUT.partial first")
      ->required();
}

void PackCommand::take_places() {
  if (!repacks_) return;
  options_.output = places_.back();
  options_.source = places_.front();
  options_.more_sources.assign(places_.begin() + 1, places_.end() - 1);
}

void PackCommand::add_to(CLI::App& app) {
  add_places(app);
  add_listing_options();
  add_geometry_options();
  add_stripe_options(*sub_, &options_.stripes);
  add_transform_options(*sub_, &options_.transform);
  add_jobs_option(*sub_, &options_.jobs);
  add_thread_count_option(
      *sub_, "--io-threads", &options_.io_threads,
      "Threads that wait for the source's files; default 4 for each job, at least 16", 1);
  add_size_option(*sub_, "--memory", &options_.memory_bytes,
                  "Memory to use at most, 53MiB or more; default 512MiB");
  add_count_option(*sub_, "--max-rejects", &options_.max_rejects,
                   "Publish although so many samples were rejected; default 0");
  CLI::Option* dry_run =
      sub_->add_flag("--dry-run", options_.dry_run, "Tell what would be done; write nothing");
  sub_->add_flag("--force", options_.force, "Replace the pack at OUT; the old one is kept aside");
  sub_->add_flag("--restart", options_.restart, "Throw away what an unfinished run left");
  sub_->add_flag("--sha256", options_.sha256, "Write SHA256SUMS into the pack");
  sub_->add_option("--report", options_.report, "Write a JSON report to this file")
      ->type_name("FILE")
      ->excludes(dry_run);
  add_json_option(*sub_);
  add_progress_option(*sub_, &progress_);
  add_job_options(*sub_, &job_);
  sub_->footer(
      "Memory: --memory bounds read-ahead, samples that wait for their chunk, and the "
      "index of the shards in work.\nThe same command line again continues a run that was "
      "stopped, and says \"complete\" when there is nothing to do.");
}

void PackCommand::add_listing_options() {
  if (repacks_) {
    add_pack_source_options(*sub_, &options_);
  } else {
    add_source_options(*sub_, &options_);
  }
  add_choice_option<SplitMode>(
      *sub_, "--splits", &options_.splits, {{"auto", SplitMode::kAuto}, {"none", SplitMode::kNone}},
      "auto: folders train, val, test ... become packs of their own; none: classes");
  add_choice_option<CheckMode>(
      *sub_, "--check", &options_.check,
      {{"structure", CheckMode::kStructure},
       {"decode", CheckMode::kDecode},
       {"none", CheckMode::kNone}},
      repacks_ ? "none (default): checksums alone; structure, decode: pictures as well"
               : "structure (default): nothing cut gets in; decode: every pixel; none: trust");
  add_count_option(*sub_, "--max-pixels", &options_.max_pixels,
                   "Reject pictures with more pixels; default 178956970");
  add_count_option(*sub_, "--expect", &expect_, "Refuse unless the source lists so many samples");
}

void PackCommand::add_geometry_options() {
  add_size_option(*sub_, "--chunk-size", &options_.chunk_bytes,
                  "Chunk size, a power of two from 64KiB to 64MiB; chosen from the data");
  CLI::Option* shard_size =
      add_size_option(*sub_, "--shard-size", &options_.shard_bytes, "Shard size; default 1GiB");
  CLI::Option* shards = add_count_option(*sub_, "--shards", &options_.shard_count,
                                         "Number of shards instead of their size", 1, kMaxShards);
  shards->excludes(shard_size);
  CLI::Option* targets = add_count_option(
      *sub_, "--targets", &options_.target_count,
      "Storage targets that shall all work: two shards each, where that leaves them 256MiB", 1,
      kMaxShards);
  CLI::Option* ranks = add_count_option(
      *sub_, "--ranks", &options_.rank_count,
      "Ranks that will read: a multiple of them, where that leaves shards of 256MiB", 1,
      kMaxShards);
  for (CLI::Option* option : {targets, ranks}) option->excludes(shard_size)->excludes(shards);
  add_count_option(*sub_, "--seed", &options_.seed, "Seed of the shuffle; default 0");
  CLI::Option* shuffle = add_choice_option<ShuffleMode>(
      *sub_, "--shuffle", &options_.shuffle,
      {{"auto", ShuffleMode::kAuto},
       {"full", ShuffleMode::kFull},
       {"blocks", ShuffleMode::kBlocks},
       {"none", ShuffleMode::kNone}},
      "auto (default): full, but none for val and test; blocks: for large, cold sources; none");
  sub_->add_flag("--no-shuffle", no_shuffle_, "Keep the source's order")->excludes(shuffle);
}

// Of `pack` never "not a pack": it asks for none.
int PackCommand::exit_code(const Status& status) const {
  const int code = exit_code_of(status);
  return code == kExitNotAPack && !repacks_ ? kExitFailed : code;
}

int PackCommand::run_dry(Ui& ui) {
  if (!team().first()) return kExitDone;
  const auto spool = Spool::make_measuring();
  auto source = open_source(options_, spool);
  if (!source.ok()) return ui.fail(source.status(), exit_code(source.status()));
  auto report = dry_run(options_, **source, &cancel_flag(), spool.get());
  if (!report.ok() && report.status().code() == Code::kCancelled) return ui.fail(cancel_status());
  if (!report.ok()) return ui.fail(report.status(), exit_code(report.status()));
  if (ui.json_mode()) {
    (void)ui.out(to_json(*report));
  } else {
    (void)ui.write(to_text(*report));
  }
  return kExitDone;
}

int PackCommand::run(Ui& ui) {
  take_places();
  options_.jobs = resolve_jobs(options_.jobs);
  if (no_shuffle_) options_.shuffle = ShuffleMode::kNone;
  if (sub_->count("--expect") > 0) options_.expect = expect_;
  if (options_.sha256 && !sha256_available()) {
    return ui.fail(unsupported("this build has no libcrypto, which --sha256 needs"), kExitUsage);
  }
  const Status sensible = check_transform_options(*sub_, options_);
  if (!sensible.ok()) return ui.fail(sensible, kExitUsage);
  const Status job = take_job_options(*sub_, job_, &options_);
  if (!job.ok()) return ui.fail(job, kExitUsage);
  const Status enough = check_least_memory(options_);
  if (!enough.ok()) return ui.fail(enough);
  if (job_.print_sbatch) {
    (void)ui.write(sbatch_script(job_, typed_words()));
    return kExitDone;
  }
  if (options_.dry_run) return run_dry(ui);
  std::optional<NamedFile> report;
  if (sub_->count("--report") > 0 && team().first()) {
    auto found = NamedFile::find(options_.report, "--report");
    if (!found.ok()) return ui.fail(found.status(), exit_code(found.status()));
    const Status apart = refuse_report_place(options_, *found);
    if (!apart.ok()) return ui.fail(apart);
    report = std::move(found).value();
  }

  Progress progress(ui, progress_);
  PackObserver observer;
  observer.stage = [&](const std::string& name, uint64_t samples, uint64_t bytes) {
    StageTotals totals;
    totals.samples = samples;
    totals.bytes = bytes;
    progress.stage(name, totals);
  };
  observer.advanced = [&](uint64_t samples, uint64_t bytes, uint64_t rejects) {
    progress.add(samples, bytes);
    if (rejects != 0) progress.add_rejects(rejects);
  };
  observer.note = [&](const std::string& line) { ui.note(line); };
  auto outcome = run_pack(options_, command_line(), team(), cancel_flag(), observer);
  progress.finish();
  if (!outcome.ok()) {
    if (outcome.status().code() == Code::kCancelled) {
      return ui.fail(Status(cancel_status()).with_hint("the same command line continues"));
    }
    return ui.fail(with_own_hint(outcome.status()), exit_code(outcome.status()));
  }
  // First what was done: if the report cannot be written, that stays true.
  show_outcome(ui, options_, *outcome);
  if (report) {
    ui.flush();
    const Status written = report->write(as_bytes(report_text(options_, *outcome)));
    if (!written.ok()) return ui.fail(written);
  }
  return outcome->end == PackEnd::kNotPublished ? kExitRejects : kExitDone;
}

}  // namespace

std::unique_ptr<Command> make_pack_command() { return std::make_unique<PackCommand>(false); }
std::unique_ptr<Command> make_repack_command() { return std::make_unique<PackCommand>(true); }

}  // namespace spk
