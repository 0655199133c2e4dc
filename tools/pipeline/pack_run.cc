#include "pipeline/pack_run.h"

#include <algorithm>

#include "base/text.h"
#include "container/pack.h"
#include "io/atomic_file.h"
#include "pipeline/pack_files.h"
#include "pipeline/pack_steps.h"

namespace spk {

std::string PackRun::plan_path(const std::string& base, const std::string& split) const {
  return split.empty() ? str_cat(base, "/", kPlanName) : str_cat(base, "/", split, "/", kPlanName);
}

std::string PackRun::replan_name() const { return str_cat(kReplanName, "-", claim_->attempt()); }

std::string PackRun::output_path() const { return str_cat(place_.parent, "/", place_.name); }

Result<Directory> PackRun::split_directory(const std::string& split) const {
  if (split.empty()) return Directory::open(claim_->partial().path());
  SPK_ASSIGN(const bool exists, claim_->partial().exists(split));
  if (exists) return Directory::open_at(claim_->partial(), split);
  return Directory::create_at(claim_->partial(), split);
}

// OUT may be absent, an empty directory, or (to be found complete, or replaced with --force) a
// pack. Anything else is somebody's data.
Status PackRun::refuse_foreign_output() {
  output_is_pack_ = false;
  auto opened = Directory::open(place_.parent);
  if (!opened.ok()) {
    return std::move(opened).status().with_hint("make the folder that OUT shall stand in first");
  }
  const Directory& parent = *opened;
  SPK_ASSIGN(const bool exists, parent.exists(place_.name));
  if (!exists) return {};
  auto kind = classify_output(parent, place_.name);
  if (!kind.ok()) return std::move(kind).status();
  if (*kind == OutputKind::kForeign) {
    return Status(Code::kExists, "OUT exists and is not a pack; it is left alone")
        .at_path(parent.path_of(place_.name))
        .with_hint("choose another OUT");
  }
  output_is_pack_ = *kind == OutputKind::kPack;
  return {};
}

Status PackRun::make_plans() {
  if (observer_.stage) observer_.stage("listing", 0, 0);
  const Directory& partial = claim_->partial();
  SPK_ASSIGN(const Directory replan, Directory::create_at(partial, replan_name()));
  auto planned = make_plan(options_, *source_, replan.path(),
                           shared_.told != nullptr ? shared_.told : shared_.cancel);
  if (!planned.ok()) {
    SPK_TRY(partial.remove_tree(replan_name()));
    return std::move(planned).status();
  }
  outcome_.listing = std::move(planned->listing);
  outcome_.warnings.merge(outcome_.listing.warnings);
  for (PlannedSplit& split : planned->splits) {
    const Status enough = check_memory(split.info, options_);
    if (!enough.ok()) {
      SPK_TRY(partial.remove_tree(replan_name()));
      return enough;
    }
    SplitOutcome one;
    one.split = split.info.split;
    one.plan = std::move(split.info);
    outcome_.splits.push_back(std::move(one));
  }
  return {};
}

// OUT is a pack already: it is complete if it was made by this very plan.
Status PackRun::compare_with_published(bool* complete) {
  const std::string output = output_path();
  std::string difference;
  SPK_TRY(describe_published_difference(output, outcome_.splits, &difference, &outcome_.rejects));
  *complete = difference.empty();
  if (*complete) return {};
  return Status(Code::kMismatch, "OUT is another pack than this line makes: " + difference)
      .at_path(output)
      .with_hint("--force makes it anew and keeps the old one beside it");
}

// To packs that were published without.
Status PackRun::add_sha256_sums() {
  if (observer_.stage) observer_.stage("hashing", 0, 0);
  const std::string output = output_path();
  for (const SplitOutcome& split : outcome_.splits) {
    SPK_ASSIGN(const Directory dir,
               Directory::open(split.split.empty() ? output : str_cat(output, "/", split.split)));
    SPK_ASSIGN(const bool exists, dir.exists(kSha256Name));
    if (exists) continue;
    SPK_TRY(write_sha256_sums(dir, split.plan.geometry.shard_count));
    outcome_.wrote_sha256 = true;
  }
  return {};
}

// What an earlier run with other splits left must not end up beside this run's packs.
Status PackRun::refuse_other_splits() {
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, claim_->partial().list());
  for (const DirectoryEntry& entry : entries) {
    const bool is_split = entry.type == EntryType::kDirectory && !is_replan_name(entry.name) &&
                          entry.name != kSpoolName;
    const bool is_plan = entry.name == kPlanName;
    if (!is_split && !is_plan) continue;
    const std::string name = is_plan ? "" : entry.name;
    const bool known = std::any_of(outcome_.splits.begin(), outcome_.splits.end(),
                                   [&](const SplitOutcome& split) { return split.split == name; });
    if (!known) {
      return Status(Code::kMismatch, "an unfinished run with other splits lies here")
          .at_path(claim_->partial().path_of(entry.name))
          .with_hint("repeat its command line to continue it, or throw it away with --restart");
    }
  }
  return {};
}

