// Hands a sample's bytes to somebody, checked before the first of them goes out.
#pragma once

#include <functional>

#include "container/pack.h"

namespace spk {

using ByteSink = std::function<Status(ByteSpan)>;

// Up to so many bytes are held in memory; larger blobs are read twice, once to check them.
inline constexpr uint64_t kWholeBlobBytes = uint64_t{64} << 20;

// kNotFound where the field is absent, kDamaged before `sink` is called at all where the bytes
// contradict their checksum. (A large blob that changes between the two readings is kDamaged after
// parts of it went out.)
Status copy_blob(const Pack& pack, uint64_t sample, uint16_t field, const ByteSink& sink);

}  // namespace spk
