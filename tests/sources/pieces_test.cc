// What sources of container files share: places of samples, files opened on demand, room to unpack,
// and how SRC stands for files.
#include "sources/pieces.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "sources/source_kind.h"
#include "support/test_pack.h"

namespace spk {
namespace {

namespace fs = std::filesystem;

class SourcesTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) const {
    const fs::path path = dir_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  test::TempDir temp_;
  const fs::path dir_ = temp_.path();
};

std::string read(SampleHandle& handle, uint64_t offset, uint64_t bytes) {
  std::vector<uint8_t> into(bytes);
  EXPECT_TRUE(handle.read_at(offset, into).ok());
  return std::string(as_text(into));
}

TEST_F(SourcesTest, PiecesAreReadAcrossTheirBorders) {
  const ContainerFiles files({write("a", "0123456789"), write("b", "abcdef")});
  SampleEntry entry;
  entry.path = encode_pieces({Piece::of_file(0, 2, 3), Piece::of_file(1, 6, 0),
                              Piece::of_bytes("--"), Piece::of_file(1, 0, 4)});
  auto handle = open_pieces(files, entry);
  ASSERT_TRUE(handle.ok());
  EXPECT_EQ((*handle)->size_bytes(), 9u);
  EXPECT_EQ(read(**handle, 0, 9), "234--abcd");
  for (uint64_t begin = 0; begin <= 9; ++begin) {
    for (uint64_t end = begin; end <= 9; ++end) {
      EXPECT_EQ(read(**handle, begin, end - begin),
                std::string("234--abcd").substr(begin, end - begin));
    }
  }
  std::vector<uint8_t> more(10);
  EXPECT_EQ((*handle)->read_at(0, more).code(), Code::kInternal);
}

TEST_F(SourcesTest, AContainerThatChangedIsTold) {
  const std::string path = write("a", "0123456789");
  SampleEntry entry;
  entry.path = encode_pieces({Piece::of_file(0, 8, 4)});
  {
    const ContainerFiles files({path});
    auto handle = open_pieces(files, entry);
    ASSERT_TRUE(handle.ok());
    std::vector<uint8_t> into(4);
    const Status cut = (*handle)->read_at(0, into);
    EXPECT_EQ(cut.code(), Code::kMismatch);
    EXPECT_EQ(cut.offset(), 10u);
  }
  entry.mtime_ns = 12345;
  const ContainerFiles files({path});
  EXPECT_EQ(open_pieces(files, entry).status().code(), Code::kMismatch);
}

TEST_F(SourcesTest, PlacesAreWholeOrRefused) {
  const std::vector<Piece> pieces = {Piece::of_file(7, uint64_t{1} << 40, UINT64_MAX),
                                     Piece::of_bytes(std::string("\0x", 2))};
  const std::string text = encode_pieces(pieces);
  const auto back = decode_pieces(text);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(*back == pieces);
  for (size_t cut = 0; cut < text.size(); ++cut) {
    EXPECT_EQ(decode_pieces(text.substr(0, cut)).status().code(), Code::kDamaged) << cut;
  }
  EXPECT_EQ(decode_pieces(text + "x").status().code(), Code::kDamaged);
}

TEST_F(SourcesTest, SpooledFilesAppearWholeOrNotAtAll) {
  std::string folder;
  {
    const auto spool = Spool::make_temporary();
    folder = spool->path();
    EXPECT_FALSE(*spool->holds("one"));
    {
      auto dropped = spool->create("one");
      ASSERT_TRUE(dropped.ok());
      ASSERT_TRUE(dropped->append(as_bytes("part")).ok());
    }
    EXPECT_TRUE(fs::is_empty(folder));
    auto kept = spool->create("one");
    ASSERT_TRUE(kept.ok());
    ASSERT_TRUE(kept->append(as_bytes("all ")).ok());
    ASSERT_TRUE(kept->append(as_bytes("of it")).ok());
    EXPECT_EQ(kept->bytes(), 9u);
    EXPECT_FALSE(*spool->holds("one"));
    ASSERT_TRUE(kept->finish().ok());
    EXPECT_TRUE(*spool->holds("one"));
    EXPECT_EQ(fs::file_size(spool->path_of("one")), 9u);
  }
  EXPECT_FALSE(fs::exists(folder));
}

TEST(ExpandBraces, RangesAndWords) {
  using Paths = std::vector<std::string>;
  EXPECT_EQ(*expand_braces("a-{08..11}.tar"),
            (Paths{"a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"}));
  EXPECT_EQ(*expand_braces("{a,b}{0..1}"), (Paths{"a0", "a1", "b0", "b1"}));
  EXPECT_EQ(*expand_braces("{x}-{y"), (Paths{"{x}-{y"}));
  EXPECT_EQ(*expand_braces("{5..4}{,z}"), (Paths{"{5..4}", "{5..4}z"}));
  EXPECT_EQ(expand_braces("{0..999}{0..999}{0..9}").status().code(), Code::kInvalidArgument);
}

TEST_F(SourcesTest, WhatLiesAtSrc) {
  write("in/b.tar", "bb");
  write("in/a.tar", "aa");
  write("in/.hidden", "");
  write("in/sub/c", "");
  auto look = look_at_source(dir_ / "in");
  ASSERT_TRUE(look.ok());
  EXPECT_TRUE(look->is_folder);
  EXPECT_TRUE(look->has_folders);
  EXPECT_EQ(look->files, (std::vector<std::string>{dir_ / "in/a.tar", dir_ / "in/b.tar"}));
  EXPECT_EQ(as_text(look->head), "aa");
  EXPECT_TRUE(look->has_file("b.tar"));
  EXPECT_FALSE(look->has_file("c.tar"));
  look = look_at_source(dir_ / "in/*.tar");
  ASSERT_TRUE(look.ok());
  EXPECT_FALSE(look->is_folder);
  EXPECT_EQ(look->files.size(), 2u);
  EXPECT_EQ(look_at_source(dir_ / "in/{a,x}.tar")->files.size(), 2u);
  EXPECT_EQ(look_at_source(dir_ / "in/*.zip").status().code(), Code::kNotFound);
  EXPECT_EQ(look_at_source(dir_ / "in/none").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace spk
