// Finds keys that an ordered list names more than once. They are samples of their own, as listed,
// but worth a warning, above all where their labels differ.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "pipeline/external_sort.h"
#include "sources/source.h"

namespace spk {

class RepeatFinder {
 public:
  RepeatFinder(std::string directory, uint64_t memory_bytes)
      : hashes_(std::move(directory), memory_bytes) {}

  // Not thread-safe. The key is kept as its 128-bit hash.
  Status add(const SampleEntry& entry);
  // Adds the counts to `warnings`, without those that are returned: (split, ordinal) of the first
  // mention of a few such keys, with the kind of warning under which the caller, who passes by the
  // entries anyway, adds them by name.
  using Examples = std::map<std::pair<uint32_t, uint64_t>, std::string>;
  Result<Examples> finish(Warnings* warnings);

 private:
  ExternalSorter hashes_;
};

}  // namespace spk
