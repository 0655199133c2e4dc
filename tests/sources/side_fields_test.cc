// Patterns of files beside samples, and heads of NumPy arrays.
#include "sources/side_fields.h"

#include <gtest/gtest.h>

#include "sources/npy.h"
#include "sources/pieces.h"

namespace spk {
namespace {

TEST(SideFields, PatternsNameFiles) {
  EXPECT_EQ(side_path("masks/{key}.png", "cat/1.a.jpg", "train/cat/1.a.jpg"), "masks/cat/1.a.png");
  EXPECT_EQ(side_path("{path}{key}{", "a.b/c", "x/a.b/c.jpg"), "x/a.b/ca.b/c{");
  EXPECT_EQ(side_path("m/{key}", ".hidden", "d/.hidden"), "m/.hidden");
  EXPECT_EQ(side_path("{path}", "", "d/.hidden.jpg"), "d/.hidden");
}

TEST(SideFields, AreParsed) {
  const auto fields = parse_side_fields({"mask=a={key}", "depth={path}.tif"});
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ((*fields)[0].name, "mask");
  EXPECT_EQ((*fields)[0].pattern, "a={key}");
  for (const char* wrong : {"", "=", "a", "a=b", "image={key}", "\xff={key}"}) {
    EXPECT_EQ(parse_side_fields({wrong}).status().code(), Code::kInvalidArgument) << wrong;
  }
  EXPECT_FALSE(parse_side_fields({"a={key}", "a={path}"}).ok());
}

TEST(Npy, HeadsAreReadOrRefused) {
  auto head = parse_npy_dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->dtype, "<f4");
  EXPECT_EQ(head->element_bytes, 4u);
  EXPECT_FALSE(head->fortran_order);
  EXPECT_EQ(head->shape, (std::vector<int64_t>{3, 4}));
  head = parse_npy_dictionary("{\"descr\": \"|b1\",\"fortran_order\":True,\"shape\":(5L,)}");
  ASSERT_TRUE(head.ok());
  EXPECT_TRUE(head->fortran_order);
  EXPECT_EQ(head->shape, std::vector<int64_t>{5});
  head = parse_npy_dictionary("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}");
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->element_bytes, 0u);
  EXPECT_TRUE(head->shape.empty());
  for (const char* wrong :
       {"", "{}", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'shape': (3,)}", "{'descr': '<f4, 'fortran_order': False"}) {
    EXPECT_EQ(parse_npy_dictionary(wrong).status().code(), Code::kDamaged) << wrong;
  }
}

TEST(Npy, FilesThatAreCut) {
  const std::string text = "{'descr': '<u2', 'fortran_order': False, 'shape': (1,), }";
  std::string file("\x93NUMPY\1\0", 8);
  file += static_cast<char>(text.size());
  file += '\0';
  file += text + "xx";
  const auto read = [](const std::string& bytes) {
    BytesHandle handle(std::vector<uint8_t>(bytes.begin(), bytes.end()));
    return read_npy_head(handle);
  };
  const auto whole = read(file);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->head_bytes, file.size() - 2);
  for (size_t bytes = 6; bytes < whole->head_bytes; ++bytes) {
    EXPECT_EQ(read(file.substr(0, bytes)).status().code(), Code::kDamaged) << bytes;
  }
  EXPECT_EQ(read("\x93NUM").status().code(), Code::kNotThisFormat);
  file[6] = 9;
  EXPECT_EQ(read(file).status().code(), Code::kDamaged);
}

}  // namespace
}  // namespace spk
