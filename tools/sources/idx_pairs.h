// Which IDX files belong together, and which split they are, by their names.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sources/idx.h"

namespace spk {

struct IdxFile {
  std::string path;
  bool is_labels = false;
};

// Pairs in the order train, then the others as their names sort. kInvalidArgument where no file has
// pictures, or one split is there twice.
Result<std::vector<IdxSource::Pair>> pair_idx_files(const std::vector<IdxFile>& files);

// Where *FILES is one file of pictures: adds that of its labels, where one is there.
void add_label_file_beside(std::vector<std::string>* files);

}  // namespace spk