// Takes the new plans for those of this run, or goes on with equal ones that an earlier run left.
Status PackRun::adopt_plans() {
  const std::string base = claim_->partial().path();
  const std::string replan = str_cat(base, "/", replan_name());
  for (const SplitOutcome& split : outcome_.splits) {
    SPK_ASSIGN(const Directory dir, split_directory(split.split));
    SPK_ASSIGN(const bool exists, dir.exists(kPlanName));
    if (exists) {
      const std::string old_path = plan_path(base, split.split);
      SPK_ASSIGN(const std::string difference,
                 describe_plan_difference(old_path, plan_path(replan, split.split)));
      if (!difference.empty()) {
        SPK_TRY(claim_->partial().remove_tree(replan_name()));
        const std::string told = difference.substr(0, difference.find_last_not_of('\n') + 1);
        return Status(Code::kMismatch, "an unfinished run of another plan lies here: " + told)
            .at_path(base)
            .with_hint("repeat its command line to continue it, or throw it away with --restart");
      }
      continue;
    }
    SPK_ASSIGN(const Directory replan_dir, Directory::open(replan));
    if (split.split.empty()) {
      SPK_TRY(replan_dir.rename_to(kPlanName, dir, kPlanName));
    } else {
      SPK_ASSIGN(const Directory from, Directory::open_at(replan_dir, split.split));
      SPK_TRY(from.rename_to(kPlanName, dir, kPlanName));
    }
    SPK_TRY(dir.sync());
  }
  return claim_->partial().remove_tree(replan_name());
}

Status PackRun::build_split(SplitOutcome& split, uint64_t shards_before) {
  SPK_ASSIGN(const Directory dir, split_directory(split.split));
  SPK_ASSIGN(StripePlan stripes,
             plan_stripes(dir.fd(), options_.stripes, split.plan.geometry, split.plan.total_bytes));
  split.layout.asked = stripes.asked();
  split.layout.looked = options_.stripes.mode != StripeMode::kNone;
  const ShardDeal deal{first_shard_of(part_, shards_before), part_.count};
  if (deal.first >= split.plan.geometry.shard_count) return {};
  if (split.plan_is_gone) {
    // Then every shard was finished; if one is not there, the plan is what is missed.
    bool all = true;
    for (uint64_t shard = deal.first; all && shard < split.plan.geometry.shard_count;
         shard += deal.step) {
      SPK_ASSIGN(all, dir.exists(shard_file_name(static_cast<uint32_t>(shard))));
    }
    if (all) return {};
  }
  SPK_ASSIGN(const std::unique_ptr<Plan> plan,
             Plan::load(plan_path(claim_->partial().path(), split.split)));
  ShardFileMaker files(std::move(stripes));
  SPK_ASSIGN(split.build,
             build_pack(dir, claim_->attempt(), *plan, *source_, options_, deal, files, shared_));
  split.layout.refused = files.refused();
  if (!split.layout.refused.empty()) {
    shared_.warnings.add("stripe layout not set", split.layout.refused);
  }
  return {};
}

Status PackRun::build() {
  uint64_t samples = 0;
  uint64_t bytes = 0;
  for (const SplitOutcome& split : outcome_.splits) {
    // Of a part about, for its shards need not be of one size.
    samples += split.plan.sample_count / part_.count;
    bytes += split.plan.total_bytes / part_.count;
  }
  if (observer_.stage) observer_.stage("packing", samples, bytes);
  uint64_t shards = 0;
  for (SplitOutcome& split : outcome_.splits) {
    SPK_TRY(build_split(split, shards));
    shards += split.plan.geometry.shard_count;
    outcome_.rejects += split.build.rejects;
  }
  outcome_.warnings.merge(shared_.warnings);
  outcome_.reject_reasons = shared_.reject_reasons;
  return {};
}

Status PackRun::refuse_empty(uint64_t good_samples) const {
  if (good_samples != 0) return {};
  return Status(Code::kDamaged,
                str_cat(
                    "no sample is left: ", count_of(outcome_.rejects, "sample was", "samples were"),
                    " rejected, most often: ", most_frequent(outcome_.reject_reasons)))
      .at_path(options_.source)
      .with_hint(str_cat("nothing is left to publish; ", claim_->partial().path_of(kRejectsName),
                         " names each with its reason"));
}

