#include "io/direct_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "io/file.h"
#include "io/filesystem.h"

namespace spk {
namespace {

class DirectWriterTest : public testing::Test {
 protected:
  // DIRECTORY: where the file system is a disk, or memory.
  Result<File> make(const std::string& directory) {
    path_ = directory + "/spk_direct_writer_XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) return io_error(errno, "cannot create", path_);
    auto dir = Directory::open(path_);
    if (!dir.ok()) return std::move(dir).status();
    return File::create(*dir, "a");
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  std::vector<uint8_t> random_bytes(uint64_t size_bytes) {
    std::vector<uint8_t> bytes(size_bytes);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
    return bytes;
  }
  // Writes BYTES in pieces of random sizes at OFFSET and reads them back.
  void write_and_compare(const File& file, DirectWriter& writer, uint64_t offset,
                         const std::vector<uint8_t>& bytes, uint64_t largest_piece) {
    std::vector<ByteSpan> pieces;
    for (uint64_t done = 0; done < bytes.size();) {
      const uint64_t size = std::min<uint64_t>(random_() % largest_piece, bytes.size() - done);
      pieces.push_back(ByteSpan(bytes).subspan(done, size));  // some of them empty
      done += size;
    }
    const Status written = writer.write_all_v(file, offset, pieces);
    ASSERT_TRUE(written.ok()) << written.to_string();
    std::vector<uint8_t> back(bytes.size());
    ASSERT_TRUE(file.read_exact(offset, back).ok());
    EXPECT_EQ(back, bytes) << "at " << offset;
  }

  std::mt19937_64 random_{20261130};
  std::string path_;
};

constexpr uint64_t kBuffer = DirectWriter::kBufferBytes;

TEST_F(DirectWriterTest, WritesEveryByteWhereverItStarts) {
  RecordProperty("seed", 20261130);
  Result<File> file = make(testing::TempDir());
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  DirectWriter writer(*file);
  const uint64_t page = page_bytes();
  for (const uint64_t offset : {uint64_t{0}, page, 3 * page, uint64_t{1}, page - 1, 5 * kBuffer}) {
    for (const uint64_t size : {uint64_t{0}, uint64_t{1}, page - 1, page, page + 1, kBuffer - 1,
                                kBuffer, kBuffer + 1, 2 * kBuffer, 2 * kBuffer + page + 17}) {
      write_and_compare(*file, writer, offset, random_bytes(size), size > page ? 300000 : 700);
    }
  }
  EXPECT_EQ(*file->size(), 5 * kBuffer + 2 * kBuffer + page + 17);
}

TEST_F(DirectWriterTest, NeighboursOfAPageAreKept) {
  Result<File> file = make(testing::TempDir());
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  DirectWriter writer(*file);
  const uint64_t page = page_bytes();
  const std::vector<uint8_t> all = random_bytes(4 * page);
  const ByteSpan bytes(all);
  // The end of the first is in the page where the second begins, by the cache; then a page by the
  // disk while its neighbours are dirty in the cache.
  for (const auto& [from, to] : {std::pair{uint64_t{0}, page + 100}, {page + 100, 4 * page}}) {
    const ByteSpan piece = bytes.subspan(from, to - from);
    ASSERT_TRUE(writer.write_all_v(*file, from, std::span(&piece, 1)).ok());
  }
  const ByteSpan again = bytes.subspan(2 * page, page);
  ASSERT_TRUE(writer.write_all_v(*file, 2 * page, std::span(&again, 1)).ok());
  std::vector<uint8_t> back(all.size());
  ASSERT_TRUE(file->read_exact(0, back).ok());
  EXPECT_EQ(back, all);
}

TEST_F(DirectWriterTest, PassesByTheCacheOnADiskOnly) {
  for (const std::string& directory : {std::string("/dev/shm"), testing::TempDir()}) {
    if (::access(directory.c_str(), W_OK) != 0) continue;
    Result<File> file = make(directory);
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    const FileSystemInfo fs = detect_filesystem(file->fd());
    DirectWriter writer(*file);
    if (fs.kind == FileSystemKind::kTmpfs || fs.network) EXPECT_FALSE(writer.is_direct());
    if (fs.kind == FileSystemKind::kExt || fs.kind == FileSystemKind::kXfs) {
      EXPECT_TRUE(writer.is_direct()) << fs.name;
    }
    write_and_compare(*file, writer, 0, random_bytes(kBuffer + 5), 100000);
    TearDown();
  }
}

}  // namespace
}  // namespace spk
