// Any bytes as a tar or zip archive: listed without a crash, a hang or much memory, and what is
// listed can be read, or says why not.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "fuzz/one_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const char* kind : {"tar", "webdataset", "zip"}) {
    for (const bool salvage : {false, true}) spk::list_and_read(kind, "", salvage, {data, size});
  }
  return 0;
}
