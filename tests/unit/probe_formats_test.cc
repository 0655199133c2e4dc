// The formats other than JPEG; see probe_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "image/formats.h"
#include "image/probe.h"
#include "unit/probe_pictures.h"

namespace spk {
namespace {

using test::Bytes;
using test::operator+;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr CheckMode kStructure = CheckMode::kStructure;
constexpr CheckMode kDecode = CheckMode::kDecode;
#if SPK_HAVE_PNG
constexpr bool kHavePng = true;
#else
constexpr bool kHavePng = false;
#endif

ProbeResult probe(const Bytes& bytes, CheckMode mode = kStructure, uint64_t max_pixels = 1 << 20) {
  MemoryView view({bytes.data(), bytes.size()});
  auto result = probe_picture(view, {mode, max_pixels});
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  return result.ok() ? *result : ProbeResult{};
}

Bytes prefix(const Bytes& bytes, size_t count) {
  return Bytes(bytes.begin(), bytes.begin() + static_cast<long>(count));
}

// What holds of every format: dimensions, cuts at each byte, a tail, the pixel limit.
void expect_usual(const Bytes& bytes, PictureFormat format, uint32_t height, uint32_t width,
                  uint32_t channels, bool decoder, size_t spare = 0) {
  SCOPED_TRACE(picture_format_name(format));
  for (CheckMode mode : {CheckMode::kNone, kStructure, kDecode}) {
    const ProbeResult result = probe(bytes, mode);
    EXPECT_EQ(result.format, format);
    EXPECT_EQ(result.height, height);
    EXPECT_EQ(result.width, width);
    EXPECT_EQ(result.channels, channels);
    EXPECT_THAT(result.warnings, IsEmpty());
    EXPECT_EQ(result.reject.empty(), decoder || mode != kDecode) << result.reject;
    EXPECT_TRUE(result.decoded || !decoder || mode != kDecode);
    if (mode == CheckMode::kNone) continue;
    for (size_t count = 0; count + spare < bytes.size(); ++count) {
      ASSERT_NE(probe(prefix(bytes, count), mode).reject, "") << count << " of " << bytes.size();
    }
    const uint64_t pixels = uint64_t{height} * width;
    EXPECT_THAT(probe(bytes, mode, pixels - 1).reject, StartsWith("over the pixel limit: "));
  }
}

TEST(ProbePng, EveryKindAndCut) {
  struct Kind {
    uint8_t colour, depth;
    uint32_t channels;
  };
  for (const Kind kind : {Kind{0, 1, 1}, Kind{0, 4, 1}, Kind{0, 16, 1}, Kind{2, 8, 3},
                          Kind{2, 16, 3}, Kind{3, 8, 3}, Kind{4, 8, 2}, Kind{6, 8, 4}}) {
    for (bool interlaced : {false, true}) {
      expect_usual(test::make_png(9, 5, kind.colour, kind.depth, interlaced), PictureFormat::kPng,
                   5, 9, kind.channels, kHavePng);
    }
  }
}

TEST(ProbePng, ChecksumIsTheUsualOne) {
  EXPECT_EQ(image::crc32_ieee(0, as_bytes("123456789")), 0xCBF43926u);
  Bytes bytes(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * i);
  uint32_t one_by_one = 0;
  for (uint8_t byte : bytes) one_by_one = image::crc32_ieee(one_by_one, {&byte, 1});
  EXPECT_EQ(image::crc32_ieee(0, bytes), one_by_one);
}

TEST(ProbePng, EveryFlippedByteOfPixelsIsFoundAndMetadataForgiven) {
  const Bytes bytes = test::make_png(6, 4, 2, 8);
  const size_t text_chunk = 8 + 25, text_end = text_chunk + 12 + 3;
  for (size_t i = 8; i < bytes.size(); ++i) {
    Bytes flipped = bytes;
    flipped[i] ^= 0x10;
    const ProbeResult result = probe(flipped);
    if (i >= text_chunk + 8 && i < text_end) {
      EXPECT_EQ(result.reject, "");
      EXPECT_THAT(result.warnings, ElementsAre("damaged metadata"));
    } else if (i < text_chunk + 4 || i >= text_end) {
      EXPECT_NE(result.reject, "") << i;
    }
  }
  Bytes flipped = bytes;
  flipped[text_end + 20] ^= 1;
  EXPECT_EQ(probe(flipped).reject,
            str_cat("corrupt png: checksum of chunk IDAT at offset ", text_end));
}

TEST(ProbePng, TailsAreAWarning) {
  EXPECT_THAT(probe(test::make_png(6, 4, 2, 8) + Bytes(3)).warnings,
              ElementsAre("bytes after the end"));
}

TEST(ProbePng, TooLittleDataForItsPixelsIsRejected) {
  Bytes bytes = test::make_png(6, 4, 2, 8);
  const Bytes taller = test::make_png(6, 100000, 2, 8);
  std::copy(taller.begin(), taller.begin() + 8 + 25, bytes.begin());
  EXPECT_THAT(probe(bytes).reject, StartsWith("corrupt png: "));
  EXPECT_THAT(probe(bytes).reject, HasSubstr("bytes of IDAT cannot hold"));
  if (kHavePng) {
    const Bytes little_taller = test::make_png(6, 5, 2, 8);
    std::copy(little_taller.begin(), little_taller.begin() + 8 + 25, bytes.begin());
    EXPECT_THAT(probe(bytes, kDecode).reject, StartsWith("corrupt png: libpng: "));
  }
}

TEST(ProbeBmp, EveryKindAndCut) {
  for (uint16_t depth : {1, 4, 8, 16, 24, 32}) {
    expect_usual(test::make_bmp(7, 5, depth), PictureFormat::kBmp, 5, 7, 3, true);
  }
  expect_usual(test::make_bmp(7, -5, 24), PictureFormat::kBmp, 5, 7, 3, true);
  expect_usual(test::make_bmp_rle8(9, 4), PictureFormat::kBmp, 4, 9, 3, true);
  Bytes padded = test::make_bmp(7, 5, 24);
  padded[2] = static_cast<uint8_t>(padded[2] + 2);  // the size field counts two bytes of padding
  EXPECT_THAT(probe(padded).warnings, ElementsAre("size field in the header is wrong"));
  EXPECT_THAT(probe(padded + Bytes(2)).warnings, IsEmpty());
  EXPECT_THAT(probe(padded + Bytes(3)).warnings, ElementsAre("bytes after the end"));
}

TEST(ProbeBmp, RunsThatLeaveThePictureAreRejected) {
  Bytes bytes = test::make_bmp_rle8(9, 4);
  bytes[14 + 8] = 2;  // height
  EXPECT_THAT(probe(bytes).reject, HasSubstr("leaves the picture"));
}

#if SPK_HAVE_GIF
TEST(ProbeGif, EveryFrameAndCut) {
  expect_usual(test::make_gif(20, 15), PictureFormat::kGif, 15, 20, 3, true);
  expect_usual(test::make_gif(12, 9, 3), PictureFormat::kGif, 9, 12, 3, true);
  EXPECT_THAT(probe(test::make_gif(20, 15) + Bytes(1)).warnings,
              ElementsAre("bytes after the end"));
  Bytes corrupt = test::make_gif(20, 15);
  corrupt[corrupt.size() - 40] = 0x81;  // the end of the data, too early
  EXPECT_THAT(probe(corrupt, kDecode).reject, StartsWith("corrupt gif: giflib: "));
}
#else
TEST(ProbeGif, IsRefusedByName) {
  EXPECT_EQ(probe(test::make_gif(20, 15)).reject,
            "unsupported format: gif (this build has no giflib)");
}
#endif

#if SPK_HAVE_TIFF
TEST(ProbeTiff, BothByteOrdersAndCuts) {
  for (bool big_endian : {false, true}) {
    expect_usual(test::make_tiff(10, 7, big_endian), PictureFormat::kTiff, 7, 10, 3, true);
  }
}

TEST(ProbeTiff, DirectoriesInACircleEnd) {
  Bytes bytes = test::make_tiff(10, 7, false);
  bytes[8 + 2 + 12 * 9] = 8;  // the next directory is this one
  EXPECT_EQ(probe(bytes).reject, "corrupt tiff: directories without end at offset 8");
}
#else
TEST(ProbeTiff, IsRefusedByName) {
  EXPECT_EQ(probe(test::make_tiff(10, 7, false)).reject,
            "unsupported format: tiff (this build has no libtiff)");
}
#endif

#if SPK_HAVE_WEBP
TEST(ProbeWebp, LossyLosslessAndCuts) {
  for (bool lossless : {false, true}) {
    const Bytes bytes = test::make_webp(33, 21, lossless);
    expect_usual(bytes, PictureFormat::kWebp, 21, 33, 3, true);
    EXPECT_THAT(probe(bytes + Bytes(2)).warnings, ElementsAre("bytes after the end"));
  }
  Bytes lying = test::make_webp(33, 21, false);
  lying[4] = static_cast<uint8_t>(lying[4] - 8);  // the RIFF ends before its chunk
  EXPECT_THAT(probe(lying).reject, StartsWith("truncated: chunk VP8  at offset 12 needs "));
}
#else
TEST(ProbeWebp, IsRefusedByName) {
  const std::string_view head("RIFF\x10\0\0\0WEBPVP8 ", 16);
  EXPECT_EQ(probe(Bytes(head.begin(), head.end())).reject,
            "unsupported format: webp (this build has no libwebp)");
}
#endif

}  // namespace
}  // namespace spk
