// Which stripe layout the shards of a run get, and the making of their files with it. Bytes do not
// depend on it: what cannot be had is warned about once and packed without.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "io/stripes.h"
#include "layout/geometry.h"
#include "layout/stripe_choice.h"

namespace spk {

enum class StripeMode { kAuto, kKeep, kNone };

struct StripeOptions {
  StripeMode mode = StripeMode::kAuto;
  // Zeros and "": chosen, or the folder's. kAllTargets: every target.
  uint64_t stripe_bytes = 0;
  uint32_t stripe_count = 0;
  std::string pool;
  bool asks() const noexcept { return stripe_bytes != 0 || stripe_count != 0 || !pool.empty(); }
};

struct StripePlan {
  FileSystemInfo file_system;
  StripeLayout folder;               // what files get there by themselves
  uint32_t target_count = 0;         // 0: not told
  StripeRequest request;             // the start target aside, which each shard has of its own
  bool spreads_starts = false;       // shards begin on targets in turn
  std::vector<std::string> reasons;  // for people
  // "stripe_size=4194304 stripe_count=1", or "the folder's own".
  std::string asked() const;
};

// For shards made in the folder of DIRECTORY_FD. kInvalidArgument where what was asked for can
// never be had here; nothing is written.
Result<StripePlan> plan_stripes(int directory_fd, const StripeOptions& options,
                                const Geometry& geometry, uint64_t pack_bytes,
                                const StripeCalls& calls = kernel_stripe_calls());

// Makes the files of shards. Thread-safe.
class ShardFileMaker {
 public:
  explicit ShardFileMaker(StripePlan plan, const StripeCalls& calls = kernel_stripe_calls())
      : plan_(std::move(plan)), calls_(calls) {}
  // A new, empty file for this shard; kExists where the name is taken.
  Result<File> create(const Directory& dir, const std::string& name, uint32_t shard);
  const StripePlan& plan() const noexcept { return plan_; }
  // Why the file system did not give what was asked for; "" where it did, or nothing was made.
  std::string refused() const;

 private:
  const StripePlan plan_;
  const StripeCalls& calls_;
  mutable std::mutex mutex_;
  std::string refused_;  // the first
};

}  // namespace spk
