// TIFF to pixels: the layouts that few programs write. libtiff itself writes them here.
#if SPK_HAVE_TIFF

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tiffio.h>

#include <functional>

#include "image/still.h"

namespace spk {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

struct Output {
  Bytes bytes;
  size_t at = 0;
};

tmsize_t on_read(thandle_t handle, void* to, tmsize_t want) {
  Output& out = *static_cast<Output*>(handle);
  const size_t got = std::min(static_cast<size_t>(want), out.bytes.size() - out.at);
  std::copy_n(out.bytes.data() + out.at, got, static_cast<uint8_t*>(to));
  out.at += got;
  return static_cast<tmsize_t>(got);
}
tmsize_t on_write(thandle_t handle, void* from, tmsize_t size) {
  Output& out = *static_cast<Output*>(handle);
  const auto count = static_cast<size_t>(size);
  out.bytes.resize(std::max(out.bytes.size(), out.at + count));
  std::copy_n(static_cast<const uint8_t*>(from), count, out.bytes.data() + out.at);
  out.at += count;
  return size;
}
toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
  Output& out = *static_cast<Output*>(handle);
  if (whence == SEEK_CUR) offset += out.at;
  if (whence == SEEK_END) offset += out.bytes.size();
  out.at = offset;
  return offset;
}
int on_close(thandle_t) { return 0; }
toff_t on_size(thandle_t handle) { return static_cast<Output*>(handle)->bytes.size(); }

// `w`: of this machine's byte order; `wb` and `wl`: big and little endian.
Bytes written(const char* mode, const std::function<void(TIFF*)>& fill) {
  Output out;
  TIFF* const tiff = TIFFClientOpen("written", mode, &out, on_read, on_write, on_seek, on_close,
                                    on_size, nullptr, nullptr);
  fill(tiff);
  TIFFClose(tiff);
  return out.bytes;
}

void set_size(TIFF* tiff, uint32_t width, uint32_t height, int samples, int bits, int photometric,
              int planar = PLANARCONFIG_CONTIG) {
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, samples);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, bits);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, photometric);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, planar);
}

void set_alpha(TIFF* tiff, uint16_t kind) { TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &kind); }

void strip(TIFF* tiff, uint32_t number, Bytes bytes) {
  TIFFWriteEncodedStrip(tiff, number, bytes.data(), static_cast<tmsize_t>(bytes.size()));
}

Bytes pixels_of(const Bytes& file, uint32_t channels, const image::StillRequest& request = {}) {
  const auto info = image::look_at_tiff(file);
  if (!info.ok()) {
    ADD_FAILURE() << info.status().message();
    return {};
  }
  const auto still = image::read_tiff(file, *info, request);
  if (!still.ok()) {
    ADD_FAILURE() << still.status().message();
    return {};
  }
  EXPECT_EQ(still->channels, channels);
  return still->pixels;
}

TEST(StillTiff, SixteenBitsOfBothByteOrders) {
  for (const char* mode : {"wl", "wb"}) {
    const Bytes file = written(mode, [](TIFF* tiff) {
      set_size(tiff, 2, 1, 3, 16, PHOTOMETRIC_RGB);
      uint16_t row[6] = {0, 128, 129, 65535, 32768, 257};
      TIFFWriteEncodedStrip(tiff, 0, row, sizeof row);
    });
    EXPECT_THAT(pixels_of(file, 3), ElementsAre(0, 0, 1, 255, 128, 1)) << mode;
  }
}

TEST(StillTiff, TilesThatReachBeyondThePicture) {
  constexpr uint32_t kWidth = 37;
  constexpr uint32_t kHeight = 21;
  Bytes wanted;
  for (uint32_t i = 0; i < kWidth * kHeight; ++i) wanted.push_back(static_cast<uint8_t>(i * 7));
  const Bytes file = written("w", [&](TIFF* tiff) {
    set_size(tiff, kWidth, kHeight, 1, 8, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, 16);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, 16);
    for (uint32_t number = 0; number < 6; ++number) {
      Bytes tile(256, 99);
      for (uint32_t i = 0; i < 256; ++i) {
        const uint32_t x = number % 3 * 16 + i % 16;
        const uint32_t y = number / 3 * 16 + i / 16;
        if (x < kWidth && y < kHeight) tile[i] = wanted[y * kWidth + x];
      }
      TIFFWriteEncodedTile(tiff, number, tile.data(), 256);
    }
  });
  EXPECT_THAT(pixels_of(file, 1), ElementsAreArray(wanted));
}

