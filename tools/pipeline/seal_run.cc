// `seal`: publishes what the parts of a job have built, or tells what is missing of it.
#include <algorithm>

#include "base/text.h"
#include "container/pack.h"
#include "pipeline/pack_steps.h"

namespace spk {

namespace {

constexpr size_t kMissingTold = 20;

// A run that was no job's part left no record of its plans: they are told by what lies there.
Result<PlansFile> plans_lying_in(const Directory& partial) {
  PlansFile plans;
  const auto add = [&plans](const Directory& dir, const std::string& split) -> Status {
    SPK_ASSIGN(const bool planned, dir.exists(kPlanName));
    if (!planned) return {};
    SPK_ASSIGN(const std::unique_ptr<Plan> plan, Plan::load(dir.path_of(kPlanName)));
    plans.splits.push_back(
        {split, plan->info().plan_id.to_hex(), plan->info().geometry.shard_count});
    return {};
  };
  SPK_TRY(add(partial, ""));
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, partial.list());
  for (const DirectoryEntry& entry : entries) {
    if (entry.type != EntryType::kDirectory || is_replan_name(entry.name)) continue;
    SPK_ASSIGN(const Directory dir, Directory::open_at(partial, entry.name));
    SPK_TRY(add(dir, entry.name));
  }
  if (!plans.splits.empty()) return plans;
  return Status(Code::kNotFound, "holds no plan: nothing was planned here yet")
      .at_path(partial.path())
      .with_hint("`stripepack pack` with the command line of the job plans and builds");
}

Status shards_are_missing(const std::vector<std::string>& missing, const std::string& path) {
  std::string text = str_cat(count_of(missing.size(), "shard is", "shards are"), " missing: ");
  for (size_t i = 0; i < std::min(missing.size(), kMissingTold); ++i) {
    text += str_cat(i == 0 ? "" : ", ", missing[i]);
  }
  if (missing.size() > kMissingTold)
    text += str_cat(" and ", missing.size() - kMissingTold, " more");
  return Status(Code::kNotFound, text)
      .at_path(path)
      .with_hint("run the parts that build them (again), with the job's command line");
}

}  // namespace

Result<PackOutcome> PackRun::run_seal() {
  SPK_ASSIGN(place_, split_output(options_.output));
  if (observer_.stage) observer_.stage("sealing", 0, 0);
  SPK_ASSIGN(const bool published, is_published());
  auto claim = Claim::share(place_, false);
  if (!claim.ok() && claim.status().code() == Code::kNotFound && published) {
    outcome_.end = PackEnd::kComplete;
    outcome_.seconds = seconds();
    return std::move(outcome_);
  }
  if (!claim.ok()) return std::move(claim).status();
  claim_.emplace(std::move(claim).value());
  if (published) {
    return Status(Code::kExists, "OUT is a pack, and beside it lies an unfinished one")
        .at_path(options_.output)
        .with_hint("move the one away that is not wanted");
  }
  auto plans = read_plans_file(claim_->partial());
  if (!plans.ok() && plans.status().code() == Code::kNotFound) {
    plans = plans_lying_in(claim_->partial());
  }
  if (!plans.ok()) return std::move(plans).status();
  SPK_TRY(take_plans(*plans));
  SPK_ASSIGN(const std::vector<std::string> missing, missing_shards());
  if (!missing.empty()) return shards_are_missing(missing, claim_->partial().path());
  bool by_other = false;
  SPK_TRY(conclude_beside_others(&by_other));
  if (by_other) outcome_.end = PackEnd::kComplete;
  outcome_.seconds = seconds();
  return std::move(outcome_);
}

Result<PackOutcome> run_seal(const PackOptions& options, const std::string& command_line,
                             const std::atomic<bool>& cancel, const PackObserver& observer) {
  // What run.json tells is of the job that built the pack.
  PackOptions of_job = options;
  auto place = split_output(options.output);
  if (!place.ok()) return std::move(place).status();
  auto partial = Directory::open(str_cat(place->parent, "/", place->partial_name()));
  std::string command = command_line;
  if (partial.ok()) {
    auto plans = read_plans_file(*partial);
    if (plans.ok()) {
      of_job.source = plans->source;
      of_job.request = plans->request;
      command = plans->command;
    }
  }
  PackRun run(of_job, command, cancel, observer);
  return run.run_seal();
}

}  // namespace spk
