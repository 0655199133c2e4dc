#include "container/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace spk {

void run_in_threads(uint32_t threads, const std::function<void()>& body) {
  std::vector<std::thread> others;
  try {
    for (uint32_t i = 1; i < threads; ++i) others.emplace_back(body);
  } catch (const std::system_error&) {
    // No more threads to be had: the work is shared by those that there are.
  }
  body();
  for (std::thread& thread : others) thread.join();
}

void parallel_for(uint32_t threads, uint64_t count, const std::function<void(uint64_t)>& body) {
  std::atomic<uint64_t> next{0};
  run_in_threads(static_cast<uint32_t>(std::min<uint64_t>(threads, count)), [&] {
    for (uint64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(i);
  });
}

}  // namespace spk
