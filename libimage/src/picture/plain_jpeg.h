// The common kind of JPEG (baseline, one scan, grey or YCbCr), decoded faster than libjpeg can
// where only a part is wanted: outside of it codes are passed over without being decoded, and
// chroma stays as coarse as it is stored, for the resampler to enlarge or reduce.
#pragma once

#include <array>
#include <vector>

#include "picture/huffman.h"
#include "picture/jpeg_markers.h"
#include "picture/rows.h"

namespace spk::picture {

// Tables and memory that are used again.
struct PlainJpeg {
  std::array<HuffmanTable, 4> dc;  // by their numbers in the file
  std::array<HuffmanTable, 4> ac;
  Memory scan;                      // entropy-coded data without the stuffing
  std::vector<uint64_t> intervals;  // where in it the restart intervals begin
};

// Decodes what covers the window. False where the picture is not of this kind, or where anything in
// what had to be read is not as it should be: libjpeg then decides what it is worth. Throws
// std::bad_alloc.
bool decode_plain_jpeg(ByteSpan data, const JpegMarkers& markers, const Window& window,
                       PlainJpeg& tables, Memory& memory, Planes& planes);

}  // namespace spk::picture
