// The steps of a run of `pack`, put together by pack_run.cc for one process, by part_run.cc for one
// of the parts of a job, and by team_run.cc for the ranks of an MPI program.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/claim.h"
#include "pipeline/pack_run.h"
#include "pipeline/part.h"
#include "pipeline/plans_file.h"
#include "team/team.h"

namespace spk {

inline constexpr std::string_view kPlanName = "plan.spkp";

class PackRun {
 public:
  PackRun(const PackOptions& options, const std::string& command_line,
          const std::atomic<bool>& cancel, const PackObserver& observer)
      : options_(options), command_line_(command_line), observer_(observer) {
    shared_.cancel = &cancel;
    shared_.on_progress = observer.advanced;
  }

  Result<PackOutcome> run();
  // REQUIRES options.part.
  Result<PackOutcome> run_part();
  // All ranks end with the same status. What the first one yields is of the whole pack.
  Result<PackOutcome> run_team(Team& team);
  Result<PackOutcome> run_seal();

 private:
  // The source, and OUT as far as it can be looked at without a claim.
  Status open();
  Status refuse_foreign_output();
  // Claims OUT.partial and settles the plans in it; *complete: OUT is what they would make.
  Status begin(bool* complete);
  Status make_plans();
  Status refuse_other_splits();
  Status adopt_plans();
  Status compare_with_published(bool* complete);
  Status add_sha256_sums();
  // Every shard of the plans, or those of part_.
  Status build();
  Status build_split(SplitOutcome& split, uint64_t shards_before);
  // Publishes, unless there are too many rejects. REQUIRES every shard finished, and counted.
  Status conclude();
  Status refuse_empty(uint64_t good_samples) const;
  Status publish();
  Status move_old_aside();
  // "OUT.partial/train/plan.spkp", relative to the working directory.
  std::string plan_path(const std::string& base, const std::string& split) const;
  Result<Directory> split_directory(const std::string& split) const;
  std::string replan_name() const;
  std::string output_path() const;
  double seconds() const;

  // Parts (part_run.cc, seal_run.cc).
  Status begin_part();
  Status begin_first_part();
  Status plan_for_parts();
  void tell_failure(const Status& status) const;
  Status wait_for_plans();
  Status check_request(const PlansFile& plans) const;
  Status take_plans(const PlansFile& plans);
  // Whether OUT is a pack; kMismatch where another command line made it.
  Result<bool> published_by_request();
  Status end_part();
  // Names of the shards that are not finished, and which part builds each.
  Result<std::vector<std::string>> missing_shards() const;
  Status count_shards();
  // As conclude(), beside other parts that do the same. *by_other: one of them did it.
  Status conclude_beside_others(bool* by_other);
  Result<bool> is_published() const;

  // Ranks (team_run.cc).
  Status team_steps(Team& team);
  // What the first rank tells the others of the plans; "" where nothing is to be built.
  std::string plans_message() const;
  Status attach_to_plans(std::string_view message);
  // What a rank built.
  std::string counts_message() const;
  Status take_counts(const std::vector<std::string>& messages);

  const PackOptions& options_;
  const std::string& command_line_;
  const PackObserver& observer_;
  OutputPlace place_;
  PackPart part_;
  uint32_t job_parts_ = 1;  // that the job has, as its first part said
  std::unique_ptr<Source> source_;
  std::optional<Claim> claim_;
  BuildShared shared_;
  PackOutcome outcome_;
  bool output_is_pack_ = false;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace spk
