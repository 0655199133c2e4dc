// Decoding as a whole: layouts, orientations, threads, processes, and what is no picture.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/bytes.h"
#include "image/pictures.h"
#include "layout/permutation.h"
#include "support/sanitizers.h"

namespace spk::test {
namespace {

std::vector<uint8_t> as_rgb(const Pixels& pixels) {
  if (pixels.channels == 3) return pixels.bytes;
  std::vector<uint8_t> out;
  for (const uint8_t value : pixels.bytes) out.insert(out.end(), 3, value);
  return out;
}

TEST(ImageDecode, AllOfAPictureIsWhatLibjpegGives) {
  for (const uint32_t channels : {1U, 3U}) {
    const std::string jpeg = encode_jpeg(photograph(77, 53, channels), {.across = 2, .down = 2});
    const Decoded got = decode(jpeg, make_ops(SPK_IMAGE_FULL));
    ASSERT_EQ(got.code, SPK_OK) << got.message;
    EXPECT_EQ(got.width, 77U);
    EXPECT_EQ(got.height, 53U);
    EXPECT_EQ(got.bytes, as_rgb(decode_whole(jpeg)));
    // To its own size: nothing is resized.
    EXPECT_EQ(decode(jpeg, make_ops(SPK_IMAGE_RESIZE, 77, 53)).bytes, got.bytes);
  }
}

TEST(ImageDecode, PlanesAreTheSamePixels) {
  const std::string jpeg = encode_jpeg(photograph(120, 90));
  for (const uint32_t kind : {SPK_IMAGE_FULL, SPK_IMAGE_RANDOM_RESIZED_CROP}) {
    for (const double flip : {0.0, 1.0}) {
      spk_image_ops ops = make_ops(kind, 40, 30);
      ops.flip_probability = flip;
      const Decoded rows = decode(jpeg, ops, 5);
      ops.layout = SPK_IMAGE_CHW;
      const Decoded planes = decode(jpeg, ops, 5);
      ASSERT_EQ(planes.code, SPK_OK);
      const size_t size = rows.bytes.size() / 3;
      for (size_t i = 0; i < size; ++i) {
        for (size_t c = 0; c < 3; ++c) {
          ASSERT_EQ(planes.bytes[c * size + i], rows.bytes[3 * i + c]);
        }
      }
    }
  }
}

TEST(ImageDecode, FlippedIsMirrored) {
  const std::string jpeg = encode_jpeg(photograph(120, 90), {.across = 2});
  for (const uint32_t kind : {SPK_IMAGE_FULL, SPK_IMAGE_RANDOM_RESIZED_CROP, SPK_IMAGE_RESIZE}) {
    spk_image_ops ops = make_ops(kind, 41, 30);
    const Decoded plain = decode(jpeg, ops, 9);
    ops.flip_probability = 1;
    const Decoded flipped = decode(jpeg, ops, 9);
    ASSERT_EQ(flipped.code, SPK_OK);
    for (uint32_t y = 0; y < plain.height; ++y) {
      for (uint32_t x = 0; x < plain.width; ++x) {
        const uint8_t* a = &plain.bytes[(size_t{y} * plain.width + x) * 3];
        const uint8_t* b = &flipped.bytes[(size_t{y} * plain.width + plain.width - 1 - x) * 3];
        ASSERT_EQ(std::memcmp(a, b, 3), 0) << x << "," << y;
      }
    }
  }
}

// Pixel (X, Y) of what EXIF says, by the words of its specification.
const uint8_t* shown(const Pixels& stored, uint32_t orientation, uint32_t x, uint32_t y) {
  const uint32_t last_x = stored.width - 1;
  const uint32_t last_y = stored.height - 1;
  switch (orientation) {
    case 2: return stored.at(last_x - x, y);           // row 0 is the top, column 0 the right
    case 3: return stored.at(last_x - x, last_y - y);  // bottom, right
    case 4: return stored.at(x, last_y - y);           // bottom, left
    case 5: return stored.at(y, x);                    // left, top
    case 6: return stored.at(y, last_y - x);           // right, top
    case 7: return stored.at(last_x - y, last_y - x);  // right, bottom
    case 8: return stored.at(last_x - y, x);           // left, bottom
    default: return stored.at(x, y);
  }
}

TEST(ImageDecode, EveryOrientationIsTurnedUpright) {
  const Pixels picture = photograph(60, 44);
  for (uint32_t orientation = 1; orientation <= 8; ++orientation) {
    const std::string jpeg = encode_jpeg(picture, {.orientation = orientation});
    const Pixels stored = decode_whole(jpeg);
    spk_image_header header = {};
    header.struct_size = sizeof header;
    ASSERT_EQ(spk_image_info(jpeg.data(), jpeg.size(), &header, nullptr), SPK_OK);
    EXPECT_EQ(header.orientation, orientation);
    EXPECT_EQ(header.width, 60U);

    spk_image_ops ops = make_ops(SPK_IMAGE_FULL);
    EXPECT_EQ(decode(jpeg, ops).bytes, stored.bytes) << "turned, though nobody asked";
    ops.exif_orientation = 1;
    const Decoded got = decode(jpeg, ops);
    ASSERT_EQ(got.code, SPK_OK);
    ASSERT_EQ(got.width, orientation < 5 ? 60U : 44U);
    Pixels upright{got.width, got.height, 3, {}};
    for (uint32_t y = 0; y < got.height; ++y) {
      for (uint32_t x = 0; x < got.width; ++x) {
        const uint8_t* pixel = shown(stored, orientation, x, y);
        upright.bytes.insert(upright.bytes.end(), pixel, pixel + 3);
      }
    }
    ASSERT_EQ(got.bytes, upright.bytes) << "orientation " << orientation;

    // A part of it is a part of what is shown.
    ops = make_ops(SPK_IMAGE_RANDOM_RESIZED_CROP, 40, 36);
    ops.exif_orientation = 1;
    ops.flip_probability = 0.5;
    for (uint64_t sample = 0; sample < 6; ++sample) {
      spk_image_crop crop = {};
      crop.struct_size = sizeof crop;
      ASSERT_EQ(spk_image_plan_crop(upright.width, upright.height, &ops, sample, &crop, nullptr),
                SPK_OK);
      const Difference apart =
          difference(resized(upright, crop, true), decode(jpeg, ops, sample).bytes);
      EXPECT_LE(apart.max, 6) << "orientation " << orientation << ", sample " << sample;
      EXPECT_LE(apart.mean, 0.6);
    }
  }
}

TEST(ImageDecode, InkIsTurnedIntoColour) {
  Pixels ink = photograph(40, 30, 4);
  for (const bool ycck : {false, true}) {
    const std::string jpeg = encode_jpeg(ink, {.quality = 100, .ycck = ycck});
    const Decoded got = decode(jpeg, make_ops(SPK_IMAGE_FULL));
    ASSERT_EQ(got.code, SPK_OK) << got.message;
    double apart = 0;
    for (size_t i = 0; i < size_t{40} * 30; ++i) {
      for (size_t c = 0; c < 3; ++c) {
        const double wanted = ink.bytes[4 * i + c] * ink.bytes[4 * i + 3] / 255.0;
        apart += std::abs(wanted - got.bytes[3 * i + c]) / (40 * 30 * 3);
      }
    }
    EXPECT_LT(apart, 2) << "YCCK: " << ycck;
  }
}

std::vector<std::string> some_pictures(size_t count) {
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) {
    JpegOptions options;
    options.across = 1 + static_cast<int>(i % 2);
    options.down = 1 + static_cast<int>(i / 2 % 2);
    options.progressive = i % 7 == 3;
    const auto side = static_cast<uint32_t>(30 + mix64(i) % 200);
    out.push_back(encode_jpeg(photograph(side, 250 - side, i % 5 == 4 ? 1 : 3, i), options));
  }
  return out;
}

constexpr uint32_t kSide = 48;
constexpr size_t kSlot = size_t{3} * kSide * kSide;

struct Batch {
  explicit Batch(const std::vector<std::string>& pictures)
      : bytes(kSlot * pictures.size()), items(pictures.size()) {
    for (size_t i = 0; i < pictures.size(); ++i) {
      items[i] = {
          pictures[i].data(), pictures[i].size(), &bytes[kSlot * i], kSlot, 1000 + i, 0, 0, -7, 0};
    }
  }
  std::vector<uint8_t> bytes;
  std::vector<spk_image_item> items;
};

spk_image_ops random_ops() {
  spk_image_ops ops = make_ops(SPK_IMAGE_RANDOM_RESIZED_CROP, kSide, kSide);
  ops.flip_probability = 0.5;
  ops.seed = 11;
  ops.epoch = 3;
  return ops;
}

TEST(ImagePool, ThreadsDoNotChangeAPixel) {
  const std::vector<std::string> pictures = some_pictures(40);
  const spk_image_ops ops = random_ops();
  Batch alone(pictures);
  ASSERT_EQ(spk_image_decode_many(nullptr, alone.items.data(), 40, &ops, nullptr), SPK_OK);
  for (const uint32_t threads : {1U, 2U, 5U}) {
    spk_image_pool* pool = nullptr;
    ASSERT_EQ(spk_image_pool_open(threads, &pool, nullptr), SPK_OK);
    EXPECT_EQ(spk_image_pool_threads(pool), threads);
    for (int round = 0; round < 3; ++round) {
      Batch batch(pictures);
      std::reverse(batch.items.begin(), batch.items.end());
      ASSERT_EQ(spk_image_decode_many(pool, batch.items.data(), 40, &ops, nullptr), SPK_OK);
      ASSERT_EQ(batch.bytes, alone.bytes) << threads << " threads";
    }
    spk_image_pool_close(pool);
  }
  // Nor does the batch: one by one.
  for (size_t i = 0; i < pictures.size(); ++i) {
    const Decoded one = decode(pictures[i], ops, 1000 + i);
    ASSERT_EQ(std::memcmp(one.bytes.data(), &alone.bytes[kSlot * i], kSlot), 0) << i;
  }
}

TEST(ImagePool, SeveralCallersShareIt) {
  const std::vector<std::string> pictures = some_pictures(12);
  const spk_image_ops ops = random_ops();
  Batch alone(pictures);
  ASSERT_EQ(spk_image_decode_many(nullptr, alone.items.data(), 12, &ops, nullptr), SPK_OK);
  spk_image_pool* pool = nullptr;
  ASSERT_EQ(spk_image_pool_open(3, &pool, nullptr), SPK_OK);
  std::vector<std::thread> callers;
  std::vector<int> equal(4);
  for (size_t t = 0; t < equal.size(); ++t) {
    callers.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round) {
        Batch batch(pictures);
        spk_image_decode_many(pool, batch.items.data(), 12, &ops, nullptr);
        equal[t] += batch.bytes == alone.bytes ? 1 : 0;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(equal, std::vector<int>(4, 5));
  spk_image_pool_close(pool);
}

TEST(ImagePool, GoesOnInAChild) {
  if (!kForkWithThreadsWorks) GTEST_SKIP() << "not with a sanitizer";
  const std::vector<std::string> pictures = some_pictures(12);
  const spk_image_ops ops = random_ops();
  spk_image_pool* pool = nullptr;
  ASSERT_EQ(spk_image_pool_open(3, &pool, nullptr), SPK_OK);
  Batch first(pictures);
  ASSERT_EQ(spk_image_decode_many(pool, first.items.data(), 12, &ops, nullptr), SPK_OK);
  const pid_t child = fork();
  if (child == 0) {
    Batch batch(pictures);
    const bool same =
        spk_image_decode_many(pool, batch.items.data(), 12, &ops, nullptr) == SPK_OK &&
        batch.bytes == first.bytes;
    spk_image_pool_close(pool);
    _exit(same ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  Batch again(pictures);
  ASSERT_EQ(spk_image_decode_many(pool, again.items.data(), 12, &ops, nullptr), SPK_OK);
  EXPECT_EQ(again.bytes, first.bytes);
  spk_image_pool_close(pool);
}

TEST(ImagePool, EachFailureHasItsCode) {
  std::vector<std::string> pictures = some_pictures(6);
  pictures[2] = "GIF89a";
  pictures[4].resize(pictures[4].size() / 3);
  Batch batch(pictures);
  batch.items[5].capacity = kSlot - 1;
  const spk_image_ops ops = random_ops();
  for (const uint32_t threads : {1U, 4U}) {
    spk_image_pool* pool = nullptr;
    ASSERT_EQ(spk_image_pool_open(threads, &pool, nullptr), SPK_OK);
    spk_error error = {};
    error.struct_size = sizeof error;
    EXPECT_EQ(spk_image_decode_many(pool, batch.items.data(), 6, &ops, &error), SPK_PARTIAL);
    EXPECT_STREQ(error.message,
                 "3 of 6 pictures failed, the first is number 2: a picture in the format GIF; "
                 "JPEG, PNG and WebP are decoded");
    std::vector<int32_t> codes;
    for (const spk_image_item& item : batch.items) codes.push_back(item.code);
    EXPECT_EQ(codes, (std::vector<int32_t>{SPK_OK, SPK_OK, SPK_UNSUPPORTED, SPK_OK, SPK_DAMAGED,
                                           SPK_INVALID_ARGUMENT}));
    EXPECT_EQ(batch.items[5].width, kSide);
    spk_image_pool_close(pool);
  }
  EXPECT_EQ(spk_image_decode_many(nullptr, nullptr, 0, &ops, nullptr), SPK_OK);
}

TEST(ImageHostile, NoPicture) {
  const spk_image_ops ops = make_ops(SPK_IMAGE_FULL);
  EXPECT_EQ(decode("", ops).code, SPK_NOT_THIS_FORMAT);
  EXPECT_EQ(decode("hello", ops).message, "no picture: 5 bytes that begin with 0x68");
  EXPECT_EQ(decode(std::string("\xff\xd8\xff\xe0", 4), ops).code, SPK_DAMAGED);
  EXPECT_EQ(decode("BM0123", ops).code, SPK_UNSUPPORTED);
}

TEST(ImageHostile, TheLimitOfPixelsHolds) {
  const std::string jpeg = encode_jpeg(photograph(40, 30));
  spk_image_ops ops = make_ops(SPK_IMAGE_FULL);
  ops.max_pixels = 1199;
  const Decoded got = decode(jpeg, ops);
  EXPECT_EQ(got.code, SPK_UNSUPPORTED);
  EXPECT_EQ(got.message,
            "over the pixel limit: 40 x 30 = 1,200 pixels, the limit is 1,199; max_pixels raises "
            "it");
  ops.max_pixels = 1200;
  EXPECT_EQ(decode(jpeg, ops).code, SPK_OK);
  // 65500 x 65500 in a few bytes.
  std::string huge = encode_jpeg(photograph(16, 16));
  const size_t frame = huge.find("\xff\xc0");
  huge.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_EQ(decode(huge, make_ops(SPK_IMAGE_RESIZE, 4, 4)).code, SPK_UNSUPPORTED);
}

TEST(ImageHostile, ACutPictureIsAnErrorAndNoGreyRows) {
  for (const bool progressive : {false, true}) {
    const std::string jpeg =
        encode_jpeg(photograph(64, 64), {.across = 2, .down = 2, .progressive = progressive});
    const spk_image_ops ops = make_ops(SPK_IMAGE_FULL);
    // Without its EOI marker nothing is missing.
    EXPECT_EQ(decode(jpeg.substr(0, jpeg.size() - 2), ops).code, SPK_OK);
    EXPECT_EQ(decode(jpeg.substr(0, jpeg.size() - 1), ops).code, SPK_OK);
    const size_t scan = jpeg.find("\xff\xda");
    for (size_t size = 3; size < jpeg.size() - 8; size += 1 + size / 40) {
      const int32_t code = decode(jpeg.substr(0, size), ops).code;
      if (progressive && size > scan) {
        // Behind the first scan a picture of less precision is whole.
        EXPECT_TRUE(code == SPK_DAMAGED || code == SPK_OK) << size;
      } else {
        EXPECT_EQ(code, SPK_DAMAGED) << size;
      }
      // Resized, by the fast decoder, the same.
      EXPECT_EQ(decode(jpeg.substr(0, size), make_ops(SPK_IMAGE_RESIZE, 50, 50)).code, code)
          << size;
    }
  }
}

// Whatever the bytes: no crash (under sanitizers, above all), and one of the codes.
TEST(ImageHostile, AnyChangedByte) {
  const std::vector<std::string> pictures = {
      encode_jpeg(photograph(50, 40), {.quality = 60, .across = 2, .down = 2, .restart_mcus = 3}),
      encode_jpeg(photograph(50, 40), {.quality = 60, .own_tables = true}),
      encode_jpeg(photograph(40, 40), {.quality = 40, .progressive = true}),
      encode_jpeg(photograph(40, 40, 4), {.quality = 40, .orientation = 6})};
  for (size_t number = 0; number < pictures.size(); ++number) {
    const std::string& jpeg = pictures[number];
    for (size_t i = 2; i < jpeg.size(); i += i < 700 ? 1 : 7) {
      std::string changed = jpeg;
      changed[i] = static_cast<char>(mix64(i * 10 + number));
      for (const uint32_t kind : {SPK_IMAGE_RANDOM_RESIZED_CROP, SPK_IMAGE_RESIZE}) {
        spk_image_ops ops = make_ops(kind, 20, 20);
        ops.exif_orientation = 1;
        ops.max_pixels = 100000;
        const int32_t code = decode(changed, ops, i).code;
        ASSERT_TRUE(code == SPK_OK || code == SPK_DAMAGED || code == SPK_UNSUPPORTED ||
                    code == SPK_NOT_THIS_FORMAT)
            << "picture " << number << ", byte " << i << ": " << code;
      }
    }
  }
}

}  // namespace
}  // namespace spk::test
