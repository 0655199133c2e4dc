#include "sources/tar_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {

constexpr size_t kBlock = TarReader::kBlockBytes;
constexpr uint64_t kMostTextBytes = uint64_t{1} << 20;  // of a PAX header or a long name
constexpr uint64_t kMostBytes = uint64_t{1} << 62;      // of a member: sums do not overflow
constexpr int kMostHeaders = 16;                        // before one member
constexpr size_t kTailPieceBytes = size_t{64} << 10;

struct Place {
  size_t offset;
  size_t bytes;
};
constexpr Place kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kLinkName{157, 100};
constexpr Place kPrefix{345, 155};
constexpr size_t kTypeOffset = 156, kMagicOffset = 257;

std::string_view field(std::string_view header, Place place) {
  return header.substr(place.offset, place.bytes);
}

std::string_view text_field(std::string_view header, Place place) {
  const std::string_view text = field(header, place);
  return text.substr(0, text.find('\0'));
}

// Octal digits between blanks and NULs, or, with the highest bit set, 64-bit big-endian.
std::optional<uint64_t> parse_number(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first & 0x80) {
    uint64_t value = first & 0x7f;  // 0xff begins a negative one
    if (value & 0x40) return std::nullopt;
    for (const char c : text.substr(1)) {
      if (value >> 56) return std::nullopt;
      value = value << 8 | static_cast<uint8_t>(c);
    }
    return value;
  }
  while (!text.empty() && (text.front() == ' ' || text.front() == '\0')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\0')) text.remove_suffix(1);
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '7' || value >> 60) return std::nullopt;
    value = value * 8 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

// Some old programs summed signed characters.
bool checksum_is_right(std::string_view header) {
  const std::optional<uint64_t> said = parse_number(field(header, kChecksum));
  if (!said) return false;
  int64_t sum = 0, signed_sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.bytes;
    const char c = own ? ' ' : header[i];
    sum += static_cast<uint8_t>(c);
    signed_sum += static_cast<signed char>(c);
  }
  const auto expected = static_cast<int64_t>(*said);
  return expected == sum || expected == signed_sum;
}

}  // namespace

// What headers before the member's own say of it.
struct TarReader::Overrides {
  std::optional<std::string> name;
  std::optional<std::string> link;
  std::optional<uint64_t> bytes;
  bool sparse = false;
};

bool TarReader::is_tar(ByteSpan head) {
  if (head.size() < kBlock) return false;
  if (checksum_is_right(as_text(head.first(kBlock)))) return true;
  return head.size() >= 2 * kBlock && is_all_zero(head.first(2 * kBlock));
}

Status TarReader::bad(std::string what, uint64_t offset) const {
  return damaged(std::move(what)).at_path(escape_bytes(reader_.path())).at_offset(offset);
}

// The data end where a header should be, or before.
Status TarReader::cut() {
  SPK_ASSIGN(const uint64_t end, reader_.end());
  truncated_ = true;
  last_is_cut_ = contents_end_ > end;
  if (!last_is_cut_) {
    return bad("the archive ends without its two blocks of zeros", end)
        .with_hint("it may have been cut between two members; --salvage takes what is there");
  }
  return bad(str_cat("the archive ends within a member, which has ", contents_end_ - end,
                     " more bytes"),
             end)
      .with_hint("how much is lost cannot be told; --salvage takes what is whole");
}

Result<bool> TarReader::take_end() {
  const uint64_t begin = at_;
  SPK_ASSIGN(const ByteSpan second, reader_.at(begin + kBlock, kBlock));
  if (second.size() < kBlock || !is_all_zero(second)) {
    truncated_ = second.size() < kBlock;
    return bad("found one block of zeros, two end an archive", begin)
        .with_hint("it may have been cut; --salvage takes what is whole");
  }
  for (uint64_t offset = begin + 2 * kBlock;;) {
    SPK_ASSIGN(const ByteSpan tail, reader_.at(offset, kTailPieceBytes));
    if (!is_all_zero(tail)) {
      const auto other = std::find_if(tail.begin(), tail.end(), [](uint8_t b) { return b != 0; });
      return bad("data follow the archive's end",
                 offset + static_cast<uint64_t>(other - tail.begin()))
          .with_hint("were archives joined by `cat`? give them as several files");
    }
    offset += tail.size();
    if (tail.size() < kTailPieceBytes) return false;
  }
}

