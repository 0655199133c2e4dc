// What `stripepack bench` measures in an epoch, of the ranks of one process or of several.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spk {

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
  // What accelerators waited for each batch after the first one; sorted by finish().
  std::vector<double> waits;

  // Adds the ranks of another process, which read the same epoch at the same time.
  void add(const BenchEpoch& other);
  // To be called once all are there.
  void finish();
  // Of the waits; 0 where there are none. REQUIRES finish().
  double wait_seconds(double share) const noexcept;
  // Share of the time in which accelerators work; 0 where a step takes none.
  double accelerator_busy(uint64_t step_ns) const noexcept;
};

// Between processes of one program. False where BYTES are no epoch.
std::string encode_epoch(const BenchEpoch& epoch);
bool decode_epoch(std::string_view bytes, BenchEpoch* epoch);

}  // namespace spk
