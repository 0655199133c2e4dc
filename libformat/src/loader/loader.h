// Gives a rank its batches, epoch by epoch, in the order of docs/ORDER.md, while reads for the next
// ones are in flight.
//
// A loader that goes on from an epoch to the following one is taken to do so again: while the last
// batches of an epoch are used, what the next one begins with is read, as far as the buffers' limit
// allows. After the last epoch those reads were for nothing.
//
// Thread safety: one thread at a time; any number of loaders on one pack. No thread is started
// before the first next(). A process that forks may make loaders from the pack in the child; a
// loader that has begun to read is refused there.
#pragma once

#include <sys/types.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "container/pack.h"
#include "layout/order.h"
#include "layout/steps.h"
#include "loader/batch.h"
#include "loader/reading.h"
#include "loader/state.h"
#include "loader/unit_pool.h"

namespace spk {

struct LoaderOptions {
  OrderKind order = OrderKind::kShuffled;
  uint64_t seed = 0;
  uint64_t epoch = 0;
  uint32_t lanes = 0;   // 0: by the number of ranks (docs/ORDER.md, section 8)
  uint32_t window = 0;  // likewise
  uint64_t rank = 0;
  uint64_t world = 1;
  uint64_t batch = 32;  // samples of one rank
  TailRule tail = TailRule::kDrop;
  uint64_t worker = 0;  // of the processes that serve this rank
  uint64_t workers = 1;
  // Names of the fields that are delivered; empty: all.
  std::vector<std::string> fields;
  // Bounds the memory of the buffers. 0: chosen, enough to read ahead.
  uint64_t memory_bytes = 0;
  EngineChoice engine = EngineChoice::kAuto;
  // Whether reads pass by the page cache; the rule of kAuto is in loader/reading.h.
  DirectChoice direct = DirectChoice::kAuto;
  uint64_t cache_bytes = 0;  // for that rule: what the page cache may use; 0: found out
  uint32_t threads = 0;      // that read and check; 0: chosen
  bool check_checksums = true;
  // A damaged sample is left out and counted, instead of being an error.
  bool skip_damaged = false;
  // Target of each chunk. Empty: by the map that is recorded beside the pack (loader/target_map.h),
  // if it may be used and there is one. Every rank must have the same.
  std::vector<uint32_t> targets;
  bool use_recorded_map = true;
  // Ranks of this node, each with `workers` loaders, that read chunks which several of them want
  // into shared memory, once. 0: nothing is shared. Where each rank has lanes of its own and one
  // worker, where samples are read singly, and where files are mapped, there is nothing to share.
  uint32_t node_ranks = 0;
  std::string node_group;          // tells apart runs of one user on one node, by any text
  uint64_t node_memory_bytes = 0;  // limit of the shared memory; 0: that of all their buffers
};

struct LoaderStats {
  uint64_t steps = 0;
  uint64_t samples = 0;
  uint64_t payload_bytes = 0;  // of the blobs delivered
  uint64_t repeated = 0;
  uint64_t skipped = 0;  // damaged samples
  uint64_t reads = 0;    // ahead for the next epoch, too; none where files are mapped
  uint64_t read_bytes = 0;
  uint64_t wait_ns = 0;  // in next(), for reads
  uint64_t ring_limit_bytes = 0;
  uint64_t ring_peak_bytes = 0;
  uint64_t shared_reads = 0;  // chunks read into memory that the node's loaders share
  uint64_t shared_hits = 0;   // chunks that were there
};

class Loader {
 public:
  // kInvalidArgument names the option that cannot be met; where memory_bytes is too small, how much
  // is needed.
  static Result<std::unique_ptr<Loader>> open(std::shared_ptr<const Pack> pack,
                                              LoaderOptions options);
  // Goes on where `state` was saved, with any number of ranks: order, seed, epoch, lanes and window
  // are the state's. kMismatch where it is of another pack or of a target map that is not at hand.
  static Result<std::unique_ptr<Loader>> resume(std::shared_ptr<const Pack> pack,
                                                LoaderOptions options, const LoaderState& state);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch; null at the end of the epoch, from then on until start_epoch(). After an error
  // the loader stands where it stood: the next call tries the same batch again.
  Result<std::shared_ptr<const Batch>> next();
  // Begins an epoch from its start. Reads for it may be under way, where it follows the one that
  // next() has ended.
  Status start_epoch(uint64_t epoch);
  // After the last step that was delivered.
  const LoaderState& state() const noexcept { return state_; }

  // Of the rank, from where the loader was opened, resumed, or its epoch started, to the epoch's
  // end. (Of all its workers together.)
  uint64_t step_count() const noexcept { return step_count_; }
  const OrderSettings& order() const noexcept { return state_.order; }
  const StepRules& rules() const noexcept { return rules_; }
  const Pack& pack() const noexcept { return *context_->pack; }
  const UnitContext& context() const noexcept { return *context_; }
  // For people: storage that is sorted by class, which this order does not mix well enough
  // (loader/class_warning.h). Empty where there is nothing to warn about. Found out at the first
  // call, which may load some of the index: about 10 ms where it is large.
  const std::string& warning() const;
  // How files are read, and why.
  const Reading& reading() const noexcept { return reading_; }
  LoaderStats stats() const;

 private:
  Loader() = default;
  static Result<std::unique_ptr<Loader>> make(std::shared_ptr<const Pack> pack,
                                              LoaderOptions&& options, const LoaderState& state);
  Status find_units();
  Status choose_fields();
  Status choose_engine();
  Status size_ring();
  // The steps of an epoch that are planned and not given out, and what plans the rest.
  struct EpochPlan {
    std::unique_ptr<StepPlanner> planner;
    std::deque<PlannedStep> steps;
  };
  Result<EpochPlan> make_plan(uint64_t epoch, uint64_t consumed);
  Status begin(uint64_t consumed);
  void stand_at(uint64_t consumed);
  Status check_process();
  std::string why_not_shared() const;
  void join_node();
  Status plan_ahead();
  static Status plan_some(EpochPlan& plan);
  void plan_next_epoch();
  Status explain_no_room() const;
  Status wait_for(const PlannedStep& step);

  LoaderOptions options_;
  LoaderState state_;
  StepRules rules_;
  uint64_t step_count_ = 0;
  std::vector<uint64_t> first_samples_;
  uint64_t largest_unit_bytes_ = 0;
  uint64_t chunk_bytes_ = 0;  // of all chunks
  std::shared_ptr<UnitContext> context_;
  mutable std::optional<std::string> warning_;  // none: not looked for yet
  Reading reading_;
  bool shares_ = false;  // chunks with other loaders of the node
  std::unique_ptr<ReadEngine> engine_;
  uint32_t threads_ = 0;
  uint32_t reads_at_once_ = 1;
  std::unique_ptr<UnitPool> pool_;
  EpochPlan current_;
  std::optional<EpochPlan> following_;  // of the epoch after the current one; none: not begun
  bool epochs_follow_ = false;          // the caller went on from one to the next
  LoaderStats stats_;
  pid_t process_ = 0;  // that has begun to read; 0: none
};

}  // namespace spk
