// The head of a NumPy array in a file (.npy).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sources/source.h"

namespace spk {

struct NpyHead {
  std::string dtype;  // as written: "<f4"
  bool fortran_order = false;
  std::vector<int64_t> shape;
  uint64_t head_bytes = 0;
  uint64_t element_bytes = 0;  // 0: not a plain number
};

// Reads no more than the head. kNotThisFormat where HANDLE begins otherwise; kDamaged where the
// head is not whole, or makes no sense.
Result<NpyHead> read_npy_head(SampleHandle& handle);

// Of the text between the braces; used by the above.
Result<NpyHead> parse_npy_dictionary(std::string_view text);

}  // namespace spk
