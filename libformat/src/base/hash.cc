#include "base/hash.h"

#include "base/text.h"

namespace spk {

std::string Hash128::to_hex() const { return spk::to_hex(high) + spk::to_hex(low); }

void Xxh3Stream::update_u64(uint64_t value) {
  uint8_t bytes[8];
  store_le(bytes, value);
  update(bytes);
}

}  // namespace spk
