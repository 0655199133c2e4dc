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

namespace {

// A blob in a payload; nothing where the sample has none.
ByteSpan blob_of(const SampleEntry& entry, ByteSpan payload, size_t wanted) {
  uint64_t start = 0;
  for (size_t blob = 0; blob < wanted; ++blob) {
    const uint64_t bytes = entry.bytes_of_blob(blob);
    if (bytes != kAbsentBlob) start += bytes;
  }
  const uint64_t bytes = entry.bytes_of_blob(wanted);
  return bytes == kAbsentBlob ? ByteSpan() : payload.subspan(start, bytes);
}

}  // namespace

Status Preparer::remake_masks(const SampleEntry& entry, ByteSpan payload, Remade* remade) const {
  for (const size_t blob : mask_blobs_) {
    if (entry.bytes_of_blob(blob) == kAbsentBlob) continue;
    SPK_ASSIGN(Transformed mask,
               transformer_->run_mask(blob_of(entry, payload, blob), remade->picture.geometry));
    if (!mask.reject.empty()) {
      remade->reject = str_cat(mask.reject, " (field ", schema_.blobs[blob].name, ")");
      return {};
    }
    if (!mask.same) remade->blobs[blob] = std::move(mask.bytes);
  }
  return {};
}

Result<Preparer::Remade> Preparer::remake(const SampleEntry& entry, ByteSpan payload) const {
  Remade remade;
  remade.picture.same = true;
  if (entry.bytes_of_blob(picture_blob_) == kAbsentBlob) return remade;
  RawSize raw;
  if (picture_blob_ == 0 && entry.pixels.height != 0) {
    raw = {entry.pixels.height, entry.pixels.width, entry.pixels.channels};
  }
  SPK_ASSIGN(remade.picture, transformer_->run(blob_of(entry, payload, picture_blob_), raw));
  remade.reject = remade.picture.reject;
  if (!remade.reject.empty()) return remade;
  if (!remade.picture.same) remade.blobs[picture_blob_] = std::move(remade.picture.bytes);
  SPK_TRY(remake_masks(entry, payload, &remade));
  return remade;
}

std::vector<uint8_t> Preparer::with_blobs(const SampleEntry& entry, ByteSpan payload,
                                          size_t blob_count, const Remade& remade) {
  std::vector<uint8_t> all;
  size_t bytes = payload.size();
  for (const auto& [blob, made] : remade.blobs) bytes += made.size();
  all.reserve(bytes);
  for (size_t blob = 0; blob < blob_count; ++blob) {
    const auto made = remade.blobs.find(blob);
    const ByteSpan taken =
        made != remade.blobs.end() ? ByteSpan(made->second) : blob_of(entry, payload, blob);
    all.insert(all.end(), taken.begin(), taken.end());
  }
  return all;
}

Status Preparer::transform(PreparedSample& sample) const {
  if (!sample.reject.empty()) return {};
  SPK_ASSIGN(Remade made, remake(sample.entry, sample.payload));
  for (std::string& warning : made.picture.warnings) sample.warnings.push_back(std::move(warning));
  if (!made.reject.empty()) {
    sample.reject = std::move(made.reject);
    return {};
  }
  if (made.blobs.empty()) return {};
  for (const auto& [blob, bytes] : made.blobs) {
    StoredField& field = sample.stored.fields[blob];
    field.bytes = bytes.size();
    field.checksum = xxh3_64(bytes);
  }
  if (picture_blob_ == 0 && !made.picture.same) {
    const auto set = [&](uint16_t name, uint32_t value) {
      const int64_t number = value;
      sample.stored.set_ints(name, &number, 1);
    };
    set(schema_.height, made.picture.size.height);
    set(schema_.width, made.picture.size.width);
    set(schema_.channels, made.picture.size.channels);
  }
  const bool moves = options_.transform.resizes() || options_.transform.orient;
  const bool others = schema_.blobs.size() > 1 + mask_blobs_.size();
  if (moves && (others || !sample.entry.numbers.empty())) {
    sample.warnings.push_back("fields beside the picture are kept as they are");
  }
  std::vector<uint8_t> payload =
      with_blobs(sample.entry, sample.payload, schema_.blobs.size(), made);
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
  Result<Remade> made = internal_error("nothing was made");
  run_in_arena(arena_, [&] { made = remake(entry, read); });
  if (!made.ok()) return std::move(made).status();
  std::vector<uint8_t> payload;
  if (made->reject.empty() && !made->blobs.empty()) {
    payload = with_blobs(entry, read, schema_.blobs.size(), *made);
  }
  if (payload.size() != bytes) {
    return Status(Code::kMismatch, "the sample has changed since it was first read")
        .at_path(escape_bytes(entry.key))
        .with_hint("run again once nothing is written to the source");
  }
  return payload;
}

}  // namespace spk
