#include "commands/stage.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/text.h"
#include "commands/damage_report.h"
#include "commands/options.h"
#include "commands/pack_set.h"
#include "pipeline/stage_run.h"
#include "ui/cpus.h"
#include "ui/signals.h"

namespace spk {

namespace {

// Shards that are copied at a time: copying waits for disks and networks more than it computes, and
// a task that Slurm gives a single CPU should not wait for one read after the other.
constexpr uint32_t kFewestJobs = 4;
constexpr uint32_t kMostJobs = 16;

class StageCommand : public Command {
 public:
  void add_to(CLI::App& app) override;
  bool chosen() const override { return sub_->parsed(); }
  int run(Ui& ui) override;

 private:
  Status plan();
  Status refuse_what_is_in_the_way() const;
  Status refuse_without_room(const StageRoom& room) const;
  int show_plan(Ui& ui, const StageRoom& room) const;
  Result<bool> stage(Ui& ui, Progress& progress, StageTask& task);
  void show(Ui& ui, const StageTask& task, const StageCounts& counts, double seconds) const;
  void show_json(Ui& ui, const StageTask& task, const StageCounts& counts, double seconds) const;

  CLI::App* sub_ = nullptr;
  std::string path_;
  std::string directory_;
  std::string node_;
  uint64_t at_most_bytes_ = 0;
  bool dry_run_ = false;
  StageRequest request_;
  ProgressMode progress_ = ProgressMode::kAuto;
  std::vector<StageTask> tasks_;
};

void StageCommand::add_to(CLI::App& app) {
  sub_ = app.add_subcommand("stage", "Copy a pack, or a share of it, to a node's own disk");
  sub_->add_option("PACK", path_, "A pack, or a folder of splits")->required();
  sub_->add_option("DIR", directory_, "Where to; made where it is not there")->required();
  sub_->add_option("--node", node_,
                   "Only the share of node I (from 0) of N: every N-th shard; slurm: as srun "
                   "numbers the nodes")
      ->type_name("I/N|slurm");
  add_size_option(*sub_, "--at-most", &at_most_bytes_,
                  "Only the first shards that together are not larger");
  sub_->add_flag("--verify", request_.verify,
                 "Read what is there already, and copy again what is damaged");
  sub_->add_flag("--force", request_.force, "Remove what is of another pack in DIR");
  sub_->add_flag("--dry-run", dry_run_, "Tell bytes, shards and free space; copy nothing");
  add_thread_count_option(
      *sub_, "--jobs,-j", &request_.jobs,
      "Shards to copy at a time; 0, the default: as many as CPUs, at least 4, at most 16", 0);
  add_size_option(*sub_, "--memory", &request_.memory_bytes,
                  "Memory to use at most; default 512MiB");
  add_json_option(*sub_);
  add_progress_option(*sub_, &progress_);
  request_.jobs = 0;
}

Status StageCommand::plan() {
  if (!node_.empty()) {
    SPK_ASSIGN(request_.node, parse_node(node_, [](const char* name) { return getenv(name); }));
  }
  if (at_most_bytes_ != 0) request_.at_most_bytes = at_most_bytes_;
  if (request_.jobs == 0) {
    request_.jobs = std::clamp<uint32_t>(allowed_cpus(), kFewestJobs, kMostJobs);
  }
  // Not by mapping: a shard that is missing is told by the copying.
  OpenOptions options;
  options.engine = EngineChoice::kPread;
  SPK_ASSIGN(std::vector<NamedPack> packs, open_packs(path_, options));
  SPK_TRY(refuse_place_in_pack(path_, directory_));
  for (NamedPack& pack : packs) {
    StageTask task;
    task.split = pack.split;
    task.directory = pack.split.empty() ? directory_ : str_cat(directory_, "/", pack.split);
    task.pack = std::move(pack.pack);
    tasks_.push_back(std::move(task));
  }
  choose_shards(request_, tasks_);
  for (StageTask& task : tasks_) SPK_TRY(look_at_place(task));
  return {};
}

Status StageCommand::refuse_what_is_in_the_way() const {
  for (const StageTask& task : tasks_) {
    if (task.in_the_way.empty() || request_.force) continue;
    const StageTask::InTheWay& first = task.in_the_way.front();
    const uint64_t more = task.in_the_way.size() - 1;
    return Status(Code::kExists,
                  str_cat("in the way: ", first.what,
                          more == 0 ? "" : str_cat("; and ", count_of(more, "more file"))))
        .at_path(str_cat(task.directory, "/", first.name))
        .with_hint("name another directory, or --force removes what is in the way");
  }
  return {};
}

Status StageCommand::refuse_without_room(const StageRoom& room) const {
  if (room.fits()) return {};
  const uint64_t left =
      std::min(room.free_bytes.value_or(UINT64_MAX), room.quota.bytes.value_or(UINT64_MAX));
  return Status(Code::kNoSpace, str_cat(format_size(room.needed_bytes), " are to be copied, ",
                                        format_size(left), " are free"))
      .at_path(directory_)
      .with_hint("--node I/N or --at-most SIZE copy a part, which serves as a cache");
}

int StageCommand::show_plan(Ui& ui, const StageRoom& room) const {
  uint64_t shards = 0, all = 0, missing = 0, wanted = 0, there = 0;
  bool whole = true;
  for (const StageTask& task : tasks_) {
    shards += task.shards.size();
    all += task.pack->shards().size();
    missing += task.missing.size();
    wanted += task.wanted_bytes;
    there += task.there_bytes;
    whole = whole && task.whole;
  }
  if (ui.json_mode()) {
    JsonWriter json = json_line("stage_dry_run");
    json.member_bytes("directory", directory_).member("whole", whole);
    json.member("pack_shards", all)
        .member("shards", shards)
        .member("shards_there", shards - missing);
    json.member("bytes", wanted).member("bytes_there", there);
    json.member("bytes_needed", room.needed_bytes);
    if (room.free_bytes) json.member("free_bytes", *room.free_bytes);
    if (room.quota.bytes) json.member("quota_left_bytes", *room.quota.bytes);
    json.member("fits", room.fits());
    (void)ui.json(json.end_object());
  } else {
    (void)ui.out(str_cat("wanted: ", count_of(shards, "shard"), " of ", format_count(all), ", ",
                         format_size(wanted), whole ? ": a pack" : ": a cache"));
    (void)ui.out(str_cat("there: ", count_of(shards - missing, "shard"), ", ", format_size(there)));
    std::string line = str_cat("to copy: ", format_size(room.needed_bytes));
    if (room.free_bytes) line += str_cat("; free: ", format_size(*room.free_bytes));
    if (room.quota.bytes) line += str_cat("; quota left: ", format_size(*room.quota.bytes));
    (void)ui.out(line + (room.fits() ? "" : " -- NOT ENOUGH"));
  }
  return room.fits() ? kExitDone : kExitNo;
}

void StageCommand::show_json(Ui& ui, const StageTask& task, const StageCounts& counts,
                             double seconds) const {
  JsonWriter json = json_line("stage");
  if (!task.split.empty()) json.member_bytes("split", task.split);
  json.member_bytes("directory", task.directory);
  json.member("content_id", task.pack->content_id().to_hex());
  json.member("pack_shards", task.pack->shards().size()).member("shards", task.shards.size());
  json.member("shards_copied", counts.shards_copied);
  json.member("shards_by_others", counts.shards_by_others);
  json.member("shards_mended", counts.shards_mended);
  json.member("bytes", task.wanted_bytes).member("bytes_copied", counts.bytes_copied);
  json.member("damages", counts.damages);
  json.member("is_pack", task.whole && counts.damages == 0);
  json.member("seconds", seconds);
  (void)ui.json(json.end_object());
}

void StageCommand::show(Ui& ui, const StageTask& task, const StageCounts& counts,
                        double seconds) const {
  const std::string name = task.split.empty() ? "" : escape_bytes(task.split) + ": ";
  const double rate = seconds > 0 ? static_cast<double>(counts.bytes_copied) / seconds / 1e6 : 0;
  std::string line = str_cat(name, "copied ", count_of(counts.shards_copied, "shard"), ", ",
                             format_size(counts.bytes_copied));
  if (counts.bytes_copied != 0) {
    line += str_cat(", in ", format_fixed(seconds, 1), " s (", format_fixed(rate, 0), " MB/s)");
  }
  if (counts.shards_mended != 0) {
    line += str_cat("; ", format_count(counts.shards_mended), " of them were damaged here");
  }
  (void)ui.out(line);
  const uint64_t copied_new = counts.shards_copied - counts.shards_mended;
  uint64_t before = task.shards.size() - std::min<uint64_t>(task.shards.size(), copied_new);
  before -= std::min(before, counts.shards_by_others + counts.shards_mended);
  if (counts.damages == 0 && before != 0) {
    (void)ui.out(str_cat(name, count_of(before, "shard was", "shards were"), " there before"));
  }
  if (counts.shards_by_others != 0) {
    (void)ui.out(str_cat(name, count_of(counts.shards_by_others, "shard was", "shards were"),
                         " copied by another process meanwhile"));
  }
  if (counts.damages != 0) {
    (void)ui.out(str_cat(name, "what is damaged was not copied (", format_count(counts.damages),
                         " told above): `stripepack verify` lists all of it, `stripepack repair` "
                         "mends it; then the same command line continues"));
  } else if (task.whole) {
    (void)ui.out(
        str_cat(name, escape_bytes(task.directory), " is a pack, and a cache of this one"));
  } else {
    (void)ui.out(str_cat(name, escape_bytes(task.directory), " is a cache of ",
                         count_of(task.shards.size(), "shard"), " of ",
                         format_count(task.pack->shards().size()), ": open the pack with it"));
  }
}

// True where all went well, false where the pack is damaged.
Result<bool> StageCommand::stage(Ui& ui, Progress& progress, StageTask& task) {
  StageTotals totals;
  for (const uint32_t shard : request_.verify ? task.shards : task.missing) {
    totals.samples += task.pack->shards()[shard].sample_count;
    totals.bytes += task.pack->shards()[shard].file_bytes;
  }
  progress.stage("staging", totals);
  StageHooks hooks;
  hooks.cancel = &cancel_flag();
  hooks.advance = [&](uint64_t samples, uint64_t bytes) { progress.add(samples, bytes); };
  const auto begin = std::chrono::steady_clock::now();
  StageRun run(request_, task, hooks);
  SPK_ASSIGN(const StageCounts counts,
             run.run([&](const Damage& damage) { show_damage(ui, task.split, damage); }));
  progress.finish();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (ui.json_mode()) {
    show_json(ui, task, counts, seconds.count());
  } else {
    show(ui, task, counts, seconds.count());
  }
  return counts.damages == 0;
}

int StageCommand::run(Ui& ui) {
  if (Status status = plan(); !status.ok()) return ui.fail(status);
  if (Status status = refuse_what_is_in_the_way(); !status.ok()) return ui.fail(status);
  const StageRoom room = find_room(directory_, tasks_);
  if (dry_run_) return show_plan(ui, room);
  if (Status status = refuse_without_room(room); !status.ok()) return ui.fail(status);
  Progress progress(ui, progress_);
  bool good = true;
  for (StageTask& task : tasks_) {
    const Result<bool> staged = stage(ui, progress, task);
    if (!staged.ok()) {
      if (staged.status().code() != Code::kCancelled) return ui.fail(staged.status());
      return ui.fail(cancel_status().with_hint("the same command line continues"));
    }
    good = good && *staged;
  }
  return good ? kExitDone : kExitNo;
}

}  // namespace

std::unique_ptr<Command> make_stage_command() { return std::make_unique<StageCommand>(); }

}  // namespace spk
