// `stripepack pack` from options to a published pack: claim, plan, build, seal, publish. The same
// options again continue what is unfinished, and find what is finished complete.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "container/pack_size.h"
#include "container/seal.h"
#include "pipeline/build.h"
#include "pipeline/plan.h"
#include "team/team.h"

namespace spk {

// Called on the way; from several threads for `advanced`.
struct PackObserver {
  // "listing", "packing", "sealing"; totals are 0 where unknown.
  std::function<void(const std::string& stage, uint64_t samples, uint64_t bytes)> stage;
  std::function<void(uint64_t samples, uint64_t bytes, uint64_t rejects)> advanced;
  std::function<void(const std::string& line)> note;  // for people
};

// What was asked of the file system for the shards' files.
struct StripeOutcome {
  std::string asked = "not known to what sealed the pack";
  std::string refused;  // why it did not give that; "" where it did
  bool looked = true;   // the layouts are read back
};

struct SplitOutcome {
  std::string split;  // "" where there are none
  StripeOutcome layout;
  PlanInfo plan;
  bool plan_is_gone = false;  // a part that publishes has removed its file; `plan` is incomplete
  BuildResult build;
  Hash128 content_id;  // this and the size: of what was published
  PackSize size;
};

enum class PackEnd {
  kPublished,
  kComplete,      // OUT is what this command line makes; nothing was done but SHA256SUMS
  kNotPublished,  // built, but more rejects than --max-rejects allows
  kPartBuilt,     // this part's shards are, and others are not finished yet
  kPartPublished  // this part's shards are built, and another part has published the pack
};

struct PackOutcome {
  PackEnd end = PackEnd::kPublished;
  std::vector<SplitOutcome> splits;
  Listing listing;
  Warnings warnings;  // of listing and building in this run
  std::map<std::string, uint64_t> reject_reasons;
  uint64_t rejects = 0;
  std::string old_pack;         // where --force put what was at OUT before
  bool wrote_sha256 = false;    // kComplete: SHA256SUMS was asked for and missing
  uint64_t shards_missing = 0;  // kPartBuilt: those of all parts
  double seconds = 0;
};

// REQUIRES options.jobs set. kCancelled when `cancel` became true: the same command line continues.
// kBusy, kExists and kMismatch refuse what is there, and say what differs and which option helps.
// With several ranks in `team` each calls this, and each gets the status of the whole.
Result<PackOutcome> run_pack(const PackOptions& options, const std::string& command_line,
                             Team& team, const std::atomic<bool>& cancel,
                             const PackObserver& observer);

// Publishes options.output where all parts of a job have built their shards; kComplete where it is
// published already. Of the options only output, max_rejects and sha256 count. kNotFound, naming
// the shards that are missing and the parts that build them.
Result<PackOutcome> run_seal(const PackOptions& options, const std::string& command_line,
                             const std::atomic<bool>& cancel, const PackObserver& observer);

}  // namespace spk
