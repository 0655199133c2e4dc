// What a trainer does with the pictures of a batch: each is decoded, a part of it cropped at
// random, and resized to 224 x 224.
#pragma once

#include <cstdint>
#include <memory>

#include "container/pack.h"
#include "loader/batch.h"

namespace spk {

// Thread safety: one thread at a time, which is helped by threads of its own.
class BatchDecoder {
 public:
  virtual ~BatchDecoder() = default;
  // kNotFound where the pack has no pictures (no blob field `image`), kUnsupported where this build
  // has no decoders.
  static Result<std::unique_ptr<BatchDecoder>> make(const Pack& pack, uint32_t threads);
  // The number of pictures that could not be decoded.
  virtual Result<uint64_t> decode(const Batch& batch, uint64_t epoch) = 0;
};

}  // namespace spk
