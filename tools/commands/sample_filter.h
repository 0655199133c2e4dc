// Which samples a command is about: --class, --label, --glob, --range. All that are given must
// hold.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "commands/sample_facts.h"

namespace spk {

struct SampleFilterOptions {
  std::vector<std::string> classes;  // any of them
  std::vector<int64_t> labels;       // any of them
  std::vector<std::string> globs;    // any of them
  uint64_t range_begin = 0;
  uint64_t range_end = UINT64_MAX;

  bool all() const noexcept {
    return classes.empty() && labels.empty() && globs.empty() && range_begin == 0 &&
           range_end == UINT64_MAX;
  }
};

void add_filter_options(CLI::App& sub, SampleFilterOptions* options);

// "A:B", "A:", ":B" (B is not in it). kInvalidArgument otherwise, or where A is above B.
Status parse_range(std::string_view text, uint64_t* begin, uint64_t* end);

// A shell pattern on a whole key; * and ? match every byte, / included.
bool glob_matches(const std::string& pattern, std::string key);

class SampleFilter {
 public:
  // kInvalidArgument for a class that the pack lacks, or --label where labels are no integers.
  // SPLIT: the pack's name among others. A glob may then match "SPLIT/KEY", which is how `ls`
  // prints it, as well.
  static Result<SampleFilter> make(const SampleFilterOptions& options, const Pack& pack,
                                   const std::string& split = "");
  // The samples that may match.
  uint64_t begin() const noexcept { return begin_; }
  uint64_t end() const noexcept { return end_; }
  bool matches(const SampleFacts& facts) const;

 private:
  std::vector<int64_t> class_labels_;  // sorted
  std::vector<int64_t> labels_;        // sorted
  std::vector<std::string> globs_;
  std::string split_;
  bool by_class_ = false;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

}  // namespace spk
