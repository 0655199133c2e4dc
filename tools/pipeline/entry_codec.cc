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
constexpr uint8_t kHasFields = 128;  // a byte of the flags below follows
constexpr uint8_t kHasBlobs = 1;
constexpr uint8_t kHasPixels = 2;
constexpr uint8_t kHasNumbers = 4;
constexpr uint8_t kHasTold = 8;
constexpr uint8_t kAllFieldFlags = 15;

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

uint8_t field_flags(const SampleEntry& entry) {
  uint8_t flags = 0;
  if (!entry.blob_bytes.empty()) flags |= kHasBlobs;
  if (entry.pixels != PixelDimensions()) flags |= kHasPixels;
  if (!entry.numbers.empty()) flags |= kHasNumbers;
  if (entry.told != PixelDimensions()) flags |= kHasTold;
  return flags;
}

void append_dimensions(std::string& out, const PixelDimensions& size) {
  append_varint(out, size.height);
  append_varint(out, size.width);
  append_varint(out, size.channels);
}

// Sizes and counts are stored one higher, so that 0 says "none".
void append_fields(std::string& out, const SampleEntry& entry) {
  const uint8_t flags = field_flags(entry);
  out += static_cast<char>(flags);
  if (flags & kHasBlobs) {
    append_varint(out, entry.blob_bytes.size());
    for (const uint64_t bytes : entry.blob_bytes) append_varint(out, bytes + 1);
  }
  if (flags & kHasPixels) append_dimensions(out, entry.pixels);
  if (flags & kHasTold) append_dimensions(out, entry.told);
  if (flags & kHasNumbers) {
    append_varint(out, entry.numbers.size());
    for (const std::optional<NumericValues>& values : entry.numbers) {
      append_varint(out, values ? values->size() + 1 : 0);
      if (!values) continue;
      for (const uint64_t value : *values) append_u64(out, value);
    }
  }
}

bool take_u32(ByteSpan* bytes, uint32_t* value) {
  uint64_t number = 0;
  if (!take_varint(bytes, &number) || number > UINT32_MAX) return false;
  *value = static_cast<uint32_t>(number);
  return true;
}

bool take_dimensions(ByteSpan* bytes, PixelDimensions* size) {
  return take_u32(bytes, &size->height) && take_u32(bytes, &size->width) &&
         take_u32(bytes, &size->channels);
}

bool take_fields(ByteSpan* bytes, SampleEntry* entry) {
  if (bytes->empty()) return false;
  const uint8_t flags = bytes->front();
  *bytes = bytes->subspan(1);
  if (flags & ~kAllFieldFlags) return false;
  uint64_t count = 0;
  uint64_t number = 0;
  if (flags & kHasBlobs) {
    if (!take_varint(bytes, &count) || count > bytes->size()) return false;
    for (; count != 0; --count) {
      if (!take_varint(bytes, &number)) return false;
      entry->blob_bytes.push_back(number - 1);
    }
  }
  if ((flags & kHasPixels) && !take_dimensions(bytes, &entry->pixels)) return false;
  if ((flags & kHasTold) && !take_dimensions(bytes, &entry->told)) return false;
  if (flags & kHasNumbers) {
    if (!take_varint(bytes, &count) || count > bytes->size()) return false;
    for (; count != 0; --count) {
      std::optional<NumericValues>& values = entry->numbers.emplace_back();
      if (!take_varint(bytes, &number) || number > bytes->size() / 8 + 1) return false;
      if (number == 0) continue;
      values.emplace(number - 1);
      for (uint64_t& value : *values) {
        if (!take_u64(bytes, &value)) return false;
      }
    }
  }
  return true;
}

Status bad_entry() { return damaged("a sample record of the plan is not whole"); }

}  // namespace

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
  if (field_flags(entry) != 0) flags |= kHasFields;
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
  if (flags & kHasFields) append_fields(out, entry);
}

Status take_entry_without_key(ByteSpan* bytes, std::string_view key, SampleEntry* entry) {
  if (bytes->empty()) return bad_entry();
  const uint8_t flags = bytes->front();
  *bytes = bytes->subspan(1);
  entry->key.assign(key);
  entry->path.clear();
  entry->size_bytes = kUnknownSize;
  entry->mtime_ns = kUnknownMtime;
  entry->int_labels.clear();
  entry->float_labels.clear();
  entry->blob_bytes.clear();
  entry->pixels = {};
  entry->told = {};
  entry->numbers.clear();
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
  if ((flags & kHasFields) && !take_fields(bytes, entry)) return bad_entry();
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