TEST(StillTiff, PlanesInStripsOfSomeRows) {
  const Bytes file = written("w", [](TIFF* tiff) {
    set_size(tiff, 2, 3, 3, 8, PHOTOMETRIC_RGB, PLANARCONFIG_SEPARATE);
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 2);
    for (uint8_t plane = 0; plane < 3; ++plane) {
      const auto first = static_cast<uint8_t>(10 * plane);
      const auto value = [&](int i) { return static_cast<uint8_t>(first + i); };
      strip(tiff, 2u * plane, {value(0), value(1), value(2), value(3)});
      strip(tiff, 2u * plane + 1, {value(4), value(5)});
    }
  });
  EXPECT_THAT(pixels_of(file, 3),
              ElementsAre(0, 10, 20, 1, 11, 21, 2, 12, 22, 3, 13, 23, 4, 14, 24, 5, 15, 25));
}

TEST(StillTiff, GreyOfFewBitsAndOfBothDirections) {
  const auto grey = [](int bits, int photometric, uint8_t byte) {
    return pixels_of(written("w",
                             [&](TIFF* tiff) {
                               set_size(tiff, 2, 1, 1, bits, photometric);
                               strip(tiff, 0, {byte});
                             }),
                     1);
  };
  EXPECT_THAT(grey(4, PHOTOMETRIC_MINISBLACK, 0xf3), ElementsAre(255, 51));
  EXPECT_THAT(grey(2, PHOTOMETRIC_MINISBLACK, 0xb0), ElementsAre(170, 255));
  EXPECT_THAT(grey(1, PHOTOMETRIC_MINISWHITE, 0x80), ElementsAre(0, 255));
}

TEST(StillTiff, AlphaOfBothKinds) {
  const auto file = [](uint16_t kind) {
    return written("w", [&](TIFF* tiff) {
      set_size(tiff, 2, 1, 4, 8, PHOTOMETRIC_RGB);
      set_alpha(tiff, kind);
      strip(tiff, 0, {100, 50, 0, 128, 0, 0, 0, 0});
    });
  };
  const Bytes plain = file(EXTRASAMPLE_UNASSALPHA);
  EXPECT_TRUE(image::look_at_tiff(plain)->alpha);
  EXPECT_THAT(pixels_of(plain, 3), ElementsAre(100, 50, 0, 0, 0, 0));
  EXPECT_THAT(pixels_of(plain, 3, {0x0000ff, false}), ElementsAre(50, 25, 127, 0, 0, 255));
  // Colours that were multiplied by alpha are what they were before.
  const Bytes multiplied = file(EXTRASAMPLE_ASSOCALPHA);
  EXPECT_THAT(pixels_of(multiplied, 3), ElementsAre(199, 100, 0, 0, 0, 0));
  EXPECT_THAT(pixels_of(multiplied, 3, {0x0000ff, false}), ElementsAre(100, 50, 127, 0, 0, 255));
  // Something else beside the colours is no alpha.
  EXPECT_FALSE(image::look_at_tiff(file(EXTRASAMPLE_UNSPECIFIED))->alpha);
  EXPECT_THAT(pixels_of(file(EXTRASAMPLE_UNSPECIFIED), 3), ElementsAre(100, 50, 0, 0, 0, 0));
}

TEST(StillTiff, GreyWithAlphaOverAColour) {
  const Bytes file = written("w", [](TIFF* tiff) {
    set_size(tiff, 2, 1, 2, 8, PHOTOMETRIC_MINISBLACK);
    set_alpha(tiff, EXTRASAMPLE_UNASSALPHA);
    strip(tiff, 0, {200, 255, 200, 0});
  });
  EXPECT_THAT(pixels_of(file, 1), ElementsAre(200, 200));
  EXPECT_THAT(pixels_of(file, 3, {0x010203, false}), ElementsAre(200, 200, 200, 1, 2, 3));
}

