// The bytes of an HDF5 dataset read from the file by their places: contiguous ones, and chunks with
// what they are packed with, without the library and its one lock.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/file.h"

namespace spk {

struct ArrayFilter {
  enum class Kind { kDeflate, kShuffle, kFletcher32 };
  Kind kind = Kind::kDeflate;
  uint32_t element_bytes = 1;  // of kShuffle
};

struct ArrayChunk {
  bool stored = false;  // false: all is the fill value
  uint64_t offset = 0;
  uint64_t bytes = 0;     // as it lies in the file
  uint32_t left_out = 0;  // bit i: filter i was not applied
};

// How a dataset lies in its file.
struct ArrayStorage {
  std::vector<uint64_t> sizes;  // at least one; the first counts rows
  uint32_t element_bytes = 1;
  std::vector<uint8_t> fill;  // one element; empty: zeros
  bool contiguous = false;
  bool stored = false;                // contiguous: it has a place
  uint64_t offset = 0;                // contiguous
  std::vector<uint64_t> chunk_sizes;  // chunked
  std::vector<ArrayFilter> filters;   // in the order in which they were applied
  // Chunked: the chunk whose first element is at these indices.
  std::function<Result<ArrayChunk>(const std::vector<uint64_t>& first)> find_chunk;

  uint64_t rows() const noexcept { return sizes[0]; }
  uint64_t row_bytes() const noexcept;
};

// kUnsupported or kDamaged where sizes overflow, a chunk is too large to be unpacked in
// MEMORY_BYTES, or the place of a contiguous one lies outside a file of FILE_BYTES.
Status check_storage(const ArrayStorage& storage, uint64_t file_bytes, uint64_t memory_bytes);

// What filters made of a chunk, undone. kDamaged where PACKED is not that; `unpacked` has
// CHUNK_BYTES then.
Status undo_filters(std::vector<uint8_t> packed, const std::vector<ArrayFilter>& filters,
                    uint32_t left_out, uint64_t chunk_bytes, std::vector<uint8_t>* unpacked);

// Reads rows. Unpacked chunks are kept, up to a limit, for the next rows. Not thread-safe.
class ArrayReader {
 public:
  // Both outlive this. REQUIRES that check_storage() was ok.
  ArrayReader(const File& file, const ArrayStorage& storage, uint64_t memory_bytes);
  // INTO has a whole number of rows.
  Status read(uint64_t first_row, MutableByteSpan into);
  // Where rows lie in the file one behind the other as they are: sets *offset; false where they do
  // not.
  Result<bool> place_of(uint64_t first_row, uint64_t rows, uint64_t* offset) const;

 private:
  using Indices = std::vector<uint64_t>;
  struct Kept {
    Indices first;
    std::vector<uint8_t> bytes;
  };
  Result<const std::vector<uint8_t>*> chunk(const Indices& first);
  void copy_out(const std::vector<uint8_t>& chunk, const Indices& first, uint64_t first_row,
                uint64_t rows, MutableByteSpan into) const;

  const File& file_;
  const ArrayStorage& storage_;
  uint64_t chunk_bytes_ = 0;
  size_t kept_at_most_ = 1;
  std::list<Kept> kept_;  // used last first
  std::map<Indices, std::list<Kept>::iterator> places_;
};

}  // namespace spk
