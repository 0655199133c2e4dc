// --select: which samples of a pack are taken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"

namespace spk {

// All that are given must hold; of several with the same word any.
//   class=NAME          the label is that class's
//   label=N
//   glob=PATTERN        a shell pattern on the whole key; * and ? match every byte, / included
//   keys=FILE           the key stands in this list, one a line, escaped as everywhere
//                       (both: the key, or "SPLIT/KEY", as `ls` prints those of a split)
//   share=F or F:SEED   so much of the samples (0 to 1), chosen by their keys: always the same
//   ones,
//                       and those of a smaller share are among those of a larger
class PackSelect {
 public:
  // kInvalidArgument names --select and what was found.
  static Result<PackSelect> parse(const std::vector<std::string>& words);
  bool all() const noexcept { return all_; }
  // kNotFound where a class is in none of these lists.
  Status check_classes(const std::vector<std::string>& classes) const;
  // SPLIT is empty where there is none.
  bool takes(std::string_view split, std::string_view key, const std::vector<int64_t>& labels,
             const std::vector<std::string>& classes) const;

 private:
  Status add(const std::string& word);
  Status read_keys(const std::string& path);
  bool takes_label(const std::vector<int64_t>& labels,
                   const std::vector<std::string>& classes) const;

  bool all_ = true;
  std::unordered_set<std::string> classes_;
  std::vector<int64_t> labels_;
  std::vector<std::string> globs_;
  std::unordered_set<std::string> keys_;
  bool by_keys_ = false;
  // The key's hash must be below. UINT64_MAX: no share was asked for.
  uint64_t share_ = UINT64_MAX;
  uint64_t share_seed_ = 0;
};

}  // namespace spk
