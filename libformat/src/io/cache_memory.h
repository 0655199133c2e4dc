// How much memory the page cache could take for this process.
#pragma once

#include <cstdint>
#include <string>

namespace spk {

// The least of what the system has available (MemAvailable: free, or given up when it is wanted,
// what files have in memory included) and of the limits of the process's control groups and of
// those above them, of version 1 and 2. UINT64_MAX where the kernel tells nothing.
// ROOT: the directory that has proc and sys.
uint64_t cache_memory_bytes(const std::string& root = "");

}  // namespace spk
