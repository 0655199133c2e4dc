#include "commands/export.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/text.h"
#include "commands/options.h"
#include "commands/pack_set.h"
#include "commands/sample_filter.h"
#include "pipeline/export_place.h"
#include "pipeline/export_proof.h"
#include "pipeline/export_run.h"
#include "pipeline/pack_proof.h"
#include "ui/signals.h"

namespace spk {

namespace {

constexpr uint64_t kFaultsTold = 100;

class ExportCommand : public Command {
 public:
  void add_to(CLI::App& app) override;
  bool chosen() const override { return sub_->parsed(); }
  bool deals_to_ranks() const override { return true; }
  int run(Ui& ui) override;

 private:
  struct SplitExport {
    const NamedPack* named;
    std::unique_ptr<Sink> sink;
    ExportJob job;
  };

  int run_export(Ui& ui);
  Status export_all(Ui& ui, const std::vector<NamedPack>& packs);
  Status prepare_all(const std::vector<NamedPack>& packs, std::vector<SplitExport>* exports);
  Result<ExportPlace> take_place(const std::vector<NamedPack>& packs);
  Status write_files(Progress& progress, const ExportPlace& place,
                     std::vector<SplitExport>& exports);
  Status finish_export(Ui& ui, Progress& progress, ExportPlace& place,
                       std::vector<SplitExport>& exports);
  Result<SplitExport> prepare(const NamedPack& named);
  Status prove(Ui& ui, Progress& progress, const SplitExport& one, const std::string& path);
  Status check_apart() const;
  Status choose_samples(const Pack& pack, ExportJob* job) const;
  std::string request(const std::vector<NamedPack>& packs) const;
  void tell(Ui& ui) const;

  CLI::App* sub_ = nullptr;
  std::string path_;
  std::string target_;
  const SinkKind* kind_ = nullptr;
  ExportOptions options_;
  SampleFilterOptions filter_;
  bool force_ = false;
  bool verify_ = false;
  bool restart_ = false;
  uint32_t jobs_ = 0;
  ProgressMode progress_ = ProgressMode::kAuto;
  ExportResult totals_;
  std::string aside_;
  bool none_chosen_ = false;
  uint64_t proven_ = 0;  // samples
  uint64_t faults_ = 0;
};

void ExportCommand::add_to(CLI::App& app) {
  sub_ = app.add_subcommand("export", "Write a pack's samples as another format");
  sub_->add_option("PACK", path_, "A pack, or a folder of splits")->required();
  sub_->add_option("DEST", target_, "Directory to make; built in DEST.partial first")->required();
  std::vector<std::pair<std::string, const SinkKind*>> kinds;
  for (const SinkKind& kind : sink_kinds()) kinds.emplace_back(kind.name, &kind);
  add_choice_option<const SinkKind*>(*sub_, "--to", &kind_, std::move(kinds), "The format")
      ->required();
  sub_->add_option("--layout", options_.layout, "Of formats that have several")->type_name("NAME");
  sub_->add_option("--prefix", options_.prefix, "Of file names; the split's name, else `data`")
      ->type_name("NAME");
  CLI::Option* size = add_size_option(*sub_, "--shard-size", &options_.shard_bytes,
                                      "Payload of a file, about; by default the format's own");
  CLI::Option* count = add_count_option(*sub_, "--shards", &options_.shard_count,
                                        "Number of files instead", 1, 1'000'000);
  add_count_option(*sub_, "--shard-samples", &options_.shard_samples, "Samples of a file instead",
                   1)
      ->excludes(size)
      ->excludes(count);
  count->excludes(size);
  sub_->add_flag("--source-order", options_.source_order,
                 "In the order of the source; by default as stored, which reads fastest");
  add_filter_options(*sub_, &filter_);
  sub_->add_flag("--verify", verify_,
                 "Read the files back and compare each sample before DEST appears");
  sub_->add_flag("--force", force_, "Put aside what is at DEST");
  sub_->add_flag("--restart", restart_, "Throw away what an unfinished export left");
  add_jobs_option(*sub_, &jobs_);
  add_size_option(*sub_, "--memory", &options_.memory_bytes,
                  "Memory to use at most; default 512MiB");
  add_json_option(*sub_);
  add_progress_option(*sub_, &progress_);
  std::string formats = "Formats:";
  for (const SinkKind& kind : sink_kinds()) formats += str_cat("\n  ", kind.name, ": ", kind.what);
  sub_->footer(formats);
}

// What shapes the files, in words.
std::string ExportCommand::request(const std::vector<NamedPack>& packs) const {
  std::string text = str_cat("export of");
  for (const NamedPack& named : packs) {
    text += str_cat(" ", named.split.empty() ? "pack" : named.split, " ",
                    named.pack->content_id().to_hex());
  }
  text += str_cat(" to ", kind_->name);
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty() && value != "0") text += str_cat(" ", name, " ", escape_bytes(value));
  };
  add("--layout", options_.layout);
  add("--prefix", options_.prefix);
  add("--shard-size", str_cat(options_.shard_bytes));
  add("--shards", str_cat(options_.shard_count));
  add("--shard-samples", str_cat(options_.shard_samples));
  if (options_.source_order) text += " --source-order";
  for (const std::string& name : filter_.classes) add("--class", name);
  for (const int64_t label : filter_.labels) add("--label", str_cat(label));
  for (const std::string& glob : filter_.globs) add("--glob", glob);
  if (filter_.range_begin != 0 || filter_.range_end != UINT64_MAX) {
    text += str_cat(" --range ", filter_.range_begin, ":", filter_.range_end);
  }
  return text;
}

