// What the benchmarks have in common: times, medians, sums, and giving up.
#pragma once

#include <errno.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#if SPK_HAVE_LMDB
#include <lmdb.h>
#endif

namespace spk::bench {

[[noreturn]] inline void give_up(const std::string& what) {
  (void)std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
  std::exit(1);
}

// Of a spk::Status.
template <typename Status>
void must(const Status& status) {
  if (!status.ok()) give_up(status.to_string());
}

#if SPK_HAVE_LMDB
inline void lmdb_must(int code) {
  if (code != 0) give_up(std::string("LMDB: ") + mdb_strerror(code));
}
#endif

inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of all threads.
inline double process_cpu_seconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// Of at least one value.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Eight bytes at a time, the rest one by one: about as fast as memory gives them.
inline uint64_t sum_of_words(const uint8_t* bytes, size_t size) {
  uint64_t sum = 0;
  size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at, 8);
    sum += word;
  }
  for (; at < size; ++at) sum += bytes[at];
  return sum;
}

}  // namespace spk::bench
