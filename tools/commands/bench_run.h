// Reads epochs of a pack the way a number of ranks would, and takes the time: for `stripepack
// bench`. Every rank is a thread with a loader of its own; the ranks go step by step together, as
// training does.
//
// A rank gets its next batch ready while its accelerator, which is played by a clock, still works
// on the one before.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "commands/bench_decode.h"
#include "container/pack.h"
#include "loader/loader.h"
#include "ui/progress.h"

namespace spk {

struct BenchSettings {
  LoaderOptions loader;  // of each rank, but for its number
  uint64_t step_ns = 0;  // that an accelerator takes for a batch
  bool decode = false;   // pictures, to what a network is given; else every byte is looked at
  uint32_t decode_threads = 1;  // of each rank
};

struct BenchEpoch {
  uint64_t epoch = 0;
  uint64_t steps = 0;    // of the ranks together
  uint64_t batches = 0;  // of all ranks
  uint64_t samples = 0;
  uint64_t payload_bytes = 0;
  uint64_t reads = 0;  // none where files are mapped
  uint64_t read_bytes = 0;
  uint64_t shared_reads = 0;  // chunks read into memory that the ranks share
  uint64_t shared_hits = 0;   // chunks that were there
  uint64_t undecoded = 0;     // pictures that could not be decoded
  double seconds = 0;
  double cpu_seconds = 0;
  double first_batch_seconds = 0;  // until the last of the ranks had one
  // What accelerators waited for a batch, after the first one.
  double wait_median_seconds = 0;
  double wait_p99_seconds = 0;
  double wait_most_seconds = 0;
  double accelerator_busy = 0;  // share of the time; 0 where a step takes none
};

class BenchRun {
 public:
  static Result<std::unique_ptr<BenchRun>> open(const std::shared_ptr<const Pack>& pack,
                                                const BenchSettings& settings);
  // Where a rank cannot read, the others stop after the step. kCancelled as usual.
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
