// What reading HDF5 needs beside the library: layouts, elements, chunks, filters, the heap.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "sources/hdf5.h"
#include "sources/hdf5_array.h"
#include "sources/hdf5_choose.h"
#include "sources/hdf5_heap.h"
#include "sources/hdf5_layout.h"

namespace spk {
namespace {

TEST(ArrayLayout, IsToldByTheChannelsOrSaid) {
  const auto order = [](std::vector<uint64_t> sizes, const std::string& asked = "") {
    const auto layout = resolve_layout(sizes, asked);
    return layout.ok() ? layout->order : layout.status().hint().substr(0, 14);
  };
  EXPECT_EQ(order({6, 10, 3}), "hwc");
  EXPECT_EQ(order({3, 6, 10}), "chw");
  EXPECT_EQ(order({6, 10}), "hw");
  EXPECT_EQ(order({3, 8, 3}), "--array-layout");
  EXPECT_EQ(order({5, 8, 6}), "--array-layout");
  EXPECT_EQ(order({3, 8, 3}, "nchw"), "chw");
  EXPECT_EQ(order({3, 8, 3}, "ncwh"), "cwh");
  for (const char* asked : {"nhw", "hwcn", "nnhw", "nhwx", "n", "hw"}) {
    EXPECT_EQ(resolve_layout({3, 8, 3}, asked).status().code(), Code::kInvalidArgument) << asked;
  }
  // What the sizes plainly are not is refused, whatever was asked for.
  EXPECT_EQ(resolve_layout({32, 20, 3}, "nchw").status().message(),
            "--array-layout nchw makes sizes (N, 32, 20, 3) pictures of 32 channels, but they are "
            "plainly N,H,W,C");
  EXPECT_EQ(resolve_layout({3, 32, 20}, "nhwc").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(order({32, 20, 3}, "nwhc"), "whc");
  EXPECT_EQ(order({13, 64, 64}, "nchw"), "chw");
  EXPECT_EQ(order({2, 3, 8}, "nhcw"), "hcw");
  EXPECT_FALSE(resolve_layout({0, 8, 3}, "").ok());
  EXPECT_FALSE(resolve_layout({8, 8, 3, 3}, "").ok());
  const auto turned = resolve_layout({2, 5, 7}, "ncwh");
  EXPECT_TRUE(turned->pixels == (PixelDimensions{7, 5, 2}));
}

TEST(ArrayLayout, ElementsBecomeBytes) {
  const ArrayLayout one{"hw", {1, 4, 1}};
  const auto convert = [&](const std::string& raw, ArrayElement element, ArrayScale scale) {
    std::vector<uint8_t> pixels(4);
    to_pixels(as_bytes(raw), element, one, scale, pixels);
    return pixels;
  };
  using Bytes = std::vector<uint8_t>;
  const auto floats = [](std::vector<float> values) {
    std::string raw(4 * values.size(), '\0');
    for (size_t i = 0; i < values.size(); ++i) {
      store_le(reinterpret_cast<uint8_t*>(raw.data()) + 4 * i, std::bit_cast<uint32_t>(values[i]));
    }
    return raw;
  };
  const ArrayElement f32{ArrayElement::Kind::kFloat, 4, false};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(convert(floats({0, 0.5, 1, 2}), f32, ArrayScale::kUnit), (Bytes{0, 128, 255, 255}));
  EXPECT_EQ(convert(floats({-1, nan, 254.6F, 7}), f32, ArrayScale::kByte), (Bytes{0, 0, 255, 7}));
  EXPECT_FALSE(fits_scale(as_bytes(floats({nan})), f32, ArrayScale::kByte));
  EXPECT_FALSE(fits_scale(as_bytes(floats({1.01F})), f32, ArrayScale::kUnit));
  EXPECT_TRUE(fits_scale(as_bytes(floats({0, 1})), f32, ArrayScale::kUnit));
  const ArrayElement u16{ArrayElement::Kind::kUnsigned, 2, true};
  EXPECT_EQ(convert(std::string("\0\0\x01\x01\x80\x80\xff\xff", 8), u16, ArrayScale::kWord),
            (Bytes{0, 1, 128, 255}));
  const ArrayElement i8{ArrayElement::Kind::kSigned, 1, false};
  EXPECT_EQ(convert(std::string("\xff\0\x01\x7f", 4), i8, ArrayScale::kByte),
            (Bytes{0, 0, 1, 127}));
  EXPECT_FALSE(check_scale(i8, ArrayScale::kUnsaid).ok());
  EXPECT_TRUE(check_scale({}, ArrayScale::kUnsaid).ok());
}

TEST(Hdf5Place, IsWholeOrRefused) {
  Hdf5Place place;
  place.element = {ArrayElement::Kind::kFloat, 4, true};
  place.order = "chw";
  place.scale = ArrayScale::kUnit;
  place.pieces = {Piece::of_file(1, 1000, 20)};
  const std::string text = encode_place(place);
  const auto back = decode_place(text);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(*back == place);
  for (size_t cut = 0; cut < text.size(); ++cut) {
    EXPECT_EQ(decode_place(text.substr(0, cut)).status().code(), Code::kDamaged) << cut;
  }
}

// A file of chunks of 3 x 2 elements of an array of 7 x 5, each element its own number.
TEST(ArrayReader, ReadsRowsAcrossChunks) {
  auto file = File::create_in_memory("chunks");
  ASSERT_TRUE(file.ok());
  ArrayStorage storage;
  storage.sizes = {7, 5};
  storage.chunk_sizes = {3, 2};
  storage.fill = {0xee};
  storage.find_chunk = [](const std::vector<uint64_t>& first) -> Result<ArrayChunk> {
    ArrayChunk chunk;
    chunk.stored = first != std::vector<uint64_t>{3, 2};
    chunk.offset = (first[0] / 3 * 3 + first[1] / 2) * 6;
    chunk.bytes = 6;
    return chunk;
  };
  for (uint64_t row = 0; row < 9; ++row) {
    for (uint64_t column = 0; column < 6; ++column) {
      const uint8_t value = static_cast<uint8_t>(row * 5 + column);
      const uint64_t at = (row / 3 * 3 + column / 2) * 6 + row % 3 * 2 + column % 2;
      ASSERT_TRUE(file->write_all(at, ByteSpan(&value, 1)).ok());
    }
  }
  ASSERT_TRUE(check_storage(storage, 54, 1 << 20).ok());
  for (const uint64_t memory : {6, 1000}) {
    ArrayReader reader(*file, storage, memory);
    for (uint64_t first = 0; first < 7; ++first) {
      for (uint64_t rows = 1; first + rows <= 7; ++rows) {
        std::vector<uint8_t> into(rows * 5);
        ASSERT_TRUE(reader.read(first, into).ok());
        for (uint64_t i = 0; i < into.size(); ++i) {
          const uint64_t row = first + i / 5, column = i % 5;
          const bool is_fill = row >= 3 && row < 6 && column >= 2 && column < 4;
          EXPECT_EQ(into[i], is_fill ? 0xee : row * 5 + column);
        }
      }
    }
  }
  EXPECT_EQ(check_storage(storage, 54, 5).code(), Code::kNoMemory);
  storage.chunk_sizes = {3, 0};
  EXPECT_EQ(check_storage(storage, 54, 1 << 20).code(), Code::kDamaged);
  storage.sizes = {UINT64_MAX, 2};
  EXPECT_EQ(check_storage(storage, 54, 1 << 20).code(), Code::kDamaged);
}

TEST(ArrayFilters, AreUndoneOrRefused) {
  std::vector<uint8_t> out;
  const std::vector<ArrayFilter> shuffle = {{ArrayFilter::Kind::kShuffle, 2}};
  ASSERT_TRUE(undo_filters({1, 2, 3, 11, 12, 13, 99}, shuffle, 0, 7, &out).ok());
  EXPECT_EQ(out, (std::vector<uint8_t>{1, 11, 2, 12, 3, 13, 99}));
  ASSERT_TRUE(undo_filters({1, 2}, shuffle, 1, 2, &out).ok());  // it was left out
  EXPECT_EQ(out, (std::vector<uint8_t>{1, 2}));
  EXPECT_EQ(undo_filters({1, 2}, {}, 0, 3, &out).code(), Code::kDamaged);
  const std::vector<ArrayFilter> sum = {{ArrayFilter::Kind::kFletcher32, 1}};
  EXPECT_EQ(undo_filters({1, 2, 3}, sum, 0, 0, &out).code(), Code::kDamaged);
  // 0x0102 + 0x0300 = 0x0402; 0x0102 + 0x0402 = 0x0504.
  ASSERT_TRUE(undo_filters({1, 2, 3, 0x02, 0x04, 0x04, 0x05}, sum, 0, 3, &out).ok());
  EXPECT_EQ(undo_filters({1, 2, 4, 0x02, 0x04, 0x04, 0x05}, sum, 0, 3, &out).code(),
            Code::kDamaged);
  const std::vector<ArrayFilter> packed = {{ArrayFilter::Kind::kDeflate, 1}};
  EXPECT_FALSE(undo_filters({1, 2, 3}, packed, 0, 3, &out).ok());
}

TEST(Hdf5Heap, RowsLieWhereItSaysOrNowhere) {
  std::string bytes(64, 'x');
  bytes += std::string("GCOL\1\0\0\0", 8) + std::string("\x48\0\0\0\0\0\0\0", 8);
  bytes += std::string("\1\0\1\0\0\0\0\0\5\0\0\0\0\0\0\0", 16) + std::string("first\0\0\0", 8);
  bytes += std::string("\2\0\1\0\0\0\0\0\x08\0\0\0\0\0\0\0", 16) + "second__";
  bytes += std::string(8, '\0');
  auto file = File::create_in_memory("heap");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write_all(0, as_bytes(bytes)).ok());
  auto heap = Hdf5Heap::open(*file);
  const auto find = [&](uint32_t length, uint64_t address, uint32_t number) {
    uint8_t place[16];
    store_le<uint32_t>(place, length);
    store_le<uint64_t>(place + 4, address);
    store_le<uint32_t>(place + 12, number);
    return heap->find(place);
  };
  EXPECT_EQ(find(5, 64, 1)->offset, 64u + 32u);
  EXPECT_EQ(find(6, 64, 2)->offset, 64u + 56u);
  EXPECT_EQ(find(0, 0, 0)->bytes, 0u);
  EXPECT_EQ(find(6, 64, 1).status().code(), Code::kDamaged);
  EXPECT_EQ(find(1, 64, 3).status().code(), Code::kDamaged);
  EXPECT_EQ(find(1, 64, 65537).status().code(), Code::kDamaged);
  EXPECT_EQ(find(1, 8, 1).status().code(), Code::kDamaged);
  EXPECT_EQ(find(1, UINT64_MAX, 1).status().code(), Code::kDamaged);
  std::mt19937 random(4);
  for (int round = 0; round < 500; ++round) {
    std::string damaged = bytes;
    damaged[64 + random() % 72] = static_cast<char>(random());
    ASSERT_TRUE(file->write_all(0, as_bytes(damaged)).ok());
    heap = Hdf5Heap::open(*file);
    for (const uint32_t number : {1, 2, 3}) {
      const auto found = find(5, 64, number);
      EXPECT_TRUE(!found.ok() || found->offset + found->bytes <= bytes.size());
    }
  }
}

Hdf5Dataset bytes_of(const std::string& path, std::vector<uint64_t> sizes) {
  Hdf5Dataset dataset;
  dataset.path = path;
  dataset.kind = Hdf5Dataset::Kind::kNumbers;
  dataset.sizes = std::move(sizes);
  dataset.what = "uint8";
  return dataset;
}

TEST(Hdf5Choice, NamesThatPeopleUse) {
  PackOptions options;
  const auto choose = [&](const std::vector<Hdf5Dataset>& datasets) {
    const auto choice = choose_datasets(datasets, options);
    if (!choice.ok()) return std::string(code_name(choice.status().code()));
    return choice->images.path + (choice->labels ? "+" + choice->labels->path : "");
  };
  const auto images = bytes_of("images", {5, 8, 8, 3});
  EXPECT_EQ(choose({images, bytes_of("labels", {5})}), "images+labels");
  EXPECT_EQ(choose({bytes_of("data", {5, 8, 8, 3}), bytes_of("label", {5, 1})}), "data+label");
  EXPECT_EQ(choose({bytes_of("g/X", {5, 8, 8}), bytes_of("g/Y", {5})}), "g/X+g/Y");
  EXPECT_EQ(choose({bytes_of("what", {5, 8, 8}), bytes_of("images", {5, 8, 8})}), "images");
  EXPECT_EQ(choose({bytes_of("a", {5, 8, 8}), bytes_of("b", {5, 8, 8})}), "invalid_argument");
  EXPECT_EQ(choose({images, bytes_of("labels", {4})}), "mismatch");
  EXPECT_EQ(choose({images, bytes_of("weights", {5})}), "invalid_argument");
  EXPECT_EQ(choose({images, bytes_of("weights", {6})}), "images");
  EXPECT_EQ(choose({images, bytes_of("y", {5}), bytes_of("target", {5})}), "invalid_argument");
  EXPECT_EQ(choose({}), "invalid_argument");
  options.labels = LabelMode::kNone;
  EXPECT_EQ(choose({images, bytes_of("weights", {5})}), "images");
  options = {};
  options.images_name = "/b";
  options.labels_name = "weights";
  EXPECT_EQ(choose({bytes_of("b", {5, 8, 8}), images, bytes_of("weights", {5})}), "b+weights");
  options.images_name = "c";
  EXPECT_EQ(choose({images}), "not_found");
}

}  // namespace
}  // namespace spk
