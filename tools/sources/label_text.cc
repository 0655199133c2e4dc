#include "sources/label_text.h"

#include <charconv>
#include <cmath>
#include <system_error>

namespace spk {

namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

size_t count_digits(std::string_view text, size_t from) noexcept {
  size_t end = from;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - from;
}

}  // namespace

bool looks_like_number(std::string_view text) noexcept {
  size_t at = 0;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
  const size_t whole = count_digits(text, at);
  at += whole;
  size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    fraction = count_digits(text, at);
    at += fraction;
  }
  if (whole + fraction == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const size_t exponent = count_digits(text, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == text.size();
}

LabelText parse_int_label(std::string_view text, int64_t* value) noexcept {
  if (!looks_like_number(text)) return LabelText::kNotNumber;
  if (text.front() == '+') text.remove_prefix(1);
  const size_t digits = text.find_first_not_of("-0123456789");
  if (digits != std::string_view::npos) {
    const bool zero_fraction =
        text[digits] == '.' && text.find_first_not_of('0', digits + 1) == std::string_view::npos;
    if (!zero_fraction) return LabelText::kNotInteger;
    text = text.substr(0, digits);
    if (text.empty() || text == "-") text = "0";  // ".0"
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error == std::errc::result_out_of_range) return LabelText::kTooLarge;
  return error == std::errc() && end == text.data() + text.size() ? LabelText::kOk
                                                                  : LabelText::kNotNumber;
}

LabelText parse_float_label(std::string_view text, double* value) noexcept {
  if (!looks_like_number(text)) return LabelText::kNotNumber;
  if (text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error == std::errc::result_out_of_range || !std::isfinite(*value)) {
    return LabelText::kTooLarge;
  }
  return error == std::errc() && end == text.data() + text.size() ? LabelText::kOk
                                                                  : LabelText::kNotNumber;
}

}  // namespace spk
