#include "sources/hdf5_array.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/text.h"

#if SPK_HAVE_ZLIB
#include <zlib.h>
#endif

namespace spk {

namespace {

// As the library computes it: 16-bit words, the high byte first, an odd byte as the high one.
uint32_t fletcher32(ByteSpan bytes) {
  uint32_t sum1 = 0, sum2 = 0;
  const auto fold = [](uint32_t sum) { return (sum & 0xffff) + (sum >> 16); };
  size_t at = 0;
  while (at + 1 < bytes.size()) {
    const size_t end = std::min(bytes.size() - bytes.size() % 2, at + 720);
    for (; at < end; at += 2) {
      sum1 += static_cast<uint32_t>(bytes[at] << 8 | bytes[at + 1]);
      sum2 += sum1;
    }
    sum1 = fold(sum1);
    sum2 = fold(sum2);
  }
  if (at < bytes.size()) {
    sum1 += static_cast<uint32_t>(bytes[at] << 8);
    sum2 += sum1;
    sum1 = fold(sum1);
    sum2 = fold(sum2);
  }
  return fold(sum2) << 16 | fold(sum1);
}

Status check_fletcher32(std::vector<uint8_t>* bytes) {
  if (bytes->size() < 4) return damaged("a chunk is shorter than its checksum");
  const uint32_t stored = load_le<uint32_t>(bytes->data() + bytes->size() - 4);
  bytes->resize(bytes->size() - 4);
  const uint32_t found = fletcher32(*bytes);
  // Old writers stored each half with its bytes the other way round.
  const uint32_t other = (found & 0x00ff00ff) << 8 | (found & 0xff00ff00) >> 8;
  if (stored != found && stored != other) {
    return damaged("a chunk does not have the checksum that was stored with it");
  }
  return {};
}

Status inflate_chunk(std::vector<uint8_t>* bytes, uint64_t most_bytes) {
#if SPK_HAVE_ZLIB
  std::vector<uint8_t> out(most_bytes);
  uLongf made = most_bytes;
  const int code = uncompress(out.data(), &made, bytes->data(), bytes->size());
  if (code != Z_OK) return damaged("a chunk cannot be unpacked: it is damaged");
  out.resize(made);
  *bytes = std::move(out);
  return {};
#else
  (void)bytes;
  (void)most_bytes;
  return unsupported("this build has no zlib, which gzip'd HDF5 datasets need");
#endif
}

void unshuffle(std::vector<uint8_t>* bytes, uint32_t element_bytes) {
  if (element_bytes <= 1) return;
  const size_t count = bytes->size() / element_bytes;
  std::vector<uint8_t> out(*bytes);  // what is behind the last whole element stays
  for (uint32_t byte = 0; byte < element_bytes; ++byte) {
    const uint8_t* from = bytes->data() + byte * count;
    for (size_t i = 0; i < count; ++i) out[i * element_bytes + byte] = from[i];
  }
  *bytes = std::move(out);
}

bool product(const std::vector<uint64_t>& sizes, uint64_t element_bytes, uint64_t* bytes) {
  *bytes = element_bytes;
  for (const uint64_t size : sizes) {
    if (!checked_mul(*bytes, size, bytes)) return false;
  }
  return true;
}

}  // namespace

uint64_t ArrayStorage::row_bytes() const noexcept {
  uint64_t bytes = element_bytes;
  for (size_t i = 1; i < sizes.size(); ++i) bytes *= sizes[i];
  return bytes;
}

Status check_storage(const ArrayStorage& storage, uint64_t file_bytes, uint64_t memory_bytes) {
  uint64_t bytes = 0;
  if (storage.sizes.empty() || !product(storage.sizes, storage.element_bytes, &bytes)) {
    return damaged("a dataset of impossible sizes");
  }
  if (storage.contiguous) {
    if (storage.stored && !range_fits(storage.offset, bytes, file_bytes)) {
      return damaged(str_cat("truncated: a dataset of ", bytes, " bytes reaches behind the end"))
          .at_offset(file_bytes);
    }
    return {};
  }
  uint64_t chunk_bytes = 0;
  if (storage.chunk_sizes.size() != storage.sizes.size() ||
      std::count(storage.chunk_sizes.begin(), storage.chunk_sizes.end(), 0) != 0 ||
      !product(storage.chunk_sizes, storage.element_bytes, &chunk_bytes)) {
    return damaged("a dataset with chunks of impossible sizes");
  }
  if (chunk_bytes > memory_bytes) {
    return Status(Code::kNoMemory,
                  str_cat("chunks of ", format_size(chunk_bytes),
                          " do not fit into the memory for them, ", format_size(memory_bytes)))
        .with_hint("give more --memory, or `h5repack -l CHUNK=...` makes them smaller");
  }
  return {};
}

Status undo_filters(std::vector<uint8_t> packed, const std::vector<ArrayFilter>& filters,
                    uint32_t left_out, uint64_t chunk_bytes, std::vector<uint8_t>* unpacked) {
  for (size_t i = filters.size(); i-- > 0;) {
    if ((left_out >> i & 1) != 0) continue;
    switch (filters[i].kind) {
      case ArrayFilter::Kind::kFletcher32: SPK_TRY(check_fletcher32(&packed)); break;
      // A checksum that was applied before is unpacked with the rest.
      case ArrayFilter::Kind::kDeflate: SPK_TRY(inflate_chunk(&packed, chunk_bytes + 64)); break;
      case ArrayFilter::Kind::kShuffle: unshuffle(&packed, filters[i].element_bytes); break;
    }
  }
  if (packed.size() != chunk_bytes) {
    return damaged(str_cat("a chunk has ", packed.size(), " bytes, ", chunk_bytes, " expected"));
  }
  *unpacked = std::move(packed);
  return {};
}

ArrayReader::ArrayReader(const File& file, const ArrayStorage& storage, uint64_t memory_bytes)
    : file_(file), storage_(storage) {
  if (storage.contiguous) return;
  (void)product(storage.chunk_sizes, storage.element_bytes, &chunk_bytes_);
  kept_at_most_ = std::max<size_t>(memory_bytes / std::max<uint64_t>(chunk_bytes_, 1), 1);
}

Result<const std::vector<uint8_t>*> ArrayReader::chunk(const Indices& first) {
  if (const auto found = places_.find(first); found != places_.end()) {
    kept_.splice(kept_.begin(), kept_, found->second);
    return &kept_.front().bytes;
  }
  SPK_ASSIGN(const ArrayChunk place, storage_.find_chunk(first));
  Kept kept{first, {}};
  if (place.stored) {
    // Filters add a little at most.
    if (place.bytes > 2 * chunk_bytes_ + 4096) {
      return damaged("a chunk is stored with more bytes than it can have").at_offset(place.offset);
    }
    std::vector<uint8_t> packed(place.bytes);
    SPK_TRY(file_.read_exact(place.offset, packed));
    Status status = undo_filters(std::move(packed), storage_.filters, place.left_out, chunk_bytes_,
                                 &kept.bytes);
    if (!status.ok()) return std::move(status).at_path(file_.path()).at_offset(place.offset);
  } else {
    kept.bytes.resize(chunk_bytes_);
    for (size_t at = 0; !storage_.fill.empty() && at < kept.bytes.size();
         at += storage_.fill.size()) {
      std::copy(storage_.fill.begin(), storage_.fill.end(),
                kept.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  kept_.push_front(std::move(kept));
  places_[first] = kept_.begin();
  if (kept_.size() > kept_at_most_) {
    places_.erase(kept_.back().first);
    kept_.pop_back();
  }
  return &kept_.front().bytes;
}

// The part of a chunk that lies in the rows: run by run along the last size.
void ArrayReader::copy_out(const std::vector<uint8_t>& chunk, const Indices& first,
                           uint64_t first_row, uint64_t rows, MutableByteSpan into) const {
  const size_t rank = storage_.sizes.size();
  Indices begin(rank), end(rank);
  for (size_t i = 0; i < rank; ++i) {
    begin[i] = first[i];
    end[i] = std::min(first[i] + storage_.chunk_sizes[i], storage_.sizes[i]);
  }
  begin[0] = std::max(begin[0], first_row);
  end[0] = std::min(end[0], first_row + rows);
  Indices at = begin;
  const uint64_t run_bytes =
      (rank == 1 ? end[0] - begin[0] : end[rank - 1] - begin[rank - 1]) * storage_.element_bytes;
  for (;;) {
    uint64_t from = 0, to = 0;
    for (size_t i = 0; i < rank; ++i) {
      from = from * storage_.chunk_sizes[i] + (at[i] - first[i]);
      to = to * (i == 0 ? rows : storage_.sizes[i]) + (i == 0 ? at[0] - first_row : at[i]);
    }
    std::memcpy(into.data() + to * storage_.element_bytes,
                chunk.data() + from * storage_.element_bytes, run_bytes);
    size_t i = rank - 1;
    for (;;) {
      if (i == 0) return;
      --i;
      if (++at[i] < end[i]) break;
      at[i] = begin[i];
      if (i == 0) return;
    }
  }
}

Status ArrayReader::read(uint64_t first_row, MutableByteSpan into) {
  const uint64_t row_bytes = storage_.row_bytes();
  if (into.empty()) return {};
  const uint64_t rows = into.size() / row_bytes;
  if (!range_fits(first_row, rows, storage_.rows())) return internal_error("rows beyond the end");
  if (storage_.contiguous) {
    if (storage_.stored) return file_.read_exact(storage_.offset + first_row * row_bytes, into);
    const auto& fill = storage_.fill;
    for (size_t i = 0; i < into.size(); ++i) into[i] = fill.empty() ? 0 : fill[i % fill.size()];
    return {};
  }
  const size_t rank = storage_.sizes.size();
  Indices first(rank, 0);
  first[0] = first_row / storage_.chunk_sizes[0] * storage_.chunk_sizes[0];
  const uint64_t first_begin = first[0];
  for (;;) {
    SPK_ASSIGN(const std::vector<uint8_t>* bytes, chunk(first));
    copy_out(*bytes, first, first_row, rows, into);
    size_t i = rank;
    for (;;) {
      if (i == 0) return {};
      --i;
      first[i] += storage_.chunk_sizes[i];
      if (first[i] < (i == 0 ? first_row + rows : storage_.sizes[i])) break;
      first[i] = i == 0 ? first_begin : 0;
    }
  }
}

Result<bool> ArrayReader::place_of(uint64_t first_row, uint64_t rows, uint64_t* offset) const {
  const uint64_t row_bytes = storage_.row_bytes();
  if (storage_.contiguous) {
    *offset = storage_.offset + first_row * row_bytes;
    return storage_.stored;
  }
  if (!storage_.filters.empty() || !std::equal(storage_.sizes.begin() + 1, storage_.sizes.end(),
                                               storage_.chunk_sizes.begin() + 1)) {
    return false;
  }
  const uint64_t skip = first_row % storage_.chunk_sizes[0];
  if (skip + rows > storage_.chunk_sizes[0]) return false;
  Indices first(storage_.sizes.size(), 0);
  first[0] = first_row - skip;
  SPK_ASSIGN(const ArrayChunk place, storage_.find_chunk(first));
  if (!place.stored) return false;
  SPK_ASSIGN(const uint64_t file_bytes, file_.size());
  if (place.bytes != chunk_bytes_ || !range_fits(place.offset, place.bytes, file_bytes)) {
    return Status(Code::kDamaged, "a chunk does not lie within the file")
        .at_path(escape_bytes(file_.path()))
        .at_offset(place.offset);
  }
  *offset = place.offset + skip * row_bytes;
  return true;
}

}  // namespace spk
