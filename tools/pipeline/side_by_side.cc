#include "pipeline/side_by_side.h"

#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "container/parallel_for.h"

namespace spk {

namespace {

Status turn(const std::function<Status(uint64_t)>& body, uint64_t number) {
  try {
    return body(number);
  } catch (const std::bad_alloc&) {
    return Status(Code::kNoMemory, "out of memory");
  }
}

}  // namespace

Status side_by_side(uint32_t threads, uint64_t count, const std::function<Status(uint64_t)>& body) {
  std::mutex mutex;
  Status first;
  std::atomic<bool> failed = false;
  parallel_for(threads, count, [&](uint64_t number) {
    if (failed) return;
    Status status = turn(body, number);
    if (status.ok()) return;
    const std::lock_guard lock(mutex);
    if (first.ok()) first = std::move(status);
    failed = true;
  });
  return first;
}

}  // namespace spk
