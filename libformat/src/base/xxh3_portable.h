// XXH3 in plain C++, written from its public specification (xxhash_spec.md): the 64- and 128-bit
// forms with seed 0 and the default secret, which is all that the format uses. Always compiled, so
// that it is always tested; it serves base/hash.h where libxxhash is not at hand.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/hash.h"

namespace spk::portable {

uint64_t xxh3_64(ByteSpan bytes) noexcept;
Hash128 xxh3_128(ByteSpan bytes) noexcept;

// One digest of bytes given in pieces. Both digests may be taken at any time, and more bytes given
// afterwards.
class Xxh3State {
 public:
  Xxh3State() noexcept;
  void update(ByteSpan bytes) noexcept;
  uint64_t digest_64() const noexcept;
  Hash128 digest_128() const noexcept;

 private:
  static constexpr size_t kBlockBytes = 1024;
  static constexpr size_t kStripeBytes = 64;

  void finish(uint64_t (&lanes)[8]) const noexcept;

  std::array<uint64_t, 8> lanes_;
  uint64_t total_bytes_ = 0;
  // Before the held bytes stands room for one stripe, for the last stripe of all may begin in the
  // block before: its end is kept there.
  std::array<uint8_t, kStripeBytes + kBlockBytes> buffer_;
  size_t held_bytes_ = 0;  // not yet consumed; a full block is consumed only when more follows
};

}  // namespace spk::portable
