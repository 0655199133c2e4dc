#include "pipeline/entry_codec.h"

#include <bit>

namespace spk {

namespace {

constexpr uint8_t kHasSize = 1;
constexpr uint8_t kHasMtime = 2;
constexpr uint8_t kHasPath = 4;        // a path of its own
constexpr uint8_t kHasPathPrefix = 8;  // the path is this prefix, then the key
constexpr uint8_t kHasInts = 16;
constexpr uint8_t kHasFloats = 32;
constexpr uint8_t kHasReject = 64;
constexpr uint8_t kAllFlags = 127;

uint64_t zigzag(int64_t value) noexcept {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
int64_t unzigzag(uint64_t value) noexcept {
  return static_cast<int64_t>((value >> 1) ^ (0 - (value & 1)));
}

void append_u64(std::string& out, uint64_t value) {
  uint8_t bytes[8];
  store_le(bytes, value);
  out.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

bool take_u64(ByteSpan* bytes, uint64_t* value) noexcept {
  if (bytes->size() < 8) return false;
  *value = load_le<uint64_t>(bytes->data());
  *bytes = bytes->subspan(8);
  return true;
}

Status bad_entry() { return damaged("a sample record of the plan is not whole"); }

}  // namespace

void append_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

bool take_varint(ByteSpan* bytes, uint64_t* value) noexcept {
  uint64_t result = 0;
  for (size_t i = 0; i < bytes->size() && i < 10; ++i) {
    const uint64_t byte = (*bytes)[i];
    if (i == 9 && byte > 1) return false;
    result |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      *bytes = bytes->subspan(i + 1);
      *value = result;
      return true;
    }
  }
  return false;
}

void append_string(std::string& out, std::string_view text) {
  append_varint(out, text.size());
  out += text;
}

void append_be32(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

void append_be64(std::string& out, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

bool take_string(ByteSpan* bytes, std::string_view* text) noexcept {
  uint64_t length = 0;
  if (!take_varint(bytes, &length) || length > bytes->size()) return false;
  *text = as_text(bytes->first(length));
  *bytes = bytes->subspan(length);
  return true;
}

void append_entry_without_key(std::string& out, const SampleEntry& entry) {
  const std::string_view path = entry.path;
  const bool prefixed = path.size() > entry.key.size() && path.ends_with(entry.key);
  uint8_t flags = 0;
  if (entry.size_bytes != kUnknownSize) flags |= kHasSize;
  if (entry.mtime_ns != kUnknownMtime) flags |= kHasMtime;
  if (!path.empty()) flags |= prefixed ? kHasPathPrefix : kHasPath;
  if (!entry.int_labels.empty()) flags |= kHasInts;
  if (!entry.float_labels.empty()) flags |= kHasFloats;
  if (!entry.reject.empty()) flags |= kHasReject;
  out += static_cast<char>(flags);
  append_varint(out, entry.ordinal);
  if (flags & kHasSize) append_varint(out, entry.size_bytes);
  if (flags & kHasMtime) append_u64(out, static_cast<uint64_t>(entry.mtime_ns));
  if (flags & kHasPath) append_string(out, path);
  if (flags & kHasPathPrefix) append_string(out, path.substr(0, path.size() - entry.key.size()));
  if (flags & kHasInts) {
    append_varint(out, entry.int_labels.size());
    for (const int64_t label : entry.int_labels) append_varint(out, zigzag(label));
  }
  if (flags & kHasFloats) {
    append_varint(out, entry.float_labels.size());
    for (const double label : entry.float_labels) append_u64(out, std::bit_cast<uint64_t>(label));
  }
  if (flags & kHasReject) append_string(out, entry.reject);
}

Status take_entry_without_key(ByteSpan* bytes, std::string_view key, SampleEntry* entry) {
  if (bytes->empty()) return bad_entry();
  const uint8_t flags = bytes->front();
  *bytes = bytes->subspan(1);
  if (flags & ~kAllFlags) return bad_entry();
  entry->key.assign(key);
  entry->path.clear();
  entry->size_bytes = kUnknownSize;
  entry->mtime_ns = kUnknownMtime;
  entry->int_labels.clear();
  entry->float_labels.clear();
  entry->reject.clear();

  uint64_t number = 0;
  std::string_view text;
  if (!take_varint(bytes, &entry->ordinal)) return bad_entry();
  if ((flags & kHasSize) && !take_varint(bytes, &entry->size_bytes)) return bad_entry();
  if (flags & kHasMtime) {
    if (!take_u64(bytes, &number)) return bad_entry();
    entry->mtime_ns = static_cast<int64_t>(number);
  }
  if (flags & (kHasPath | kHasPathPrefix)) {
    if (!take_string(bytes, &text)) return bad_entry();
    entry->path.assign(text);
    if (flags & kHasPathPrefix) entry->path += key;
  }
  if (flags & kHasInts) {
    if (!take_varint(bytes, &number) || number > bytes->size()) return bad_entry();
    for (uint64_t left = number; left != 0; --left) {
      if (!take_varint(bytes, &number)) return bad_entry();
      entry->int_labels.push_back(unzigzag(number));
    }
  }
  if (flags & kHasFloats) {
    if (!take_varint(bytes, &number) || number > bytes->size() / 8) return bad_entry();
    for (uint64_t left = number; left != 0; --left) {
      if (!take_u64(bytes, &number)) return bad_entry();
      entry->float_labels.push_back(std::bit_cast<double>(number));
    }
  }
  if (flags & kHasReject) {
    if (!take_string(bytes, &text)) return bad_entry();
    entry->reject.assign(text);
  }
  return {};
}

void append_entry(std::string& out, const SampleEntry& entry) {
  append_string(out, entry.key);
  append_entry_without_key(out, entry);
}

Status take_entry(ByteSpan* bytes, SampleEntry* entry) {
  std::string_view key;
  if (!take_string(bytes, &key)) return bad_entry();
  return take_entry_without_key(bytes, key, entry);
}

}  // namespace spk
