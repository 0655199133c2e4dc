#include "base/varint.h"

namespace spk {

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

}  // namespace spk
