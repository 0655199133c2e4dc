// Touches and frees so many GiB. Machines that give freed memory back to their host hand it out
// slowly again; doing this before each measured run makes runs comparable.
//   touch_memory GIB

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

int main(int argc, char** argv) {
  const long gib = argc > 1 ? std::atol(argv[1]) : 4;
  uint64_t sum = 0;
  for (long i = 0; i < gib; ++i) {
    // One GiB at a time, all held until the end.
    auto* block = static_cast<uint8_t*>(std::malloc(size_t{1} << 30));
    if (block == nullptr) break;
    std::memset(block, static_cast<int>(i + 1), size_t{1} << 30);
    sum += block[12345];
  }
  std::printf("%llu\n", static_cast<unsigned long long>(sum));
  return 0;
}
