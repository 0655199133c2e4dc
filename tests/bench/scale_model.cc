// What a very large pack costs its readers, by the library's own arithmetic: nothing is stored or
// read.
//
//   scale_model BYTES SAMPLES RANKS TARGETS [CHUNK_BYTES]
//
// Plans a pack of BYTES in SAMPLES of equal size, lays each shard's chunks on TARGETS as `pack`
// asks Lustre for, deals an epoch to RANKS, and tells the time, the memory, and what the ranks read
// and open. Index bytes a chunk and a sample are measured on a small pack of pictures.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "base/text.h"
#include "layout/geometry.h"
#include "layout/order.h"
#include "layout/stripe_choice.h"

namespace {

using spk::format_size;

// Of index.spki: columns of the chunks section, and of a sample with an image, a label, three
// dimensions and a key of 16 bytes.
constexpr uint64_t kIndexBytesPerChunk = 18;
constexpr uint64_t kIndexBytesPerSample = 50;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct Spread {
  double least = 0, mean = 0, most = 0;
};

Spread spread_of(const std::vector<uint64_t>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const auto sum = std::accumulate(values.begin(), values.end(), uint64_t{0});
  return {static_cast<double>(*least),
          static_cast<double>(sum) / static_cast<double>(values.size()),
          static_cast<double>(*most)};
}

uint64_t size_argument(const char* text) {
  const auto value = spk::parse_size(text);
  if (!value.ok() || *value == 0) {
    std::fprintf(stderr, "scale_model: '%s' is no size above 0\n", text);
    std::exit(2);
  }
  return *value;
}

int fail(const spk::Status& status) {
  std::fprintf(stderr, "scale_model: %s\n", status.to_string().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "scale_model BYTES SAMPLES RANKS TARGETS [CHUNK_BYTES]\n");
    return 2;
  }
  spk::GeometryRequest request;
  request.total_bytes = size_argument(argv[1]);
  request.sample_count = size_argument(argv[2]);
  const uint64_t ranks = size_argument(argv[3]);
  request.target_count = size_argument(argv[4]);
  if (argc > 5) request.chunk_bytes = size_argument(argv[5]);

  const auto geometry = spk::resolve_geometry(request);
  if (!geometry.ok()) return fail(geometry.status());
  const uint64_t sample_bytes = request.total_bytes / request.sample_count;
  const uint64_t samples_per_chunk = std::max<uint64_t>(geometry->chunk_bytes / sample_bytes, 1);

  spk::StripeQuestion question;
  question.directory.system = spk::StripeSystem::kLustre;
  question.directory.components.resize(1);
  question.chunk_bytes = geometry->chunk_bytes;
  question.pack_bytes = request.total_bytes;
  question.shard_count = geometry->shard_count;
  question.target_count = static_cast<uint32_t>(request.target_count);
  const spk::StripeChoice stripes = spk::choose_stripes(question);
  const uint32_t stripe_count = std::max<uint32_t>(stripes.stripe_count, 1);

  std::vector<uint64_t> first_samples;
  std::vector<uint32_t> targets, shard_of;
  for (uint32_t shard = 0; shard < geometry->shard_count; ++shard) {
    const spk::PositionRange range =
        spk::shard_positions(request.sample_count, geometry->shard_count, shard);
    const uint32_t start = spk::start_target(shard, stripe_count, question.target_count);
    uint32_t chunk = 0;
    for (uint64_t at = range.begin; at < range.end; at += samples_per_chunk, ++chunk) {
      first_samples.push_back(at);
      targets.push_back((start + chunk % stripe_count) % question.target_count);
      shard_of.push_back(shard);
    }
  }
  first_samples.push_back(request.sample_count);
  const uint64_t chunks = targets.size();
  std::printf(
      "%s in %s samples of %s: %u shards of %s, %s chunks of %s, stripe count %u\n",
      format_size(request.total_bytes).c_str(), spk::format_count(request.sample_count).c_str(),
      format_size(sample_bytes).c_str(), geometry->shard_count,
      format_size(request.total_bytes / geometry->shard_count).c_str(),
      spk::format_count(chunks).c_str(), format_size(geometry->chunk_bytes).c_str(), stripe_count);
  std::printf(
      "index: %s, of which a rank reads %s when it opens\n",
      format_size(chunks * kIndexBytesPerChunk + request.sample_count * kIndexBytesPerSample)
          .c_str(),
      format_size(chunks * kIndexBytesPerChunk).c_str());
  const double before_mib = peak_mib();

  spk::OrderSettings settings = spk::default_order(spk::OrderKind::kShuffled, ranks);
  const auto start = std::chrono::steady_clock::now();
  auto order = spk::EpochOrder::make({first_samples, targets}, settings);
  if (!order.ok()) return fail(order.status());
  std::vector<uint64_t> samples;
  for (uint64_t lane = 0; lane < settings.lanes; lane += ranks) {
    order->window_samples(order->window_at(static_cast<uint32_t>(lane), 0), samples);
  }
  const double first_seconds = seconds_since(start);
  order->finish();
  std::printf(
      "lanes %u, window %u: a rank's first chunks known after %.2f s, all of the epoch after "
      "%.2f s; %.0f MiB for chunks and map, %.0f MiB for the deal\n",
      settings.lanes, settings.window, first_seconds, seconds_since(start), before_mib,
      peak_mib() - before_mib);

  std::vector<uint64_t> chunks_of(ranks), shards_of(ranks), targets_of(question.target_count);
  std::vector<uint64_t> seen(geometry->shard_count, UINT64_MAX);
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    for (uint64_t lane = rank; lane < settings.lanes; lane += ranks) {
      for (const uint32_t unit : order->dealt_to(static_cast<uint32_t>(lane))) {
        chunks_of[rank] += 1;
        targets_of[targets[unit]] += 1;
        if (seen[shard_of[unit]] != rank) shards_of[rank] += 1;
        seen[shard_of[unit]] = rank;
      }
    }
  }
  const auto print = [](const char* what, const Spread& spread, double scale, const char* unit) {
    std::printf("%s: %.1f%s on average, %.1f to %.1f\n", what, spread.mean * scale, unit,
                spread.least * scale, spread.most * scale);
  };
  print("read by a rank in an epoch", spread_of(chunks_of),
        static_cast<double>(geometry->chunk_bytes) / (1 << 30), " GiB");
  print("shards that a rank opens in an epoch", spread_of(shards_of), 1, "");
  print("chunks read from a target in an epoch", spread_of(targets_of), 1, "");
  return 0;
}
