// Goes through a run of consecutive samples in storage order by reading whole chunks, one after the
// other: what a rank does that reads its part of a pack once.
//
// Thread safety: one thread at a time; any number of readers on one pack.
#pragma once

#include <cstdint>

#include "base/buffer.h"
#include "base/result.h"
#include "container/pack.h"

namespace spk {

class PartReader {
 public:
  // PACK must outlive it. REQUIRES a range within the pack's samples.
  PartReader(const Pack& pack, PositionRange range) noexcept
      : pack_(pack), range_(range), next_(range.begin) {}

  // Goes to the next sample; false where there is none. After an error, which is one of the file
  // system or of memory, the same sample is tried again.
  Result<bool> next();
  // REQUIRES that next() was true. The sample's number within the pack.
  uint64_t sample() const noexcept { return next_ - 1; }
  // A blob of the current sample, in memory of the reader's; valid until the next call of blob() or
  // next(). kNotFound where the sample has none. kDamaged where its bytes are not what was written:
  // damage to a chunk costs only the samples that it touches, the others go on.
  Result<ByteSpan> blob(uint16_t field);

 private:
  Status load_chunk(uint64_t sample);
  Status reserve(uint64_t bytes);

  const Pack& pack_;
  PositionRange range_;
  uint64_t next_;
  ChunkLocation chunk_;  // loaded last; no samples: none yet
  bool chunk_is_good_ = false;
  AlignedBuffer buffer_;  // the chunk, or one blob where the chunk is not good
};

}  // namespace spk
