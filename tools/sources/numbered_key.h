// Keys of samples that have none of their own.
#pragma once

#include <cstdint>
#include <string>

#include "base/text.h"

namespace spk {

// "00000042": the bytes of such keys sort as their numbers do.
inline std::string numbered_key(uint64_t number) {
  std::string digits = str_cat(number);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return digits;
}

}  // namespace spk