Status ExportCommand::choose_samples(const Pack& pack, ExportJob* job) const {
  SPK_ASSIGN(const SampleFilter filter, SampleFilter::make(filter_, pack));
  const FactReader facts(pack);
  std::vector<std::pair<uint64_t, uint64_t>> by_ordinal;
  for (uint64_t sample = filter.begin(); sample < filter.end(); ++sample) {
    if (cancel_flag()) return cancel_status();
    if (!filter_.all() || options_.source_order) {
      SPK_ASSIGN(const SampleFacts fact, facts.read(sample));
      if (!filter.matches(fact)) continue;
      if (options_.source_order) {
        by_ordinal.emplace_back(fact.ordinal, sample);
        continue;
      }
    }
    job->samples.push_back(sample);
  }
  std::sort(by_ordinal.begin(), by_ordinal.end());
  for (const auto& [ordinal, sample] : by_ordinal) job->samples.push_back(sample);
  for (const uint64_t sample : job->samples) {
    for (size_t field = 0; field < pack.schema().fields.size(); ++field) {
      if (pack.schema().fields[field].kind != FieldKind::kBlob) continue;
      SPK_ASSIGN(const SampleLocation place, pack.locate(sample, static_cast<uint16_t>(field)));
      job->payload_bytes += place.bytes;
    }
  }
  return {};
}

Result<ExportCommand::SplitExport> ExportCommand::prepare(const NamedPack& named) {
  SplitExport one{&named, nullptr, {}};
  one.job.options = options_;
  if (one.job.options.prefix.empty()) {
    one.job.options.prefix = named.split.empty() ? "data" : named.split;
  }
  SPK_TRY(Directory::check_name(one.job.options.prefix));
  SPK_ASSIGN(one.sink, kind_->open(one.job.options, *named.pack));
  if (one.sink->single_file() &&
      (options_.shard_bytes | options_.shard_count | options_.shard_samples) != 0) {
    return invalid_argument(str_cat(kind_->name, " makes one file"))
        .with_hint("leave --shards, --shard-size and --shard-samples off");
  }
  one.job.pack = named.pack.get();
  one.job.sink = one.sink.get();
  one.job.jobs = jobs_;
  one.job.cancel = &team().stop_flag();
  if (verify_) SPK_TRY(can_prove_export(one.job));
  SPK_TRY(choose_samples(*named.pack, &one.job));
  return one;
}

