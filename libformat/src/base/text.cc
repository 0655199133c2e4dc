#include "base/text.h"

#include <array>
#include <cmath>

#include "base/checked.h"

namespace spk {

namespace {

// Length of the well-formed UTF-8 sequence at the start of `s`, or 0 (Unicode, table 3-7).
size_t utf8_length(std::string_view s) noexcept {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  const auto continues = [&](size_t i, uint8_t low, uint8_t high) {
    return i < s.size() && byte(i) >= low && byte(i) <= high;
  };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1, 0x80, 0xbf) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const uint8_t low = lead == 0xe0 ? 0xa0 : 0x80;
    const uint8_t high = lead == 0xed ? 0x9f : 0xbf;
    return continues(1, low, high) && continues(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const uint8_t low = lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xf4 ? 0x8f : 0xbf;
    return continues(1, low, high) && continues(2, 0x80, 0xbf) && continues(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

constexpr char kHexDigits[] = "0123456789abcdef";

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string escape_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto lead = static_cast<uint8_t>(bytes[0]);
    const size_t length = utf8_length(bytes);
    if (lead == '\\') {
      out += "\\\\";
      bytes.remove_prefix(1);
    } else if (length == 0 || lead < 0x20 || lead == 0x7f) {
      out += "\\x";
      out += kHexDigits[lead >> 4];
      out += kHexDigits[lead & 15];
      bytes.remove_prefix(1);
    } else {
      out += bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
  }
  return out;
}

Result<std::string> unescape_bytes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '\\') {
      out += '\\';
      i += 1;
    } else if (i + 3 < text.size() && text[i + 1] == 'x' && hex_value(text[i + 2]) >= 0 &&
               hex_value(text[i + 3]) >= 0) {
      out += static_cast<char>(hex_value(text[i + 2]) * 16 + hex_value(text[i + 3]));
      i += 3;
    } else {
      return invalid_argument(str_cat("bad escape at character ", i, "; expected \\\\ or \\xHH"));
    }
  }
  // One text for each key: "\\x41" for "A" is another text than the one that is written.
  if (escape_bytes(out) != text) {
    return invalid_argument(str_cat("'", escape_bytes(text), "' is not how a key is written"));
  }
  return out;
}

bool is_valid_utf8(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const size_t length = utf8_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

Result<uint64_t> parse_size(std::string_view text) {
  const auto bad = [&] {
    return invalid_argument(
        str_cat("'", text, "' is not a size; write a whole number with KiB, MiB, GiB or TiB"));
  };
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return bad();
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (unit.empty() || unit == "B") return number;
  constexpr std::string_view kPrefixes = "KMGT";
  const char prefix = unit[0] == 'k' ? 'K' : unit[0];
  const size_t power = kPrefixes.find(prefix);
  const std::string_view rest = unit.substr(1);
  if (power == std::string_view::npos || (!rest.empty() && rest != "iB" && rest != "B"))
    return bad();
  const uint64_t base = rest == "B" ? 1000 : 1024;
  for (size_t i = 0; i <= power; ++i) {
    if (!checked_mul(number, base, &number)) return bad();
  }
  return number;
}

std::string format_size(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  uint64_t scale = 1;
  while (unit + 1 < kUnits.size() && bytes / scale >= 1024) {
    scale *= 1024;
    ++unit;
  }
  if (bytes % scale == 0) return str_cat(bytes / scale, " ", kUnits[unit]);
  return str_cat(format_fixed(static_cast<double>(bytes) / static_cast<double>(scale), 2), " ",
                 kUnits[unit]);
}

std::string format_count(uint64_t count) {
  std::string digits = str_cat(count);
  for (auto i = static_cast<ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<size_t>(i), 1, ',');
  }
  return digits;
}

std::string count_of(uint64_t count, std::string_view noun, std::string_view plural) {
  std::string text = str_cat(format_count(count), ' ');
  if (count == 1) return text.append(noun);
  return plural.empty() ? text.append(noun) + 's' : text.append(plural);
}

std::string to_hex(uint64_t value) {
  std::string out(16, '0');
  for (size_t i = 0; i < 16; ++i) out[15 - i] = kHexDigits[(value >> (4 * i)) & 15];
  return out;
}

std::string format_fixed(double value, int digits) {
  if (!std::isfinite(value)) return "0";
  char text[400];
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits).ptr;
  return std::string(text, end);
}

}  // namespace spk
