#include <mutex>

#include "base/text.h"
#include "image/probe.h"
#include "pipeline/pack_proof.h"
#include "pipeline/side_by_side.h"
#include "sinks/sample_text.h"

namespace spk {

namespace {

// A run of slots larger than this is not held in memory to be decoded.
constexpr uint64_t kMostRunBytes = uint64_t{256} << 20;

class DecodeAll {
 public:
  DecodeAll(const Pack& pack, const std::string& split, const ProofOptions& options, uint16_t field)
      : pack_(pack), split_(split), options_(options), field_(field), pixels_(holds_pixels(pack)) {}

  Status chunk(uint64_t number);
  ProofCounts counts() const { return counts_; }

 private:
  void report(uint64_t sample, std::string what);
  Status check_size(uint64_t sample, uint64_t bytes);
  Status sample(const ChunkLocation& chunk, ByteSpan bytes, uint64_t sample);

  const Pack& pack_;
  const std::string& split_;
  const ProofOptions& options_;
  const uint16_t field_;
  const bool pixels_;  // nothing to decode, but there must be as many as the dimensions say
  std::mutex mutex_;   // guards counts_ and the sink
  ProofCounts counts_;
};

void DecodeAll::report(uint64_t sample, std::string what) {
  auto key = pack_.key(sample);
  const std::lock_guard lock(mutex_);
  counts_.faults += 1;
  options_.fault({split_, sample, key.ok() ? *key : std::string(), std::move(what)});
}

Status DecodeAll::check_size(uint64_t sample, uint64_t bytes) {
  uint64_t sizes[3] = {};
  const char* const names[3] = {"height", "width", "channels"};
  for (size_t i = 0; i < 3; ++i) {
    const uint16_t field = pack_.schema().find(names[i]);
    if (field == kNoField) continue;
    SPK_ASSIGN(const std::vector<int64_t> value, pack_.ints(sample, field));
    if (value.size() == 1 && value[0] > 0) sizes[i] = static_cast<uint64_t>(value[0]);
  }
  const Status right = check_pixels({sizes[0], sizes[1], sizes[2]}, bytes);
  if (!right.ok()) report(sample, right.message());
  return {};
}

Status DecodeAll::sample(const ChunkLocation& chunk, ByteSpan bytes, uint64_t sample) {
  SPK_ASSIGN(const SampleLocation where, pack_.locate(sample, field_));
  if (!where.present) return {};
  auto blob = blob_in_chunk(chunk, where, bytes);
  Status intact = blob.ok() ? pack_.check_blob(sample, field_, *blob) : blob.status();
  if (!intact.ok()) {
    report(sample, intact.message());
    return {};
  }
  if (pixels_) return check_size(sample, blob->size());
  MemoryView view(*blob);
  ProbeOptions probe;
  probe.check = CheckMode::kDecode;
  probe.max_pixels = UINT64_MAX;  // the limit was asked about when the pack was made
  SPK_ASSIGN(const ProbeResult result, probe_picture(view, probe));
  if (!result.reject.empty()) report(sample, "does not decode: " + result.reject);
  return {};
}

Status DecodeAll::chunk(uint64_t number) {
  if (options_.cancel != nullptr && options_.cancel->load()) {
    return Status(Code::kCancelled, "stopped");
  }
  SPK_ASSIGN(const ChunkLocation chunk, pack_.chunk(number));
  if (chunk.read_bytes > kMostRunBytes) {
    const std::lock_guard lock(mutex_);
    counts_.skipped += chunk.sample_count;
    return {};
  }
  SPK_ASSIGN(AlignedBuffer buffer, AlignedBuffer::allocate(chunk.read_bytes));
  const Status read = pack_.read_chunk(number, buffer.span());
  // Damage need not be in all of the chunk: each sample is judged by itself.
  if (!read.ok() && read.code() != Code::kDamaged) return read;
  for (uint32_t i = 0; i < chunk.sample_count; ++i) {
    SPK_TRY(sample(chunk, buffer.span(), chunk.first_sample + i));
  }
  if (options_.advance) options_.advance(chunk.sample_count, chunk.used_bytes);
  const std::lock_guard lock(mutex_);
  counts_.samples += chunk.sample_count;
  return {};
}

}  // namespace

Result<ProofCounts> decode_all(const Pack& pack, const std::string& split,
                               const ProofOptions& options) {
  const uint16_t field = pack.schema().find("image");
  if (field == kNoField) {
    return Status(Code::kNotFound, "the pack has no field 'image' to decode").at_path(pack.path());
  }
  DecodeAll decode(pack, split, options, field);
  const uint64_t chunks = pack.chunk_count();
  const uint64_t own = chunks / options.ranks + (options.rank < chunks % options.ranks ? 1 : 0);
  SPK_TRY(side_by_side(options.jobs, own, [&](uint64_t number) {
    return decode.chunk(number * options.ranks + options.rank);
  }));
  return decode.counts();
}

}  // namespace spk
