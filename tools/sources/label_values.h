// The labels of samples that come one by one, from a source whose labels may be vectors: what they
// are together is known at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sources/source.h"

namespace spk {

class LabelValues {
 public:
  explicit LabelValues(LabelMode mode) : mode_(mode) {}

  // Labels as text, between blanks or commas. Sets them in the entry, or gives why they are none:
  // "label '2.5' is not an integer".
  std::string set_text(std::string_view text, SampleEntry* entry);
  // Numbers as they are. An integral float is an integer.
  std::string set_floats(const std::vector<double>& labels, SampleEntry* entry);
  std::string set_ints(std::vector<int64_t> labels, SampleEntry* entry);

  // Kind and count of all that were set; a warning where they count from 1.
  void finish(Listing* listing) const;

 private:
  void saw(const SampleEntry& entry);
  LabelMode mode_;
  bool any_ = false;
  std::optional<uint32_t> count_;
  bool counts_differ_ = false;
  int64_t least_ = 0;
};

}  // namespace spk
