#include "base/bytes.h"

namespace spk {

bool is_all_zero(ByteSpan bytes) noexcept {
  if (bytes.empty()) return true;
  // A buffer is all zero if its first byte is and each byte equals the one before it.
  return bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace spk
