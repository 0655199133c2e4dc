// Parts of JPEGs are what libjpeg makes of the whole: to the bit where nothing is resized, and by
// stated bounds where it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "image/pictures.h"
#include "layout/permutation.h"
#include "picture/decode.h"
#include "picture/idct.h"

namespace spk::test {
namespace {

using picture::Window;

struct Kind {
  const char* name;
  uint32_t channels;
  JpegOptions options;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  all.push_back({"grey", 1, {}});
  all.push_back({"grey with factors 2 x 2", 1, {.across = 2, .down = 2}});
  all.push_back({"4:4:4", 3, {}});
  all.push_back({"4:2:2", 3, {.across = 2}});
  all.push_back({"4:4:0", 3, {.down = 2}});
  all.push_back({"4:2:0", 3, {.across = 2, .down = 2}});
  all.push_back(
      {"4:2:0, own tables", 3, {.quality = 97, .across = 2, .down = 2, .own_tables = true}});
  all.push_back({"4:2:0, low quality", 3, {.quality = 12, .across = 2, .down = 2}});
  all.push_back({"4:1:1", 3, {.across = 4}});
  all.push_back({"restarts", 3, {.across = 2, .down = 2, .restart_mcus = 5}});
  all.push_back({"restarts, 4:4:4", 3, {.restart_mcus = 1}});
  all.push_back({"progressive", 3, {.across = 2, .down = 2, .progressive = true}});
  all.push_back({"arithmetic", 3, {.across = 2, .down = 2, .arithmetic = true}});
  all.push_back({"RGB", 3, {.rgb = true}});
  return all;
}

// Keeps the rows.
class Rows final : public picture::RowSink {
 public:
  void begin(const picture::Frame& given) override {
    frame = given;
    bytes.resize(size_t{given.window.width} * given.window.height * given.channels);
  }
  void row(uint32_t y, const uint8_t* pixels) noexcept override {
    const size_t size = size_t{frame.window.width} * frame.channels;
    std::memcpy(&bytes[size * y], pixels, size);
  }
  picture::Frame frame;
  std::vector<uint8_t> bytes;
};

std::vector<uint8_t> cut_out(const Pixels& whole, const Window& window) {
  std::vector<uint8_t> out;
  for (uint32_t y = 0; y < window.height; ++y) {
    const uint8_t* row = whole.at(window.left, window.top + y);
    out.insert(out.end(), row, row + size_t{window.width} * whole.channels);
  }
  return out;
}

std::vector<Window> windows(uint32_t width, uint32_t height) {
  std::vector<Window> all = {{0, 0, width, height},         {0, 0, 1, 1},
                             {width - 1, height - 1, 1, 1}, {16, 16, 16, 16},
                             {17, 0, 30, height},           {0, 33, width, 20}};
  for (uint64_t i = 0; i < 24; ++i) {
    Window window;
    window.left = static_cast<uint32_t>(mix64(4 * i) % width);
    window.top = static_cast<uint32_t>(mix64(4 * i + 1) % height);
    window.width = 1 + static_cast<uint32_t>(mix64(4 * i + 2) % (width - window.left));
    window.height = 1 + static_cast<uint32_t>(mix64(4 * i + 3) % (height - window.top));
    all.push_back(window);
  }
  return all;
}

std::string text_of(const Window& window) {
  return std::to_string(window.left) + "," + std::to_string(window.top) + " " +
         std::to_string(window.width) + " x " + std::to_string(window.height);
}

TEST(ImageJpeg, RowsOfAPartAreThoseOfTheWhole) {
  for (const Kind& kind : kinds()) {
    for (const auto& [width, height] : {std::pair(150U, 107U), std::pair(64U, 64U)}) {
      const std::string jpeg = encode_jpeg(photograph(width, height, kind.channels), kind.options);
      const Pixels whole = decode_whole(jpeg);
      const auto header = picture::read_header(as_bytes(jpeg));
      ASSERT_TRUE(header.ok());
      for (const Window& window : windows(width, height)) {
        Rows rows;
        picture::Memory memory;
        const Status status =
            picture::decode_jpeg_rows(as_bytes(jpeg), *header, {window, 1}, memory, rows);
        ASSERT_TRUE(status.ok()) << kind.name << ": " << status.to_string();
        ASSERT_EQ(rows.bytes, cut_out(whole, window)) << kind.name << ", " << text_of(window);
      }
    }
  }
}

TEST(ImageJpeg, ReducedRowsAreThoseOfTheReducedWhole) {
  for (const Kind& kind : kinds()) {
    const std::string jpeg = encode_jpeg(photograph(330, 270, kind.channels), kind.options);
    const auto header = picture::read_header(as_bytes(jpeg));
    ASSERT_TRUE(header.ok());
    for (const uint32_t reduction : {2U, 4U, 8U}) {
      Rows whole;
      picture::Memory memory;
      ASSERT_TRUE(picture::decode_jpeg_rows(as_bytes(jpeg), *header, {{0, 0, 330, 270}, reduction},
                                            memory, whole)
                      .ok());
      const Pixels reduced{whole.frame.window.width, whole.frame.window.height,
                           whole.frame.channels, whole.bytes};
      ASSERT_EQ(reduced.width, (330 + reduction - 1) / reduction);
      for (const Window& window : windows(330, 270)) {
        Rows rows;
        ASSERT_TRUE(
            picture::decode_jpeg_rows(as_bytes(jpeg), *header, {window, reduction}, memory, rows)
                .ok());
        ASSERT_EQ(rows.bytes, cut_out(reduced, rows.frame.window))
            << kind.name << ", 1/" << reduction << ", " << text_of(window);
      }
    }
  }
}

// The planes of the fast decoder against libjpeg's, which it must equal to the bit: grey directly,
// colour by way of the conversion.
TEST(ImageJpeg, TheFastDecoderGivesTheSamePixels) {
  int seen = 0;
  for (const Kind& kind : kinds()) {
    const std::string jpeg = encode_jpeg(photograph(150, 107, kind.channels), kind.options);
    const auto markers = picture::read_jpeg_markers(as_bytes(jpeg));
    ASSERT_TRUE(markers.ok());
    picture::PlainJpeg tables;
    picture::Memory memory;
    picture::Planes whole;
    picture::Memory whole_memory;
    if (!picture::decode_plain_jpeg(as_bytes(jpeg), *markers, {0, 0, 150, 107}, tables,
                                    whole_memory, whole)) {
      EXPECT_TRUE(kind.options.progressive || kind.options.arithmetic || kind.options.rgb ||
                  kind.options.across == 4)
          << kind.name;
      continue;
    }
    ++seen;
    const Pixels wanted = decode_whole(jpeg);
    const bool full_chroma = kind.options.across == 1 && kind.options.down == 1;
    if (kind.channels == 1 || full_chroma) {
      std::vector<uint8_t> red(150), green(150), blue(150);
      for (uint32_t y = 0; y < 107; ++y) {
        const auto row = [&](size_t i) {
          return whole.planes[i].data + whole.planes[i].stride * y;
        };
        if (kind.channels == 3) {
          picture::ycc_to_rgb(row(0), row(1), row(2), red.data(), green.data(), blue.data(), 150);
        }
        for (uint32_t x = 0; x < 150; ++x) {
          const uint8_t* pixel = wanted.at(x, y);
          if (kind.channels == 1) {
            ASSERT_EQ(row(0)[x], pixel[0]) << kind.name << " " << x << "," << y;
          } else {  // the conversion rounds at other places
            ASSERT_NEAR(red[x], pixel[0], 1) << kind.name << " " << x << "," << y;
            ASSERT_NEAR(green[x], pixel[1], 1) << kind.name << " " << x << "," << y;
            ASSERT_NEAR(blue[x], pixel[2], 1) << kind.name << " " << x << "," << y;
          }
        }
      }
    }
    for (const Window& window : windows(150, 107)) {
      picture::Planes part;
      ASSERT_TRUE(
          picture::decode_plain_jpeg(as_bytes(jpeg), *markers, window, tables, memory, part))
          << kind.name << ", " << text_of(window);
      for (size_t i = 0; i < kind.channels; ++i) {
        const picture::Plane& a = whole.planes[i];
        const picture::Plane& b = part.planes[i];
        ASSERT_LE(b.left * b.per_x, window.left);
        ASSERT_LE(b.top * b.per_y, window.top);
        ASSERT_GE((b.left + b.width) * b.per_x, window.left + window.width);
        ASSERT_GE((b.top + b.height) * b.per_y, window.top + window.height);
        for (uint32_t y = 0; y < b.height; ++y) {
          ASSERT_EQ(
              std::memcmp(b.data + b.stride * y, a.data + a.stride * (y + b.top) + b.left, b.width),
              0)
              << kind.name << ", " << text_of(window) << ", plane " << i << ", row " << y;
        }
      }
    }
  }
  EXPECT_EQ(seen, 10);
}

TEST(ImageJpeg, TransformsAgreeOnAnyCoefficients) {
  for (uint64_t round = 0; round < 3000; ++round) {
    alignas(32) int16_t coefficients[128];
    alignas(32) int16_t quant[64];
    // From likely to impossible ones.
    const auto shift = static_cast<int>(round % 12);
    for (uint64_t i = 0; i < 128; ++i) {
      const auto word = static_cast<int16_t>(mix64(round * 1000 + i));
      coefficients[i] =
          mix64(round * 1000 + i + 500) % 4 != 0 ? 0 : static_cast<int16_t>(word >> shift);
    }
    for (uint64_t i = 0; i < 64; ++i) {
      quant[i] = static_cast<int16_t>(round % 3 == 0 ? 1 : mix64(round * 77 + i) % 200);
    }
    uint8_t wanted[128];
    uint8_t two[128];
    uint8_t one[64];
    picture::inverse_dct_portable(coefficients, quant, {wanted, 8});
    picture::inverse_dct_portable(coefficients + 64, quant, {wanted + 64, 8});
    const picture::BlockPlace places[2] = {{two, 8}, {two + 64, 8}};
    picture::inverse_dct(coefficients, quant, 2, places);
    ASSERT_EQ(std::memcmp(wanted, two, 128), 0) << "round " << round;
    const picture::BlockPlace place{one, 8};
    picture::inverse_dct(coefficients, quant, 1, &place);
    ASSERT_EQ(std::memcmp(wanted, one, 64), 0) << "round " << round;
  }
  for (int mean = -3000; mean < 3000; ++mean) {
    alignas(32) int16_t coefficients[64] = {static_cast<int16_t>(mean)};
    alignas(32) int16_t quant[64];
    std::fill_n(quant, 64, int16_t{1});
    uint8_t wanted[64];
    uint8_t got[64];
    picture::inverse_dct_portable(coefficients, quant, {wanted, 8});
    picture::inverse_dct_mean(static_cast<int16_t>(mean), {got, 8});
    ASSERT_EQ(std::memcmp(wanted, got, 64), 0) << mean;
  }
}

struct Bound {
  double max;
  double mean;
};
constexpr Bound kFullColour = {6, 0.6};      // every sample is stored
constexpr Bound kCoarseColour = {32, 1.25};  // chroma is stored coarser
constexpr Bound kReduced = {32, 1.25};       // reduced by the transform
constexpr Bound kRounding = {0.75, 0.3};     // decoded by libjpeg, then resized

bool is_plain(const Kind& kind) {
  return !kind.options.progressive && !kind.options.arithmetic && !kind.options.rgb &&
         kind.options.across < 4;
}
const Bound& unreduced(const Kind& kind) {
  if (!is_plain(kind) || kind.channels == 1) return kRounding;
  return kind.options.across == 1 && kind.options.down == 1 ? kFullColour : kCoarseColour;
}

// The bounds that docs/IMAGES.md states.
void expect_within(const Kind& kind, uint32_t width, uint32_t height, const spk_image_ops& ops,
                   bool inside_only, const Bound& bound) {
  const std::string jpeg = encode_jpeg(photograph(width, height, kind.channels), kind.options);
  const Pixels whole = decode_whole(jpeg);
  for (uint64_t sample = 0; sample < 12; ++sample) {
    spk_image_crop crop = {};
    crop.struct_size = sizeof crop;
    ASSERT_EQ(spk_image_plan_crop(width, height, &ops, sample, &crop, nullptr), SPK_OK);
    const Decoded got = decode(jpeg, ops, sample);
    ASSERT_EQ(got.code, SPK_OK) << got.message;
    const Difference apart = difference(resized(whole, crop, inside_only), got.bytes);
    EXPECT_LE(apart.max, bound.max) << kind.name << ", sample " << sample;
    EXPECT_LE(apart.mean, bound.mean) << kind.name << ", sample " << sample;
  }
}

TEST(ImageJpeg, RandomCropsAreNearTheResizedWhole) {
  spk_image_ops ops = make_ops(SPK_IMAGE_RANDOM_RESIZED_CROP, 56, 48);
  ops.flip_probability = 0.5;
  ops.scale_min = 0.08;
  ops.scale_max = 1;
  for (const Kind& kind : kinds()) {
    expect_within(kind, 90, 70, ops, true, unreduced(kind));
    expect_within(kind, 420, 330, ops, true, kReduced);
  }
}

TEST(ImageJpeg, ResizesAndMiddlesAreNearTheResizedWhole) {
  spk_image_ops middle = make_ops(SPK_IMAGE_CENTER_CROP, 56, 48);
  middle.short_side = 64;
  for (const Kind& kind : kinds()) {
    expect_within(kind, 211, 190, make_ops(SPK_IMAGE_RESIZE, 64, 30), false, kReduced);
    expect_within(kind, 120, 93, middle, false, unreduced(kind));
  }
}

}  // namespace
}  // namespace spk::test
