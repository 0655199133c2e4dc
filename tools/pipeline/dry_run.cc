#include "pipeline/dry_run.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/hash.h"
#include "image/transform.h"
#include "io/directory.h"
#include "layout/fill.h"
#include "pipeline/pack_schema.h"

namespace spk {

namespace {

constexpr size_t kSizesKept = 20000;  // a split
constexpr unsigned kDefaultReaders = 8;
constexpr unsigned kMostReaders = 64;
constexpr double kTimingSeconds = 1.0;  // for each of the two orders
// Footer and index hold a sample's place, sizes and checksum, and its key twice.
constexpr uint64_t kIndexBytesPerSample = 2 * 64;
constexpr uint64_t kPlanBytesPerSample = 32;
// What does not grow with the samples: manifest.json, layout.json, run.json and the index's head;
// and of each shard the footer's head, schema and plan record, each part of it aligned.
constexpr uint64_t kFixedBytes = 6144;
constexpr uint64_t kFixedBytesPerShard = 6144;

// As much of a sample as says how it will lie in a chunk.
struct SizedSample {
  uint64_t hash = 0;
  uint64_t size_bytes = 0;
  uint32_t key_bytes = 0;
  uint32_t labels = 0;
  std::vector<uint64_t> blob_bytes;  // as in SampleEntry
  bool operator<(const SizedSample& other) const {
    return hash != other.hash ? hash < other.hash : size_bytes < other.size_bytes;
  }
};

struct SplitSizes {
  std::vector<SizedSample> kept;  // a heap: those with the least hashes, so a random choice
  uint64_t key_bytes = 0;

  void add(const SampleEntry& entry) {
    key_bytes += entry.key.size();
    if (!entry.reject.empty() || entry.size_bytes == kUnknownSize) return;
    const SizedSample sample{
        xxh3_64(as_bytes(entry.key)), entry.size_bytes, static_cast<uint32_t>(entry.key.size()),
        static_cast<uint32_t>(entry.int_labels.size() + entry.float_labels.size()),
        entry.blob_bytes};
    if (kept.size() == kSizesKept) {
      if (!(sample < kept.front())) return;
      std::pop_heap(kept.begin(), kept.end());
      kept.pop_back();
    }
    kept.push_back(sample);
    std::push_heap(kept.begin(), kept.end());
  }
};

// Passes a listing on and looks at what goes by.
class WatchedSource : public Source {
 public:
  explicit WatchedSource(Source& source) : source_(source), timing(source.lists_in_order()) {}
  bool lists_in_order() const override { return source_.lists_in_order(); }
  Result<Listing> list(const PackOptions& options, const Sink& sink) override {
    return source_.list(options, [&](SampleEntry&& entry) {
      {
        const std::lock_guard lock(mutex_);
        if (entry.split >= sizes.size()) sizes.resize(entry.split + 1);
        sizes[entry.split].add(entry);
        timing.add(entry);
      }
      return sink(std::move(entry));
    });
  }
  Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const override {
    return source_.open(entry);
  }

 private:
  Source& source_;
  std::mutex mutex_;  // guards the two below while listing

