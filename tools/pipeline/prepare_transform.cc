// The part of Preparer that makes pictures anew.
#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "pipeline/cpu_arena.h"
#include "pipeline/prepare.h"

namespace spk {

namespace {

// A decoder needs all of a picture at once, whatever --memory allows, and a limit that followed
// --memory would make the pack depend on it.
constexpr uint64_t kMostWholeBytes = uint64_t{128} << 20;
constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

}  // namespace

// With transforms, what the schema says is what comes out.
BlobContent Preparer::input_content(const SampleEntry& entry, size_t blob) const {
  if (!transformer_ || blob != picture_blob_) return schema_.blobs[blob].content;
  return entry.pixels.height != 0 ? BlobContent::kPixels : BlobContent::kPicture;
}

Result<std::vector<uint8_t>> Preparer::read_whole(const SampleEntry& entry,
                                                  SampleHandle& handle) const {
  std::vector<uint8_t> bytes(entry.size_bytes);
  for (uint64_t done = 0; done < bytes.size();) {
    if (stopping_()) return Status(Code::kCancelled, "stopped");
    const MutableByteSpan into = MutableByteSpan(bytes).subspan(done).first(
        std::min<uint64_t>(kPieceBytes, bytes.size() - done));
    SPK_TRY(handle.read_at(done, into));
    done += into.size();
  }
  return bytes;
}

// A sample that is too large to be read with others.
Status Preparer::prepare_whole(PreparedSample& sample, SampleHandle& handle) const {
  if (sample.entry.size_bytes > kMostWholeBytes) {
    sample.reject = str_cat("too large to be transformed: ", format_count(sample.entry.size_bytes),
                            " bytes, the limit is ", format_count(kMostWholeBytes));
    return {};
  }
  const std::lock_guard lock(whole_mutex_);
  SPK_ASSIGN(const std::vector<uint8_t> bytes, read_whole(sample.entry, handle));
  sample.payload = bytes;
  sample.in_memory = true;
  Status status;
  run_in_arena(arena_, [&] {
    status = check(sample);
    if (status.ok()) status = transform(sample);
  });
  if (!sample.transformed) {
    sample.payload = {};
    sample.in_memory = false;
  }
  return status;
}

ByteSpan Preparer::picture_of(const SampleEntry& entry, ByteSpan payload, uint64_t* start) const {
  *start = 0;
  for (size_t blob = 0; blob < picture_blob_; ++blob) {
    const uint64_t bytes = entry.bytes_of_blob(blob);
    if (bytes != kAbsentBlob) *start += bytes;
  }
  const uint64_t bytes = entry.bytes_of_blob(picture_blob_);
  return bytes == kAbsentBlob ? ByteSpan() : payload.subspan(*start, bytes);
}

Result<Transformed> Preparer::transform_picture(const SampleEntry& entry, ByteSpan payload) const {
  uint64_t start = 0;
  const ByteSpan picture = picture_of(entry, payload, &start);
  if (entry.bytes_of_blob(picture_blob_) == kAbsentBlob) {
    Transformed none;
    none.same = true;
    return none;
  }
  RawSize raw;
  if (picture_blob_ == 0 && entry.pixels.height != 0) {
    raw = {entry.pixels.height, entry.pixels.width, entry.pixels.channels};
  }
  return transformer_->run(picture, raw);
}

std::vector<uint8_t> Preparer::with_picture(const SampleEntry& entry, ByteSpan payload,
                                            std::vector<uint8_t> picture) const {
  uint64_t start = 0;
  const ByteSpan old = picture_of(entry, payload, &start);
  if (old.size() == payload.size()) return picture;
  std::vector<uint8_t> all;
  all.reserve(payload.size() - old.size() + picture.size());
  const ByteSpan before = payload.first(start);
  const ByteSpan behind = payload.subspan(start + old.size());
  all.insert(all.end(), before.begin(), before.end());
  all.insert(all.end(), picture.begin(), picture.end());
  all.insert(all.end(), behind.begin(), behind.end());
  return all;
}

Status Preparer::transform(PreparedSample& sample) const {
  if (!sample.reject.empty()) return {};
  SPK_ASSIGN(Transformed made, transform_picture(sample.entry, sample.payload));
  if (!made.reject.empty()) {
    sample.reject = std::move(made.reject);
    return {};
  }
  if (made.same) return {};
  StoredField& field = sample.stored.fields[picture_blob_];
  field.bytes = made.bytes.size();
  field.checksum = xxh3_64(made.bytes);
  if (picture_blob_ == 0) {
    const auto set = [&](uint16_t name, uint32_t value) {
      const int64_t number = value;
      sample.stored.set_ints(name, &number, 1);
    };
    set(schema_.height, made.size.height);
    set(schema_.width, made.size.width);
    set(schema_.channels, made.size.channels);
  }
  const bool moves = options_.transform.resizes() || options_.transform.orient;
  if (moves && (schema_.blobs.size() > 1 || !sample.entry.numbers.empty())) {
    sample.warnings.push_back("fields beside the picture are kept as they are");
  }
  std::vector<uint8_t> payload = with_picture(sample.entry, sample.payload, std::move(made.bytes));
  payload.shrink_to_fit();
  sample.transformed = true;
  sample.payload = {};
  sample.in_memory = made_budget_.take(payload.size());
  if (sample.in_memory) {
    sample.made = std::make_shared<const MadeBytes>(made_budget_, std::move(payload));
    sample.payload = sample.made->span();
  }
  return {};
}

Result<std::vector<uint8_t>> Preparer::make_again(const SampleEntry& entry, uint64_t bytes) const {
  std::unique_lock lock(whole_mutex_, std::defer_lock);
  if (!fits_memory(entry)) lock.lock();
  SPK_ASSIGN(const std::unique_ptr<SampleHandle> handle, source_.open(entry));
  SPK_ASSIGN(const std::vector<uint8_t> read, read_whole(entry, *handle));
  Result<Transformed> made = internal_error("nothing was made");
  run_in_arena(arena_, [&] { made = transform_picture(entry, read); });
  if (!made.ok()) return std::move(made).status();
  std::vector<uint8_t> payload;
  if (made->reject.empty() && !made->same) {
    payload = with_picture(entry, read, std::move(made->bytes));
  }
  if (payload.size() != bytes) {
    return Status(Code::kMismatch, "the sample has changed since it was first read")
        .at_path(escape_bytes(entry.key))
        .with_hint("run again once nothing is written to the source");
  }
  return payload;
}

}  // namespace spk
