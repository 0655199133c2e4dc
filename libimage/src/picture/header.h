// What a picture is, from its headers alone.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"

namespace spk::picture {

enum class Format : uint32_t { kJpeg = 1, kPng = 2, kWebp = 3 };

struct Header {
  Format format = Format::kJpeg;
  uint32_t width = 0;  // as stored
  uint32_t height = 0;
  uint32_t channels = 0;
  uint32_t depth = 8;
  uint32_t orientation = 1;
};

// Whether this build decodes the format.
bool can_decode(Format format) noexcept;

// kNotThisFormat: no picture; kUnsupported: a kind that is not decoded here, or a side of more than
// kMaxSide; kDamaged: the headers are cut or contradict themselves.
Result<Header> read_header(ByteSpan data);

}  // namespace spk::picture
