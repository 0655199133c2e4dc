// Text for people and for machines: concatenation, the one escaping rule, sizes with units.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.h"

namespace spk {

inline void append_text(std::string& out, std::string_view text) { out += text; }
inline void append_text(std::string& out, char c) { out += c; }
template <typename T>
requires(std::is_integral_v<T> && !std::is_same_v<T, char> &&
         !std::is_same_v<T, bool>) void append_text(std::string& out, T number) {
  char digits[24];
  auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}
template <typename... Parts>
std::string str_cat(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

// The escaping rule for keys and paths in JSON, TSV and messages (docs/FORMAT.md, "Keys as text"):
// well-formed UTF-8 stands for itself, except that a backslash becomes \\ and each byte below 0x20,
// 0x7f, and each byte that is not part of well-formed UTF-8 becomes \xHH (lower-case hex).
// Reversible by unescape_bytes.
std::string escape_bytes(std::string_view bytes);
// kInvalidArgument where the text is not what escape_bytes writes.
Result<std::string> unescape_bytes(std::string_view text);
bool is_valid_utf8(std::string_view bytes) noexcept;

// "4MiB", "512 KiB", "1G", "4096": K, M, G, T with or without iB are powers of 1024; kB, MB, GB,
// TB (with B alone) are powers of 1000. kInvalidArgument otherwise, or on overflow.
Result<uint64_t> parse_size(std::string_view text);
// Exact power-of-two sizes read "4 MiB"; others "1.23 GiB"; below 1024 "17 B".
std::string format_size(uint64_t bytes);
// "1,281,167"
std::string format_count(uint64_t count);
// "1 sample", "1,281,167 samples". `plural` is for nouns that take more than an s.
std::string count_of(uint64_t count, std::string_view noun, std::string_view plural = {});
std::string to_hex(uint64_t value);  // 16 lower-case digits
// Decimal with `digits` places, independent of the locale.
std::string format_fixed(double value, int digits);

}  // namespace spk
