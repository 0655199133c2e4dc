// One picture, from bytes to its place in a batch.
#pragma once

#include <mutex>

#include "picture/plain_jpeg.h"
#include "picture/plan.h"
#include "picture/resample.h"
#include "picture/rows.h"

namespace spk::picture {

// What a thread keeps between pictures.
struct Scratch {
  PlainJpeg plain_jpeg;
  Memory decoder;
  Memory planes;
  Memory resampled;
  Resampler resampler;

  // After a picture: what a large one needed is given back.
  void trim() noexcept;
};

// Pixels that need no decoder: 8 bits a channel, HWC. A width of 0: an encoded picture.
struct RawPixels {
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 0;     // 1 or 3
  uint32_t orientation = 1;  // EXIF's, for Ops::exif_orientation
};

struct Source {
  ByteSpan data;
  MutableByteSpan out;
  uint64_t sample = 0;
  RawPixels raw = {};
};

struct Size {
  uint32_t width = 0;
  uint32_t height = 0;
};

// Decodes into source.out. `size` is set as soon as it is known, also where there is no room.
// REQUIRES check_ops(ops). Where `heavy` is not null it is held while a picture of more than
// kHeavyPixels is decoded, so that only one such is in memory at a time. Throws std::bad_alloc.
constexpr uint64_t kHeavyPixels = uint64_t{16} << 20;
Status decode(const Source& source, const Ops& ops, Scratch& scratch, std::mutex* heavy,
              Size& size);

}  // namespace spk::picture
