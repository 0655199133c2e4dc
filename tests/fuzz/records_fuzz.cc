// Any bytes as a file of records, as archive_fuzz.cc does with archives.
#include <cstddef>
#include <cstdint>

#include "fuzz/one_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const bool salvage : {false, true}) {
    spk::list_and_read("tfrecord", "image=i,label=l,x=x,y=y", salvage, {data, size});
    spk::list_and_read("recordio", "", salvage, {data, size});
  }
  return 0;
}
