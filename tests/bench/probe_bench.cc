// How fast pictures are checked, against a plain pass of memchr and of memcpy over the same bytes.
// STRIPEPACK_BENCH_PICTURES names a folder of pictures; without it, JPEG-like bytes are made up.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "image/probe.h"

namespace {

using Bytes = std::vector<uint8_t>;

// A baseline JPEG of random scan data: sound markers, no picture.
Bytes made_up_jpeg(std::mt19937_64& random, size_t scan_bytes) {
  Bytes out = {0xff, 0xd8, 0xff, 0xdb, 0, 67, 0};
  out.insert(out.end(), 64, 16);
  for (uint8_t table : {0x00, 0x10}) {
    out.insert(out.end(), {0xff, 0xc4, 0, 21, table, 0, 2});
    out.insert(out.end(), 14, 0);
    out.insert(out.end(), {0, 1});
  }
  out.insert(out.end(), {0xff, 0xc0, 0, 11, 8, 1, 0x90, 1, 0xf4, 1, 1, 0x11, 0});
  out.insert(out.end(), {0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0});
  for (size_t i = 0; i < scan_bytes; ++i) {
    out.push_back(static_cast<uint8_t>(random()));
    if (out.back() == 0xff) out.push_back(0);
  }
  out.insert(out.end(), {0xff, 0xd9});
  return out;
}

const std::vector<Bytes>& pictures() {
  static const std::vector<Bytes> all = [] {
    std::vector<Bytes> out;
    if (const char* folder = std::getenv("STRIPEPACK_BENCH_PICTURES")) {
      std::vector<std::string> paths;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file()) paths.push_back(entry.path().string());
      }
      std::sort(paths.begin(), paths.end());
      for (const std::string& path : paths) {
        std::ifstream file(path, std::ios::binary);
        out.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
      }
    } else {
      std::mt19937_64 random(1);
      for (int i = 0; i < 250; ++i) out.push_back(made_up_jpeg(random, 110 * 1000));
    }
    return out;
  }();
  return all;
}

void count(benchmark::State& state) {
  int64_t bytes = 0;
  for (const Bytes& picture : pictures()) bytes += static_cast<int64_t>(picture.size());
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(pictures().size()));
}

void probe_all(benchmark::State& state, spk::CheckMode mode, bool callback) {
  spk::ProbeOptions options;
  options.check = mode;
  int64_t rejected = 0, decoded = 0;
  for (auto _ : state) {
    rejected = decoded = 0;
    for (const Bytes& picture : pictures()) {
      spk::MemoryView memory({picture.data(), picture.size()});
      spk::CallbackView windows(picture.size(), [&](uint64_t offset, spk::MutableByteSpan into) {
        std::memcpy(into.data(), picture.data() + offset, into.size());
        return spk::Status();
      });
      spk::ByteView& view = callback ? static_cast<spk::ByteView&>(windows) : memory;
      const auto result = spk::probe_picture(view, options);
      if (!result.ok() || !result->reject.empty()) ++rejected;
      if (result.ok() && result->decoded) ++decoded;
    }
  }
  count(state);
  state.counters["rejected"] = static_cast<double>(rejected);
  state.counters["decoded"] = static_cast<double>(decoded);
}

void BM_Memcpy(benchmark::State& state) {
  Bytes target;
  for (const Bytes& picture : pictures()) target.resize(std::max(target.size(), picture.size()));
  for (auto _ : state) {
    for (const Bytes& picture : pictures()) {
      if (!picture.empty()) std::memcpy(target.data(), picture.data(), picture.size());
      benchmark::ClobberMemory();
    }
  }
  count(state);
}
BENCHMARK(BM_Memcpy);

// One long search a picture: the speed at which memory can be read.
void BM_MemchrAbsent(benchmark::State& state) {
  static std::vector<Bytes> without;
  if (without.empty()) {
    without = pictures();
    for (Bytes& picture : without)
      std::replace(picture.begin(), picture.end(), uint8_t{0xff}, uint8_t{0});
  }
  for (auto _ : state) {
    for (const Bytes& picture : without) {
      benchmark::DoNotOptimize(std::memchr(picture.data(), 0xff, picture.size()));
    }
  }
  count(state);
}
BENCHMARK(BM_MemchrAbsent);

// A search from each 0xFF to the next, as a walk built on memchr would have to do it.
void BM_MemchrEach(benchmark::State& state) {
  for (auto _ : state) {
    for (const Bytes& picture : pictures()) {
      const uint8_t* at = picture.data();
      const uint8_t* end = at + picture.size();
      size_t hits = 0;
      while (at < end) {
        const void* hit = std::memchr(at, 0xff, static_cast<size_t>(end - at));
        if (hit == nullptr) break;
        ++hits;
        at = static_cast<const uint8_t*>(hit) + 1;
      }
      benchmark::DoNotOptimize(hits);
    }
  }
  count(state);
}
BENCHMARK(BM_MemchrEach);

BENCHMARK_CAPTURE(probe_all, header, spk::CheckMode::kNone, false);
BENCHMARK_CAPTURE(probe_all, structure, spk::CheckMode::kStructure, false);
BENCHMARK_CAPTURE(probe_all, structure_by_callback, spk::CheckMode::kStructure, true);
BENCHMARK_CAPTURE(probe_all, decode, spk::CheckMode::kDecode, false)->Unit(benchmark::kMillisecond);

}  // namespace
