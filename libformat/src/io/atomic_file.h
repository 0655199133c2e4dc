// Small files, whole: written so that a reader sees the old one or the new one and never a part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "io/directory.h"

namespace spk {

// Writes BYTES under a temporary name in DIR, fsyncs, renames onto NAME and fsyncs DIR. On failure
// the temporary file is removed and an old file of that name is as it was; only where the last
// fsync fails (the Status says "cannot sync directory") is the new one there but perhaps not kept.
Status write_file_atomically(const Directory& dir, std::string_view name, ByteSpan bytes);

// The whole file. kDamaged where it is larger than MAX_BYTES, so that a hostile one cannot exhaust
// memory.
Result<std::vector<uint8_t>> read_whole_file(const Directory& dir, std::string_view name,
                                             uint64_t max_bytes);

// Different in each call, process and host: "HOST-PID-COUNTER-TIME" in letters, digits and '-'.
// Part of temporary names, so that two writers never share one.
std::string unique_token();

}  // namespace spk
