// The least that packing files can cost: threads that stat every file, then copy whole 8 MiB
// stripes of their concatenation by pread and pwrite, then one fsync. No checks, no index, and no
// checksums unless `hash` says that what is read be hashed once.
//   limit_copy SRC OUT [THREADS [hash]]
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"

namespace {

constexpr uint64_t kStripeBytes = uint64_t{8} << 20;

struct Item {
  std::string path;
  uint64_t bytes = 0;
  uint64_t offset = 0;
};

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

void run_threads(unsigned count, const auto& work) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

// Fills `buffer` with bytes [begin, end) of the concatenation.
void read_stripe(const std::vector<Item>& items, uint64_t begin, uint64_t end, uint8_t* buffer) {
  auto item = std::upper_bound(items.begin(), items.end(), begin,
                               [](uint64_t at, const Item& one) { return at < one.offset; }) -
              1;
  for (uint64_t at = begin; at < end; ++item) {
    if (item->bytes == 0) continue;
    const int fd = open(item->path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) die(item->path.c_str());
    const uint64_t bytes = std::min(item->offset + item->bytes, end) - at;
    if (pread(fd, buffer + (at - begin), bytes, static_cast<off_t>(at - item->offset)) !=
        static_cast<ssize_t>(bytes)) {
      die("pread");
    }
    close(fd);
    at += bytes;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: limit_copy SRC OUT [THREADS [hash]]\n");
    return 2;
  }
  const unsigned threads = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 2;
  const bool hashes = argc > 4;
  std::vector<Item> items;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1])) {
    if (entry.is_regular_file()) items.push_back({entry.path().string(), 0, 0});
  }
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.path < b.path; });
  std::atomic<size_t> next_item{0};
  run_threads(threads, [&] {
    for (size_t i; (i = next_item.fetch_add(1)) < items.size();) {
      struct stat info = {};
      if (stat(items[i].path.c_str(), &info) != 0) die(items[i].path.c_str());
      items[i].bytes = static_cast<uint64_t>(info.st_size);
    }
  });
  uint64_t total = 0;
  for (Item& item : items) {
    item.offset = total;
    total += item.bytes;
  }
  const int out = open(argv[2], O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
  if (out < 0) die(argv[2]);
  std::atomic<uint64_t> next_stripe{0};
  std::atomic<uint64_t> hash{0};  // of all: so that none is left out as unused
  run_threads(threads, [&] {
    std::vector<uint8_t> buffer(kStripeBytes);
    for (uint64_t begin; (begin = next_stripe.fetch_add(1) * kStripeBytes) < total;) {
      const uint64_t end = std::min(begin + kStripeBytes, total);
      read_stripe(items, begin, end, buffer.data());
      if (hashes) hash ^= spk::xxh3_64({buffer.data(), end - begin});
      if (pwrite(out, buffer.data(), end - begin, static_cast<off_t>(begin)) !=
          static_cast<ssize_t>(end - begin)) {
        die("pwrite");
      }
    }
  });
  if (fsync(out) != 0) die("fsync");
  close(out);
  if (hashes) std::printf("%016llx\n", static_cast<unsigned long long>(hash.load()));
  return 0;
}
