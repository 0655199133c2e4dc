#include "picture/rows.h"

#include <cstring>

#include "base/checked.h"

namespace spk::picture {

void lay_over(uint32_t background, uint8_t* pixels, uint32_t count) noexcept {
  const uint32_t below[3] = {background >> 16 & 255, background >> 8 & 255, background & 255};
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t alpha = pixels[4 * i + 3];
    for (uint32_t c = 0; c < 3; ++c) {
      const uint32_t sum = pixels[4 * i + c] * alpha + below[c] * (255 - alpha);
      pixels[3 * i + c] = static_cast<uint8_t>((sum + 127) / 255);
    }
  }
}

void PlaneSink::begin(const Frame& frame) {
  planes_.model = frame.channels == 1 ? ColourModel::kGrey : ColourModel::kRgb;
  const size_t bytes = size_t{frame.window.width} * frame.window.height;
  uint8_t* data = memory_.need(bytes * frame.channels + kPlaneSlack);
  for (uint32_t i = 0; i < frame.channels; ++i) {
    planes_.planes[i] = {data + bytes * i,    frame.window.width, frame.window.width,
                         frame.window.height, frame.window.left,  frame.window.top,
                         frame.reduction,     frame.reduction};
  }
}

void PlaneSink::row(uint32_t y, const uint8_t* pixels) noexcept {
  const Plane& first = planes_.planes[0];
  const size_t offset = first.stride * y;
  if (planes_.model == ColourModel::kGrey) {
    std::memcpy(first.data + offset, pixels, first.width);
    return;
  }
  uint8_t* const red = first.data + offset;
  uint8_t* const green = planes_.planes[1].data + offset;
  uint8_t* const blue = planes_.planes[2].data + offset;
  for (uint32_t x = 0; x < first.width; ++x) {
    red[x] = pixels[3 * x];
    green[x] = pixels[3 * x + 1];
    blue[x] = pixels[3 * x + 2];
  }
}

void CanvasSink::begin(const Frame& frame) { frame_ = frame; }

void CanvasSink::row(uint32_t y, const uint8_t* pixels) noexcept {
  if (frame_.channels == 3) {
    canvas_.write_interleaved(y, pixels, frame_.window.width);
  } else {
    canvas_.write_planar(y, pixels, pixels, pixels, frame_.window.width);
  }
}

}  // namespace spk::picture
