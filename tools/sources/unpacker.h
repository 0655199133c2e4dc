// Streams of gzip, zlib and zstd, unpacked step by step in bounded memory. The libraries are
// optional at build.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "base/result.h"
#include "sources/forward_reader.h"

namespace spk {

class Unpacker {
 public:
  virtual ~Unpacker() = default;
  // Takes from the front of *IN and writes to the front of OUT, *MADE bytes of it. Where neither
  // happens, it needs more input. kDamaged where IN is not what it should be.
  virtual Status step(ByteSpan* in, MutableByteSpan out, size_t* made) = 0;
  // Whether the input may end here: a stream has ended and no other one began.
  virtual bool at_border() const = 0;
};

// kUnsupported where this build lacks the library.
Result<std::unique_ptr<Unpacker>> make_unpacker(Packing packing);
// Bare deflate data, as in zip archives.
Result<std::unique_ptr<Unpacker>> make_raw_inflater();

}  // namespace spk
