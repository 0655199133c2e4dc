// Any bytes as an IDX file, plain or packed.
#include <cstddef>
#include <cstdint>

#include "fuzz/one_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const bool salvage : {false, true}) spk::list_and_read("idx", "", salvage, {data, size});
  return 0;
}
