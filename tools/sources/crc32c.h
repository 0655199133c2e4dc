// CRC-32C (Castagnoli), by the processor's own instruction where it has one.
#pragma once

#include "base/bytes.h"

namespace spk {

// Of bytes that follow others whose CRC is `crc`; 0 at the start.
uint32_t crc32c(uint32_t crc, ByteSpan bytes) noexcept;
// The same by tables; for tests.
uint32_t crc32c_portable(uint32_t crc, ByteSpan bytes) noexcept;

// As TFRecord stores it.
inline uint32_t mask_crc32c(uint32_t crc) noexcept {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}
inline uint32_t masked_crc32c(ByteSpan bytes) noexcept { return mask_crc32c(crc32c(0, bytes)); }

}  // namespace spk
