// CIFAR's records and IDX files as sources.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sources/cifar.h"
#include "sources/idx.h"
#include "sources/listed.h"
#include "support/test_pack.h"

namespace spk {
namespace {

namespace fs = std::filesystem;

class ArraysTest : public testing::Test {
 protected:
  ArraysTest() { options_.source = dir_ / "in"; }
  void write(const std::string& name, const std::string& bytes) {
    fs::create_directories(options_.source);
    std::ofstream(options_.source + "/" + name, std::ios::binary) << bytes;
  }
  Result<test::Listed> list() { return test::list_all(options_, Spool::make_temporary()); }
  test::TempDir dir_;
  PackOptions options_;
};

std::string be32(uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
  return text;
}
std::string idx(uint8_t type, const std::vector<uint32_t>& sizes, const std::string& data) {
  std::string text = {0, 0, static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) text += be32(size);
  return text + data;
}
std::string cifar(const std::string& labels, char seed) {
  std::string text = labels;
  for (char plane = 0; plane < 3; ++plane)
    text += std::string(1024, static_cast<char>(seed + plane));
  return text;
}

TEST_F(ArraysTest, Cifar10HasSplitsAndNames) {
  write("data_batch_2.bin", cifar("\2", 40));
  write("data_batch_1.bin", cifar("\1", 10) + cifar(std::string(1, '\0'), 20));
  write("test_batch.bin", cifar("\1", 60));
  write("batches.meta.txt", "plane\r\ncar\nbird\n\n");
  const auto listed = list();
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->listing.source_kind, "cifar");
  EXPECT_EQ(listed->listing.splits, (std::vector<std::string>{"train", "test"}));
  EXPECT_EQ(listed->listing.classes, (std::vector<std::string>{"plane", "car", "bird"}));
  ASSERT_EQ(listed->entries.size(), 4u);
  EXPECT_EQ(listed->entries[0].key, "data_batch_1/00000000");
  EXPECT_EQ(listed->entries[1].key, "data_batch_1/00000001");
  EXPECT_EQ(listed->entries[2].int_labels, std::vector<int64_t>{2});
  EXPECT_EQ(listed->entries[3].key, "test_batch/00000000");
  EXPECT_EQ(listed->entries[3].split, 1u);
  std::string pixels;
  for (int i = 0; i < 1024; ++i) pixels += "\x0a\x0b\x0c";
  EXPECT_EQ(listed->payloads[0], pixels);
  EXPECT_TRUE(listed->entries[0].pixels == (PixelDimensions{32, 32, 3}));
}

TEST_F(ArraysTest, Cifar100KeepsBothLabels) {
  write("test.bin", cifar(std::string("\x13\x63"), 1));
  const auto listed = list();
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->listing.splits, std::vector<std::string>{"test"});
  EXPECT_EQ(listed->entries[0].int_labels, std::vector<int64_t>{99});
  ASSERT_EQ(listed->listing.numbers.size(), 1u);
  EXPECT_EQ(listed->listing.numbers[0].name, "coarse");
  EXPECT_EQ(*listed->entries[0].numbers[0], NumericValues{19});
}

TEST_F(ArraysTest, WhatIsNoCifarIsRefused) {
  write("data_batch_1.bin", cifar("\1", 1) + "x");
  EXPECT_EQ(list().status().code(), Code::kDamaged);
  write("data_batch_1.bin", cifar("\1", 1) + cifar("\x0a", 1));
  const Status status = list().status();
  EXPECT_EQ(status.code(), Code::kDamaged);
  EXPECT_EQ(status.offset(), 3073u);
  EXPECT_NE(status.message().find("record 1 has label 10"), std::string::npos);
}

TEST_F(ArraysTest, IdxPairsAreSplits) {
  write("train-images-idx3-ubyte", idx(8, {3, 2, 2}, "aaaabbbbcccc"));
  write("t10k-images-idx3-ubyte", idx(8, {1, 2, 2}, "dddd"));
  write("t10k-labels-idx1-ubyte", idx(0x0b, {1}, "\xff\xfe"));
  write("readme.txt", "hello");
  write("train-labels-idx1-ubyte", idx(8, {3}, std::string("\5\0\xff", 3)));
  const auto listed = list();
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->listing.splits, (std::vector<std::string>{"train", "test"}));
  ASSERT_EQ(listed->entries.size(), 4u);
  EXPECT_EQ(listed->entries[2].int_labels, std::vector<int64_t>{255});
  EXPECT_EQ(listed->payloads[2], "cccc");
  EXPECT_EQ(listed->entries[2].key, "00000002");
  EXPECT_EQ(listed->entries[3].int_labels, std::vector<int64_t>{-2});
  EXPECT_EQ(listed->entries[3].split, 1u);
}

TEST_F(ArraysTest, IdxOfWideLabelsColourAndNone) {
  write("images", idx(8, {2, 1, 2, 3}, "rgbRGBxyzXYZ"));
  auto listed = list();
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->listing.label_kind, LabelKind::kNone);
  EXPECT_EQ(listed->listing.warnings.total(), 1u);
  EXPECT_EQ(listed->payloads[1], "xyzXYZ");
  EXPECT_TRUE(listed->entries[1].pixels == (PixelDimensions{1, 2, 3}));
  write("numbers", idx(0x0c, {2}, be32(300) + be32(0xfffffffe)));
  listed = list();  // one of each belongs together
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->entries[0].int_labels, std::vector<int64_t>{300});
  EXPECT_EQ(listed->entries[1].int_labels, std::vector<int64_t>{-2});
}

TEST_F(ArraysTest, IdxThatContradictsItselfIsRefused) {
  const std::string labels = idx(8, {3}, "123");
  const std::string images = idx(8, {3, 2, 2}, "aaaabbbbcccc");
  for (size_t bytes = 4; bytes < images.size(); ++bytes) {
    write("images", images.substr(0, bytes));
    write("labels", labels);
    const Status status = list().status();
    EXPECT_EQ(status.code(), Code::kDamaged) << bytes;
    EXPECT_EQ(status.offset(), bytes);
  }
  write("images", images);
  write("labels", idx(8, {2}, "12"));
  EXPECT_EQ(list().status().code(), Code::kMismatch);
  write("labels", idx(8, {3}, "12"));
  EXPECT_EQ(list().status().code(), Code::kDamaged);
  options_.salvage = true;
  auto listed = list();
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->entries.size(), 2u);
  write("labels", labels);
  write("images", images.substr(0, images.size() - 5));
  listed = list();
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->entries.size(), 1u);
  options_.salvage = false;
  write("images", idx(8, {0xffffffff, 0xffffffff, 0xffffffff}, "x"));
  EXPECT_EQ(list().status().code(), Code::kDamaged);
  write("images", idx(8, {1, 65535, 65535}, "x"));
  EXPECT_EQ(list().status().code(), Code::kInvalidArgument);  // --max-pixels
  write("images", idx(8, {1, 0, 5}, "x"));
  EXPECT_EQ(list().status().code(), Code::kInvalidArgument);
  write("images", idx(0x0d, {1, 1, 1}, "1234"));
  EXPECT_EQ(list().status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace spk