Status PackRun::move_old_aside() {
  if (!output_is_pack_) return {};
  const std::string aside = str_cat(claim_->place().name, ".old-", claim_->attempt());
  SPK_TRY(claim_->parent().rename_no_replace(claim_->place().name, aside));
  outcome_.old_pack = claim_->parent().path_of(aside);
  return {};
}

Status PackRun::publish() {
  if (observer_.stage) observer_.stage("sealing", 0, 0);
  for (SplitOutcome& split : outcome_.splits) {
    SPK_ASSIGN(const Directory dir, split_directory(split.split));
    SPK_ASSIGN(const SealSummary sealed, seal_pack(dir));
    split.content_id = {sealed.header.content_id_low, sealed.header.content_id_high};
    split.size = pack_size(sealed.header, sealed.shards);
    SPK_TRY(write_companion_files(dir, options_, command_line_, split.layout, sealed));
    SPK_TRY(Claim::remove_temporaries(dir));
  }
  // The plans have served. Without them, a run that is killed right here plans again, finds every
  // shard finished and seals once more.
  for (const SplitOutcome& split : outcome_.splits) {
    SPK_ASSIGN(const Directory dir, split_directory(split.split));
    SPK_TRY(dir.remove_tree(kPlanName));
    SPK_TRY(dir.sync());
  }
  SPK_TRY(claim_->partial().remove_tree(kSpoolName));
  SPK_TRY(move_old_aside());
  return claim_->publish();
}

Status PackRun::open() {
  SPK_ASSIGN(place_, split_output(options_.output));
  const auto spool =
      std::make_shared<Spool>(str_cat(place_.parent, "/", place_.partial_name(), "/", kSpoolName));
  SPK_ASSIGN(source_, open_source(options_, spool));
  SPK_TRY(refuse_output_in_source(options_, place_));
  return refuse_foreign_output();
}

Status PackRun::begin(bool* complete) {
  SPK_ASSIGN(Claim claim, Claim::take(place_));
  claim_.emplace(std::move(claim));
  // Once more: whoever held the claim until now may have published meanwhile.
  SPK_TRY(refuse_foreign_output());
  if (options_.restart) SPK_TRY(claim_->clear());
  SPK_TRY(claim_->remove_replans());
  SPK_TRY(make_plans());
  if (output_is_pack_ && !options_.force) {
    Status status = compare_with_published(complete);
    if (*complete || !status.ok()) {
      SPK_TRY(claim_->partial().remove_tree(replan_name()));
      SPK_TRY(claim_->partial().remove_tree(kSpoolName));
      SPK_TRY(Claim::remove_temporaries(claim_->partial()));
      if (!status.ok()) return status;
      if (options_.sha256) SPK_TRY(add_sha256_sums());
      outcome_.end = PackEnd::kComplete;
      return {};
    }
  }
  SPK_TRY(refuse_other_splits());
  return adopt_plans();
}

Status PackRun::conclude() {
  uint64_t good = 0;
  uint64_t taken_over = 0;
  for (const SplitOutcome& split : outcome_.splits) {
    good += split.build.samples;
    taken_over += split.build.shards_taken_over;
  }
  if (taken_over != 0) {
    return Status(Code::kBusy, str_cat("another run took over ", count_of(taken_over, "shard")))
        .at_path(claim_->partial().path())
        .with_hint("once it has ended, the same command line continues");
  }
  if (good != 0 && outcome_.rejects <= options_.max_rejects) return publish();
  for (const SplitOutcome& split : outcome_.splits) {
    SPK_ASSIGN(const Directory dir, split_directory(split.split));
    SPK_TRY(write_rejects(dir));
  }
  SPK_TRY(refuse_empty(good));
  outcome_.end = PackEnd::kNotPublished;
  return {};
}

double PackRun::seconds() const {
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin_;
  return taken.count();
}

Result<PackOutcome> PackRun::run() {
  SPK_TRY(open());
  bool complete = false;
  SPK_TRY(begin(&complete));
  if (!complete) {
    SPK_TRY(build());
    SPK_TRY(conclude());
  }
  outcome_.seconds = seconds();
  return std::move(outcome_);
}

Result<PackOutcome> run_pack(const PackOptions& options, const std::string& command_line,
                             Team& team, const std::atomic<bool>& cancel,
                             const PackObserver& observer) {
  PackRun run(options, command_line, cancel, observer);
  if (options.part) return run.run_part();
  return team.size() > 1 ? run.run_team(team) : run.run();
}

}  // namespace spk
