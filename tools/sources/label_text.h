// Labels as they stand in lists. No value is ever rounded, cut or saturated.
#pragma once

#include <cstdint>
#include <string_view>

namespace spk {

enum class LabelText {
  kOk,
  kNotNumber,
  kNotInteger,  // a number, but with a fraction or an exponent
  kTooLarge,    // does not fit into 64 bits, or is not finite
};

// Whether the text is written as a number: sign, digits, fraction, exponent.
bool looks_like_number(std::string_view text) noexcept;
// "57", "-1", "+3"; also "57.000000", in full precision.
LabelText parse_int_label(std::string_view text, int64_t* value) noexcept;
// Any finite decimal number.
LabelText parse_float_label(std::string_view text, double* value) noexcept;

}  // namespace spk
