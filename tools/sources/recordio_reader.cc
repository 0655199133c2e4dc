#include "sources/recordio_reader.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {

constexpr uint32_t kMagic = 0xced7230a;
constexpr std::string_view kMagicBytes{"\x0a\x23\xd7\xce", 4};
constexpr uint64_t kPartHeaderBytes = 8;
constexpr uint64_t kHeaderBytes = 24;       // IRHeader: flag, label, id, id2
constexpr uint32_t kMostLabels = 1u << 20;  // of one record
constexpr size_t kMostPieces = 1u << 16;    // of one record

enum PartKind : uint32_t { kWhole = 0, kFirst = 1, kMiddle = 2, kLast = 3 };

const uint8_t* as_u8(const std::string& text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

}  // namespace

struct RecordIoReader::Part {
  uint32_t kind = 0;
  uint64_t offset = 0;  // of its data
  uint64_t bytes = 0;
};

bool RecordIoReader::is_recordio(ByteSpan head) {
  if (head.size() < kPartHeaderBytes || load_le<uint32_t>(head.data()) != kMagic) return false;
  const uint32_t kind = load_le<uint32_t>(head.data() + 4) >> 29;
  return kind == kWhole || kind == kFirst;
}

std::vector<Piece> RecordIoRecord::picture() const {
  std::vector<Piece> rest;
  uint64_t skip = picture_offset;
  for (const Piece& piece : pieces) {
    if (skip >= piece.bytes) {
      skip -= piece.bytes;
      continue;
    }
    if (piece.literal.empty()) {
      rest.push_back(Piece::of_file(piece.file, piece.offset + skip, piece.bytes - skip));
    } else {
      rest.push_back(Piece::of_bytes(piece.literal.substr(skip)));
    }
    skip = 0;
  }
  return rest;
}

Status RecordIoReader::bad(std::string what, uint64_t offset) const {
  return damaged(std::move(what))
      .at_path(escape_bytes(reader_.path()))
      .at_offset(offset)
      .with_hint("how much is lost cannot be told; --salvage takes the records before it");
}

Result<bool> RecordIoReader::take_part(Part* part) {
  SPK_ASSIGN(const ByteSpan header, reader_.at(at_, kPartHeaderBytes));
  if (header.empty()) return false;
  if (header.size() < kPartHeaderBytes) return bad("the file is cut within a record's header", at_);
  if (load_le<uint32_t>(header.data()) != kMagic) {
    return bad("no record begins here: the magic word is missing", at_);
  }
  const uint32_t word = load_le<uint32_t>(header.data() + 4);
  part->kind = word >> 29;
  part->bytes = word & ((1u << 29) - 1);
  part->offset = at_ + kPartHeaderBytes;
  // What reaches beyond the end is found out here, before anything of it is used.
  const uint64_t padded = round_up(part->bytes, 4);
  at_ = part->offset + padded;
  return true;
}

// The first bytes of the payload, up to *wanted: as many as the header's flag asks for.
Status RecordIoReader::take_head(const Part& part, std::string* head, uint64_t* wanted) {
  uint64_t taken = 0;
  while (head->size() < *wanted && taken < part.bytes) {
    const auto now =
        static_cast<size_t>(std::min<uint64_t>(*wanted - head->size(), part.bytes - taken));
    SPK_ASSIGN(const ByteSpan bytes, reader_.at(part.offset + taken, now));
    if (bytes.size() < now) {
      return bad("the file is cut within a record", part.offset - kPartHeaderBytes);
    }
    *head += as_text(bytes);
    taken += now;
    if (head->size() < kHeaderBytes || *wanted != kHeaderBytes) continue;
    const uint32_t flag = load_le<uint32_t>(as_u8(*head));
    if (flag <= kMostLabels) *wanted += uint64_t{4} * flag;
  }
  return {};
}

void RecordIoReader::read_head(const std::string& head, RecordIoRecord* record) {
  if (head.size() < kHeaderBytes) return;
  const uint8_t* const at = as_u8(head);
  const uint32_t flag = load_le<uint32_t>(at);
  if (flag > kMostLabels || head.size() < kHeaderBytes + uint64_t{4} * flag) return;
  const auto float_at = [at](uint64_t offset) {
    return std::bit_cast<float>(load_le<uint32_t>(at + offset));
  };
  record->has_header = true;
  record->id = load_le<uint64_t>(at + 8);
  record->picture_offset = kHeaderBytes + uint64_t{4} * flag;
  if (flag == 0) record->labels.push_back(float_at(4));
  for (uint32_t i = 0; i < flag; ++i) record->labels.push_back(float_at(kHeaderBytes + 4 * i));
}

Result<bool> RecordIoReader::next(RecordIoRecord* record) {
  *record = {};
  record->offset = at_;
  std::string head;
  uint64_t wanted = kHeaderBytes;
  for (bool first = true;; first = false) {
    const uint64_t offset = at_;
    Part part;
    SPK_ASSIGN(const bool more, take_part(&part));
    if (!more && first) return false;
    if (!more) return bad("the file ends within a record of several parts", offset);
    const bool fits = first ? part.kind == kWhole || part.kind == kFirst
                            : part.kind == kMiddle || part.kind == kLast;
    if (!fits) return bad("the parts of a record are out of order", offset);
    if (record->pieces.size() >= kMostPieces) {
      return bad("a record of more than 32768 parts", record->offset);
    }
    if (!first) {
      record->pieces.push_back(Piece::of_bytes(std::string(kMagicBytes)));
      record->bytes += kMagicBytes.size();
      if (head.size() < wanted) head += kMagicBytes;
    }
    SPK_TRY(take_head(part, &head, &wanted));
    if (part.bytes != 0) {
      record->pieces.push_back(Piece::of_file(file_, part.offset, part.bytes));
      record->bytes += part.bytes;
      SPK_ASSIGN(const ByteSpan last, reader_.at(part.offset + part.bytes - 1, 1));
      if (last.empty()) return bad("the file is cut within a record", offset);
    }
    if (part.kind == kWhole || part.kind == kLast) break;
  }
  read_head(head, record);
  return true;
}

}  // namespace spk
