// Proofs of a pack that need more than the pack: every picture decoded, every source file compared.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "container/pack.h"
#include "sources/source.h"

namespace spk {

// One thing that is not as it should be. `sample` is UINT64_MAX where the pack has none.
struct ProofFault {
  std::string split;
  uint64_t sample = UINT64_MAX;
  std::string key;
  std::string what;
};

struct ProofOptions {
  uint32_t jobs = 1;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(uint64_t samples, uint64_t bytes)> advance;
  std::function<void(const ProofFault&)> fault;  // called by one thread at a time
  // decode_all: every `ranks`th chunk from `rank` on, for several processes that share the work.
  uint32_t rank = 0;
  uint32_t ranks = 1;
  bool subset = false;  // against a source: it need not have all of the pack's samples
};

struct ProofCounts {
  uint64_t samples = 0;
  uint64_t faults = 0;
  uint64_t unreadable = 0;  // of these, sources that could not be read, so that nothing is proven
  uint64_t skipped = 0;     // decode: larger than a chunk's buffer may be
};

// Decodes every picture of field `image`. Samples that are damaged count as faults.
Result<ProofCounts> decode_all(const Pack& pack, const std::string& split,
                               const ProofOptions& options);

// Compares each source sample with the pack's sample of the same key, byte by byte, and their
// labels. What the pack's rejects.tsv lists may be missing. `entries` are those of this split.
// Memory: O(samples).
Result<ProofCounts> compare_with_source(const Pack& pack, const std::string& split,
                                        const Source& source, const Listing& listing,
                                        std::vector<SampleEntry> entries,
                                        const ProofOptions& options);

// That in two steps, so that several processes can share the second.
struct SourceMatch {
  uint64_t sample = 0;
  SampleEntry entry;
};
// Finds each entry's sample. What only one side has is a fault, which is counted in `counts`.
Result<std::vector<SourceMatch>> match_source(const Pack& pack, const std::string& split,
                                              const Listing& listing,
                                              std::vector<SampleEntry> entries,
                                              const ProofOptions& options, ProofCounts* counts);
// Of `listing` it heeds the names of fields and classes.
Result<ProofCounts> compare_matches(const Pack& pack, const std::string& split,
                                    const Source& source, const Listing& listing,
                                    const std::vector<SourceMatch>& matches,
                                    const ProofOptions& options);

}  // namespace spk
