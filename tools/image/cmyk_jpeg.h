// JPEGs of four inks as they are, for conversion by their colour profile.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace spk::image {

// All pixels of a JPEG of four components as CMYK in 4 bytes each, 0 for full ink; YCCK becomes
// that. kDamaged where it is cut or corrupt; kNoMemory. Thread-safe.
Result<std::vector<uint8_t>> read_cmyk_jpeg(ByteSpan data);

}  // namespace spk::image
