#include "pipeline/prepare.h"

#include <algorithm>

#include "base/checked.h"
#include "base/hash.h"
#include "base/text.h"
#include "image/probe.h"
#include "pipeline/cpu_arena.h"
#include "pipeline/plan_settings.h"

namespace spk {

namespace {
// Payloads in a group's buffer start on cache lines.
constexpr uint64_t kPayloadAlignBytes = 64;
constexpr uint64_t kStreamPieceBytes = uint64_t{1} << 20;
constexpr uint64_t kLeastDecodingBytes = uint64_t{32} << 20;

// What rejects a sample rather than failing the shard: content, absence, permission.
bool is_reject(const Status& status) {
  return status.code() == Code::kNotFound || status.code() == Code::kDenied;
}

// Where either is 0, nothing was told.
bool contradicts(const PixelDimensions& told, const PixelDimensions& found) {
  const auto differ = [](uint32_t a, uint32_t b) { return a != 0 && b != 0 && a != b; };
  return differ(told.height, found.height) || differ(told.width, found.width) ||
         differ(told.channels, found.channels);
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

Preparer::Preparer(const Source& source, const PackSchema& schema, const PackOptions& options,
                   tbb::task_arena& arena, BufferPool& pool, uint64_t in_memory_limit_bytes,
                   uint64_t made_limit_bytes, std::function<bool()> stopping)
    : source_(source),
      schema_(schema),
      options_(options),
      arena_(arena),
      pool_(pool),
      in_memory_limit_bytes_(in_memory_limit_bytes),
      stopping_(std::move(stopping)),
      made_budget_(made_limit_bytes) {
  if (!options.transform.on()) return;
  transformer_ =
      std::make_unique<const Transformer>(options.transform, options.max_pixels,
                                          std::max(options.memory_bytes / 4, kLeastDecodingBytes));
  picture_blob_ = picture_to_transform(options.transform, schema.blobs);
  for (const std::string& name : options.transform.mask_fields) {
    for (size_t blob = 0; blob < schema.blobs.size(); ++blob) {
      if (schema.blobs[blob].name == name) mask_blobs_.push_back(blob);
    }
  }
}

uint64_t Preparer::buffer_bytes(const SampleEntry& entry) {
  return round_up(entry.size_bytes, kPayloadAlignBytes);
}

void Preparer::prepare(SampleGroup& group) const {
  group.status = read_group(group);
  if (!group.status.ok()) return;
  bool buffer_is_used = false;
  run_in_arena(arena_, [&] {
    for (PreparedSample& sample : group.samples) {
      if (!sample.in_memory || sample.transformed) continue;
      group.status = check(sample);
      if (group.status.ok() && transformer_) group.status = transform(sample);
      if (!group.status.ok()) return;
      buffer_is_used = buffer_is_used || (sample.in_memory && !sample.transformed);
    }
  });
  if (!buffer_is_used) group.buffer.reset();
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
  const SampleEntry& entry = sample.entry;
  fill_numbers(sample);
  uint64_t at = 0;
  for (size_t blob = 0; blob < schema_.blobs.size() && sample.reject.empty(); ++blob) {
    const uint64_t bytes = entry.bytes_of_blob(blob);
    if (bytes == kAbsentBlob) continue;
    const ByteSpan piece = sample.payload.subspan(at, bytes);
    at += bytes;
    MemoryView view(piece);
    SPK_TRY(take_blob(sample, blob, view, xxh3_64(piece)));
  }
  return {};
}

Status Preparer::prepare_streamed(PreparedSample& sample) const {
  auto handle = source_.open(sample.entry);
  if (!handle.ok()) {
    if (!is_reject(handle.status())) return std::move(handle).status();
    sample.reject = reject_reason(handle.status());
    return {};
  }
  if (transformer_) return prepare_whole(sample, **handle);
  fill_numbers(sample);
  std::vector<uint8_t> piece(kStreamPieceBytes);
  uint64_t start = 0;
  for (size_t blob = 0; blob < schema_.blobs.size() && sample.reject.empty(); ++blob) {
    const uint64_t bytes = sample.entry.bytes_of_blob(blob);
    if (bytes == kAbsentBlob) continue;
    const auto read = [&](uint64_t offset, MutableByteSpan into) -> Status {
      if (stopping_()) return Status(Code::kCancelled, "stopped");
      return (*handle)->read_at(start + offset, into);
    };
    Xxh3Stream hash;
    for (uint64_t done = 0; done < bytes;) {
      const MutableByteSpan into =
          MutableByteSpan(piece).first(std::min<uint64_t>(piece.size(), bytes - done));
      SPK_TRY(read(done, into));
      hash.update(into);
      done += into.size();
    }
    CallbackView view(bytes, read);
    SPK_TRY(take_blob(sample, blob, view, hash.digest_64()));
    start += bytes;
  }
  return {};
}

Status Preparer::take_blob(PreparedSample& sample, size_t blob, ByteView& view,
                           uint64_t checksum) const {
  StoredField& field = sample.stored.fields[blob];
  field.present = true;
  field.bytes = view.size();
  field.checksum = checksum;
  return look_at_blob(sample, blob, view);
}

Status Preparer::look_at_blob(PreparedSample& sample, size_t blob, ByteView& view) const {
  const BlobContent content = input_content(sample.entry, blob);
  const bool is_first = blob == 0;
  PixelDimensions size = sample.entry.pixels;
  if (content == BlobContent::kPixels) {
    if (uint64_t{size.height} * size.width * size.channels != view.size()) {
      return internal_error("a source gave pixels of another size than it listed");
    }
  } else if (content == BlobContent::kPicture || is_first) {
    ProbeOptions options;
    options.check = content == BlobContent::kPicture ? options_.check : CheckMode::kNone;
    options.max_pixels = options_.max_pixels;
    SPK_ASSIGN(ProbeResult probed, probe_picture(view, options));
    if (content == BlobContent::kPicture) {
      sample.reject = std::move(probed.reject);
      if (!is_first && !sample.reject.empty()) {
        sample.reject += str_cat(" (field ", schema_.blobs[blob].name, ")");
      }
      for (std::string& warning : probed.warnings) sample.warnings.push_back(std::move(warning));
    }
    size = {probed.height, probed.width, probed.channels};
    if (is_first && sample.reject.empty() && contradicts(sample.entry.told, size)) {
      sample.warnings.emplace_back("a picture's size is not what the source tells of it");
    }
  }
  if (!is_first || !sample.reject.empty()) return {};
  const auto set_dimension = [&](uint16_t field, uint32_t value) {
    const int64_t number = value;
    if (value != 0) sample.stored.set_ints(field, &number, 1);
  };
  set_dimension(schema_.height, size.height);
  set_dimension(schema_.width, size.width);
  set_dimension(schema_.channels, size.channels);
  return {};
}

void Preparer::fill_numbers(PreparedSample& sample) const {
  const SampleEntry& entry = sample.entry;
  StoredSample& stored = sample.stored;
  stored.key = entry.key;
  stored.ordinal = entry.ordinal;
  stored.fields.resize(schema_.schema.fields.size());
  if (schema_.label != kNoField) {
    if (schema_.schema.fields[schema_.label].kind == FieldKind::kInt64) {
      stored.set_ints(schema_.label, entry.int_labels.data(), entry.int_labels.size());
    } else {
      stored.set_floats(schema_.label, FieldKind::kFloat64, entry.float_labels.data(),
                        entry.float_labels.size());
    }
  }
  for (size_t i = 0; i < entry.numbers.size(); ++i) {
    if (entry.numbers[i]) stored.set_bits(schema_.first_number + i, *entry.numbers[i]);
  }
}

}  // namespace spk