TEST(StillTiff, PalettesOfBytesAndOfWords) {
  for (const bool words : {true, false}) {
    const Bytes file = written("w", [&](TIFF* tiff) {
      set_size(tiff, 2, 1, 1, 4, PHOTOMETRIC_PALETTE);
      const auto unit = static_cast<uint16_t>(words ? 256 : 1);
      uint16_t red[16] = {}, green[16] = {}, blue[16] = {};
      red[1] = static_cast<uint16_t>(200 * unit);
      green[2] = static_cast<uint16_t>(100 * unit);
      blue[2] = static_cast<uint16_t>(50 * unit);
      TIFFSetField(tiff, TIFFTAG_COLORMAP, red, green, blue);
      strip(tiff, 0, {0x12});
    });
    EXPECT_EQ(image::look_at_tiff(file)->channels, 3u);
    EXPECT_THAT(pixels_of(file, 3), ElementsAre(200, 0, 0, 0, 100, 50));
  }
}

TEST(StillTiff, InksBecomeRgbOrStay) {
  const Bytes file = written("w", [](TIFF* tiff) {
    set_size(tiff, 2, 1, 4, 8, PHOTOMETRIC_SEPARATED);
    strip(tiff, 0, {0, 0, 0, 0, 255, 0, 51, 51});
  });
  EXPECT_THAT(pixels_of(file, 3), ElementsAre(255, 255, 255, 0, 204, 163));
  EXPECT_THAT(pixels_of(file, 4, {std::nullopt, true}), ElementsAre(0, 0, 0, 0, 255, 0, 51, 51));
}

TEST(StillTiff, WhatIsNotReadIsNamed) {
  const auto refused = [](const std::function<void(TIFF*)>& set) {
    const Bytes file = written("w", [&](TIFF* tiff) {
      set(tiff);
      strip(tiff, 0, Bytes(64));
    });
    const auto info = image::look_at_tiff(file);
    EXPECT_EQ(info.status().code(), Code::kUnsupported);
    return std::string(info.status().message());
  };
  EXPECT_THAT(refused([](TIFF* tiff) {
                set_size(tiff, 2, 1, 1, 32, PHOTOMETRIC_MINISBLACK);
                TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_IEEEFP);
              }),
              HasSubstr("samples that are floats"));
  EXPECT_THAT(refused([](TIFF* tiff) { set_size(tiff, 2, 1, 1, 32, PHOTOMETRIC_MINISBLACK); }),
              HasSubstr("1 samples of 32 bits"));
  EXPECT_THAT(refused([](TIFF* tiff) { set_size(tiff, 2, 1, 3, 8, PHOTOMETRIC_CIELAB); }),
              HasSubstr("Lab colours"));
  EXPECT_THAT(refused([](TIFF* tiff) { set_size(tiff, 2, 1, 3, 8, PHOTOMETRIC_YCBCR); }),
              HasSubstr("YCbCr that is not JPEG"));
  EXPECT_THAT(refused([](TIFF* tiff) { set_size(tiff, 2, 1, 2, 8, PHOTOMETRIC_RGB); }),
              HasSubstr("2 samples a pixel"));
}

TEST(StillTiff, CutFilesAreDamaged) {
  const Bytes file = written("w", [](TIFF* tiff) {
    set_size(tiff, 8, 8, 1, 8, PHOTOMETRIC_MINISBLACK);
    strip(tiff, 0, Bytes(64, 5));
  });
  ASSERT_EQ(pixels_of(file, 1), Bytes(64, 5));
  // The last four bytes say that no page follows.
  for (size_t size = 8; size + 4 < file.size(); ++size) {
    const Bytes cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
    const auto info = image::look_at_tiff(cut);
    if (!info.ok()) {
      EXPECT_NE(info.status().code(), Code::kInternal) << size;
      continue;
    }
    const auto still = image::read_tiff(cut, *info, {});
    EXPECT_EQ(still.status().code(), Code::kDamaged) << size;
  }
}

}  // namespace
}  // namespace spk

#endif
