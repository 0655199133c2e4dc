#include "sinks/blob_copy.h"

#include <algorithm>

#include "base/text.h"
#include "io/file.h"

namespace spk {

namespace {

constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

// One reading of a large blob. `sink` may be empty.
Status read_in_pieces(const File& file, const SampleLocation& place, uint64_t sample,
                      const ByteSink& sink) {
  SPK_ASSIGN(AlignedBuffer buffer, AlignedBuffer::allocate(kPieceBytes));
  Xxh3Stream hash;
  for (uint64_t done = 0; done < place.bytes;) {
    const uint64_t size = std::min(kPieceBytes, place.bytes - done);
    const MutableByteSpan piece = buffer.span().first(size);
    SPK_TRY(file.read_exact(place.offset + done, piece));
    hash.update(piece);
    if (sink) SPK_TRY(sink(piece));
    done += size;
  }
  if (hash.digest_64() == place.checksum) return {};
  return damaged(str_cat("sample ", sample, ": its bytes contradict their checksum; expected ",
                         to_hex(place.checksum), ", found ", to_hex(hash.digest_64())))
      .at_path(file.path())
      .at_offset(place.offset)
      .at_shard(place.shard);
}

}  // namespace

Status copy_blob(const Pack& pack, uint64_t sample, uint16_t field, const ByteSink& sink) {
  SPK_ASSIGN(const SampleLocation place, pack.locate(sample, field));
  if (!place.present) {
    return Status(Code::kNotFound,
                  str_cat("sample ", sample, " has no '", pack.schema().fields[field].name, "'"))
        .at_path(pack.path());
  }
  if (place.bytes <= kWholeBlobBytes) {
    SPK_ASSIGN(AlignedBuffer buffer, AlignedBuffer::allocate(place.bytes));
    const MutableByteSpan into = buffer.span().first(place.bytes);
    SPK_ASSIGN(const uint64_t size, pack.read(sample, field, into));
    return sink(into.first(size));
  }
  SPK_ASSIGN(const File file, File::open_read(pack.directory(), shard_file_name(place.shard)));
  SPK_TRY(read_in_pieces(file, place, sample, {}));
  return read_in_pieces(file, place, sample, sink);
}

}  // namespace spk