// DEST must neither lie in the pack nor hold it: with --force it would move the pack away.
Status ExportCommand::check_apart() const {
  std::error_code error;
  const auto pack = std::filesystem::canonical(path_, error);
  if (error) return {};  // it was just opened: then it is the pack's matter
  SPK_ASSIGN(const OutputPlace place, split_output(target_));
  const auto parent = std::filesystem::weakly_canonical(place.parent, error);
  if (error) return {};
  const auto dest = parent / place.name;
  const auto holds = [](const std::filesystem::path& outer, const std::filesystem::path& inner) {
    return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first ==
           outer.end();
  };
  const bool inside = holds(pack, dest);
  if (!inside && !holds(dest, pack)) return {};
  return invalid_argument(inside ? "DEST lies in the pack itself" : "DEST holds the pack itself")
      .at_path(escape_bytes(target_))
      .with_hint("choose a DEST beside it");
}

Status ExportCommand::prepare_all(const std::vector<NamedPack>& packs,
                                  std::vector<SplitExport>* exports) {
  SPK_TRY(check_apart());
  // All that can be wrong with the options shows before a file is written.
  uint64_t chosen = 0;
  for (const NamedPack& named : packs) {
    auto one = prepare(named);
    if (!one.ok()) return std::move(one).status().at_path(named.path);
    chosen += one->job.samples.size();
    exports->push_back(std::move(*one));
  }
  if (chosen != 0) return {};
  none_chosen_ = true;
  return Status(Code::kNotFound, "no sample matches").at_path(path_);
}

// The first rank claims DEST for all, and makes the folders.
Result<ExportPlace> ExportCommand::take_place(const std::vector<NamedPack>& packs) {
  Status status;
  std::optional<ExportPlace> place;
  if (team().first()) {
    auto taken = ExportPlace::take(target_, request(packs), force_, restart_);
    status = taken.status();
    if (taken.ok()) place.emplace(std::move(taken).value());
    for (const NamedPack& named : packs) {
      if (!place || !status.ok()) break;
      status = place->directory_of_split(named.split).status();
      if (status.ok()) status = place->records_of_split(named.split).status();
    }
  }
  SPK_TRY(agree(team(), status, "").status());
  if (!place) {
    auto attached = ExportPlace::attach(target_);
    status = attached.status();
    if (attached.ok()) place.emplace(std::move(attached).value());
  }
  SPK_TRY(agree(team(), status, "").status());
  return std::move(*place);
}

// This rank's files.
Status ExportCommand::write_files(Progress& progress, const ExportPlace& place,
                                  std::vector<SplitExport>& exports) {
  for (SplitExport& one : exports) {
    SPK_ASSIGN(const Directory directory, place.directory_of_split(one.named->split));
    SPK_ASSIGN(const Directory records, place.records_of_split(one.named->split));
    StageTotals stage;
    stage.samples = one.job.samples.size() / team().size();
    stage.bytes = one.job.payload_bytes / team().size();
    progress.stage(one.named->split.empty() ? "exporting" : "exporting " + one.named->split, stage);
    one.job.advance = [&](uint64_t samples, uint64_t bytes) { progress.add(samples, bytes); };
    one.job.rank = team().rank();
    one.job.ranks = team().size();
    SPK_ASSIGN(const ExportResult result, export_pack(one.job, directory, records));
    totals_.samples += result.samples;
    totals_.bytes += result.bytes;
    totals_.files += result.files;
    totals_.files_kept += result.files_kept;
    one.job.advance = {};
  }
  return {};
}

// What one process does once all files are there: what goes over all of them, the proof, the name.
Status ExportCommand::finish_export(Ui& ui, Progress& progress, ExportPlace& place,
                                    std::vector<SplitExport>& exports) {
  for (SplitExport& one : exports) {
    if (team().size() == 1) break;  // is done
    SPK_ASSIGN(const Directory directory, place.directory_of_split(one.named->split));
    SPK_ASSIGN(const Directory records, place.records_of_split(one.named->split));
    one.job.rank = 0;
    one.job.ranks = 1;
    SPK_ASSIGN(const ExportResult result, export_pack(one.job, directory, records));
    totals_.samples += result.samples;
    totals_.bytes += result.bytes;
    totals_.files += result.files;
  }
  if (verify_) {
    for (const SplitExport& one : exports) {
      SPK_ASSIGN(const Directory directory, place.directory_of_split(one.named->split));
      SPK_TRY(prove(ui, progress, one, directory.path()));
    }
  }
  progress.finish();
  if (faults_ != 0) {
    return Status(Code::kMismatch, str_cat("what was read back differs from the pack in ",
                                           count_of(faults_, "place"), "; not published"))
        .at_path(target_ + ".partial")
        .with_hint("--restart writes it anew");
  }
  return place.publish(&aside_);
}

