// Times how fast a source gives its samples, in the order of its list and at random.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sources/source.h"

namespace spk {

struct ReadRate {
  uint64_t samples = 0;  // read in full
  uint64_t bytes = 0;
  double seconds = 0;
  double samples_per_second() const {
    return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
  }
  double bytes_per_second() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

// Chooses, while a source is listed, some samples that follow each other and some from all over.
// The choice depends on the keys, not on the order of listing. Not thread-safe.
class TimingChoice {
 public:
  static constexpr size_t kSamples = 96;
  // `ordered`: samples follow each other by ordinal, otherwise by key.
  explicit TimingChoice(bool ordered) : ordered_(ordered) {}
  void add(const SampleEntry& entry);
  // Samples in the order of the list, and others scattered over it.
  std::vector<SampleEntry> sequential() const;
  std::vector<SampleEntry> scattered() const;

 private:
  bool ordered_;
  std::vector<SampleEntry> first_;                           // a heap, the last in front
  std::vector<std::pair<uint64_t, SampleEntry>> scattered_;  // a heap by hash of the key
};

// Reads the entries with so many threads for at most `most_seconds`. What cannot be opened or read
// is passed over: finding that out is not this function's business.
ReadRate time_reads(const Source& source, const std::vector<SampleEntry>& entries, unsigned threads,
                    double most_seconds);

}  // namespace spk