Result<bool> TarReader::next(TarMember* member) {
  Overrides overrides;
  for (int headers = 0; headers < kMostHeaders; ++headers) {
    SPK_ASSIGN(const ByteSpan block, reader_.at(at_, kBlock));
    if (block.size() < kBlock) return cut();
    if (is_all_zero(block)) {
      if (headers == 0) return take_end();
      return bad("an extended header without its member", at_);
    }
    const std::string header(as_text(block));
    if (!checksum_is_right(header))
      return bad("found no tar header here: its checksum is wrong", at_);
    const std::optional<uint64_t> size = parse_number(field(header, kSize));
    if (!size || *size > kMostBytes) return bad("the size in the header is no number", at_);
    const uint64_t offset = at_ + kBlock;
    const uint64_t after = offset + round_up(*size, kBlock);
    switch (const char type = header[kTypeOffset]) {
      case 'x':
      case 'X': SPK_TRY(take_pax(offset, *size, &overrides)); break;
      case 'g': SPK_TRY(read_text(offset, *size).status()); break;  // nothing that matters here
      case 'L':
      case 'K': {
        SPK_ASSIGN(std::string text, read_text(offset, *size));
        if (const size_t end = text.find('\0'); end != text.npos) text.resize(end);
        (type == 'L' ? overrides.name : overrides.link) = std::move(text);
        break;
      }
      default:
        SPK_TRY(take_member(header, &overrides, member));
        at_ = offset + round_up(member->bytes, kBlock);
        return true;
    }
    at_ = after;
  }
  return bad(str_cat("more than ", kMostHeaders, " headers for one member"), at_);
}

Result<std::string> TarReader::read_text(uint64_t offset, uint64_t bytes) {
  if (bytes > kMostTextBytes) {
    return bad(str_cat("an extended header of ", format_size(bytes), "; ",
                       format_size(kMostTextBytes), " is the most"),
               offset);
  }
  SPK_ASSIGN(const ByteSpan text, reader_.at(offset, bytes));
  if (text.size() < bytes) {
    contents_end_ = 0;
    return cut();
  }
  return std::string(as_text(text));
}

// Records "LENGTH KEY=VALUE\n", LENGTH counting all of it.
Status TarReader::take_pax(uint64_t offset, uint64_t bytes, Overrides* overrides) {
  SPK_ASSIGN(const std::string text, read_text(offset, bytes));
  for (size_t begin = 0; begin < text.size();) {
    size_t length = 0;
    const char* const start = text.data() + begin;
    const auto [end, error] = std::from_chars(start, text.data() + text.size(), length);
    const auto digits = static_cast<size_t>(end - start);
    const bool fits = error == std::errc() && length <= text.size() - begin &&
                      length > digits + 2 && *end == ' ' && start[length - 1] == '\n';
    if (!fits) return bad("a PAX header breaks its form", offset + begin);
    const std::string_view record(end + 1, length - digits - 2);
    const size_t equals = record.find('=');
    if (equals == record.npos) return bad("a PAX record without '='", offset + begin);
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path" || key == "linkpath") {
      if (value.find('\0') != value.npos) return bad("a name with a NUL in it", offset + begin);
      (key == "path" ? overrides->name : overrides->link) = std::string(value);
    } else if (key == "size") {
      uint64_t size = 0;
      const char* const last = value.data() + value.size();
      const auto [at, wrong] = std::from_chars(value.data(), last, size);
      if (wrong != std::errc() || at != last || size > kMostBytes) {
        return bad("the size in a PAX header is no number", offset + begin);
      }
      overrides->bytes = size;
    } else if (key.starts_with("GNU.sparse.")) {
      overrides->sparse = true;
    }
    begin += length;
  }
  return {};
}

Status TarReader::take_member(const std::string& header, Overrides* overrides, TarMember* member) {
  const char type = header[kTypeOffset];
  if (type == 'S' || overrides->sparse) {
    return unsupported("found a sparse member")
        .at_path(escape_bytes(reader_.path()))
        .at_offset(at_)
        .with_hint("make the archive without --sparse");
  }
  member->header_offset = at_;
  member->offset = at_ + kBlock;
  member->bytes = overrides->bytes ? *overrides->bytes : *parse_number(field(header, kSize));
  if (overrides->name) {
    member->name = *overrides->name;
  } else {
    member->name = text_field(header, kName);
    // Not GNU's, which uses the place for times.
    const bool is_ustar = header.substr(kMagicOffset, 6) == std::string_view("ustar\0", 6);
    if (is_ustar && !text_field(header, kPrefix).empty()) {
      member->name = str_cat(text_field(header, kPrefix), "/", member->name);
    }
  }
  member->link = overrides->link ? *overrides->link : std::string(text_field(header, kLinkName));
  using Kind = TarMember::Kind;
  switch (type) {
    case '0':
    case '\0':
    case '7': member->kind = member->name.ends_with('/') ? Kind::kFolder : Kind::kFile; break;
    case '1': member->kind = Kind::kHardLink; break;
    case '2': member->kind = Kind::kSymlink; break;
    case '5': member->kind = Kind::kFolder; break;
    default: member->kind = Kind::kOther; break;
  }
  // Links may tell the size of what they lead to; its bytes do not follow.
  if (type >= '1' && type <= '6') member->bytes = 0;
  contents_end_ = member->offset + member->bytes;
  return {};
}

}  // namespace spk
