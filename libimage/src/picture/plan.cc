#include "picture/plan.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "picture/random.h"

// Every operation here is one that IEEE 754 rounds exactly, in a fixed order: no function of the
// maths library but sqrt and nearbyint, and no contraction (-ffp-contract=off for this file). So
// all machines choose the same parts.
namespace spk::picture {
namespace {

constexpr int kCropTries = 10;
constexpr int kRatioTries = 1000;
constexpr double kMaxRatio = 16;

Status check_side(const char* name, uint32_t value) {
  if (value >= 1 && value <= kMaxOutputSide) return {};
  return invalid_argument(str_cat(name, " is ", value, ", not 1 to ", kMaxOutputSide));
}

bool in_order(double low, double a, double b, double high) {
  return low <= a && a <= b && b <= high;  // false for NaN as well
}

// What does not fit is more than any caller has room for.
uint32_t narrowed(uint64_t count) {
  return static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX));
}

uint32_t rounded(double value) { return static_cast<uint32_t>(std::nearbyint(value)); }

Axis whole(uint32_t size, uint32_t count) {
  return {0, static_cast<double>(size) / count, 0, size, count};
}

Axis part(uint32_t begin, uint32_t size, uint32_t count) {
  return {static_cast<double>(begin), static_cast<double>(size) / count, begin, begin + size,
          count};
}

// What `size` becomes where `shorter`, the shorter side, becomes `side`.
uint64_t in_proportion(uint32_t size, uint32_t side, uint32_t shorter) {
  return uint64_t{size} * side / shorter;
}

// All of `size` in `full` output pixels, of which the middle `count` are kept.
Axis middle(uint32_t size, uint64_t full, uint32_t count) {
  const double scale = static_cast<double>(size) / static_cast<double>(full);
  const double first = std::nearbyint(static_cast<double>(full - count) / 2);
  return {first * scale, scale, 0, size, count};
}

// What `size` becomes where `other` becomes `side`; rounds half up.
uint64_t rounded_proportion(uint32_t size, uint32_t side, uint32_t other) {
  return (2 * uint64_t{size} * side + other) / (2 * uint64_t{other});
}

// The middle of what covers width x height.
void cover(uint32_t width, uint32_t height, const Ops& ops, Plan& plan) {
  uint64_t full_width = ops.width;
  uint64_t full_height = ops.height;
  if (uint64_t{width} * ops.height >= uint64_t{height} * ops.width) {
    full_width = rounded_proportion(width, ops.height, height);
  } else {
    full_height = rounded_proportion(height, ops.width, width);
  }
  plan.x = middle(width, full_width, ops.width);
  plan.y = middle(height, full_height, ops.height);
}

// A number between low and high whose logarithm is evenly distributed: one that is evenly
// distributed itself, taken with a probability in inverse proportion to it.
double log_uniform(SampleRandom& random, double low, double high) {
  double value = low;
  for (int i = 0; i < kRatioTries; ++i) {
    value = low + random.unit() * (high - low);
    if (random.unit() * value < low) break;
  }
  return value;
}

void random_crop(uint32_t width, uint32_t height, const Ops& ops, SampleRandom& random,
                 Plan& plan) {
  const double area = static_cast<double>(width) * height;
  for (int i = 0; i < kCropTries; ++i) {
    const double wanted = area * (ops.scale_min + random.unit() * (ops.scale_max - ops.scale_min));
    const double ratio = log_uniform(random, ops.ratio_min, ops.ratio_max);
    const double wide = std::nearbyint(std::sqrt(wanted * ratio));
    const double high = std::nearbyint(std::sqrt(wanted / ratio));
    if (!(wide >= 1 && wide <= width && high >= 1 && high <= height)) continue;
    const auto w = static_cast<uint32_t>(wide);
    const auto h = static_cast<uint32_t>(high);
    const uint32_t top = random.below(height - h + 1);
    const uint32_t left = random.below(width - w + 1);
    plan.x = part(left, w, ops.width);
    plan.y = part(top, h, ops.height);
    return;
  }
  // None fits, as with very long pictures: the middle, as much of it as the ratios allow.
  const double ratio = static_cast<double>(width) / height;
  uint32_t w = width;
  uint32_t h = height;
  if (ratio < ops.ratio_min) h = std::clamp(rounded(width / ops.ratio_min), 1u, height);
  if (ratio > ops.ratio_max) w = std::clamp(rounded(height * ops.ratio_max), 1u, width);
  plan.x = part((width - w) / 2, w, ops.width);
  plan.y = part((height - h) / 2, h, ops.height);
}

}  // namespace

Status check_ops(const Ops& ops) {
  const bool sized = ops.kind == Kind::kResize || ops.kind == Kind::kCenterCrop ||
                     ops.kind == Kind::kRandomResizedCrop || ops.kind == Kind::kCoverCrop;
  if (sized) {
    SPK_TRY(check_side("width", ops.width));
    SPK_TRY(check_side("height", ops.height));
  }
  if (ops.kind == Kind::kResizeShort || ops.kind == Kind::kCenterCrop) {
    SPK_TRY(check_side("short_side", ops.short_side));
  }
  if (ops.kind == Kind::kCenterCrop && ops.short_side < std::max(ops.width, ops.height)) {
    return invalid_argument(str_cat("short_side is ", ops.short_side, ", less than the crop of ",
                                    ops.width, " x ", ops.height));
  }
  if (!in_order(0, ops.flip_probability, ops.flip_probability, 1)) {
    return invalid_argument("flip_probability is not within 0 to 1");
  }
  if (ops.kind == Kind::kRandomResizedCrop) {
    if (!(ops.scale_min > 0) || !in_order(0, ops.scale_min, ops.scale_max, 1)) {
      return invalid_argument("scale_min and scale_max are not within 0 < min <= max <= 1");
    }
    if (!in_order(1 / kMaxRatio, ops.ratio_min, ops.ratio_max, kMaxRatio)) {
      return invalid_argument("ratio_min and ratio_max are not within 1/16 <= min <= max <= 16");
    }
  }
  return {};
}

Plan make_plan(uint32_t width, uint32_t height, const Ops& ops, uint64_t sample) {
  SampleRandom random(ops.seed, ops.epoch, sample);
  const uint32_t shorter = std::min(width, height);
  Plan plan;
  plan.flip = random.unit() < ops.flip_probability;
  switch (ops.kind) {
    case Kind::kFull:
      plan.x = whole(width, width);
      plan.y = whole(height, height);
      break;
    case Kind::kResize:
      plan.x = whole(width, ops.width);
      plan.y = whole(height, ops.height);
      break;
    case Kind::kResizeShort:
      plan.x = whole(width, narrowed(in_proportion(width, ops.short_side, shorter)));
      plan.y = whole(height, narrowed(in_proportion(height, ops.short_side, shorter)));
      break;
    case Kind::kCenterCrop:
      plan.x = middle(width, in_proportion(width, ops.short_side, shorter), ops.width);
      plan.y = middle(height, in_proportion(height, ops.short_side, shorter), ops.height);
      break;
    case Kind::kRandomResizedCrop: random_crop(width, height, ops, random, plan); break;
    case Kind::kCoverCrop: cover(width, height, ops, plan); break;
  }
  return plan;
}

}  // namespace spk::picture
