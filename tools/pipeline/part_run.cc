// One of the parts of a job. The first one plans; the others wait until its plans are there. Which
// part ends last nobody knows beforehand: each one that ends and finds every shard finished
// publishes. Two that do so at once do the same to the same files, and the second one's rename
// finds that the first one's was done.
#include <algorithm>
#include <thread>

#include "base/text.h"
#include "container/pack.h"
#include "io/atomic_file.h"
#include "pipeline/pack_files.h"
#include "pipeline/pack_steps.h"

namespace spk {

namespace {

constexpr uint64_t kMostFailureBytes = 65536;

// Ever longer, up to a second: on a metadata server that thousands of parts ask, nothing is sooner
// by being asked more often.
class Pause {
 public:
  void wait() {
    std::this_thread::sleep_for(next_);
    next_ = std::min(next_ * 2, std::chrono::milliseconds(1000));
  }

 private:
  std::chrono::milliseconds next_{10};
};

Result<std::string> failure_text(const Directory& partial) {
  auto bytes = read_whole_file(partial, kPlanFailedName, kMostFailureBytes);
  if (bytes.ok()) return std::string(as_text(*bytes));
  if (bytes.status().code() == Code::kNotFound) return std::string();
  return std::move(bytes).status();
}

}  // namespace

Result<bool> PackRun::is_published() const {
  SPK_ASSIGN(const Directory parent, Directory::open(place_.parent));
  SPK_ASSIGN(const bool exists, parent.exists(place_.name));
  if (!exists) return false;
  SPK_ASSIGN(const OutputKind kind, classify_output(parent, place_.name));
  return kind == OutputKind::kPack;
}

Result<bool> PackRun::published_by_request() {
  SPK_ASSIGN(const bool published, is_published());
  if (!published) return false;
  SPK_ASSIGN(const Directory output, Directory::open(output_path()));
  SPK_ASSIGN(const bool has_manifest, output.exists(kManifestName));
  auto request = read_run_request(output);
  if (!has_manifest) {
    SPK_ASSIGN(const std::vector<DirectoryEntry> splits, output.list());
    SPK_ASSIGN(const Directory first, Directory::open_at(output, splits.front().name));
    request = read_run_request(first);
  }
  constexpr std::string_view kHelp = "move it away, or choose another OUT: parts replace no pack";
  if (!request.ok()) {
    return Status(Code::kMismatch, str_cat("OUT is a pack that does not tell what made it (",
                                           request.status().to_string(), ")"))
        .at_path(options_.output)
        .with_hint(kHelp);
  }
  const std::string difference = request_difference(*request, options_.request);
  if (difference.empty()) return true;
  return Status(Code::kMismatch, "OUT is a pack that another command line made: " + difference)
      .at_path(options_.output)
      .with_hint(kHelp);
}

Status PackRun::check_request(const PlansFile& plans) const {
  const std::string difference = request_difference(plans.request, options_.request);
  if (difference.empty()) return {};
  return Status(Code::kMismatch,
                "an unfinished run of another command line lies here: " + difference)
      .at_path(str_cat(place_.parent, "/", place_.partial_name()))
      .with_hint("repeat its command line to continue it, or remove that folder to begin anew");
}

// Sizes and settings are those of the plan files. Where one is gone, a part that was killed while
// it published had no use for it any more: then every shard is there and tells them.
Status PackRun::take_plans(const PlansFile& plans) {
  job_parts_ = plans.parts;
  for (const PlansFile::Split& one : plans.splits) {
    SplitOutcome split;
    split.split = one.name;
    auto plan = Plan::load(plan_path(claim_->partial().path(), one.name));
    if (plan.ok()) {
      split.plan = (*plan)->info();
      if (split.plan.plan_id.to_hex() != one.plan_id) {
        return Status(Code::kMismatch, str_cat("is plan ", split.plan.plan_id.to_hex(),
                                               "; the job's parts build ", one.plan_id))
            .at_path(plan_path(claim_->partial().path(), one.name))
            .with_hint("remove OUT.partial to begin anew");
      }
    } else if (plan.status().code() == Code::kNotFound) {
      SPK_ASSIGN(const Directory dir, split_directory(one.name));
      SPK_ASSIGN(const LoadedFooter footer, load_footer(dir, 0));
      const FooterHeader& header = footer.view.header();
      split.plan_is_gone = true;
      split.plan.plan_id = {header.plan_id_low, header.plan_id_high};
      split.plan.split = one.name;
      split.plan.geometry.shard_count = one.shard_count;
      split.plan.geometry.chunk_bytes = uint64_t{1} << header.chunk_bytes_log2;
    } else {
      return std::move(plan).status();
    }
    outcome_.splits.push_back(std::move(split));
  }
  return {};
}

// So that parts which wait do not wait for ever. Those that come later wait for a new attempt.
void PackRun::tell_failure(const Status& status) const {
  const std::string text = str_cat(claim_->attempt(), "\n", status.to_string());
  (void)write_file_atomically(claim_->partial(), kPlanFailedName,
                              as_bytes(std::string_view(text).substr(0, kMostFailureBytes)));
}

Status PackRun::plan_for_parts() {
  SPK_TRY(make_plans());
  SPK_TRY(refuse_other_splits());
  SPK_TRY(adopt_plans());
  PlansFile plans;
  plans.command = command_line_;
  plans.source = options_.source;
  plans.made = utc_now();
  plans.parts = part_.count;
  plans.request = options_.request;
  for (const SplitOutcome& split : outcome_.splits) {
    plans.splits.push_back(
        {split.split, split.plan.plan_id.to_hex(), split.plan.geometry.shard_count});
  }
  SPK_TRY(write_plans_file(claim_->partial(), plans));
  SPK_TRY(claim_->partial().remove_tree(kPlanFailedName));
  job_parts_ = part_.count;
  return {};
}

Status PackRun::begin_first_part() {
  SPK_ASSIGN(Claim claim, Claim::share(place_, true));
  claim_.emplace(std::move(claim));
  auto plans = read_plans_file(claim_->partial());
  if (plans.ok()) {
    SPK_TRY(check_request(*plans));
    if (plans->parts != part_.count) {
      plans->parts = part_.count;
      SPK_TRY(write_plans_file(claim_->partial(), *plans));
    }
    if (observer_.note) {
      observer_.note(str_cat("goes on with the plan of ", plans->made,
                             "; files that the source got since are not in it"));
    }
    return take_plans(*plans);
  }
  if (plans.status().code() != Code::kNotFound) return std::move(plans).status();
  Status planned = plan_for_parts();
  if (!planned.ok()) tell_failure(planned);
  return planned;
}

Status PackRun::wait_for_plans() {
  std::optional<std::string> old_failure;  // of an earlier attempt, which is being repeated
  bool noted = false;
  Pause pause;
  for (;;) {
    SPK_ASSIGN(const bool published, published_by_request());
    if (published) {
      outcome_.end = PackEnd::kComplete;
      return {};
    }
    auto claim = Claim::share(place_, false);
    if (claim.ok()) {
      auto plans = read_plans_file(claim->partial());
      if (plans.ok()) {
        SPK_TRY(check_request(*plans));
        claim_.emplace(std::move(claim).value());
        return take_plans(*plans);
      }
      if (plans.status().code() != Code::kNotFound) return std::move(plans).status();
      SPK_ASSIGN(const std::string failure, failure_text(claim->partial()));
      if (!old_failure) old_failure = failure;
      if (!failure.empty() && failure != *old_failure) {
        return Status(Code::kMismatch,
                      "the first part could not plan: " + failure.substr(failure.find('\n') + 1));
      }
    } else if (claim.status().code() != Code::kNotFound) {
      return std::move(claim).status();
    } else if (!old_failure) {
      old_failure.emplace();
    }
    if (shared_.stopping()) return Status(Code::kCancelled, "stopped");
    if (options_.wait_seconds && seconds() >= static_cast<double>(*options_.wait_seconds)) {
      return Status(Code::kBusy, str_cat("the first part has published no plan within ",
                                         *options_.wait_seconds, " s"))
          .at_path(str_cat(place_.parent, "/", place_.partial_name()))
          .with_hint(str_cat("start --part 0/", part_.count, ", or allow a longer --wait"));
    }
    if (!noted && observer_.note) {
      observer_.note(str_cat("part ", to_text(part_), " waits for the plan of part 0"));
    }
    noted = true;
    pause.wait();
  }
}

Status PackRun::begin_part() {
  SPK_ASSIGN(const bool published, published_by_request());
  if (published) {
    outcome_.end = PackEnd::kComplete;
    return {};
  }
  return part_.index == 0 ? begin_first_part() : wait_for_plans();
}

Result<std::vector<std::string>> PackRun::missing_shards() const {
  std::vector<std::string> missing;
  uint64_t shards = 0;
  for (const SplitOutcome& split : outcome_.splits) {
    SPK_ASSIGN(const Directory dir, split_directory(split.split));
    SPK_ASSIGN(const std::vector<DirectoryEntry> entries, dir.list());
    const uint32_t count = split.plan.geometry.shard_count;
    for (uint32_t shard = 0; shard < count; ++shard) {
      const std::string name = shard_file_name(shard);
      const auto found = std::lower_bound(
          entries.begin(), entries.end(), name,
          [](const DirectoryEntry& entry, const std::string& text) { return entry.name < text; });
      if (found != entries.end() && found->name == name) continue;
      std::string told = split.split.empty() ? name : str_cat(split.split, "/", name);
      if (job_parts_ > 1) {
        told += str_cat(" (part ", (shards + shard) % job_parts_, "/", job_parts_, ")");
      }
      missing.push_back(std::move(told));
    }
    shards += count;
  }
  return missing;
}

// From the footers, for this part knows only of its own shards.
Status PackRun::count_shards() {
  outcome_.rejects = 0;
  outcome_.reject_reasons.clear();
  for (SplitOutcome& split : outcome_.splits) {
    SPK_ASSIGN(const Directory dir, split_directory(split.split));
    BuildResult& build = split.build;
    build.samples = build.rejects = build.payload_bytes = build.shard_bytes = 0;
    build.shards_taken_over = 0;
    for (uint32_t shard = 0; shard < split.plan.geometry.shard_count; ++shard) {
      SPK_ASSIGN(const LoadedFooter footer, load_footer(dir, shard));
      const FooterHeader& header = footer.view.header();
      build.samples += header.sample_count;
      build.rejects += header.reject_count;
      build.payload_bytes += header.payload_bytes;
      build.shard_bytes += footer.file_bytes;
      if (header.reject_count == 0) continue;
      SPK_ASSIGN(const ByteSpan part, footer.view.part(PartKind::kRejects));
      SPK_ASSIGN(const std::vector<RejectRow> rows, decode_reject_rows(part));
      for (const RejectRow& row : rows) outcome_.reject_reasons[reject_kind(row.reason)] += 1;
    }
    outcome_.rejects += build.rejects;
  }
  return {};
}

Status PackRun::conclude_beside_others(bool* by_other) {
  constexpr int kTries = 8;  // some seconds, in which others do the same or end
  Pause pause;
  for (int tries = 1;; ++tries) {
    Status status = count_shards();
    if (status.ok()) status = conclude();
    if (status.ok()) return {};
    SPK_ASSIGN(const bool in_place, claim_->is_in_place());
    if (!in_place) {
      SPK_ASSIGN(*by_other, is_published());
      if (*by_other) return {};
    }
    // What another part renamed or removed just now.
    const bool lost = status.code() == Code::kNotFound;
    if (!in_place || !lost || tries == kTries) return status;
    pause.wait();
  }
}

Status PackRun::end_part() {
  SPK_ASSIGN(const bool in_place, claim_->is_in_place());
  bool by_other = false;
  if (in_place) {
    SPK_ASSIGN(const std::vector<std::string> missing, missing_shards());
    outcome_.shards_missing = missing.size();
    if (!missing.empty()) {
      outcome_.end = PackEnd::kPartBuilt;
      return {};
    }
    SPK_TRY(conclude_beside_others(&by_other));
  } else {
    SPK_ASSIGN(by_other, is_published());
    if (!by_other) {
      return Status(Code::kNotFound, "was removed while this part was at work")
          .at_path(claim_->partial().path());
    }
  }
  if (by_other) outcome_.end = PackEnd::kPartPublished;
  return {};
}

Result<PackOutcome> PackRun::run_part() {
  part_ = *options_.part;
  SPK_TRY(open());
  SPK_TRY(begin_part());
  if (outcome_.end != PackEnd::kComplete) {
    Status status = build();
    if (status.ok()) {
      status = end_part();
    } else if (status.code() != Code::kCancelled) {
      // What this part needed may have gone with the publishing of another one, a twin of it say.
      SPK_ASSIGN(const bool in_place, claim_->is_in_place());
      SPK_ASSIGN(const bool published, is_published());
      if (!in_place && published) {
        outcome_.end = PackEnd::kPartPublished;
        status = {};
      }
    }
    SPK_TRY(std::move(status));
  }
  outcome_.seconds = seconds();
  return std::move(outcome_);
}

}  // namespace spk
