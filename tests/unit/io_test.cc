#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/text.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/filesystem.h"
#include "io/mapping.h"

namespace spk {
namespace {

namespace fs = std::filesystem;

class IoTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "spk_io_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    auto dir = Directory::open(path_);
    ASSERT_TRUE(dir.ok()) << dir.status().to_string();
    dir_ = std::move(dir).value();
  }
  void TearDown() override { fs::remove_all(path_); }

  File make(std::string_view name, std::string_view text) {
    auto file = File::create(dir_, name);
    EXPECT_TRUE(file.ok()) << file.status().to_string();
    EXPECT_TRUE(file->write_all(0, as_bytes(text)).ok());
    return std::move(file).value();
  }
  std::string contents(std::string_view name) {
    auto bytes = read_whole_file(dir_, name, 1 << 20);
    if (!bytes.ok()) return bytes.status().to_string();
    return std::string(as_text(*bytes));
  }
  std::vector<std::string> names() {
    std::vector<std::string> found;
    const auto entries = dir_.list();
    EXPECT_TRUE(entries.ok());
    for (const DirectoryEntry& entry : *entries) found.push_back(entry.name);
    return found;
  }

  std::string path_;
  Directory dir_;
};

using Names = std::vector<std::string>;

TEST_F(IoTest, CreateIsExclusiveEvenForDanglingSymlinks) {
  make("a", "first");
  const auto again = File::create(dir_, "a");
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().code(), Code::kExists);
  EXPECT_EQ(again.status().os_errno(), EEXIST);
  EXPECT_EQ(again.status().path(), path_ + "/a");
  EXPECT_EQ(contents("a"), "first");

  ASSERT_EQ(::symlink("/nonexistent/target", (path_ + "/link").c_str()), 0);
  EXPECT_EQ(File::create(dir_, "link").status().code(), Code::kExists);
}

