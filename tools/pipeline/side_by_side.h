// A loop whose turns may fail, shared by a few threads.
#pragma once

#include <cstdint>
#include <functional>

#include "base/status.h"

namespace spk {

// Calls body(i) for every i below `count`, from up to `threads` threads, the caller's among them;
// where the system gives fewer threads, those that there are do it all. No turn begins after one
// has failed, with a Status or for want of memory; the first failure is returned.
Status side_by_side(uint32_t threads, uint64_t count, const std::function<Status(uint64_t)>& body);

}  // namespace spk
