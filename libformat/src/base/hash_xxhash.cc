// XXH3 from libxxhash.
#include "base/hash.h"

#include <xxhash.h>

#include <new>

namespace spk {

uint64_t xxh3_64(ByteSpan bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

Hash128 xxh3_128(ByteSpan bytes) noexcept {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

struct Xxh3Stream::State {
  State() : xxh(XXH3_createState()) {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  XXH3_state_t* xxh;
};

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) {}
Xxh3Stream::~Xxh3Stream() = default;
Xxh3Stream::Xxh3Stream(Xxh3Stream&&) noexcept = default;
Xxh3Stream& Xxh3Stream::operator=(Xxh3Stream&&) noexcept = default;

void Xxh3Stream::update(ByteSpan bytes) {
  // XXH3's 64- and 128-bit forms share one state; only the digest differs.
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

uint64_t Xxh3Stream::digest_64() const { return XXH3_64bits_digest(state_->xxh); }

Hash128 Xxh3Stream::digest_128() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return {hash.low64, hash.high64};
}

}  // namespace spk
