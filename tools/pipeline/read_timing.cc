#include "pipeline/read_timing.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/hash.h"

namespace spk {

namespace {

constexpr uint64_t kReadBytes = uint64_t{1} << 20;

using Clock = std::chrono::steady_clock;

// Keeps the `most` least elements of those offered, as a heap with the greatest in front.
template <typename T, typename Less>
void keep_least(std::vector<T>* heap, size_t most, const T& item, const Less& less) {
  if (heap->size() == most) {
    if (!less(item, heap->front())) return;
    std::pop_heap(heap->begin(), heap->end(), less);
    heap->pop_back();
  }
  heap->push_back(item);
  std::push_heap(heap->begin(), heap->end(), less);
}

bool scattered_less(const std::pair<uint64_t, SampleEntry>& a,
                    const std::pair<uint64_t, SampleEntry>& b) {
  if (a.first != b.first) return a.first < b.first;
  return a.second.ordinal != b.second.ordinal ? a.second.ordinal < b.second.ordinal
                                              : a.second.key < b.second.key;
}

}  // namespace

void TimingChoice::add(const SampleEntry& entry) {
  if (!entry.reject.empty()) return;
  const bool ordered = ordered_;
  keep_least(&first_, kSamples, entry, [ordered](const SampleEntry& a, const SampleEntry& b) {
    if (ordered && a.ordinal != b.ordinal) return a.ordinal < b.ordinal;
    return a.split != b.split ? a.split < b.split : a.key < b.key;
  });
  const uint64_t hash = xxh3_64(as_bytes(entry.key));
  if (scattered_.size() == kSamples && hash > scattered_.front().first) return;
  keep_least(&scattered_, kSamples, {hash, entry}, scattered_less);
}

std::vector<SampleEntry> TimingChoice::sequential() const {
  std::vector<SampleEntry> entries = first_;
  const bool ordered = ordered_;
  std::sort(entries.begin(), entries.end(), [ordered](const SampleEntry& a, const SampleEntry& b) {
    if (ordered) return a.ordinal < b.ordinal;
    return a.split != b.split ? a.split < b.split : a.key < b.key;
  });
  return entries;
}

std::vector<SampleEntry> TimingChoice::scattered() const {
  // Not those that are read in sequence: they would come from memory.
  std::set<std::string_view> taken;
  for (const SampleEntry& entry : first_) taken.insert(entry.key);
  auto sorted = scattered_;
  std::sort(sorted.begin(), sorted.end(), scattered_less);
  std::vector<SampleEntry> entries;
  for (auto& [hash, entry] : sorted) {
    if (taken.count(entry.key) == 0) entries.push_back(std::move(entry));
  }
  return entries;
}

ReadRate time_reads(const Source& source, const std::vector<SampleEntry>& entries, unsigned threads,
                    double most_seconds) {
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(most_seconds));
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> samples{0}, bytes{0};
  const auto read_share = [&] {
    std::vector<uint8_t> buffer(kReadBytes);
    for (;;) {
      const size_t index = next.fetch_add(1);
      if (index >= entries.size() || Clock::now() >= end) return;
      const auto handle = source.open(entries[index]);
      if (!handle.ok()) continue;
      const uint64_t size = (*handle)->size_bytes();
      uint64_t done = 0;
      while (done < size && Clock::now() < end) {
        const uint64_t piece = std::min(kReadBytes, size - done);
        if (!(*handle)->read_at(done, MutableByteSpan(buffer).first(piece)).ok()) break;
        done += piece;
      }
      bytes += done;
      if (done == size) ++samples;
    }
  };
  std::vector<std::thread> others;
  try {
    for (unsigned i = 1; i < threads && i < entries.size(); ++i) others.emplace_back(read_share);
  } catch (const std::system_error&) {
    // No more threads to be had; those that are there do the work.
  }
  read_share();
  for (std::thread& other : others) other.join();
  ReadRate rate;
  rate.samples = samples;
  rate.bytes = bytes;
  rate.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return rate;
}

}  // namespace spk
