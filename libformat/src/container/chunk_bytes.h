// Reads one chunk after another for checking. A chunk that fits into the buffer is read in steps
// small enough to be hashed while the processor's cache still holds them; a longer run is streamed.
#pragma once

#include <cstdint>
#include <optional>

#include "base/buffer.h"
#include "base/result.h"
#include "io/file.h"

namespace spk {

class ChunkBytes {
 public:
  // A buffer for chunks of up to `capacity` bytes.
  static Result<ChunkBytes> make(uint64_t capacity);

  // Turns to the chunk at `start`, of which `available` bytes are in the file. `file` outlives it.
  void open(const File& file, uint64_t start, uint64_t available) noexcept;
  uint64_t available() const noexcept { return available_; }

  // Bytes [offset, offset + bytes) of the chunk. Valid until open() where the chunk fits into the
  // buffer, otherwise until the next call. kDamaged where the file ends before that; errors of the
  // disk only where these very bytes cannot be read.
  Result<ByteSpan> span(uint64_t offset, uint64_t bytes);
  // XXH3-64 of them.
  Result<uint64_t> hash(uint64_t offset, uint64_t bytes);
  // Where in the chunk the first byte of them lies that is not zero.
  Result<std::optional<uint64_t>> first_nonzero(uint64_t offset, uint64_t bytes);

 private:
  Status load(uint64_t end);
  template <typename Use>
  Status each_piece(uint64_t offset, uint64_t bytes, Use&& use);

  AlignedBuffer buffer_;
  AlignedBuffer large_;  // for a run's table that is larger than the buffer
  const File* file_ = nullptr;
  uint64_t start_ = 0;
  uint64_t available_ = 0;
  uint64_t loaded_ = 0;  // this prefix of the chunk is in the buffer
  bool exact_ = false;   // a step failed, or the chunk is streamed: read just what is asked for
};

}  // namespace spk