 public:
  std::vector<SplitSizes> sizes;
  TimingChoice timing;
};

StoredSample stored_sample(const SizedSample& sample, const PackSchema& pack) {
  StoredSample stored;
  stored.key.assign(sample.key_bytes, 'k');
  stored.fields.resize(pack.schema.fields.size());
  for (size_t blob = 0; blob < pack.blobs.size(); ++blob) {
    const uint64_t bytes = blob_size(sample.blob_bytes, sample.size_bytes, blob);
    if (bytes == kAbsentBlob) continue;
    stored.fields[blob].present = true;
    stored.fields[blob].bytes = bytes;
  }
  if (pack.label != kNoField && sample.labels != 0) {
    const std::vector<int64_t> labels(sample.labels);
    stored.set_ints(pack.label, labels.data(), labels.size());
  }
  constexpr int64_t kSide = 1000;  // pictures of some size: their number takes two bytes
  for (const uint16_t field : {pack.height, pack.width, pack.channels}) {
    stored.set_ints(field, &kSide, 1);
  }
  return stored;
}

// Gives the sample's picture the size that it is guessed to get.
void make_anew(const TransformOptions& transform, const PackSchema& pack, SizedSample* sample) {
  if (sample->blob_bytes.empty()) {
    sample->size_bytes = estimated_bytes(transform, sample->size_bytes);
    return;
  }
  for (size_t blob = 0; blob < sample->blob_bytes.size(); ++blob) {
    if (pack.blobs[blob].content == BlobContent::kAny) continue;
    uint64_t& bytes = sample->blob_bytes[blob];
    if (bytes == kAbsentBlob) return;
    const uint64_t made = estimated_bytes(transform, bytes);
    sample->size_bytes = sample->size_bytes - bytes + made;
    bytes = made;
    return;
  }
}

// Fills chunks with the samples that were kept and scales the outcome to all of them.
PackEstimate estimate_pack(const PlanInfo& info, const SplitSizes& sizes,
                           const PackOptions& options) {
  PackEstimate estimate;
  const PackSchema pack = make_pack_schema(info);
  std::vector<SizedSample> samples = sizes.kept;
  if (options.transform.on()) {
    for (SizedSample& sample : samples) make_anew(options.transform, pack, &sample);
  }
  std::sort(samples.begin(), samples.end());
  uint64_t payload = 0, capacity = 0, padding = 0, chunks = 0;
  // A shard's last chunk ends early, so it pads nothing to speak of: each shard is filled apart.
  const uint64_t samples_in_all = info.sample_count - info.listed_rejects;
  const uint64_t shards_filled = std::max<uint64_t>(
      1, samples.size() * info.geometry.shard_count / std::max<uint64_t>(samples_in_all, 1));
  for (uint64_t shard = 0; shard < shards_filled; ++shard) {
    const PositionRange range = shard_positions(
        samples.size(), static_cast<uint32_t>(shards_filled), static_cast<uint32_t>(shard));
    ChunkFiller filler(pack.schema, info.geometry, info.shuffled);
    uint64_t next = range.begin;
    FilledChunk last;
    const auto count_last = [&](uint64_t bytes) {
      capacity += bytes;
      padding += bytes - last.used_bytes;
    };
    for (;;) {
      while (filler.wants_more() && next < range.end) {
        payload += samples[next].size_bytes;
        filler.push(next, stored_sample(samples[next], pack));
        ++next;
      }
      const bool all_pushed = next == range.end;
      if (all_pushed) filler.finish();
      auto chunk = filler.next();
      if (!chunk && all_pushed) break;
      if (!chunk) continue;  // it took from the window and wants more
      if (last.used_bytes != 0) {
        count_last(uint64_t{last.span_slots} * info.geometry.chunk_bytes);
      }
      ++chunks;
      last = std::move(*chunk);
    }
    if (last.used_bytes != 0) count_last(shard_data_bytes(0, last.used_bytes));
  }
  const double scale =
      samples.empty() ? 0
                      : static_cast<double>(samples_in_all) / static_cast<double>(samples.size());
  const auto scaled = [scale](uint64_t value) {
    return static_cast<uint64_t>(static_cast<double>(value) * scale);
  };
  estimate.chunk_count = scaled(chunks);
  estimate.padding_bytes = scaled(padding);
  estimate.table_bytes = scaled(capacity - padding - payload);
  estimate.index_bytes = kFixedBytes + info.geometry.shard_count * kFixedBytesPerShard +
                         samples_in_all * kIndexBytesPerSample + 2 * sizes.key_bytes;
  for (const std::string& name : info.classes) estimate.index_bytes += 3 * (name.size() + 16);
  estimate.payload_bytes = options.transform.on() ? scaled(payload) : info.total_bytes;
  estimate.pack_bytes =
      estimate.payload_bytes + estimate.padding_bytes + estimate.table_bytes + estimate.index_bytes;
  // Shards, and index.spki, manifest.json, layout.json, run.json and rejects.tsv.
  estimate.files = uint64_t{info.geometry.shard_count} + 5 + (options.sha256 ? 1 : 0);
  return estimate;
}

std::string parent_of(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return "/";
  const size_t slash = path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status look_at_output(const PackOptions& options, DryRunReport* report) {
  const std::string& output = options.output;
  std::string folder = output.empty() ? "." : output;
  Result<Directory> opened = Directory::open(folder);
  while (!opened.ok() && folder != "/" && folder != ".") {
    folder = parent_of(folder);
    opened = Directory::open(folder);
  }
  report->output_folder = folder;
  if (!opened.ok()) return {};
  for (DryRunReport::Split& split : report->splits) {
    SPK_ASSIGN(StripePlan stripes, plan_stripes(opened->fd(), options.stripes, split.info.geometry,
                                                split.estimate.pack_bytes));
    split.stripes_asked = stripes.asked();
    split.stripes_reasons = std::move(stripes.reasons);
  }
  if (const auto space = opened->space(); space.ok()) {
    report->free_bytes = space->available_bytes;
    if (space->free_inodes != 0) report->free_files = space->free_inodes;
  }
  report->quota = quota_left(opened->fd());
  const uint64_t bytes = report->pack_bytes + report->work_bytes + report->spool_bytes;
  report->fits = bytes <= report->free_bytes.value_or(UINT64_MAX) &&
                 bytes <= report->quota.bytes.value_or(UINT64_MAX) &&
                 report->files <= report->free_files.value_or(UINT64_MAX) &&
                 report->files <= report->quota.files.value_or(UINT64_MAX);
  return {};
}

double seconds_for(const PlanInfo& info, const ReadRate& rate) {
  const auto samples = static_cast<double>(info.sample_count - info.listed_rejects);
  const double by_samples = rate.samples == 0 ? 0 : samples / rate.samples_per_second();
  const double by_bytes =
      rate.bytes == 0 ? 0 : static_cast<double>(info.total_bytes) / rate.bytes_per_second();
  return std::max(by_samples, by_bytes);
}

void time_source(const PackOptions& options, const WatchedSource& source, DryRunReport* report) {
  const unsigned wanted = options.io_threads == 0 ? kDefaultReaders : options.io_threads;
  report->readers = std::min(wanted, kMostReaders);
  report->scattered =
      time_reads(source, source.timing.scattered(), report->readers, kTimingSeconds);
  report->sequential =
      time_reads(source, source.timing.sequential(), report->readers, kTimingSeconds);
  double seconds = 0;
  for (const DryRunReport::Split& split : report->splits) {
    const bool at_random = split.info.shuffled && options.shuffle != ShuffleMode::kBlocks;
    ReadRate rate = at_random ? report->scattered : report->sequential;
    if (rate.samples == 0) rate = at_random ? report->sequential : report->scattered;
    if (rate.samples == 0) return;
    seconds += seconds_for(split.info, rate);
  }
  report->read_seconds = seconds;
}

}  // namespace

Result<DryRunReport> dry_run(const PackOptions& options, Source& source,
                             const std::atomic<bool>* cancel, Spool* spool) {
  WatchedSource watched(source);
  SPK_ASSIGN(PlanResult planned, make_plan(options, watched, "", cancel));
  DryRunReport report;
  report.listing = std::move(planned.listing);
  if (spool != nullptr) report.spool_bytes = spool->measured_bytes();
  watched.sizes.resize(planned.splits.size());
  for (size_t i = 0; i < planned.splits.size(); ++i) {
    DryRunReport::Split split;
    split.info = std::move(planned.splits[i].info);
    split.estimate = estimate_pack(split.info, watched.sizes[i], options);
    split.made_anew = options.transform.on();
    report.pack_bytes += split.estimate.pack_bytes;
    report.files += split.estimate.files;
    const uint64_t plan_bytes =
        split.info.sample_count * kPlanBytesPerSample + watched.sizes[i].key_bytes;
    // The plan stays until the end; its sorting takes as much again, twice, where it spills.
    report.work_bytes += plan_bytes * (plan_bytes > options.memory_bytes / 8 ? 3 : 1);
    report.splits.push_back(std::move(split));
  }
  SPK_TRY(look_at_output(options, &report));
  time_source(options, watched, &report);
  return report;
}

}  // namespace spk
