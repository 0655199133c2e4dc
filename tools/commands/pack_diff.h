// What differs between two packs: samples matched by key, wherever they lie.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "container/pack.h"

namespace spk {

enum class DifferenceKind : uint8_t {
  kRemoved,     // only in A
  kAdded,       // only in B
  kRelabelled,  // field `label` differs
  kChanged,     // size or checksum of a blob, or another numeric field, differs
};
const char* difference_name(DifferenceKind kind) noexcept;  // "removed"

struct Difference {
  static constexpr uint64_t kNone = UINT64_MAX;
  DifferenceKind kind = DifferenceKind::kRemoved;
  uint64_t in_a = kNone;  // sample numbers
  uint64_t in_b = kNone;
};

struct PackDifference {
  // Those of A's samples in A's order, then those added in B's order. A sample may be both
  // relabelled and changed.
  std::vector<Difference> samples;
  uint64_t removed = 0, added = 0, relabelled = 0, changed = 0;
  uint64_t same = 0;              // samples that differ in nothing
  bool identical = false;         // equal content ids: every chunk header is the same
  bool fields_differ = false;     // only fields that both have are compared
  bool classes_differ = false;    // names or their order
  bool order_differs = false;     // storage order or ordinals of samples that both have
  bool geometry_differs = false;  // chunk size, alignment, or the number of shards
  bool settings_differ = false;

  // Whether they hold the same samples, labels, fields and class names.
  bool same_data() const noexcept { return samples.empty() && !fields_differ && !classes_differ; }
};

// Takes about 24 bytes a sample of both, and reads the indexes only. kCancelled on a signal.
Result<PackDifference> diff_packs(const Pack& a, const Pack& b);

}  // namespace spk
