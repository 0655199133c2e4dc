// Which datasets of an HDF5 file are the pictures, their labels and what goes with them. No
// standard says; names that people use do, and options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pipeline/pack_options.h"
#include "sources/hdf5_file.h"

namespace spk {

enum class Hdf5Form {
  kDense,  // one array of pictures of one size
  kRows,   // each row the bytes of a picture
  kFlat,   // all bytes one behind the other, and offsets of N + 1 borders
  kMany,   // a dataset for each picture, in groups that are classes
};
const char* hdf5_form_name(Hdf5Form form) noexcept;

struct Hdf5Choice {
  Hdf5Form form = Hdf5Form::kDense;
  Hdf5Dataset images;
  uint64_t count = 0;                  // of pictures; not of kMany
  std::optional<Hdf5Dataset> offsets;  // of kFlat
  std::optional<Hdf5Dataset> labels;   // not of kMany
  std::optional<Hdf5Dataset> keys;     // texts, one for each picture
  std::optional<Hdf5Dataset> classes;  // texts, one for each class
  std::vector<Hdf5Dataset> many;       // of kMany
  uint64_t others = 0;                 // datasets that are none of these
};

// kInvalidArgument, naming the option, where it cannot be told; kMismatch where counts differ.
Result<Hdf5Choice> choose_datasets(const std::vector<Hdf5Dataset>& datasets,
                                   const PackOptions& options);

}  // namespace spk
