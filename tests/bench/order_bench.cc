// How soon an epoch's order is known: the first windows of a rank, and the whole deal, for packs of
// 1.28 and 100 million samples. Units and map lie in memory before the clock starts.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "layout/order.h"

namespace spk {
namespace {

// Chunks of 37 and 38 samples in turn, over 56 targets round robin.
struct Units {
  explicit Units(uint64_t samples) {
    first_samples.push_back(0);
    while (first_samples.back() < samples) {
      const uint64_t unit = targets.size();
      first_samples.push_back(std::min(samples, first_samples.back() + 37 + unit % 2));
      targets.push_back(static_cast<uint32_t>(unit % 56));
    }
  }
  std::vector<uint64_t> first_samples;
  std::vector<uint32_t> targets;
};

// Only one is kept: the peak of memory is to be that of one pack.
OrderUnits units_of(uint64_t samples, bool with_map) {
  static Units units(samples);
  if (units.first_samples.back() != samples) units = Units(samples);
  if (with_map) return {units.first_samples, units.targets};
  return {units.first_samples, {}};
}

// Since the process began.
double peak_mib() {
  double kib = 0;
  if (std::FILE* file = std::fopen("/proc/self/status", "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      if (std::strncmp(line, "VmHWM:", 6) == 0) std::sscanf(line + 6, "%lf", &kib);
    }
    std::fclose(file);
  }
  return kib / 1024;
}

EpochOrder make_order(const OrderUnits& units, uint64_t lanes, uint64_t epoch) {
  OrderSettings settings;
  settings.lanes = static_cast<uint32_t>(lanes);
  settings.epoch = epoch;
  return *EpochOrder::make(units, settings);
}

// Arguments: samples, lanes, ranks, whether there is a target map.
void first_windows(benchmark::State& state) {
  const OrderUnits units = units_of(static_cast<uint64_t>(state.range(0)), state.range(3) != 0);
  const auto lanes = static_cast<uint64_t>(state.range(1));
  const auto world = static_cast<uint64_t>(state.range(2));
  std::vector<uint64_t> samples;
  uint64_t epoch = 0;
  for (auto _ : state) {
    EpochOrder order = make_order(units, lanes, epoch++);
    for (uint64_t lane = 0; lane < lanes; lane += world) {
      order.window_samples(order.window_at(static_cast<uint32_t>(lane), 0), samples);
      benchmark::DoNotOptimize(samples.data());
    }
  }
  state.counters["peak_MiB"] = peak_mib();
}
BENCHMARK(first_windows)
    ->ArgNames({"samples", "lanes", "ranks", "map"})
    ->Args({1'280'000, 64, 1, 0})
    ->Args({1'280'000, 64, 1, 1})
    ->Args({1'280'000, 64, 64, 1})
    ->Args({100'000'000, 9216, 9216, 0})
    ->Args({100'000'000, 9216, 9216, 1})
    ->Args({100'000'000, 9216, 1, 1})
    ->Unit(benchmark::kMillisecond);

// Arguments: samples, lanes, whether there is a target map.
void whole_deal(benchmark::State& state) {
  const OrderUnits units = units_of(static_cast<uint64_t>(state.range(0)), state.range(2) != 0);
  uint64_t epoch = 0;
  for (auto _ : state) {
    EpochOrder order = make_order(units, static_cast<uint64_t>(state.range(1)), epoch++);
    order.finish();
    benchmark::DoNotOptimize(order.dealt_to(0).data());
  }
  state.counters["peak_MiB"] = peak_mib();
}
BENCHMARK(whole_deal)
    ->ArgNames({"samples", "lanes", "map"})
    ->Args({1'280'000, 64, 0})
    ->Args({1'280'000, 64, 1})
    ->Args({100'000'000, 9216, 0})
    ->Args({100'000'000, 9216, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spk
