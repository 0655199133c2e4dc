// Reads epochs of a pack the way a number of ranks would, and takes the time: for `stripepack
// bench`. Every rank is a thread with a loader of its own; the ranks go step by step together, as
// training does.
//
// A rank gets its next batch ready while its accelerator, which is played by a clock, still works
// on the one before.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "commands/bench_decode.h"
#include "commands/bench_epoch.h"
#include "container/pack.h"
#include "loader/loader.h"
#include "ui/progress.h"

namespace spk {

struct BenchSettings {
  LoaderOptions loader;  // of each rank, but for its number
  // The ranks of this process, of loader.world.
  uint64_t first_rank = 0;
  uint64_t rank_count = 1;
  const std::atomic<bool>* stop = nullptr;  // ends an epoch early with kCancelled
  uint64_t step_ns = 0;                     // that an accelerator takes for a batch
  bool decode = false;  // pictures, to what a network is given; else every byte is looked at
  uint32_t decode_threads = 1;  // of each rank
};

class BenchRun {
 public:
  static Result<std::unique_ptr<BenchRun>> open(const std::shared_ptr<const Pack>& pack,
                                                const BenchSettings& settings);
  // Where a rank cannot read, the others stop after the step. finish() is the caller's.
  Result<BenchEpoch> run_epoch(uint64_t epoch, Progress& progress);

  const OrderSettings& order() const noexcept { return loaders_.front()->order(); }
  // The same for all ranks.
  const std::string& warning() const noexcept { return loaders_.front()->warning(); }
  const Reading& reading() const noexcept { return loaders_.front()->reading(); }
  // Of the ranks' buffers, added up.
  uint64_t memory_limit_bytes() const;
  uint64_t memory_peak_bytes() const;

 private:
  struct Rank;
  class Together;

  BenchRun() = default;
  void run_rank(size_t number, Together& together, Progress& progress);
  Result<bool> prepare(size_t number, Rank& rank, Progress& progress);

  BenchSettings settings_;
  std::vector<std::unique_ptr<Loader>> loaders_;         // by rank
  std::vector<std::unique_ptr<BatchDecoder>> decoders_;  // likewise; empty without --decode
  uint64_t sum_ = 0;                                     // of all bytes that ranks looked at
};

}  // namespace spk
