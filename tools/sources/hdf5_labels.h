// Numbers and texts of HDF5 datasets, one after the other, in blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sources/hdf5_array.h"
#include "sources/hdf5_file.h"
#include "sources/hdf5_heap.h"
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
             std::vector<uint8_t> whole, const std::string& file)
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

// Texts of one length are read by the library; those of any length by their places in the heap,
// which the library would follow out of its memory in a damaged file.
class Hdf5Texts {
 public:
  // LIBRARY and FILE, which are the same file, outlive this.
  static Result<std::unique_ptr<Hdf5Texts>> open(Hdf5File& library, const File& file,
                                                 uint64_t memory_bytes, const Hdf5Dataset& dataset);
  // The next one, up to its first NUL. REQUIRES that there is one.
  Result<std::string> next();

 private:
  Hdf5Texts(Hdf5File& library, const File& file, const Hdf5Dataset& dataset)
      : library_(library), file_(file), dataset_(dataset) {}
  Status open_heap(uint64_t memory_bytes);
  Result<std::string> next_in_heap();

  Hdf5File& library_;
  const File& file_;
  Hdf5Dataset dataset_;
  ArrayStorage storage_;               // of those in the heap
  std::optional<ArrayReader> places_;  // likewise; refers to storage_
  std::optional<Hdf5Heap> heap_;
  std::vector<std::string> block_;
  uint64_t block_first_ = 0;
  uint64_t at_ = 0;
};

}  // namespace spk
