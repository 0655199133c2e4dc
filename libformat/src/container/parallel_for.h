// A loop shared by a few threads.
#pragma once

#include <cstdint>
#include <functional>

namespace spk {

// Calls body(i) for every i below `count`, from up to `threads` threads, the caller's among them.
// Where the system gives fewer threads, those that there are do it all. `body` must not throw.
void parallel_for(uint32_t threads, uint64_t count, const std::function<void(uint64_t)>& body);

// Runs `body` in `threads` threads at once, the caller's among them.
void run_in_threads(uint32_t threads, const std::function<void()>& body);

}  // namespace spk
