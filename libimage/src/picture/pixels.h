// Pixels between a decoder and the resampler, and where they end up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "picture/orientation.h"

namespace spk::picture {

constexpr uint32_t kMaxSide = 1u << 20;  // of any picture, stored or made

// Memory that is used again and again. Contents are uninitialised.
class Memory {
 public:
  // At least `bytes`, valid until the next call. Throws std::bad_alloc.
  uint8_t* need(size_t bytes) {
    if (bytes > size_) {
      data_.reset();  // before the new one is made
      size_ = 0;
      data_.reset(new uint8_t[bytes]);
      size_ = bytes;
    }
    return data_.get();
  }
  void drop_if_over(size_t bytes) noexcept {
    if (size_ <= bytes) return;
    data_.reset();
    size_ = 0;
  }

 private:
  std::unique_ptr<uint8_t[]> data_;
  size_t size_ = 0;
};

// Part of a plane of 8-bit values. kPlaneSlack bytes behind the last row may be read.
constexpr size_t kPlaneSlack = 32;
struct Plane {
  uint8_t* data = nullptr;
  size_t stride = 0;
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t left = 0;  // of the first pixel, counted in the plane's own pixels
  uint32_t top = 0;
  uint32_t per_x = 1;  // the picture's pixels for one of the plane
  uint32_t per_y = 1;
};

enum class ColourModel { kGrey, kRgb, kYcc };

struct Planes {
  ColourModel model = ColourModel::kGrey;
  std::array<Plane, 3> planes;
  int count() const noexcept { return model == ColourModel::kGrey ? 1 : 3; }
};

// Where pixel (x, y) of the picture as stored goes: out + x * step_x + y * step_y + channel *
// step_channel. Layout, orientation and mirroring are nothing but these steps.
struct Canvas {
  uint8_t* out = nullptr;
  ptrdiff_t step_x = 0;
  ptrdiff_t step_y = 0;
  ptrdiff_t step_channel = 0;

  // For width x height pixels as stored. `out` has room for 3 bytes each.
  static Canvas make(uint8_t* out, uint32_t width, uint32_t height, const Turn& turn, bool planar);
  // One row as stored.
  void write_planar(uint32_t y, const uint8_t* red, const uint8_t* green, const uint8_t* blue,
                    uint32_t width) const noexcept;
  void write_interleaved(uint32_t y, const uint8_t* rgb, uint32_t width) const noexcept;
};

// As libjpeg's colour conversion, up to rounding.
void ycc_to_rgb(const uint8_t* luma, const uint8_t* cb, const uint8_t* cr, uint8_t* red,
                uint8_t* green, uint8_t* blue, uint32_t width) noexcept;
// CMYK as JPEGs hold it, with 255 for no ink; RGB over it in the same place.
void cmyk_to_rgb(uint8_t* pixels, uint32_t width) noexcept;

}  // namespace spk::picture
