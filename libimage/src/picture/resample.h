// Resampling with antialiasing: a filter as wide as output pixels ask for (source pixels where it
// enlarges), normalised over the source pixels that it covers.
#pragma once

#include <cstdint>
#include <vector>

#include "picture/pixels.h"
#include "picture/plan.h"

namespace spk::picture {

constexpr int kWeightBits = 14;

// The weights of one axis.
struct Filter {
  uint32_t stride = 0;           // weights for an output pixel, a multiple of 8, the rest zero
  std::vector<uint32_t> first;   // source pixel of the first weight
  std::vector<uint32_t> taps;    // how many are not beyond the filter
  std::vector<int16_t> weights;  // sum up to exactly 2^kWeightBits

  // AXIS in the plane's own pixels.
  void make(const Axis& axis, Interpolation interpolation = Interpolation::kBilinear);

 private:
  Axis made_for_;  // planes of one picture mostly have the same axes
  Interpolation made_as_ = Interpolation::kBilinear;
};

// How far the filter reaches from the middle of an output pixel, in source pixels.
double filter_reach(Interpolation interpolation, double scale) noexcept;

// What an axis in the picture's pixels is in those of a plane, `size` of which are there from
// `origin` on, `per` picture pixels each.
Axis in_plane(const Axis& axis, uint32_t per, uint32_t origin, uint32_t size) noexcept;

class Resampler {
 public:
  // Fills out[] with y.count rows of x.count bytes. The axes are the picture's. What they look at
  // must be in the plane. Throws std::bad_alloc.
  void run(const Plane& plane, const Axis& x, const Axis& y, uint8_t* out,
           Interpolation x_kind = Interpolation::kBilinear,
           Interpolation y_kind = Interpolation::kBilinear);

 private:
  Filter across_;
  Filter down_;
  std::vector<const uint8_t*> rows_;
  std::vector<int16_t> row_;
};

}  // namespace spk::picture
