#include "container/part_reader.h"

namespace spk {

Status PartReader::reserve(uint64_t bytes) {
  if (buffer_.size() >= bytes) return {};
  buffer_ = AlignedBuffer();  // frees before it takes
  SPK_ASSIGN(buffer_, AlignedBuffer::allocate(bytes));
  return {};
}

Status PartReader::load_chunk(uint64_t sample) {
  SPK_ASSIGN(const uint64_t number, pack_.chunk_of(sample));
  SPK_ASSIGN(const ChunkLocation chunk, pack_.chunk(number));
  chunk_is_good_ = false;
  SPK_TRY(reserve(chunk.read_bytes));
  const Status status = pack_.read_chunk(number, buffer_.span());
  // Where only some of it is damaged its samples are read one by one, so that each is judged by
  // itself.
  if (!status.ok() && status.code() != Code::kDamaged) return status;
  chunk_is_good_ = status.ok();
  chunk_ = chunk;
  return {};
}

Result<bool> PartReader::next() {
  if (next_ == range_.end) return false;
  const bool is_loaded =
      next_ >= chunk_.first_sample && next_ - chunk_.first_sample < chunk_.sample_count;
  if (!is_loaded) SPK_TRY(load_chunk(next_));
  ++next_;
  return true;
}

Result<ByteSpan> PartReader::blob(uint16_t field) {
  SPK_ASSIGN(const SampleLocation location, pack_.locate(sample(), field));
  if (location.present && chunk_is_good_) return blob_in_chunk(chunk_, location, buffer_.span());
  SPK_TRY(reserve(location.bytes));
  SPK_ASSIGN(const uint64_t bytes, pack_.read(sample(), field, buffer_.span()));
  return ByteSpan(buffer_.data(), bytes);
}

}  // namespace spk
