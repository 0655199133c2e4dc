// The global heap of an HDF5 file, where rows of variable length lie: their places, read without
// the library.
#pragma once

#include <cstdint>
#include <map>

#include "base/result.h"
#include "io/file.h"

namespace spk {

// What a dataset holds for a row of variable length: its length, its collection's address, its
// number in that.
inline constexpr uint32_t kHeapPlaceBytes = 16;

class Hdf5Heap {
 public:
  // FILE outlives this. Addresses have 64 bits and there is no user block.
  static Result<Hdf5Heap> open(const File& file);
  // Where the row lies that PLACE (kHeapPlaceBytes) tells of. kDamaged where it lies nowhere.
  struct Row {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  Result<Row> find(ByteSpan place);

 private:
  using Collection = std::map<uint16_t, Row>;
  explicit Hdf5Heap(const File& file) : file_(&file) {}
  Result<const Collection*> collection(uint64_t address);
  Status bad(uint64_t address, const char* what) const;

  static constexpr size_t kRowsKept = 1 << 18;
  const File* file_;
  uint64_t file_bytes_ = 0;
  uint64_t walked_ = 0;  // rows of collections, so that a file which leads in circles ends
  size_t rows_kept_ = 0;
  std::map<uint64_t, Collection> collections_;  // some of those that were asked for
};

}  // namespace spk