TEST_F(IoTest, CreatedFilesHaveTheModeThatUmaskLeaves) {
  const mode_t before = ::umask(002);
  make("a", "");
  const auto made = Directory::create_at(dir_, "d");
  ::umask(before);
  ASSERT_TRUE(made.ok());
  struct stat info;
  ASSERT_EQ(::stat((path_ + "/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0664u);
  ASSERT_EQ(::stat((path_ + "/d").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0775u);
}

TEST_F(IoTest, OpenRefusesWhatIsNotARegularFileAndDoesNotHang) {
  ASSERT_EQ(::mkfifo((path_ + "/fifo").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir((path_ + "/sub").c_str(), 0700), 0);
  for (const char* name : {"fifo", "sub"}) {
    for (const auto& opened :
         {File::open_read(dir_, name).status(), File::open_read(path_ + "/" + name).status(),
          File::open_write(dir_, name).status()}) {
      EXPECT_EQ(opened.code(), Code::kNotThisFormat) << name;
      EXPECT_EQ(opened.message(), "not a regular file");
      EXPECT_EQ(opened.path(), path_ + "/" + name);
    }
  }
  EXPECT_EQ(File::open_read("/dev/null").status().code(), Code::kNotThisFormat);
  EXPECT_EQ(File::open_read(dir_, "none").status().code(), Code::kNotFound);
}

TEST_F(IoTest, OpenReadFollowsLinksAndOpenWriteDoesNot) {
  make("a", "text");
  ASSERT_EQ(::symlink("a", (path_ + "/link").c_str()), 0);
  EXPECT_TRUE(File::open_read(dir_, "link").ok());
  EXPECT_EQ(File::open_write(dir_, "link").status().code(), Code::kNotThisFormat);
  EXPECT_TRUE(File::open_write(dir_, "a").ok());
  // Blocking mode is back after the open.
  const auto file = File::open_read(dir_, "a");
  EXPECT_EQ(::fcntl(file->fd(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(file->fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(IoTest, NamesThatLeadOutOfTheDirectoryAreRefused) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view name : {""sv, "."sv, ".."sv, "a/b"sv, "/etc/passwd"sv, "a\0b"sv}) {
    EXPECT_EQ(File::create(dir_, name).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(File::open_read(dir_, name).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(Directory::create_at(dir_, name).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(dir_.unlink(name).code(), Code::kInvalidArgument);
    EXPECT_EQ(dir_.remove_tree(name).code(), Code::kInvalidArgument);
    EXPECT_EQ(dir_.rename(name, "x").code(), Code::kInvalidArgument);
    EXPECT_EQ(dir_.rename("x", name).code(), Code::kInvalidArgument);
  }
}

TEST_F(IoTest, ReadsPastTheEndSayWhereTheFileEnds) {
  const File file = make("a", "0123456789");
  std::vector<uint8_t> buffer(8);
  EXPECT_TRUE(file.read_exact(2, buffer).ok());
  EXPECT_EQ(as_text(buffer), "23456789");

  Status status = file.read_exact(4, buffer);
  EXPECT_EQ(status.code(), Code::kDamaged);
  EXPECT_EQ(status.message(), "file ends at 10, 8 bytes expected at 4");
  EXPECT_EQ(status.offset(), 4u);
  EXPECT_EQ(status.path(), path_ + "/a");

  status = file.read_exact(1000, buffer);
  EXPECT_EQ(status.code(), Code::kDamaged);
  EXPECT_EQ(status.message(), "file ends at 10, 8 bytes expected at 1000");
  EXPECT_EQ(status.offset(), 1000u);

  // Cut while it is open.
  ASSERT_TRUE(file.truncate(5).ok());
  EXPECT_EQ(file.read_exact(2, buffer).message(), "file ends at 5, 8 bytes expected at 2");

  const auto some = file.read_some(2, buffer);
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(*some, 3u);
  EXPECT_EQ(*file.read_some(5, buffer), 0u);
  EXPECT_EQ(*file.read_some(99, buffer), 0u);
  EXPECT_TRUE(file.read_exact(99, {}).ok());
}

TEST_F(IoTest, OffsetsBeyondWhatTheKernelKnowsAreRefused) {
  const File file = make("a", "0123456789");
  std::vector<uint8_t> buffer(8);
  EXPECT_EQ(file.read_exact(UINT64_MAX, buffer).code(), Code::kInvalidArgument);
  EXPECT_EQ(file.read_exact(INT64_MAX - 3, buffer).code(), Code::kInvalidArgument);
  EXPECT_EQ(file.write_all(UINT64_MAX - 7, buffer).code(), Code::kInvalidArgument);
  const ByteSpan pieces[] = {buffer, buffer};
  EXPECT_EQ(file.write_all_v(INT64_MAX - 8, pieces).code(), Code::kInvalidArgument);
  EXPECT_EQ(file.truncate(UINT64_MAX).code(), Code::kInvalidArgument);
}

TEST_F(IoTest, OffsetsBeyond32BitsWork) {
  const File file = make("a", "");
  const uint64_t far = (uint64_t{5} << 32) + 123;
  ASSERT_TRUE(file.write_all(far, as_bytes("far")).ok());
  EXPECT_EQ(*file.size(), far + 3);
  std::vector<uint8_t> buffer(3);
  ASSERT_TRUE(file.read_exact(far, buffer).ok());
  EXPECT_EQ(as_text(buffer), "far");
  EXPECT_EQ(file.read_exact(far + 1, buffer).message(),
            str_cat("file ends at ", far + 3, ", 3 bytes expected at ", far + 1));
}

TEST_F(IoTest, WritesMorePiecesThanOneCallTakes) {
  const File file = make("a", "");
  std::string expected;
  std::vector<std::string> texts;
  for (int i = 0; i < 3 * IOV_MAX + 17; ++i) {
    texts.push_back(i % 5 == 0 ? std::string() : str_cat(i, ","));  // empty ones in between
  }
  std::vector<ByteSpan> pieces;
  for (const std::string& text : texts) {
    pieces.push_back(as_bytes(text));
    expected += text;
  }
  ASSERT_TRUE(file.write_all_v(10, pieces).ok());
  EXPECT_EQ(contents("a"), std::string(10, '\0') + expected);
  EXPECT_TRUE(file.write_all_v(0, {}).ok());
  const std::vector<ByteSpan> empty_pieces(2000);
  EXPECT_TRUE(file.write_all_v(0, empty_pieces).ok());
  EXPECT_EQ(*file.size(), 10 + expected.size());
}

// With a limit of file size the kernel writes what fits (a short write) and refuses the rest, which
// shows both the loop and the error.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t limit_bytes) {
    old_handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limited = {limit_bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    ::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_;
  void (*old_handler_)(int);
};

TEST_F(IoTest, FileSizeLimitIsNamed) {
  const File file = make("a", "");
  const std::string text(1000, 'x');
  const ByteSpan pieces[] = {as_bytes(text), as_bytes(text), as_bytes(text)};
  Status plain;
  Status vector;
  {
    const FileSizeLimit limit(2500);
    plain = file.write_all(2400, as_bytes(text));
    vector = file.write_all_v(0, pieces);
  }
  for (const Status& status : {plain, vector}) {
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_EQ(status.os_errno(), EFBIG);
    EXPECT_EQ(status.offset(), 2500u);
    EXPECT_NE(status.hint().find("file size limit (ulimit -f)"), std::string::npos);
  }
  EXPECT_EQ(contents("a"), std::string(2500, 'x'));
}

TEST_F(IoTest, FullDiskIsNoSpaceWithAHint) {
  const int fd = ::open("/dev/full", O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const File file = File::adopt(fd, "/dev/full");
  for (const Status& status : {file.write_all(7, as_bytes("abc")),
                               file.write_all_v(7, std::vector<ByteSpan>{as_bytes("abc")})}) {
    EXPECT_EQ(status.code(), Code::kNoSpace);
    EXPECT_EQ(status.os_errno(), ENOSPC);
    EXPECT_EQ(status.offset(), 7u);
    EXPECT_EQ(status.path(), "/dev/full");
    EXPECT_EQ(status.hint(), "free space or write elsewhere, then run the same command again");
  }
  EXPECT_EQ(io_error(EDQUOT, "cannot write", "x").code(), Code::kNoSpace);
}

TEST_F(IoTest, SyncHintsAndCloseWork) {
  File file = make("a", "0123456789");
  EXPECT_TRUE(file.allocate(1 << 20).ok());
  EXPECT_EQ(*file.size(), 10u);
  file.start_writeback(0, 10);
  EXPECT_TRUE(file.sync().ok());
  file.drop_cache();
  file.advise_sequential();
  file.advise_random();
  EXPECT_EQ(contents("a"), "0123456789");
  const int fd = file.fd();
  EXPECT_TRUE(file.close().ok());
  EXPECT_FALSE(file.is_open());
  EXPECT_TRUE(file.close().ok());
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
  // A descriptor that another has closed is reported.
  File gone = File::adopt(fd, "gone");
  EXPECT_EQ(gone.close().os_errno(), EBADF);
}

TEST_F(IoTest, ListIsSortedByBytesWithTypes) {
  make("b", "");
  make("B", "");
  make("\xff", "");
  ASSERT_EQ(::mkdir((path_ + "/a").c_str(), 0700), 0);
  ASSERT_EQ(::symlink("nowhere", (path_ + "/c").c_str()), 0);
  ASSERT_EQ(::mkfifo((path_ + "/d").c_str(), 0600), 0);
  const std::vector<DirectoryEntry> expected = {
      {"B", EntryType::kRegular}, {"a", EntryType::kDirectory}, {"b", EntryType::kRegular},
      {"c", EntryType::kSymlink}, {"d", EntryType::kOther},     {"\xff", EntryType::kRegular}};
  for (int round = 0; round < 2; ++round) {  // a listing leaves no position behind
    const auto entries = dir_.list();
    ASSERT_TRUE(entries.ok());
    EXPECT_EQ(*entries, expected);
  }
  EXPECT_EQ(dir_.stat("c")->type, EntryType::kSymlink);
  EXPECT_TRUE(*dir_.exists("c"));
  EXPECT_FALSE(*dir_.exists("none"));
}

TEST_F(IoTest, RenameReplacesAndRenameNoReplaceDoesNot) {
  make("a", "A");
  make("b", "B");
  const Status taken = dir_.rename_no_replace("a", "b");
  EXPECT_EQ(taken.code(), Code::kExists);
  EXPECT_EQ(taken.path(), path_ + "/b");
  EXPECT_EQ(contents("a"), "A");
  EXPECT_EQ(contents("b"), "B");
  EXPECT_TRUE(dir_.rename_no_replace("a", "c").ok());
  EXPECT_TRUE(dir_.rename("c", "b").ok());
  EXPECT_EQ(contents("b"), "A");
  EXPECT_EQ(names(), Names{"b"});
  EXPECT_EQ(dir_.rename_no_replace("none", "x").code(), Code::kNotFound);

  const auto sub = Directory::create_at(dir_, "sub");
  ASSERT_TRUE(sub.ok());
  EXPECT_TRUE(dir_.rename_to("b", *sub, "moved").ok());
  make("b", "second");
  EXPECT_EQ(dir_.rename_to_no_replace("b", *sub, "moved").code(), Code::kExists);
  EXPECT_TRUE(dir_.rename_to_no_replace("b", *sub, "other").ok());
  EXPECT_EQ(names(), Names{"sub"});
}

TEST_F(IoTest, DirectoryKeepsWorkingWhenRenamed) {
  const auto sub = Directory::create_at(dir_, "sub");
  ASSERT_TRUE(sub.ok());
  ASSERT_TRUE(write_file_atomically(*sub, "a", as_bytes("old")).ok());
  ASSERT_TRUE(dir_.rename("sub", "aside").ok());
  const auto fresh = Directory::create_at(dir_, "sub");
  ASSERT_TRUE(write_file_atomically(*fresh, "a", as_bytes("new")).ok());
  EXPECT_EQ(as_text(*read_whole_file(*sub, "a", 10)), "old");
  EXPECT_EQ(as_text(*read_whole_file(*fresh, "a", 10)), "new");
}

TEST_F(IoTest, CreateDirectoryIsAClaim) {
  EXPECT_TRUE(Directory::create(path_ + "/claim").ok());
  EXPECT_EQ(Directory::create(path_ + "/claim").status().code(), Code::kExists);
  EXPECT_EQ(Directory::create_at(dir_, "claim").status().code(), Code::kExists);
  make("file", "");
  EXPECT_EQ(Directory::open_at(dir_, "file").status().code(), Code::kNotThisFormat);
  EXPECT_EQ(Directory::open(path_ + "/none").status().code(), Code::kNotFound);
  ASSERT_EQ(::symlink("claim", (path_ + "/link").c_str()), 0);
  EXPECT_EQ(Directory::open_at(dir_, "link").status().code(), Code::kNotThisFormat);
}

TEST_F(IoTest, RemoveTreeDoesNotFollowLinks) {
  const auto outside = Directory::create_at(dir_, "outside");
  ASSERT_TRUE(write_file_atomically(*outside, "precious", as_bytes("x")).ok());
  fs::create_directories(path_ + "/tree/deep/deeper");
  make("plain", "");
  fs::rename(path_ + "/plain", path_ + "/tree/deep/plain");
  fs::create_directory_symlink(path_ + "/outside", path_ + "/tree/deep/link");
  fs::create_directory_symlink(path_ + "/outside", path_ + "/toplink");
  EXPECT_TRUE(dir_.remove_tree("tree").ok());
  EXPECT_TRUE(dir_.remove_tree("toplink").ok());
  EXPECT_TRUE(dir_.remove_tree("none").ok());
  EXPECT_EQ(names(), Names{"outside"});
  EXPECT_TRUE(*outside->exists("precious"));
  EXPECT_EQ(dir_.remove_directory("outside").os_errno(), ENOTEMPTY);
  EXPECT_EQ(dir_.unlink("none").code(), Code::kNotFound);
}

TEST_F(IoTest, SpaceAndSync) {
  EXPECT_TRUE(dir_.sync().ok());
  const auto space = dir_.space();
  ASSERT_TRUE(space.ok());
  EXPECT_GE(space->total_bytes, space->free_bytes);
  EXPECT_GE(space->free_bytes, space->available_bytes);
  EXPECT_GT(space->block_bytes, 0u);
}

TEST_F(IoTest, AtomicFileReplacesWhole) {
  ASSERT_TRUE(write_file_atomically(dir_, "m", as_bytes("one")).ok());
  EXPECT_EQ(contents("m"), "one");
  ASSERT_TRUE(write_file_atomically(dir_, "m", as_bytes("two, longer")).ok());
  EXPECT_EQ(contents("m"), "two, longer");
  ASSERT_TRUE(write_file_atomically(dir_, "m", {}).ok());
  EXPECT_EQ(contents("m"), "");
  EXPECT_EQ(names(), Names{"m"});
}

TEST_F(IoTest, AtomicFileThatFailsLeavesTheOldOne) {
  ASSERT_TRUE(write_file_atomically(dir_, "m", as_bytes("old")).ok());
  Status status;
  {
    const FileSizeLimit limit(100);
    status = write_file_atomically(dir_, "m", as_bytes(std::string(1000, 'x')));
  }
  EXPECT_EQ(status.os_errno(), EFBIG);
  EXPECT_EQ(contents("m"), "old");
  EXPECT_EQ(names(), Names{"m"});
  // The rename fails: a directory cannot be replaced by a file.
  ASSERT_TRUE(Directory::create_at(dir_, "d").ok());
  EXPECT_EQ(write_file_atomically(dir_, "d", as_bytes("x")).os_errno(), EISDIR);
  EXPECT_EQ(names(), (Names{"d", "m"}));
}

TEST_F(IoTest, WholeFileIsBounded) {
  make("a", "0123456789");
  EXPECT_EQ(as_text(*read_whole_file(dir_, "a", 10)), "0123456789");
  const auto large = read_whole_file(dir_, "a", 9);
  EXPECT_EQ(large.status().code(), Code::kDamaged);
  EXPECT_EQ(large.status().message(), "file of 10 bytes, at most 9 expected");
  EXPECT_NE(unique_token(), unique_token());
}

TEST_F(IoTest, MappingTellsWhatIsInMemory) {
  const std::string bytes(5 * page_bytes() + 100, 'x');
  const File file = make("file", bytes);
  const auto mapping = Mapping::open(file, bytes.size());
  ASSERT_TRUE(mapping.ok());
  mapping->populate(0, bytes.size());
  EXPECT_TRUE(mapping->is_resident(0, bytes.size()));
  EXPECT_TRUE(mapping->is_resident(page_bytes() + 7, 3 * page_bytes()));
  EXPECT_TRUE(mapping->is_resident(5 * page_bytes(), UINT64_MAX));  // up to the end
  EXPECT_FALSE(mapping->is_resident(bytes.size(), 1));
}

TEST_F(IoTest, MappingChecksTheSize) {
  const File file = make("a", "0123456789");
  const auto mapping = Mapping::open(file, 10);
  ASSERT_TRUE(mapping.ok()) << mapping.status().to_string();
  mapping->advise_random();
  mapping->advise_sequential();
  mapping->advise_will_need(3, 100);
  EXPECT_EQ(as_text(mapping->bytes()), "0123456789");
  const auto wrong = Mapping::open(file, 11);
  EXPECT_EQ(wrong.status().code(), Code::kDamaged);
  EXPECT_EQ(wrong.status().message(), "file ends at 10, 11 bytes expected");
  EXPECT_EQ(wrong.status().offset(), 10u);
  EXPECT_TRUE(Mapping::open(make("empty", ""), 0)->bytes().empty());
  const int fd = ::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  const auto unmappable = Mapping::open(File::adopt(fd, "mountinfo"), 0);
  EXPECT_TRUE(unmappable.ok());  // its size is 0
}

TEST_F(IoTest, DetectsFileSystems) {
  const int proc = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  const FileSystemInfo on_proc = detect_filesystem(proc);
  ::close(proc);
  EXPECT_EQ(on_proc.kind, FileSystemKind::kProc);
  EXPECT_EQ(on_proc.name, "proc");
  EXPECT_FALSE(on_proc.network);
  const FileSystemInfo here = detect_filesystem(dir_.fd());
  EXPECT_NE(here.name, "unknown");
  EXPECT_GT(here.block_bytes, 0u);
  const FileSystemInfo none = detect_filesystem(-1);
  EXPECT_EQ(none.name, "unknown");
  EXPECT_TRUE(none.network);
}

TEST(MountTypeTest, FindsTheLastMountOfADevice) {
  const std::string text =
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "30 22 0:45 / /mnt/my\\040dir rw,nosuid shared:7 master:2 - fuse.sshfs me@host:/ rw\n"
      "31 22 0:46 / /data rw - fuse.one a rw\n"
      "32 22 0:46 / /data rw - fuse.two b rw\n"
      "33 22 10:46 / /x rw - xfs b rw\n"
      "broken\n"
      "34 22 0:47 / /cut";
  EXPECT_EQ(mount_type(text, 0, 45), "fuse.sshfs");
  EXPECT_EQ(mount_type(text, 0, 46), "fuse.two");
  EXPECT_EQ(mount_type(text, 8, 1), "ext4");
  EXPECT_EQ(mount_type(text, 0, 4), "");
  EXPECT_EQ(mount_type(text, 0, 47), "");
  EXPECT_EQ(mount_type("", 0, 1), "");
}

}  // namespace
}  // namespace spk
