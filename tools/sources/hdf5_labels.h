// Numbers and texts of HDF5 datasets, one after the other, in blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sources/hdf5_array.h"
#include "sources/hdf5_file.h"
#include "sources/label_values.h"

namespace spk {

// Rows of numbers. Bytes are those in the file: of a reader, or of `whole`, all of them.
class Hdf5Numbers {
 public:
  Hdf5Numbers(const Hdf5Dataset& dataset, ArrayReader* reader, std::vector<uint8_t> whole = {});
  // The next row. Valid until the next call. Of integers, kDamaged where one has more than 63 bits.
  Result<const std::vector<int64_t>*> next_ints();
  Result<const std::vector<double>*> next_floats();
  bool are_floats() const noexcept { return element_.kind == ArrayElement::Kind::kFloat; }

 private:
  Result<const uint8_t*> next_row();
  ArrayElement element_;
  uint64_t rows_ = 0;
  uint64_t row_elements_ = 1;
  ArrayReader* reader_;
  std::vector<uint8_t> block_;
  uint64_t block_first_ = 0;
  uint64_t block_rows_ = 0;
  uint64_t at_ = 0;
  std::vector<int64_t> ints_;
  std::vector<double> floats_;
};

class Hdf5Labels {
 public:
  Hdf5Labels(const Hdf5Dataset& dataset, LabelMode mode, ArrayReader* reader,
             std::vector<uint8_t> whole, std::string file)
      : numbers_(dataset, reader, std::move(whole)),
        values_(mode),
        place_(file + ":" + dataset.path) {}
  // kInvalidArgument where it is none.
  Status next(SampleEntry* entry);
  void finish(Listing* listing) const { values_.finish(listing); }

 private:
  Hdf5Numbers numbers_;
  LabelValues values_;
  std::string place_;
  uint64_t row_ = 0;
};

class Hdf5Keys {
 public:
  Hdf5Keys(Hdf5File& file, Hdf5Dataset dataset) : file_(file), dataset_(std::move(dataset)) {}
  Result<std::string> next();

 private:
  Hdf5File& file_;
  Hdf5Dataset dataset_;
  std::vector<std::string> block_;
  uint64_t block_first_ = 0;
  uint64_t at_ = 0;
};

}  // namespace spk
