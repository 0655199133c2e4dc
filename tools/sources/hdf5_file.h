// An HDF5 file as the library tells of it: which datasets it has and where their bytes lie. The
// library is not made for threads: one lock for the whole program is held within each call here,
// and never while bytes are read. No plug-ins are loaded, no other file is opened: external links,
// external storage and virtual datasets are refused.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sources/hdf5_array.h"
#include "sources/hdf5_layout.h"

namespace spk {

// Whether this build has the library.
bool hdf5_available() noexcept;
// The bytes that every HDF5 file begins with, unless it has a user block.
bool is_hdf5_head(ByteSpan head) noexcept;

inline constexpr uint32_t kMostTextBytes = uint32_t{1} << 20;

struct Hdf5Dataset {
  enum class Kind { kNumbers, kBytesRows, kOpaque, kStrings, kOther };
  std::string path;          // "group/name"
  Kind kind = Kind::kOther;  // kBytesRows: each element a row of bytes of any length
  ArrayElement element;      // of kNumbers
  uint32_t element_bytes = 1;
  bool in_heap = false;         // kStrings: of any length, as kBytesRows
  std::vector<uint64_t> sizes;  // empty: one element
  std::string what;             // its type in words, for messages
};

class Hdf5File {
 public:
  // kDamaged where the library says that it is cut or contradicts itself; kUnsupported without the
  // library.
  static Result<std::unique_ptr<Hdf5File>> open(const std::string& path);
  virtual ~Hdf5File() = default;

  // Every dataset, groups and names in the order of their bytes. Groups that are there twice are
  // gone into once; soft links are passed by. kNoMemory where there are more than MOST.
  virtual Result<std::vector<Hdf5Dataset>> list(size_t most) = 0;
  // Where its bytes lie. find_chunk of the answer must not outlive this.
  virtual Result<ArrayStorage> storage_of(const Hdf5Dataset& dataset) = 0;
  // All bytes of a dataset that is kept in its header and has no place of its own; nothing for
  // others.
  virtual Result<std::optional<std::vector<uint8_t>>> compact_bytes(const Hdf5Dataset& dataset) = 0;
  // COUNT texts from FIRST on, of one length: REQUIRES !in_heap. Those in the heap are not read by
  // the library, which follows any address that a damaged file gives it; see Hdf5Texts.
  virtual Result<std::vector<std::string>> strings(const Hdf5Dataset& dataset, uint64_t first,
                                                   uint64_t count) = 0;
};

}  // namespace spk
