// The least that verifying can cost: every file of a folder read once, in pieces of so many bytes
// by so many threads, and hashed with XXH3.
//   hash_pass DIR [THREADS] [PIECE_BYTES]

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "io/file.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: hash_pass DIR [THREADS] [PIECE_BYTES]\n");
    return 2;
  }
  const unsigned threads = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 2;
  const uint64_t piece_bytes = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : uint64_t{4} << 20;
  auto dir = spk::Directory::open(argv[1]);
  if (!dir.ok()) return 1;
  auto entries = dir->list();
  if (!entries.ok()) return 1;

  struct Piece {
    const spk::File* file;
    uint64_t offset;
    uint64_t bytes;
  };
  std::vector<spk::File> files;
  files.reserve(entries->size());
  std::vector<Piece> pieces;
  for (const spk::DirectoryEntry& entry : *entries) {
    auto file = spk::File::open_read(*dir, entry.name);
    if (!file.ok()) continue;
    files.push_back(std::move(file).value());
    const uint64_t size = files.back().size().value();
    for (uint64_t at = 0; at < size; at += piece_bytes) {
      pieces.push_back({&files.back(), at, std::min(piece_bytes, size - at)});
    }
  }
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> sum{0};
  std::vector<std::thread> pool;
  for (unsigned i = 0; i < threads; ++i) {
    pool.emplace_back([&] {
      std::vector<uint8_t> buffer(piece_bytes);
      for (size_t n; (n = next.fetch_add(1)) < pieces.size();) {
        const spk::MutableByteSpan into = spk::MutableByteSpan(buffer).first(pieces[n].bytes);
        if (!pieces[n].file->read_exact(pieces[n].offset, into).ok()) std::abort();
        sum += spk::xxh3_64(into);
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  std::printf("%016llx\n", static_cast<unsigned long long>(sum.load()));
  return 0;
}
