#include "commands/bench_epoch.h"

#include <algorithm>
#include <bit>

#include "base/varint.h"

namespace spk {

namespace {

// The counts that add up, in the order in which they are encoded.
constexpr uint64_t BenchEpoch::*kSums[] = {
    &BenchEpoch::batches,     &BenchEpoch::samples,    &BenchEpoch::payload_bytes,
    &BenchEpoch::reads,       &BenchEpoch::read_bytes, &BenchEpoch::shared_reads,
    &BenchEpoch::shared_hits, &BenchEpoch::undecoded,
};
constexpr double BenchEpoch::*kTimes[] = {&BenchEpoch::seconds, &BenchEpoch::cpu_seconds,
                                          &BenchEpoch::first_batch_seconds};

void append_time(std::string& bytes, double seconds) {
  append_varint(bytes, std::bit_cast<uint64_t>(seconds));
}

bool take_time(ByteSpan* bytes, double* seconds) {
  uint64_t bits = 0;
  if (!take_varint(bytes, &bits)) return false;
  *seconds = std::bit_cast<double>(bits);
  return true;
}

}  // namespace

void BenchEpoch::add(const BenchEpoch& other) {
  for (const auto sum : kSums) this->*sum += other.*sum;
  steps = std::max(steps, other.steps);
  seconds = std::max(seconds, other.seconds);
  cpu_seconds += other.cpu_seconds;
  first_batch_seconds = std::max(first_batch_seconds, other.first_batch_seconds);
  waits.insert(waits.end(), other.waits.begin(), other.waits.end());
}

void BenchEpoch::finish() { std::sort(waits.begin(), waits.end()); }

double BenchEpoch::wait_seconds(double share) const noexcept {
  if (waits.empty()) return 0;
  const auto at = static_cast<size_t>(share * static_cast<double>(waits.size()));
  return waits[std::min(at, waits.size() - 1)];
}

double BenchEpoch::accelerator_busy(uint64_t step_ns) const noexcept {
  const double busy = static_cast<double>(steps) * static_cast<double>(step_ns);
  return seconds > 0 ? busy * 1e-9 / seconds : 0;
}

std::string encode_epoch(const BenchEpoch& epoch) {
  std::string bytes;
  append_varint(bytes, epoch.epoch);
  append_varint(bytes, epoch.steps);
  for (const auto sum : kSums) append_varint(bytes, epoch.*sum);
  for (const auto time : kTimes) append_time(bytes, epoch.*time);
  append_varint(bytes, epoch.waits.size());
  for (const double wait : epoch.waits) append_time(bytes, wait);
  return bytes;
}

bool decode_epoch(std::string_view bytes, BenchEpoch* epoch) {
  ByteSpan rest = as_bytes(bytes);
  uint64_t waits = 0;
  bool whole = take_varint(&rest, &epoch->epoch) && take_varint(&rest, &epoch->steps);
  for (const auto sum : kSums) whole = whole && take_varint(&rest, &(epoch->*sum));
  for (const auto time : kTimes) whole = whole && take_time(&rest, &(epoch->*time));
  whole = whole && take_varint(&rest, &waits);
  for (uint64_t i = 0; whole && i < waits; ++i) {
    double wait = 0;
    whole = take_time(&rest, &wait);
    epoch->waits.push_back(wait);
  }
  return whole && rest.empty();
}

}  // namespace spk
