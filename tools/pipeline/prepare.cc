#include "pipeline/prepare.h"

#include <algorithm>

#include "base/checked.h"
#include "base/hash.h"
#include "base/text.h"
#include "image/probe.h"
#include "pipeline/cpu_arena.h"

namespace spk {

namespace {
// Payloads in a group's buffer start on cache lines.
constexpr uint64_t kPayloadAlignBytes = 64;
constexpr uint64_t kStreamPieceBytes = uint64_t{1} << 20;

// What rejects a sample rather than failing the shard: content, absence, permission.
bool is_reject(const Status& status) {
  return status.code() == Code::kNotFound || status.code() == Code::kDenied;
}

const char* reject_reason(const Status& status) {
  return status.code() == Code::kDenied ? "permission denied" : "not found";
}
}  // namespace

Result<AlignedBuffer> BufferPool::take(uint64_t bytes) {
  if (bytes <= buffer_bytes_) {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      AlignedBuffer buffer = std::move(free_.back());
      free_.pop_back();
      return buffer;
    }
  }
  return AlignedBuffer::allocate(std::max(bytes, buffer_bytes_));
}

void BufferPool::give_back(AlignedBuffer buffer) {
  if (buffer.size() != buffer_bytes_) return;
  const std::lock_guard lock(mutex_);
  if (free_.size() < kept_) free_.push_back(std::move(buffer));
}

uint64_t Preparer::buffer_bytes(const SampleEntry& entry) {
  return round_up(entry.size_bytes, kPayloadAlignBytes);
}

void Preparer::prepare(SampleGroup& group) const {
  group.status = read_group(group);
  if (!group.status.ok()) return;
  run_in_arena(arena_, [&] {
    for (PreparedSample& sample : group.samples) {
      if (!sample.in_memory) continue;
      group.status = check(sample);
      if (!group.status.ok()) return;
    }
  });
}

Status Preparer::read_group(SampleGroup& group) const {
  if (group.bytes != 0) {
    SPK_ASSIGN(AlignedBuffer buffer, pool_.take(group.bytes));
    group.buffer = std::make_shared<GroupBuffer>(pool_, std::move(buffer));
  }
  uint64_t at = 0;
  for (PreparedSample& sample : group.samples) {
    if (sample.kept) continue;
    if (!sample.entry.reject.empty()) {
      sample.reject = sample.entry.reject;
      continue;
    }
    if (!fits_memory(sample.entry)) {
      SPK_TRY(prepare_streamed(sample));
      continue;
    }
    auto handle = source_.open(sample.entry);
    if (!handle.ok()) {
      if (!is_reject(handle.status())) return std::move(handle).status();
      sample.reject = reject_reason(handle.status());
      continue;
    }
    const MutableByteSpan into = sample.entry.size_bytes == 0
                                     ? MutableByteSpan()
                                     : group.buffer->span().subspan(at, sample.entry.size_bytes);
    if (!into.empty()) SPK_TRY((*handle)->read_at(0, into));
    at += buffer_bytes(sample.entry);
    sample.payload = into;
    sample.in_memory = true;
  }
  return {};
}

Status Preparer::check(PreparedSample& sample) const {
  MemoryView view(sample.payload);
  return fill_fields(sample, view, xxh3_64(sample.payload));
}

Status Preparer::prepare_streamed(PreparedSample& sample) const {
  auto handle = source_.open(sample.entry);
  if (!handle.ok()) {
    if (!is_reject(handle.status())) return std::move(handle).status();
    sample.reject = reject_reason(handle.status());
    return {};
  }
  const auto read = [&](uint64_t offset, MutableByteSpan into) -> Status {
    if (stopping_()) return Status(Code::kCancelled, "stopped");
    return (*handle)->read_at(offset, into);
  };
  Xxh3Stream hash;
  std::vector<uint8_t> piece(kStreamPieceBytes);
  for (uint64_t done = 0; done < sample.entry.size_bytes;) {
    const MutableByteSpan into = MutableByteSpan(piece).first(
        std::min<uint64_t>(piece.size(), sample.entry.size_bytes - done));
    SPK_TRY(read(done, into));
    hash.update(into);
    done += into.size();
  }
  CallbackView view(sample.entry.size_bytes, read);
  return fill_fields(sample, view, hash.digest_64());
}

Status Preparer::fill_fields(PreparedSample& sample, ByteView& view, uint64_t checksum) const {
  ProbeOptions probe_options;
  probe_options.check = options_.check;
  probe_options.max_pixels = options_.max_pixels;
  SPK_ASSIGN(ProbeResult probed, probe_picture(view, probe_options));
  sample.reject = std::move(probed.reject);
  sample.warnings = std::move(probed.warnings);
  if (!sample.reject.empty()) return {};

  StoredSample& stored = sample.stored;
  stored.key = sample.entry.key;
  stored.ordinal = sample.entry.ordinal;
  stored.fields.resize(schema_.schema.fields.size());
  StoredField& image = stored.fields[schema_.image];
  image.present = true;
  image.bytes = sample.entry.size_bytes;
  image.checksum = checksum;
  if (schema_.label != kNoField) {
    const SampleEntry& entry = sample.entry;
    if (schema_.schema.fields[schema_.label].kind == FieldKind::kInt64) {
      stored.set_ints(schema_.label, entry.int_labels.data(), entry.int_labels.size());
    } else {
      stored.set_floats(schema_.label, FieldKind::kFloat64, entry.float_labels.data(),
                        entry.float_labels.size());
    }
  }
  const auto set_dimension = [&](uint16_t field, uint32_t value) {
    const int64_t number = value;
    if (value != 0) stored.set_ints(field, &number, 1);
  };
  set_dimension(schema_.height, probed.height);
  set_dimension(schema_.width, probed.width);
  set_dimension(schema_.channels, probed.channels);
  return {};
}

}  // namespace spk
