// BMP to pixels. Pictures here are of a few pixels, written by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image/still.h"
#include "unit/probe_pictures.h"

namespace spk {
namespace {

using test::Bytes;
using testing::ElementsAre;
using testing::HasSubstr;

void put16(Bytes& to, uint32_t value) {
  for (uint32_t i = 0; i < 2; ++i) to.push_back(static_cast<uint8_t>(value >> 8 * i));
}
void put32(Bytes& to, uint32_t value) {
  for (uint32_t i = 0; i < 4; ++i) to.push_back(static_cast<uint8_t>(value >> 8 * i));
}

// A header of HEADER_BYTES, MIDDLE (masks, palette), then PIXELS.
Bytes bmp(int32_t width, int32_t height, uint16_t depth, uint32_t coding, const Bytes& middle,
          const Bytes& pixels, uint32_t header_bytes = 40, uint32_t colours = 0) {
  Bytes file = {'B', 'M'};
  const auto pixels_at = static_cast<uint32_t>(14 + header_bytes + middle.size());
  put32(file, static_cast<uint32_t>(pixels_at + pixels.size()));
  put32(file, 0);
  put32(file, pixels_at);
  put32(file, header_bytes);
  put32(file, static_cast<uint32_t>(width));
  put32(file, static_cast<uint32_t>(height));
  put16(file, 1);
  put16(file, depth);
  put32(file, coding);
  for (int i = 0; i < 3; ++i) put32(file, 0);
  put32(file, colours);
  file.resize(14 + header_bytes);
  test::append(file, middle);
  test::append(file, pixels);
  return file;
}

Bytes pixels_of(const Bytes& file, std::optional<uint32_t> background = std::nullopt) {
  const auto info = image::look_at_bmp(file);
  if (!info.ok()) {
    ADD_FAILURE() << info.status().message();
    return {};
  }
  const auto still = image::read_bmp(file, *info, {background, false});
  if (!still.ok()) {
    ADD_FAILURE() << still.status().message();
    return {};
  }
  EXPECT_EQ(still->channels, 3u);
  EXPECT_FALSE(still->has_more);
  EXPECT_EQ(still->pixels.size(), size_t{3} * info->width * info->height);
  return still->pixels;
}

Status refused(const Bytes& file) {
  const auto info = image::look_at_bmp(file);
  if (!info.ok()) return info.status();
  const auto still = image::read_bmp(file, *info, {});
  EXPECT_FALSE(still.ok());
  return still.status();
}

TEST(StillBmp, From24BitsFromBothEnds) {
  const Bytes rows = {3, 2, 1, 6, 5, 4, 0, 0, 9, 8, 7, 12, 11, 10, 0, 0};
  EXPECT_THAT(pixels_of(bmp(2, 2, 24, 0, {}, rows)),
              ElementsAre(7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(pixels_of(bmp(2, -2, 24, 0, {}, rows)),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
}

TEST(StillBmp, PalettesOfAllDepths) {
  const Bytes palette = {1, 2, 3, 0, 4, 5, 6, 0};
  EXPECT_THAT(pixels_of(bmp(3, 1, 1, 0, palette, {0x40, 0, 0, 0}, 40, 2)),
              ElementsAre(3, 2, 1, 6, 5, 4, 3, 2, 1));
  EXPECT_THAT(pixels_of(bmp(3, 1, 4, 0, palette, {0x10, 0x10, 0, 0}, 40, 2)),
              ElementsAre(6, 5, 4, 3, 2, 1, 6, 5, 4));
  // The third pixel asks for a colour that is not there.
  EXPECT_THAT(pixels_of(bmp(3, 1, 8, 0, palette, {1, 0, 200, 0}, 40, 2)),
              ElementsAre(6, 5, 4, 3, 2, 1, 0, 0, 0));
}

TEST(StillBmp, The12ByteHeader) {
  Bytes file = {'B', 'M', 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 12, 0,   0,
                0,   2,   0, 1, 0, 1, 0, 1, 0, 1, 2,  3, 4, 5, 6,  0x80};
  file.resize(36);
  EXPECT_THAT(pixels_of(file), ElementsAre(6, 5, 4, 3, 2, 1));
}

TEST(StillBmp, SixteenBitsWithAndWithoutMasks) {
  Bytes pixels;
  put16(pixels, 0x7c1f);
  put16(pixels, 0x0210);
  EXPECT_THAT(pixels_of(bmp(2, 1, 16, 0, {}, pixels)), ElementsAre(255, 0, 255, 0, 132, 132));
  Bytes masks;
  for (const uint32_t mask : {0xf800u, 0x7e0u, 0x1fu}) put32(masks, mask);
  Bytes row;
  put16(row, 0xf800);
  put16(row, 0x07e0);
  EXPECT_THAT(pixels_of(bmp(2, 1, 16, 3, masks, row)), ElementsAre(255, 0, 0, 0, 255, 0));
}

TEST(StillBmp, AlphaIsDroppedOrLaidOverABackground) {
  Bytes header;
  for (const uint32_t mask : {0xffu, 0xff00u, 0xff0000u, 0xff000000u}) put32(header, mask);
  Bytes file = bmp(2, 1, 32, 3, {}, {200, 100, 0, 255, 200, 100, 0, 0}, 56);
  std::copy(header.begin(), header.end(), file.begin() + 54);
  EXPECT_TRUE(image::look_at_bmp(file)->alpha);
  EXPECT_THAT(pixels_of(file), ElementsAre(200, 100, 0, 200, 100, 0));
  EXPECT_THAT(pixels_of(file, 0x0000ff), ElementsAre(200, 100, 0, 0, 0, 255));
  // Without masks the fourth byte means nothing.
  file = bmp(1, 1, 32, 0, {}, {1, 2, 3, 0});
  EXPECT_FALSE(image::look_at_bmp(file)->alpha);
  EXPECT_THAT(pixels_of(file, 0x0000ff), ElementsAre(3, 2, 1));
}

TEST(StillBmp, WhatIsNotReadIsNamed) {
  const auto expect = [](const Bytes& file, Code code, const char* what) {
    const Status status = refused(file);
    EXPECT_EQ(status.code(), code) << what;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  };
  const Bytes four = {0, 0, 0, 0};
  expect(bmp(1, 1, 8, 1, {}, four), Code::kUnsupported, "run lengths");
  expect(bmp(1, 1, 4, 2, {}, four), Code::kUnsupported, "run lengths");
  expect(bmp(1, 1, 24, 4, {}, four), Code::kUnsupported, "24 bits a pixel, compression 4");
  expect(bmp(1, 1, 24, 3, {}, four), Code::kUnsupported, "24 bits a pixel, compression 3");
  expect(bmp(1, 1, 2, 0, {}, four), Code::kUnsupported, "2 bits a pixel");
  Bytes gaps;
  for (const uint32_t mask : {0x5000u, 0x7e0u, 0x1fu}) put32(gaps, mask);
  expect(bmp(1, 1, 16, 3, gaps, four), Code::kUnsupported, "side by side");
  expect(bmp(0, 1, 24, 0, {}, four), Code::kDamaged, "0 x 1 pixels");
  expect(bmp(1, 0, 24, 0, {}, four), Code::kDamaged, "1 x 0 pixels");
  expect(bmp(-5, 1, 24, 0, {}, four), Code::kDamaged, "-5 x 1 pixels");
  expect(bmp(1, INT32_MIN, 24, 0, {}, four), Code::kDamaged, "the file ends at 58");
  expect(bmp(2, 1, 24, 0, {}, four), Code::kDamaged,
         "the pixels at offset 54 need 8 bytes, the file ends at 58");
  expect(Bytes{'B', 'M', 0}, Code::kDamaged, "the header is cut");
  Bytes file = bmp(1, 1, 24, 0, {}, four);
  file[14] = 16;
  expect(file, Code::kUnsupported, "a header of 16 bytes");
  file[14] = 124;
  expect(file, Code::kDamaged, "the header is cut");
  file = bmp(1, 1, 16, 3, {}, {});
  expect(file, Code::kDamaged, "the masks are cut");
}

TEST(StillBmp, EveryShorterFileIsRefused) {
  const Bytes file = test::make_bmp(7, 5, 8);
  ASSERT_TRUE(image::read_bmp(file, *image::look_at_bmp(file), {}).ok());
  for (size_t size = 0; size + 1 < file.size(); ++size) {
    const Bytes cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_EQ(refused(cut).code(), Code::kDamaged) << size;
  }
}

TEST(StillBmp, ProfilesAreTakenWhole) {
  Bytes file = bmp(1, 1, 24, 0, {}, {0, 0, 0, 0, 5, 6, 7}, 124);
  EXPECT_THAT(image::bmp_profile(file), ElementsAre());
  const Bytes tag = {'D', 'E', 'B', 'M'};
  std::copy(tag.begin(), tag.end(), file.begin() + 14 + 56);
  file[14 + 112] = 124 + 4;
  file[14 + 116] = 3;
  EXPECT_THAT(image::bmp_profile(file), ElementsAre(5, 6, 7));
  file[14 + 116] = 4;
  EXPECT_THAT(image::bmp_profile(file), ElementsAre());
}

// What is missing is named, with the package that brings it.
TEST(Still, ABuildWithoutALibrarySaysSo) {
#if !SPK_HAVE_GIF
  const Status gif = image::look_at_gif(test::make_gif(5, 4)).status();
  EXPECT_EQ(gif.code(), Code::kUnsupported);
  EXPECT_THAT(std::string(gif.message()), HasSubstr("libgif-dev"));
#else
  EXPECT_EQ(image::look_at_gif(test::make_gif(5, 4))->width, 5u);
#endif
#if !SPK_HAVE_TIFF
  const Status tiff = image::look_at_tiff(test::make_tiff(5, 4, true)).status();
  EXPECT_EQ(tiff.code(), Code::kUnsupported);
  EXPECT_THAT(std::string(tiff.message()), HasSubstr("libtiff-dev"));
#else
  EXPECT_EQ(image::look_at_tiff(test::make_tiff(5, 4, true))->width, 5u);
#endif
}

}  // namespace
}  // namespace spk
