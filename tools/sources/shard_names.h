// What the names of container files tell: splits, and whether all shards are there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sources/source.h"

namespace spk {

struct ShardSplits {
  std::vector<std::string> names;  // as Listing::splits
  std::vector<uint32_t> of_file;   // one for each file
};

// "train-00000-of-00010", "imagenet-val-003.tar": a word of the name that is a split's. Where every
// file has one, and not all the same, they are splits; otherwise there are none.
ShardSplits splits_of_files(const std::vector<std::string>& paths, SplitMode mode);

// kMismatch where files "NAME-00001-of-00003" are there, but not all of them.
Status check_no_shard_is_missing(const std::vector<std::string>& paths);

}  // namespace spk
