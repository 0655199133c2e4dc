// base/hash.h without libxxhash.
#include "base/hash.h"
#include "base/xxh3_portable.h"

namespace spk {

uint64_t xxh3_64(ByteSpan bytes) noexcept { return portable::xxh3_64(bytes); }
Hash128 xxh3_128(ByteSpan bytes) noexcept { return portable::xxh3_128(bytes); }

struct Xxh3Stream::State : portable::Xxh3State {};

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) {}
Xxh3Stream::~Xxh3Stream() = default;
Xxh3Stream::Xxh3Stream(Xxh3Stream&&) noexcept = default;
Xxh3Stream& Xxh3Stream::operator=(Xxh3Stream&&) noexcept = default;

void Xxh3Stream::update(ByteSpan bytes) { state_->update(bytes); }
uint64_t Xxh3Stream::digest_64() const { return state_->digest_64(); }
Hash128 Xxh3Stream::digest_128() const { return state_->digest_128(); }

}  // namespace spk
