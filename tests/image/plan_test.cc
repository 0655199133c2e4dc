// Which part of a picture is taken: the numbers of docs/IMAGES.md, and what torchvision would do.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <tuple>

#include "image/pictures.h"
#include "picture/random.h"

namespace spk::test {
namespace {

spk_image_crop plan(uint32_t width, uint32_t height, const spk_image_ops& ops, uint64_t sample) {
  spk_image_crop crop = {};
  crop.struct_size = sizeof crop;
  EXPECT_EQ(spk_image_plan_crop(width, height, &ops, sample, &crop, nullptr), SPK_OK);
  return crop;
}

TEST(ImageRandom, TestVectors) {
  picture::SampleRandom zero(0, 0, 0);
  EXPECT_EQ(zero.next(), 0x9b3cc9105ecb6fabU);
  EXPECT_EQ(zero.next(), 0xc5ffdf02c9fed6b4U);
  EXPECT_EQ(zero.next(), 0x80639578b0d3d3e4U);
  picture::SampleRandom some(1, 2, 3);
  EXPECT_EQ(some.next(), 0xf68e42495ae57e18U);
  EXPECT_EQ(some.next(), 0xe5501b9d5ebe883eU);
  EXPECT_EQ(some.next(), 0xb4afd6920fd1cacdU);
  picture::SampleRandom large(UINT64_MAX, 5, 1281166);
  EXPECT_EQ(large.next(), 0xad2b7db6d231db4dU);
  EXPECT_EQ(large.next(), 0xc1bac2d4d5b2ef63U);
  EXPECT_EQ(large.next(), 0xccba42b67078c31aU);
}

TEST(ImagePlan, RandomCropsKeepTheirRanges) {
  spk_image_ops ops = make_ops(SPK_IMAGE_RANDOM_RESIZED_CROP, 224, 160);
  ops.flip_probability = 0.5;
  double flips = 0;
  double area = 0;
  double log_ratio = 0;
  constexpr int kCount = 20000;
  for (uint64_t i = 0; i < kCount; ++i) {
    const spk_image_crop crop = plan(1000, 1000, ops, i);
    const double width = crop.right - crop.left;
    const double height = crop.bottom - crop.top;
    ASSERT_EQ(crop.width, 224U);
    ASSERT_EQ(crop.height, 160U);
    ASSERT_EQ(width, std::floor(width));
    ASSERT_GE(crop.left, 0);
    ASSERT_LE(crop.right, 1000);
    ASSERT_GE(crop.top, 0);
    ASSERT_LE(crop.bottom, 1000);
    ASSERT_NEAR(width * height, 0.54e6, 0.461e6);
    ASSERT_GT(width / height, 0.74);
    ASSERT_LT(width / height, 1.35);
    flips += crop.flipped;
    area += width * height / 1e6;
    log_ratio += std::log(width / height);
  }
  EXPECT_NEAR(flips / kCount, 0.5, 0.015);
  // What torchvision comes to: less than 0.54, for large parts of uneven sides do not fit and are
  // drawn again.
  EXPECT_NEAR(area / kCount, 0.481, 0.01);
  EXPECT_NEAR(log_ratio / kCount, 0, 0.01);
}

TEST(ImagePlan, EverySampleEpochAndSeedHasItsOwn) {
  std::set<std::tuple<double, double, double, double>> seen;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      for (uint64_t sample = 0; sample < 100; ++sample) {
        spk_image_ops ops = make_ops(SPK_IMAGE_RANDOM_RESIZED_CROP, 8, 8);
        ops.seed = seed;
        ops.epoch = epoch;
        const spk_image_crop crop = plan(4000, 3000, ops, sample);
        seen.insert({crop.left, crop.top, crop.right, crop.bottom});
      }
    }
  }
  EXPECT_EQ(seen.size(), 900U);
}

TEST(ImagePlan, WhatNoRatioFitsGivesItsMiddle) {
  const spk_image_ops ops = make_ops(SPK_IMAGE_RANDOM_RESIZED_CROP, 8, 8);
  const spk_image_crop wide = plan(3000, 3, ops, 7);
  EXPECT_EQ(wide.top, 0);
  EXPECT_EQ(wide.bottom, 3);
  EXPECT_EQ(wide.left, 1498);
  EXPECT_EQ(wide.right, 1502);
  const spk_image_crop high = plan(3, 3000, ops, 7);
  EXPECT_EQ(high.left, 0);
  EXPECT_EQ(high.right, 3);
  EXPECT_EQ(high.top, 1498);
  EXPECT_EQ(high.bottom, 1502);
  const spk_image_crop dot = plan(1, 1, ops, 7);
  EXPECT_EQ(dot.right - dot.left, 1);
}

