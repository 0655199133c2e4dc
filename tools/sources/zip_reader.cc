#include "sources/zip_reader.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "image/formats.h"
#include "sources/unpacker.h"

namespace spk {

namespace {

constexpr uint32_t kLocalMagic = 0x04034b50, kEntryMagic = 0x02014b50, kEndMagic = 0x06054b50;
constexpr uint32_t kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr uint64_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22;
constexpr uint64_t kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint64_t kMostCommentBytes = 65535;
constexpr uint16_t kZip64Extra = 1;
constexpr uint32_t kIn64 = 0xffffffff;
constexpr uint16_t kIn64Short = 0xffff;
constexpr uint16_t kEncrypted = 1;
constexpr size_t kPieceBytes = size_t{128} << 10;
constexpr uint32_t kTypeMask = 0170000, kTypeLink = 0120000;

uint16_t u16(ByteSpan bytes, size_t at) { return load_le<uint16_t>(bytes.data() + at); }
uint32_t u32(ByteSpan bytes, size_t at) { return load_le<uint32_t>(bytes.data() + at); }
uint64_t u64(ByteSpan bytes, size_t at) { return load_le<uint64_t>(bytes.data() + at); }

}  // namespace

bool ZipReader::is_zip(ByteSpan head) {
  return head.size() >= 4 && (u32(head, 0) == kLocalMagic || u32(head, 0) == kEndMagic);
}

Status ZipReader::bad(std::string what, uint64_t offset) const {
  return damaged(std::move(what)).at_path(escape_bytes(file_->path())).at_offset(offset);
}

Result<ZipReader> ZipReader::open(const File& file) {
  ZipReader reader(file);
  SPK_TRY(reader.find_directory());
  SPK_ASSIGN(File again, File::open_read(file.path()));
  reader.directory_ = read_plain(std::move(again), kDataWindowBytes);
  return reader;
}

// The end record is the last thing in the file, but for a comment of its own.
Status ZipReader::find_directory() {
  SPK_ASSIGN(file_bytes_, file_->size());
  const uint64_t tail_bytes = std::min(file_bytes_, kEndBytes + kMostCommentBytes);
  const uint64_t tail_offset = file_bytes_ - tail_bytes;
  std::vector<uint8_t> tail(tail_bytes);
  if (!tail.empty()) SPK_TRY(file_->read_exact(tail_offset, tail));
  for (size_t at = tail.size() < kEndBytes ? 0 : tail.size() - kEndBytes + 1; at-- != 0;) {
    const ByteSpan end = ByteSpan(tail).subspan(at);
    if (u32(end, 0) != kEndMagic || u16(end, 20) != end.size() - kEndBytes) continue;
    const uint64_t end_offset = tail_offset + at;
    if (u16(end, 4) != u16(end, 6)) {
      return unsupported("found an archive of several volumes")
          .at_path(escape_bytes(file_->path()))
          .with_hint("join them first: zip -s 0 IN --out ONE.zip");
    }
    left_ = u16(end, 10);
    const uint64_t bytes = u32(end, 12);
    const uint64_t offset = u32(end, 16);
    if (left_ == kIn64Short || bytes == kIn64 || offset == kIn64) return read_zip64(end_offset);
    if (bytes > end_offset || offset > end_offset - bytes) {
      return bad("the central directory does not fit into the file", end_offset);
    }
    at_ = end_offset - bytes;
    base_ = at_ - offset;
    end_ = end_offset;
    return {};
  }
  return bad("found no end of a central directory", file_bytes_)
      .with_hint("the archive may have been cut; `zip -FF` may save what is whole");
}

Status ZipReader::read_zip64(uint64_t end_offset) {
  std::vector<uint8_t> locator(kLocator64Bytes), end(kEnd64Bytes);
  if (end_offset < kLocator64Bytes) return bad("the locator of ZIP64 is missing", end_offset);
  SPK_TRY(file_->read_exact(end_offset - kLocator64Bytes, locator));
  const uint64_t offset = u64(locator, 8);
  if (u32(locator, 0) != kLocator64Magic || !range_fits(offset, kEnd64Bytes, end_offset)) {
    return bad("the locator of ZIP64 is missing", end_offset);
  }
  SPK_TRY(file_->read_exact(offset, end));
  if (u32(end, 0) != kEnd64Magic) return bad("the end record of ZIP64 is missing", offset);
  left_ = u64(end, 32);
  at_ = u64(end, 48);
  if (!range_fits(at_, u64(end, 40), offset)) {
    return bad("the central directory does not fit into the file", offset);
  }
  end_ = at_ + u64(end, 40);
  return {};
}

// The extra field's values stand for those numbers that say they are there, in this order.
Status ZipReader::take_zip64_sizes(ByteSpan extra, ZipMember* member) const {
  while (extra.size() >= 4) {
    const uint16_t id = u16(extra, 0);
    const uint16_t bytes = u16(extra, 2);
    if (bytes > extra.size() - 4) break;
    ByteSpan value = extra.subspan(4, bytes);
    extra = extra.subspan(size_t{4} + bytes);
    if (id != kZip64Extra) continue;
    for (uint64_t* const number : {&member->bytes, &member->packed_bytes, &member->header_offset}) {
      if (*number != kIn64 || value.size() < 8) continue;
      *number = u64(value, 0);
      value = value.subspan(8);
    }
  }
  return {};
}

Result<bool> ZipReader::next(ZipMember* member) {
  if (left_ == 0) {
    if (at_ != end_) return bad("the central directory has more than it says", at_);
    return false;
  }
  SPK_ASSIGN(const ByteSpan fixed, directory_->at(at_, kEntryBytes));
  if (fixed.size() < kEntryBytes || u32(fixed, 0) != kEntryMagic) {
    return bad("found no entry of the central directory here", at_);
  }
  *member = {};
  member->is_encrypted = (u16(fixed, 8) & kEncrypted) != 0;
  member->method_number = u16(fixed, 10);
  member->method = member->method_number == 0   ? ZipMember::Method::kStored
                   : member->method_number == 8 ? ZipMember::Method::kDeflated
                                                : ZipMember::Method::kOther;
  member->crc = u32(fixed, 16);
  member->packed_bytes = u32(fixed, 20);
  member->bytes = u32(fixed, 24);
  member->header_offset = u32(fixed, 42);
  member->is_symlink = (u32(fixed, 38) >> 16 & kTypeMask) == kTypeLink;
  const size_t name_bytes = u16(fixed, 28), extra_bytes = u16(fixed, 30);
  const uint64_t all = kEntryBytes + name_bytes + extra_bytes + u16(fixed, 32);
  if (all > end_ - at_) return bad("an entry reaches beyond the central directory", at_);
  SPK_ASSIGN(const ByteSpan rest, directory_->at(at_ + kEntryBytes, name_bytes + extra_bytes));
  if (rest.size() < name_bytes + extra_bytes) return bad("the central directory is cut", at_);
  member->name = as_text(rest.first(name_bytes));
  member->is_folder = member->name.ends_with('/');
  SPK_TRY(take_zip64_sizes(rest.subspan(name_bytes), member));
  if (!checked_add(member->header_offset, base_, &member->header_offset) ||
      !range_fits(member->header_offset, member->packed_bytes, file_bytes_)) {
    return bad("an entry's data do not fit into the file", at_);
  }
  at_ += all;
  --left_;
  return true;
}

Result<uint64_t> ZipReader::data_offset(const ZipMember& member) const {
  std::vector<uint8_t> header(kLocalBytes + member.name.size());
  // The central directory lies behind it, so that there are as many bytes.
  SPK_TRY(file_->read_exact(member.header_offset, header));
  if (u32(header, 0) != kLocalMagic) {
    return bad("found no header of the member that the central directory lists here",
               member.header_offset);
  }
  if (u16(header, 26) != member.name.size() ||
      as_text(ByteSpan(header).subspan(kLocalBytes)) != member.name) {
    return Status(Code::kMismatch,
                  str_cat("has another name in its own header, at offset ", member.header_offset,
                          ", than in the archive's directory"))
        .at_path(escape_bytes(file_->path()))
        .at_offset(member.header_offset);
  }
  const uint64_t offset = member.header_offset + kLocalBytes + u16(header, 26) + u16(header, 28);
  if (!range_fits(offset, member.packed_bytes, file_bytes_)) {
    return bad("a member's data do not fit into the file", member.header_offset);
  }
  return offset;
}

Status ZipReader::unpack(const ZipMember& member, const Sink& sink) const {
  SPK_ASSIGN(uint64_t offset, data_offset(member));
  SPK_ASSIGN(const auto inflater, make_raw_inflater());
  std::vector<uint8_t> packed(kPieceBytes), plain(kPieceBytes);
  uint64_t packed_left = member.packed_bytes, done = 0;
  uint32_t crc = 0;
  ByteSpan input;
  const auto wrong = [&](const char* what) { return bad(what, member.header_offset); };
  while (!inflater->at_border()) {
    if (input.empty() && packed_left != 0) {
      const auto now = std::min<uint64_t>(packed_left, packed.size());
      SPK_TRY(file_->read_exact(offset, MutableByteSpan(packed).first(now)));
      input = ByteSpan(packed).first(now);
      offset += now;
      packed_left -= now;
    }
    size_t made = 0;
    const size_t before = input.size();
    Status status = inflater->step(&input, plain, &made);
    if (!status.ok()) {
      return std::move(status).at_path(escape_bytes(file_->path())).at_offset(member.header_offset);
    }
    if (made == 0 && input.size() == before && packed_left == 0)
      return wrong("a member's data end early");
    done += made;
    if (done > member.bytes) return wrong("a member has more bytes than its entry says");
    const ByteSpan piece = ByteSpan(plain).first(made);
    crc = image::crc32_ieee(crc, piece);
    if (made != 0) SPK_TRY(sink(piece));
  }
  if (done != member.bytes) return wrong("a member has fewer bytes than its entry says");
  return crc == member.crc ? Status() : wrong("a member's CRC is wrong");
}

}  // namespace spk
