// The index of a large pack without its shards, for measuring what needs the index alone.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace spk::bench {

// Makes the directory `path` with an index and an empty manifest: so many samples of so many bytes
// each, with label, height, width and channels, in chunks of 4 MiB and shards of about 1 GiB.
Status write_big_index(const std::string& path, uint64_t samples, uint64_t mean_bytes);

}  // namespace spk::bench
