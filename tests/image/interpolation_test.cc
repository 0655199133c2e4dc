// The kernels beside bilinear: against plain sums in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "image/pictures.h"
#include "picture/decode.h"

namespace spk::test {
namespace {

using picture::Interpolation;

double sinc(double x) { return x == 0 ? 1 : std::sin(M_PI * x) / (M_PI * x); }

// The weight of source pixel `k` in output pixel `i`, unnormalised.
double weight(Interpolation kind, double scale, uint32_t i, uint32_t k) {
  const double centre = (i + 0.5) * scale;
  const double wide = std::max(scale, 1.0);
  const double x = (k + 0.5 - centre) / wide;
  if (kind == Interpolation::kArea && scale >= 1) {
    return std::max(
        0.0, std::min(k + 1.0, centre + scale / 2) - std::max(double(k), centre - scale / 2));
  }
  if (kind == Interpolation::kLanczos) return std::abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0;
  return std::max(0.0, 1 - std::abs(x));
}

std::vector<double> weights_of(Interpolation kind, uint32_t from, uint32_t to, uint32_t i) {
  std::vector<double> row(from);
  double total = 0;
  for (uint32_t k = 0; k < from; ++k) {
    row[k] = weight(kind, double(from) / to, i, k);
    total += row[k];
  }
  for (double& value : row) value /= total;
  return row;
}

std::vector<double> reference(const Pixels& from, Interpolation kind, uint32_t width,
                              uint32_t height) {
  std::vector<double> out(size_t{width} * height * from.channels);
  std::vector<double> rows(size_t{from.width} * height * from.channels);
  for (uint32_t y = 0; y < height; ++y) {
    const auto down = weights_of(kind, from.height, height, y);
    for (uint32_t x = 0; x < from.width * from.channels; ++x) {
      double sum = 0;
      for (uint32_t k = 0; k < from.height; ++k) {
        sum += down[k] * from.bytes[size_t{k} * from.width * from.channels + x];
      }
      rows[size_t{y} * from.width * from.channels + x] = sum;
    }
  }
  for (uint32_t x = 0; x < width; ++x) {
    const auto across = weights_of(kind, from.width, width, x);
    for (uint32_t y = 0; y < height; ++y) {
      for (uint32_t c = 0; c < from.channels; ++c) {
        double sum = 0;
        for (uint32_t k = 0; k < from.width; ++k) {
          sum += across[k] * rows[(size_t{y} * from.width + k) * from.channels + c];
        }
        out[(size_t{y} * width + x) * from.channels + c] = std::clamp(sum, 0.0, 255.0);
      }
    }
  }
  return out;
}

std::vector<uint8_t> made(const Pixels& from, Interpolation kind, uint32_t width, uint32_t height,
                          picture::Scratch& scratch) {
  picture::Ops ops;
  ops.kind = picture::Kind::kResize;
  ops.width = width;
  ops.height = height;
  ops.interpolation = kind;
  std::vector<uint8_t> out(size_t{3} * width * height);
  picture::Source source;
  source.data = from.bytes;
  source.out = out;
  source.raw = {from.width, from.height, from.channels};
  picture::Size size;
  const Status status = picture::decode(source, ops, scratch, nullptr, size);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(size.width, width);
  EXPECT_EQ(size.height, height);
  return out;
}

TEST(ImageInterpolation, IsWhatPlainSumsGive) {
  const Pixels from = photograph(157, 113);
  picture::Scratch scratch;  // one for all, so that what it keeps is seen to be told apart
  for (const auto& [width, height] :
       {std::pair{64U, 48U}, {20U, 113U}, {157U, 9U}, {300U, 250U}, {156U, 112U}, {1U, 1U}}) {
    for (const Interpolation kind :
         {Interpolation::kBilinear, Interpolation::kArea, Interpolation::kLanczos}) {
      const std::vector<uint8_t> got = made(from, kind, width, height, scratch);
      const Difference off = difference(reference(from, kind, width, height), got);
      EXPECT_LT(off.max, 1.2) << width << " x " << height << ", kind " << int(kind);
      EXPECT_LT(off.mean, 0.35) << width << " x " << height << ", kind " << int(kind);
    }
  }
}

TEST(ImageInterpolation, GreyPixelsComeAsThreeEqualChannels) {
  const Pixels from = photograph(60, 50, 1);
  picture::Scratch scratch;
  const std::vector<uint8_t> got = made(from, Interpolation::kArea, 30, 25, scratch);
  for (size_t i = 0; i < got.size(); i += 3) {
    const size_t at = 2 * (i / 3 % 30) + 2 * size_t{60} * (i / 3 / 30);
    const int sum = from.bytes[at] + from.bytes[at + 1] + from.bytes[at + 60] + from.bytes[at + 61];
    ASSERT_NEAR(got[i], sum / 4.0, 1.0);
    ASSERT_EQ(got[i], got[i + 1]);
    ASSERT_EQ(got[i], got[i + 2]);
  }
}

TEST(ImageInterpolation, LanczosStaysWithinABlackAndWhiteEdge) {
  Pixels from{64, 4, 1, std::vector<uint8_t>(256, 0)};
  for (size_t i = 0; i < 256; ++i) from.bytes[i] = i % 64 < 32 ? 0 : 255;
  picture::Scratch scratch;
  const std::vector<uint8_t> got = made(from, Interpolation::kLanczos, 32, 4, scratch);
  EXPECT_EQ(got[0], 0);
  EXPECT_EQ(got[3 * 14], 0);  // where the kernel undershoots
  EXPECT_EQ(got[3 * 17], 255);
  EXPECT_EQ(got[3 * 31], 255);
}

TEST(ImageInterpolation, PixelsOfAnotherSizeAreRefused) {
  const Pixels from = photograph(20, 10);
  std::vector<uint8_t> out(600);
  picture::Source source;
  source.data = ByteSpan(from.bytes).first(599);
  source.out = out;
  source.raw = {20, 10, 3};
  picture::Scratch scratch;
  picture::Size size;
  EXPECT_EQ(picture::decode(source, {}, scratch, nullptr, size).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace spk::test