TEST(ImagePlan, OneScaleAndOneRatio) {
  spk_image_ops ops = make_ops(SPK_IMAGE_RANDOM_RESIZED_CROP, 8, 8);
  ops.scale_min = ops.scale_max = 0.25;
  ops.ratio_min = ops.ratio_max = 1;
  for (uint64_t i = 0; i < 100; ++i) {
    const spk_image_crop crop = plan(200, 200, ops, i);
    ASSERT_EQ(crop.right - crop.left, 100);
    ASSERT_EQ(crop.bottom - crop.top, 100);
  }
}

TEST(ImagePlan, ShortSideAndMiddle) {
  spk_image_ops ops = make_ops(SPK_IMAGE_RESIZE_SHORT);
  ops.short_side = 256;
  spk_image_crop crop = plan(500, 375, ops, 0);
  EXPECT_EQ(crop.width, 341U);  // int(256 * 500 / 375)
  EXPECT_EQ(crop.height, 256U);
  EXPECT_EQ(crop.right, 500);
  crop = plan(375, 500, ops, 0);
  EXPECT_EQ(crop.width, 256U);
  EXPECT_EQ(crop.height, 341U);

  ops = make_ops(SPK_IMAGE_CENTER_CROP, 224, 224);
  ops.short_side = 256;
  crop = plan(500, 375, ops, 0);
  EXPECT_EQ(crop.width, 224U);
  // (341 - 224) / 2 = 58.5 goes to the even 58.
  EXPECT_DOUBLE_EQ(crop.left, 58 * 500.0 / 341);
  EXPECT_DOUBLE_EQ(crop.right, (58 + 224) * 500.0 / 341);
  EXPECT_DOUBLE_EQ(crop.top, 16 * 375.0 / 256);
  // Far longer than wide: the output of the resize alone would not fit into memory.
  crop = plan(1, 1000000, ops, 0);
  EXPECT_EQ(crop.height, 224U);
}

TEST(ImagePlan, BadOptionsAreRefusedByName) {
  const auto message = [](spk_image_ops ops) {
    spk_error error = {};
    error.struct_size = sizeof error;
    spk_image_crop crop = {};
    crop.struct_size = sizeof crop;
    EXPECT_EQ(spk_image_plan_crop(10, 10, &ops, 0, &crop, &error), SPK_INVALID_ARGUMENT);
    return std::string(error.message);
  };
  spk_image_ops ops = make_ops(SPK_IMAGE_RESIZE, 0, 5);
  EXPECT_EQ(message(ops), "width is 0, not 1 to 65535");
  ops = make_ops(SPK_IMAGE_RESIZE, 5, 65536);
  EXPECT_EQ(message(ops), "height is 65536, not 1 to 65535");
  ops = make_ops(SPK_IMAGE_CENTER_CROP, 9, 9);
  ops.short_side = 8;
  EXPECT_EQ(message(ops), "short_side is 8, less than the crop of 9 x 9");
  ops = make_ops(SPK_IMAGE_FULL);
  ops.flip_probability = NAN;
  EXPECT_EQ(message(ops), "flip_probability is not within 0 to 1");
  ops = make_ops(SPK_IMAGE_RANDOM_RESIZED_CROP, 9, 9);
  ops.scale_min = 0.5;
  ops.scale_max = 0.4;
  EXPECT_EQ(message(ops), "scale_min and scale_max are not within 0 < min <= max <= 1");
  ops = make_ops(SPK_IMAGE_RANDOM_RESIZED_CROP, 9, 9);
  ops.ratio_min = 1;
  ops.ratio_max = 17;
  EXPECT_EQ(message(ops), "ratio_min and ratio_max are not within 1/16 <= min <= max <= 16");
  EXPECT_EQ(message(make_ops(9)), "there is no operation 9");
  ops = make_ops(SPK_IMAGE_FULL);
  ops.layout = 2;
  EXPECT_EQ(message(ops), "there is no layout 2");
  ops.struct_size = 0;
  EXPECT_EQ(message(ops), "struct_size of the ops is not set");
}

}  // namespace
}  // namespace spk::test
