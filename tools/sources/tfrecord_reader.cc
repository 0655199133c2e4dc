#include "sources/tfrecord_reader.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "sources/crc32c.h"

namespace spk {

namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kCrcBytes = 4;
constexpr uint64_t kMostBytes = uint64_t{1} << 62;

uint32_t unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return rotated >> 17 | rotated << 15;
}

bool length_is_right(ByteSpan header) {
  return masked_crc32c(header.first(kLengthBytes)) ==
         load_le<uint32_t>(header.data() + kLengthBytes);
}

}  // namespace

bool TfRecordReader::is_tfrecord(ByteSpan head) {
  return head.size() >= kHeaderBytes && length_is_right(head);
}

Status TfRecordReader::bad(std::string what) const {
  return damaged(std::move(what)).at_path(escape_bytes(reader_.path())).at_offset(at_);
}

Status TfRecordReader::check_large(TfRecord* record) {
  uint32_t crc = 0;
  uint64_t offset = record->data_offset;
  for (uint64_t left = record->data_bytes; left != 0;) {
    const auto now = static_cast<size_t>(std::min<uint64_t>(left, kDataWindowBytes));
    SPK_ASSIGN(const ByteSpan piece, reader_.at(offset, now));
    if (piece.size() < now) return bad("the file is cut within this record");
    crc = crc32c(crc, piece);
    offset += now;
    left -= now;
  }
  SPK_ASSIGN(const ByteSpan said, reader_.at(offset, kCrcBytes));
  if (said.size() < kCrcBytes) return bad("the file is cut within this record");
  record->crc_is_right = unmask(load_le<uint32_t>(said.data())) == crc;
  return {};
}

Result<bool> TfRecordReader::next(TfRecord* record) {
  SPK_ASSIGN(const ByteSpan header, reader_.at(at_, kHeaderBytes));
  if (header.empty()) return false;
  constexpr char kHint[] = "how much is lost cannot be told; --salvage takes the records before it";
  if (header.size() < kHeaderBytes) {
    return bad("the file is cut within this record's length").with_hint(kHint);
  }
  if (!length_is_right(header)) {
    return bad("the CRC of this record's length is wrong, so that no record after it can be found")
        .with_hint("--salvage takes the records before it");
  }
  *record = {};
  record->offset = at_;
  record->data_offset = at_ + kHeaderBytes;
  record->data_bytes = load_le<uint64_t>(header.data());
  if (record->data_bytes > kMostBytes) return bad("a record of more than 2^62 bytes");
  if (record->data_bytes <= held_bytes_) {
    const auto bytes = static_cast<size_t>(record->data_bytes);
    SPK_ASSIGN(const ByteSpan rest, reader_.at(record->data_offset, bytes + kCrcBytes));
    if (rest.size() < bytes + kCrcBytes) {
      return bad("the file is cut within this record").with_hint(kHint);
    }
    record->data = rest.first(bytes);
    record->is_held = true;
    record->crc_is_right =
        unmask(load_le<uint32_t>(rest.data() + bytes)) == crc32c(0, record->data);
  } else {
    Status status = check_large(record);
    if (!status.ok()) return std::move(status).with_hint(kHint);
  }
  at_ += kFrameBytes + record->data_bytes;
  return true;
}

}  // namespace spk
