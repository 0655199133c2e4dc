// What decoders are asked for and how they give it: rows from top to bottom.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "picture/header.h"
#include "picture/pixels.h"

namespace spk::picture {

// Part of a picture as stored, in its pixels. Never empty, and within the picture.
struct Window {
  uint32_t left = 0;
  uint32_t top = 0;
  uint32_t width = 0;
  uint32_t height = 0;
};

struct Request {
  Window window;
  // 1, 2, 4 or 8: a decoder may give means of up to so many pixels a side instead of each pixel.
  uint32_t max_reduction = 1;
  // 0xRRGGBB: pixels with alpha are laid over it and come as RGB. Otherwise alpha is dropped.
  std::optional<uint32_t> background = std::nullopt;
  // JPEGs of four components come as CMYK, 0 for full ink, and not as RGB.
  bool keep_cmyk = false;
};

// `count` pixels of RGBA over the colour, as RGB in the same place.
void lay_over(uint32_t background, uint8_t* pixels, uint32_t count) noexcept;

// What a decoder is about to give: 1 (grey), 3 (RGB) or, where asked for, 4 (CMYK) bytes a pixel.
struct Frame {
  uint32_t channels = 3;
  uint32_t reduction = 1;
  Window window;  // in reduced pixels; covers the one that was asked for
};

class RowSink {
 public:
  virtual ~RowSink() = default;
  // Once, before all rows. May throw std::bad_alloc.
  virtual void begin(const Frame& frame) = 0;
  // Row `y` of the frame, counted from its top.
  virtual void row(uint32_t y, const uint8_t* pixels) noexcept = 0;
};

// Into planes, for the resampler.
class PlaneSink final : public RowSink {
 public:
  explicit PlaneSink(Memory& memory) : memory_(memory) {}
  void begin(const Frame& frame) override;
  void row(uint32_t y, const uint8_t* pixels) noexcept override;
  const Planes& planes() const { return planes_; }

 private:
  Memory& memory_;
  Planes planes_;
};

// As they are, to their places.
class CanvasSink final : public RowSink {
 public:
  explicit CanvasSink(const Canvas& canvas) : canvas_(canvas) {}
  void begin(const Frame& frame) override;
  void row(uint32_t y, const uint8_t* pixels) noexcept override;

 private:
  Canvas canvas_;
  Frame frame_;
};

// Each decodes the window of a picture whose header is known. kDamaged where what had to be decoded
// for it is cut or corrupt; rows may have been given then. `memory` is for the decoder.
Status decode_jpeg_rows(ByteSpan data, const Header& header, const Request& request, Memory& memory,
                        RowSink& sink);
Status decode_png_rows(ByteSpan data, const Header& header, const Request& request, Memory& memory,
                       RowSink& sink);
Status decode_webp_rows(ByteSpan data, const Header& header, const Request& request, Memory& memory,
                        RowSink& sink);

}  // namespace spk::picture
