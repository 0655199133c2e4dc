// Which sizes transforms give, and what is refused before anything is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image/transform.h"

namespace spk {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMostPixels = 178956970;

TransformOptions by_number(uint32_t number, ResizeMode mode) {
  TransformOptions options;
  options.width = options.height = number;
  options.mode = mode;
  return options;
}

TransformOptions by_box(uint32_t width, uint32_t height, ResizeMode mode) {
  TransformOptions options;
  options.width = width;
  options.height = height;
  options.box = true;
  options.mode = mode;
  return options;
}

Size2 made(const TransformOptions& options, Size2 stored, uint32_t orientation = 1) {
  const auto geometry = plan_geometry(options, stored, orientation, kMostPixels);
  EXPECT_TRUE(geometry.ok());
  return geometry.ok() ? geometry->made : Size2{};
}

struct Case {
  ResizeMode mode;
  Size2 wide;   // 640 x 480
  Size2 high;   // 100 x 333
  Size2 small;  // 40 x 20
};

TEST(TransformGeometry, ByOneNumber) {
  for (const Case& one : {
           Case{ResizeMode::kKeepRatio, {341, 256}, {256, 852}, {512, 256}},
           Case{ResizeMode::kKeepRatioLargest, {256, 192}, {77, 256}, {256, 128}},
           Case{ResizeMode::kCenterCrop, {256, 256}, {256, 256}, {256, 256}},
           Case{ResizeMode::kBorder, {256, 256}, {256, 256}, {256, 256}},
           Case{ResizeMode::kExact, {256, 256}, {256, 256}, {256, 256}},
       }) {
    TransformOptions options = by_number(256, one.mode);
    EXPECT_EQ(made(options, {640, 480}), one.wide) << static_cast<int>(one.mode);
    EXPECT_EQ(made(options, {100, 333}), one.high) << static_cast<int>(one.mode);
    EXPECT_EQ(made(options, {40, 20}), one.small) << static_cast<int>(one.mode);
    options.only_if_bigger = true;
    EXPECT_EQ(made(options, {40, 20}), (Size2{40, 20}));
  }
}

TEST(TransformGeometry, ByABox) {
  for (const Case& one : {
           Case{ResizeMode::kKeepRatio, {267, 200}, {60, 200}, {300, 150}},
           Case{ResizeMode::kKeepRatioLargest, {300, 225}, {300, 999}, {400, 200}},
           Case{ResizeMode::kCenterCrop, {300, 200}, {300, 200}, {300, 200}},
           Case{ResizeMode::kBorder, {300, 200}, {300, 200}, {300, 200}},
           Case{ResizeMode::kExact, {300, 200}, {300, 200}, {300, 200}},
       }) {
    TransformOptions options = by_box(300, 200, one.mode);
    EXPECT_EQ(made(options, {640, 480}), one.wide) << static_cast<int>(one.mode);
    EXPECT_EQ(made(options, {100, 333}), one.high) << static_cast<int>(one.mode);
    EXPECT_EQ(made(options, {40, 20}), one.small) << static_cast<int>(one.mode);
    options.only_if_bigger = true;
    EXPECT_EQ(made(options, {40, 20}), (Size2{40, 20}));
  }
}

TEST(TransformGeometry, OnlyWhatGetsSmaller) {
  for (const ResizeMode mode : {ResizeMode::kKeepRatio, ResizeMode::kBorder, ResizeMode::kExact}) {
    TransformOptions options = by_box(300, 200, mode);
    options.only_if_bigger = true;
    EXPECT_NE(made(options, {301, 10}), (Size2{301, 10}));
    EXPECT_EQ(made(options, {300, 199}), (Size2{300, 199}));
  }
  for (const ResizeMode mode : {ResizeMode::kKeepRatioLargest, ResizeMode::kCenterCrop}) {
    TransformOptions options = by_box(300, 200, mode);
    options.only_if_bigger = true;
    EXPECT_EQ(made(options, {301, 200}), (Size2{301, 200}));
    EXPECT_NE(made(options, {301, 201}), (Size2{301, 201}));
  }
}

TEST(TransformGeometry, TurnsCountFirst) {
  TransformOptions options = by_box(300, 200, ResizeMode::kKeepRatio);
  EXPECT_EQ(made(options, {480, 640}, 6), (Size2{150, 200}));
  options.orient = true;
  EXPECT_EQ(made(options, {480, 640}, 6), (Size2{267, 200}));
  EXPECT_EQ(made(options, {480, 640}, 9), (Size2{150, 200}));
  options = {};
  options.orient = true;
  EXPECT_FALSE(plan_geometry(options, {5, 5}, 3, kMostPixels)->keeps_places());
  EXPECT_TRUE(plan_geometry(options, {5, 5}, 1, kMostPixels)->keeps_places());
}

TEST(TransformGeometry, ExtremeShapes) {
  EXPECT_EQ(made(by_number(1, ResizeMode::kKeepRatioLargest), {65535, 1}), (Size2{1, 1}));
  EXPECT_EQ(made(by_box(65535, 1, ResizeMode::kKeepRatio), {1, 65535}), (Size2{1, 1}));
  const auto long_one =
      plan_geometry(by_number(100, ResizeMode::kKeepRatio), {60000, 10}, 1, kMostPixels);
  ASSERT_FALSE(long_one.ok());
  EXPECT_EQ(long_one.status().code(), Code::kUnsupported);
  EXPECT_EQ(long_one.status().message(), "it would have 600000 x 100 pixels");
  const auto large =
      plan_geometry(by_box(20000, 10000, ResizeMode::kExact), {5, 5}, 1, kMostPixels);
  EXPECT_EQ(large.status().message(), "it would have 20000 x 10000 pixels");
}

TEST(TransformGeometry, ImpossibleSizesAreRefusedAtOnce) {
  const auto expect = [](TransformOptions options, EncodeAs encode, const char* what) {
    options.encode = encode;
    const Status status = check_transform(options, kMostPixels, uint64_t{512} << 20);
    if (status.code() == Code::kUnsupported) GTEST_SKIP() << "no picture library";
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << what;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  };
  expect(by_number(65536, ResizeMode::kKeepRatio), EncodeAs::kSame, "a side may have 65535 pixels");
  expect(by_box(65535, 65535, ResizeMode::kExact), EncodeAs::kSame,
         "makes pictures of 4,294,836,225 pixels, --max-pixels allows 178,956,970");
  expect(by_box(12000, 12000, ResizeMode::kBorder), EncodeAs::kRaw, "--memory allows 512");
  expect(by_number(12000, ResizeMode::kCenterCrop), EncodeAs::kRaw, "--memory allows 512");
  expect(by_number(65501, ResizeMode::kKeepRatioLargest), EncodeAs::kJpeg,
         "a JPEG side may have 65500 pixels");
  expect(by_box(5, 0, ResizeMode::kExact), EncodeAs::kSame, "leaves no pixels");
  // What fits inside may be small.
  EXPECT_TRUE(check_transform(by_box(20000, 20000, ResizeMode::kKeepRatio), kMostPixels).ok() ||
              !check_transform(by_number(5, ResizeMode::kExact)).ok());
}

}  // namespace
}  // namespace spk
