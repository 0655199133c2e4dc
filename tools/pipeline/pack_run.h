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

namespace spk {

// Called on the way; from several threads for `advanced`.
struct PackObserver {
  // "listing", "packing", "sealing"; totals are 0 where unknown.
  std::function<void(const std::string& stage, uint64_t samples, uint64_t bytes)> stage;
  std::function<void(uint64_t samples, uint64_t bytes, uint64_t rejects)> advanced;
  std::function<void(const std::string& line)> note;  // for people
};

struct SplitOutcome {
  std::string split;  // "" where there are none
  PlanInfo plan;
  BuildResult build;
  Hash128 content_id;  // this and the size: of what was published
  PackSize size;
};

enum class PackEnd {
  kPublished,
  kComplete,     // OUT is what this command line makes; nothing was done but SHA256SUMS
  kNotPublished  // built, but more rejects than --max-rejects allows
};

struct PackOutcome {
  PackEnd end = PackEnd::kPublished;
  std::vector<SplitOutcome> splits;
  Listing listing;
  Warnings warnings;  // of listing and building in this run
  std::map<std::string, uint64_t> reject_reasons;
  uint64_t rejects = 0;
  std::string old_pack;       // where --force put what was at OUT before
  bool wrote_sha256 = false;  // kComplete: SHA256SUMS was asked for and missing
  double seconds = 0;
};

// REQUIRES options.jobs set. kCancelled when `cancel` became true: the same command line continues.
// kBusy, kExists and kMismatch refuse what is there, and say what differs and which option helps.
Result<PackOutcome> run_pack(const PackOptions& options, const std::string& command_line,
                             const std::atomic<bool>& cancel, const PackObserver& observer);

}  // namespace spk
