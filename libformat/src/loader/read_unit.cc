#include "loader/read_unit.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

#include "base/checked.h"
#include "base/hash.h"
#include "base/text.h"
#include "format/chunk.h"

namespace spk {

namespace {

// An empty value is not an absent one: its data is not null.
constexpr uint8_t kEmpty[1] = {};
ByteSpan present_bytes(ByteSpan bytes) noexcept {
  return bytes.empty() ? ByteSpan(kEmpty, 0) : bytes;
}

// What is wrong with the bytes costs the samples that they belong to. Other errors, those of the
// file system and of memory, are the whole unit's.
bool is_samples_own(Code code) noexcept {
  return code == Code::kDamaged || code == Code::kUnsupported || code == Code::kMismatch;
}

}  // namespace

Result<std::shared_ptr<ReadUnit>> ReadUnit::whole(std::shared_ptr<const UnitContext> context,
                                                  uint64_t chunk) {
  std::shared_ptr<ReadUnit> unit(new ReadUnit(std::move(context)));
  SPK_ASSIGN(unit->chunk_, unit->context_->pack->chunk(chunk));
  unit->is_whole_ = true;
  unit->chunk_number_ = chunk;
  unit->shard_ = unit->chunk_.shard;
  unit->extent_ = {unit->chunk_.offset, unit->chunk_.read_bytes};
  unit->first_sample_ = unit->chunk_.first_sample;
  unit->row_count_ = unit->chunk_.sample_count;
  return unit;
}

Result<std::shared_ptr<ReadUnit>> ReadUnit::gathered(std::shared_ptr<const UnitContext> context,
                                                     std::vector<uint64_t> samples,
                                                     uint64_t chunk) {
  std::shared_ptr<ReadUnit> unit(new ReadUnit(std::move(context)));
  unit->chunk_number_ = chunk;
  if (chunk != kNoChunk) {
    SPK_ASSIGN(unit->chunk_, unit->context_->pack->chunk(chunk));
  }
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  for (const uint64_t sample : samples) {
    for (const uint16_t field : unit->context_->blob_fields) {
      SPK_ASSIGN(const SampleLocation blob, unit->context_->pack->locate(sample, field));
      if (!blob.present) continue;
      unit->shard_ = blob.shard;
      begin = std::min(begin, blob.offset);
      end = std::max(end, blob.offset + blob.bytes);
    }
  }
  if (begin < end) {
    unit->extent_ =
        unit->context_->direct ? align_outward(begin, end - begin) : Extent{begin, end - begin};
  }
  unit->row_count_ = samples.size();
  unit->samples_ = std::move(samples);
  return unit;
}

const Status& ReadUnit::sample_status(uint64_t row) const noexcept {
  static const Status ok;
  if (failed_.empty()) return ok;
  const auto at = std::lower_bound(failed_.begin(), failed_.end(), row,
                                   [](const auto& entry, uint64_t r) { return entry.first < r; });
  return at != failed_.end() && at->first == row ? at->second : ok;
}

void ReadUnit::set_blob(uint64_t row, size_t field, ByteSpan bytes, uint64_t checksum) noexcept {
  const size_t at = row * context_->blob_fields.size() + field;
  blobs_[at] = present_bytes(bytes);
  checksums_[at] = checksum;
}

void ReadUnit::fail_sample(uint64_t row, Status status) {
  for (size_t i = 0; i < context_->blob_fields.size(); ++i) {
    blobs_[row * context_->blob_fields.size() + i] = {};
  }
  failed_.emplace_back(row, std::move(status));
}

bool ReadUnit::begin_load() {
  shared_ = {};
  memory_ = {};
  bytes_ = {};
  try {
    status_ = take_bytes();
  } catch (const std::bad_alloc&) {
    status_ = Status(Code::kNoMemory, "out of memory");
  }
  return status_.ok() && !memory_.empty();
}

ReadOp ReadUnit::read_op() const noexcept { return {pin_->file.fd(), read_offset_, memory_, {}}; }

void ReadUnit::finish_load(Status read) {
  try {
    if (status_.ok() && waits_for_other()) status_ = wait_and_take(read);
    if (status_.ok()) status_ = after_read(std::move(read));
    status_ = place_and_check(std::move(status_));
  } catch (const std::bad_alloc&) {
    status_ = Status(Code::kNoMemory, "out of memory");
  }
  publish();
}

// Pins the shard; finds the bytes where it is mapped or shared, memory for them where it is not.
Status ReadUnit::take_bytes() {
  if (extent_.bytes == 0) return {};
  if (shares()) {
    take_shared(context_->shared->ask(chunk_number_));
    if (waits_for_other() || !bytes_.empty()) return {};
  }
  SPK_TRY(context_->files->pin(shard_, pin_));
  if (pin_->is_mapped()) {
    const ByteSpan file = pin_->mapping.bytes();
    if (!range_fits(extent_.offset, extent_.bytes, file.size())) {
      return damaged("the index places a chunk behind the end of its shard");
    }
    populate();
    bytes_ = file.subspan(extent_.offset, extent_.bytes);
    return {};
  }
  return take_memory();
}

Status ReadUnit::take_memory() {
  if (shared_.state() == SharedChunk::State::kMine) {  // all of the chunk, for everybody
    read_offset_ = chunk_.offset;
    memory_ = shared_.bytes().first(chunk_.read_bytes);
    return {};
  }
  read_offset_ = extent_.offset;
  SPK_ASSIGN(const MutableByteSpan memory, share_.buffer());
  memory_ = memory.first(extent_.bytes);
  return {};
}

// In a thread of the pool, so that nobody else waits for the pages. Walking through pages that are
// there already costs a good part of what reading them does: in later epochs, only where some were
// taken away meanwhile.
void ReadUnit::populate() const noexcept {
  const Mapping& mapping = pin_->mapping;
  if (chunk_number_ != kNoChunk && context_->populated != nullptr) {
    std::atomic<bool>& populated = context_->populated[chunk_number_];
    const bool before = populated.load(std::memory_order_relaxed);
    if (before && mapping.is_resident(extent_.offset, extent_.bytes)) return;
    if (is_whole_) populated.store(true, std::memory_order_relaxed);
  }
  mapping.populate(extent_.offset, extent_.bytes);
}

Status ReadUnit::after_read(Status read) {
  if (memory_.empty()) return {};
  context_->reads += 1;
  if (pin_->file_is_direct && read.os_errno() == EINVAL) {
    // Some file systems take the flag when a file is opened and refuse the reads.
    (void)pin_->file.set_direct(false);
    read = pin_->read(read_offset_, memory_);
  }
  pin_ = {};
  if (!read.ok()) return context_->files->blame(std::move(read), shard_);
  context_->read_bytes += memory_.size();
  bytes_ = ByteSpan(memory_).subspan(extent_.offset - read_offset_, extent_.bytes);
  return {};
}

Status ReadUnit::place_and_check(Status read) {
  failed_.clear();
  numbers_.clear();
  number_ends_.assign(1, 0);
  blobs_.assign(row_count_ * context_->blob_fields.size(), ByteSpan());
  checksums_.assign(blobs_.size(), 0);
  if (read.ok()) read = is_whole_ ? place_whole() : place_gathered();
  if (!read.ok()) {
    if (!is_samples_own(read.code())) return read;
    return read_one_by_one();
  }
  if (!context_->check || is_checked_already()) return {};
  for (uint64_t row = 0; row < row_count_; ++row) {
    Status checked = check_sample(row);
    if (!checked.ok()) fail_sample(row, std::move(checked));
  }
  // What another loader has read may be of a copy of the pack, which this one need not suffer for.
  const bool is_of_another = shared_.state() == SharedChunk::State::kReady && memory_.empty();
  return failed_.empty() || !is_of_another ? Status() : read_one_by_one();
}

// Everything about the samples is in the chunk itself: the index need not be loaded for them.
Status ReadUnit::place_whole() {
  SPK_TRY(context_->pack->check_chunk_head(chunk_, bytes_));
  SPK_ASSIGN(const ChunkHeader header, decode_chunk_header(bytes_));
  const ByteSpan table = bytes_.subspan(ChunkHeader::kBytes, header.table_bytes);
  SPK_ASSIGN(const SampleRows rows, SampleRows::from_chunk(table, context_->pack->schema()));
  if (rows.size() != row_count_) return damaged("the chunk's table has another number of samples");
  const auto& blob_fields = context_->blob_fields;
  for (uint64_t row = 0; row < row_count_; ++row) {
    for (size_t i = 0; i < blob_fields.size(); ++i) {
      if (!rows.present(blob_fields[i], row)) continue;
      const SampleRows::Blob place = rows.blob(blob_fields[i], row);
      if (!range_fits(place.offset, place.bytes, bytes_.size())) {
        return damaged("the chunk's table places a blob outside of the chunk");
      }
      set_blob(row, i, bytes_.subspan(place.offset, place.bytes), place.checksum);
    }
    for (const uint16_t field : context_->numeric_fields) {
      if (rows.present(field, row)) rows.append_numbers(field, row, numbers_);
      number_ends_.push_back(numbers_.size());
    }
  }
  return {};
}

Status ReadUnit::place_by_index(uint64_t row) {
  const auto& blob_fields = context_->blob_fields;
  const Pack& pack = *context_->pack;
  for (size_t i = 0; i < blob_fields.size(); ++i) {
    SPK_ASSIGN(const SampleLocation place, pack.locate(sample(row), blob_fields[i]));
    if (!place.present) continue;
    set_blob(row, i,
             bytes_.subspan(place.bytes == 0 ? 0 : place.offset - extent_.offset, place.bytes),
             place.checksum);
  }
  return {};
}

Status ReadUnit::place_gathered() {
  for (uint64_t row = 0; row < row_count_; ++row) {
    SPK_TRY(place_by_index(row));
    SPK_TRY(append_index_numbers(row));
  }
  return {};
}

Status ReadUnit::append_index_numbers(uint64_t row) {
  const Pack& pack = *context_->pack;
  for (const uint16_t field : context_->numeric_fields) {
    if (pack.schema().fields[field].kind == FieldKind::kInt64) {
      SPK_ASSIGN(const std::vector<int64_t> values, pack.ints(sample(row), field));
      for (const int64_t value : values) numbers_.push_back(static_cast<uint64_t>(value));
    } else {
      SPK_ASSIGN(const std::vector<double> values, pack.floats(sample(row), field));
      const bool narrow = pack.schema().fields[field].kind == FieldKind::kFloat32;
      for (const double value : values) {
        numbers_.push_back(narrow ? std::bit_cast<uint32_t>(static_cast<float>(value))
                                  : std::bit_cast<uint64_t>(value));
      }
    }
    number_ends_.push_back(numbers_.size());
  }
  return {};
}

Status ReadUnit::check_sample(uint64_t row) {
  const auto& blob_fields = context_->blob_fields;
  for (size_t i = 0; i < blob_fields.size(); ++i) {
    const ByteSpan bytes = blob(row, i);
    if (bytes.data() == nullptr) continue;
    if (xxh3_64(bytes) == checksums_[row * blob_fields.size() + i]) continue;
    const Status bad = context_->pack->check_blob(sample(row), blob_fields[i], bytes);
    if (!bad.ok()) {
      // The pack itself may read another copy of the shard.
      return context_->files->blame(Status(bad.code(), bad.message()), shard_)
          .at_offset(bad.offset())
          .with_hint("`stripepack verify` lists all damage");
    }
    // The bytes suit the index: they were damaged in memory, or are being changed.
    return context_->files->blame(
        damaged(str_cat("sample ", sample(row), " contradicts its chunk's table")), shard_);
  }
  return {};
}

// The chunk as a whole is not what it should be: each sample is judged by itself, by the index.
Status ReadUnit::read_one_by_one() {
  blobs_.assign(blobs_.size(), ByteSpan());
  failed_.clear();
  numbers_.clear();
  number_ends_.assign(1, 0);
  for (uint64_t row = 0; row < row_count_; ++row) {
    Status status = read_sample(row);
    const size_t numbers_before = number_ends_.size();
    if (status.ok()) status = append_index_numbers(row);
    number_ends_.resize(numbers_before + context_->numeric_fields.size(), numbers_.size());
    if (status.ok()) continue;
    if (!is_samples_own(status.code())) return status;
    fail_sample(row, std::move(status));
  }
  return {};
}

Status ReadUnit::read_sample(uint64_t row) {
  const auto& blob_fields = context_->blob_fields;
  for (size_t i = 0; i < blob_fields.size(); ++i) {
    SPK_ASSIGN(const SampleLocation place, context_->pack->locate(sample(row), blob_fields[i]));
    if (!place.present) continue;
    std::vector<uint8_t>& memory = rescued_.emplace_back(std::max<uint64_t>(place.bytes, 1));
    const MutableByteSpan into(memory.data(), place.bytes);
    SPK_ASSIGN(const uint64_t bytes, context_->pack->read(sample(row), blob_fields[i], into));
    if (context_->check) {
      SPK_TRY(context_->pack->check_blob(sample(row), blob_fields[i], into.first(bytes)));
    }
    set_blob(row, i, into.first(bytes), place.checksum);
    context_->read_bytes += bytes;
    context_->reads += 1;
  }
  return {};
}

}  // namespace spk