Status ExportCommand::export_all(Ui& ui, const std::vector<NamedPack>& packs) {
  std::vector<SplitExport> exports;
  SPK_TRY(agree(team(), prepare_all(packs, &exports), "").status());
  SPK_ASSIGN(ExportPlace place, take_place(packs));
  Progress progress(ui, progress_);
  const Status written = write_files(progress, place, exports);
  if (!written.ok()) team().tell_stop();
  SPK_ASSIGN(const std::vector<std::string> kept,
             agree(team(), written, std::to_string(totals_.files_kept)));
  Status finished;
  if (team().first()) {
    for (size_t rank = 1; rank < kept.size(); ++rank) totals_.files_kept += std::stoull(kept[rank]);
    finished = finish_export(ui, progress, place, exports);
  }
  return agree(team(), finished, "").status();
}

Status ExportCommand::prove(Ui& ui, Progress& progress, const SplitExport& one,
                            const std::string& path) {
  const std::string& split = one.named->split;
  StageTotals stage;
  stage.samples = one.job.samples.size();
  progress.stage(split.empty() ? "reading back" : "reading back " + split, stage);
  ProofOptions options;
  options.jobs = jobs_;
  options.cancel = &cancel_flag();
  options.advance = [&](uint64_t samples, uint64_t bytes) { progress.add(samples, bytes); };
  options.fault = [&](const ProofFault& fault) {
    if (++faults_ > kFaultsTold) return;
    ui.note(str_cat("'", escape_bytes(with_split(fault.split, fault.key)), "' ", fault.what));
  };
  SPK_ASSIGN(const ProofCounts counts, prove_export(one.job, path, split, options));
  proven_ += counts.samples;
  return {};
}

void ExportCommand::tell(Ui& ui) const {
  if (ui.json_mode()) {
    JsonWriter json = json_line("export");
    json.member("samples", totals_.samples).member("bytes", totals_.bytes);
    json.member("files", totals_.files).member("files_kept", totals_.files_kept);
    if (verify_) json.member("verified", proven_);
    json.member_bytes("dest", target_);
    if (!aside_.empty()) json.member_bytes("old", aside_);
    (void)ui.json(json.end_object());
    return;
  }
  std::string line =
      str_cat("exported ", count_of(totals_.samples, "sample"), " to ", escape_bytes(target_), ": ",
              kind_->name, ", ", count_of(totals_.files, "file"), ", ", format_size(totals_.bytes));
  if (totals_.files_kept != 0) {
    line += str_cat(" (", format_count(totals_.files_kept), " of an earlier run)");
  }
  if (verify_) {
    line += str_cat("; read back: ", format_count(proven_), proven_ == 1 ? " is" : " are",
                    " as in the pack");
  }
  (void)ui.out(line);
  if (!aside_.empty()) ui.note("what was there before is now " + escape_bytes(aside_));
}

int ExportCommand::run(Ui& ui) {
  jobs_ = resolve_jobs(jobs_);
  const int code = run_export(ui);
  // What only the first rank saw decides for all.
  auto told = team().all_gather(std::to_string(code));
  return told.ok() ? std::stoi(told->front()) : ui.fail(told.status());
}

int ExportCommand::run_export(Ui& ui) {
  const Result<std::vector<NamedPack>> packs = open_packs(path_);
  const Status opened = agree(team(), packs.status(), "").status();
  if (!opened.ok()) return ui.fail(opened);
  Status status = export_all(ui, *packs);
  if (status.ok()) {
    tell(ui);
    return kExitDone;
  }
  if (status.code() == Code::kCancelled) {
    return ui.fail(Status(cancel_status()).with_hint("the same command line continues"));
  }
  if (none_chosen_ || faults_ != 0) return ui.fail(status, kExitNo);
  return ui.fail(status, status.code() == Code::kInvalidArgument ? kExitUsage : kExitFailed);
}

}  // namespace

std::unique_ptr<Command> make_export_command() { return std::make_unique<ExportCommand>(); }

}  // namespace spk
