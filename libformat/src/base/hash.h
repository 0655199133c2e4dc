// XXH3, the checksum of the format: 64 bits for stored bytes, 128 bits for identities. Taken from
// libxxhash where the build has it, otherwise from our own portable version (xxh3_portable.cc);
// both give the same numbers, and a test compares them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"

namespace spk {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
  // 32 hex digits, high half first, as xxh128sum prints it.
  std::string to_hex() const;
};

uint64_t xxh3_64(ByteSpan bytes) noexcept;
Hash128 xxh3_128(ByteSpan bytes) noexcept;

// One digest of bytes given in pieces; the same number as for all of them at once.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  Xxh3Stream(Xxh3Stream&&) noexcept;
  Xxh3Stream& operator=(Xxh3Stream&&) noexcept;
  void update(ByteSpan bytes);
  void update_u64(uint64_t value);  // its 8 little-endian bytes
  uint64_t digest_64() const;
  Hash128 digest_128() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace spk
