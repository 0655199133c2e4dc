#include "io/read_engine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "support/sanitizers.h"

namespace spk {
namespace {

constexpr uint64_t kFileBytes = 3'000'017;

// One random file for all tests here; deleted at once, only its descriptor stays.
class ReadEngineTest : public testing::TestWithParam<EngineKind> {
 protected:
  static void SetUpTestSuite() {
    std::mt19937_64 random(20240611);
    data_ = new std::vector<uint8_t>(kFileBytes);
    for (uint8_t& byte : *data_) byte = static_cast<uint8_t>(random());
    std::string pattern = testing::TempDir() + "spk_engine_XXXXXX";
    fd_ = ::mkstemp(pattern.data());
    ASSERT_GE(fd_, 0);
    ::unlink(pattern.c_str());
    ASSERT_EQ(::pwrite(fd_, data_->data(), kFileBytes, 0), static_cast<ssize_t>(kFileBytes));
  }
  static void TearDownTestSuite() {
    ::close(fd_);
    delete data_;
  }

  void SetUp() override {
    auto engine = make_read_engine(GetParam(), 5);
    ASSERT_TRUE(engine.ok());
    engine_ = std::move(engine).value();
  }

  // Reads `count` random ranges; true if every byte is right.
  static bool reads_right(ReadEngine& engine, uint64_t seed, size_t count) {
    std::mt19937_64 random(seed);
    std::vector<std::vector<uint8_t>> buffers(count);
    std::vector<ReadOp> ops(count);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t offset = random() % kFileBytes;
      const uint64_t limit = i % 7 == 0 ? 300'000 : 5'000;
      buffers[i].resize(std::min(kFileBytes - offset, random() % limit));
      ops[i] = {fd_, offset, buffers[i], damaged("left over from before")};
    }
    if (!engine.read(ops).ok()) return false;
    for (size_t i = 0; i < count; ++i) {
      const auto* expected = data_->data() + ops[i].offset;
      if (!ops[i].status.ok()) return false;
      if (!std::equal(buffers[i].begin(), buffers[i].end(), expected)) return false;
    }
    return true;
  }

  // Runs `body` in a child; true if it returned true there.
  template <typename Body>
  static bool in_child(const Body& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body() ? 0 : 1);
    int result = -1;
    if (::waitpid(child, &result, 0) != child) return false;
    return WIFEXITED(result) && WEXITSTATUS(result) == 0;
  }

  static std::vector<uint8_t>* data_;
  static int fd_;
  std::unique_ptr<ReadEngine> engine_;
};

std::vector<uint8_t>* ReadEngineTest::data_ = nullptr;
int ReadEngineTest::fd_ = -1;

size_t thread_count() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

TEST_P(ReadEngineTest, ReadsRandomRanges) {
  EXPECT_TRUE(reads_right(*engine_, 1, 1000));
  EXPECT_TRUE(reads_right(*engine_, 2, 1));
  EXPECT_TRUE(reads_right(*engine_, 3, 2));
  EXPECT_TRUE(engine_->read({}).ok());
}

TEST_P(ReadEngineTest, ReadsWhatIsNotInThePageCache) {
  ASSERT_EQ(::fsync(fd_), 0);
  ASSERT_EQ(::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED), 0);
  EXPECT_TRUE(reads_right(*engine_, 4, 200));
}

TEST_P(ReadEngineTest, EachOpHasItsOwnStatus) {
  std::vector<std::vector<uint8_t>> buffers(6, std::vector<uint8_t>(100));
  std::vector<ReadOp> ops(6);
  ops[0] = {fd_, 0, buffers[0], {}};
  ops[1] = {fd_, kFileBytes - 40, buffers[1], {}};
  ops[2] = {-1, 0, buffers[2], {}};
  ops[3] = {fd_, kFileBytes + 5000, buffers[3], {}};
  ops[4] = {fd_, UINT64_MAX, buffers[4], {}};
  ops[5] = {fd_, kFileBytes - 100, buffers[5], {}};
  const Status overall = engine_->read(ops);

  EXPECT_TRUE(ops[0].status.ok());
  EXPECT_EQ(ops[1].status.code(), Code::kDamaged);
  EXPECT_EQ(ops[1].status.message(),
            str_cat("file ends at ", kFileBytes, ", 100 bytes expected at ", kFileBytes - 40));
  EXPECT_EQ(ops[1].status.offset(), kFileBytes - 40);
  EXPECT_EQ(ops[2].status.code(), Code::kIo);
  EXPECT_EQ(ops[2].status.os_errno(), EBADF);
  EXPECT_EQ(ops[3].status.code(), Code::kDamaged);
  EXPECT_EQ(ops[3].status.message(),
            str_cat("file ends at ", kFileBytes, ", 100 bytes expected at ", kFileBytes + 5000));
  EXPECT_EQ(ops[4].status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(ops[5].status.ok());
  EXPECT_TRUE(std::equal(buffers[5].begin(), buffers[5].end(), data_->end() - 100));
  // The first in order, whichever came back first.
  EXPECT_EQ(overall.to_string(), ops[1].status.to_string());
}

TEST_P(ReadEngineTest, ServesConcurrentCallers) {
  std::atomic<int> right{0};
  std::vector<std::thread> callers;
  for (uint64_t caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&, caller] {
      bool all = true;
      for (uint64_t round = 0; round < 8; ++round) {
        all = reads_right(*engine_, 100 + caller * 8 + round, 40) && all;
      }
      right += all ? 1 : 0;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(right, 6);
}

TEST_P(ReadEngineTest, MakesNoThreadBeforeTheFirstRead) {
  const bool right = in_child([&] {
    const size_t before = thread_count();
    auto engine = make_read_engine(GetParam(), 5);
    return engine.ok() && thread_count() == before;
  });
  EXPECT_TRUE(right);
}

TEST_P(ReadEngineTest, WorksInAChildAfterFork) {
  ASSERT_TRUE(reads_right(*engine_, 5, 300));
  if (!test::kForkWithThreadsWorks && thread_count() > 1) GTEST_SKIP() << "not with a sanitizer";
  EXPECT_TRUE(in_child([&] { return reads_right(*engine_, 6, 300); }));
  // In a grandchild, and destroyed in a child.
  EXPECT_TRUE(in_child([&] {
    if (!reads_right(*engine_, 7, 50)) return false;
    return in_child([&] {
      const bool right = reads_right(*engine_, 8, 50);
      engine_.reset();
      return right;
    });
  }));
  EXPECT_TRUE(in_child([&] {
    engine_.reset();
    return true;
  }));
  EXPECT_TRUE(reads_right(*engine_, 9, 300));
}

TEST_P(ReadEngineTest, WorksInChildrenForkedWhileOthersRead) {
  if (!test::kForkWithThreadsWorks) GTEST_SKIP() << "not with a sanitizer";
  std::atomic<bool> stop{false};
  std::atomic<bool> right{true};
  std::vector<std::thread> readers;
  for (uint64_t reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&, reader] {
      for (uint64_t round = 0; !stop; ++round) {
        if (!reads_right(*engine_, 1000 * reader + round, 30)) right = false;
      }
    });
  }
  for (uint64_t child = 0; child < 10; ++child) {
    EXPECT_TRUE(in_child([&] { return reads_right(*engine_, 50 + child, 20); }));
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_TRUE(right);
}

INSTANTIATE_TEST_SUITE_P(Engines, ReadEngineTest,
                         testing::Values(EngineKind::kAuto, EngineKind::kSync, EngineKind::kPool,
                                         EngineKind::kUring),
                         [](const auto& engine) {
                           switch (engine.param) {
                             case EngineKind::kAuto: return "auto";
                             case EngineKind::kSync: return "sync";
                             case EngineKind::kPool: return "pool";
                             case EngineKind::kUring: return "uring";
                           }
                           return "unknown";
                         });

TEST(MakeReadEngineTest, NamesAndLimits) {
  EXPECT_STREQ((*make_read_engine(EngineKind::kAuto, 0, false))->name(), "auto");
  EXPECT_STREQ((*make_read_engine(EngineKind::kAuto, 0, true))->name(), "pool");
  EXPECT_STREQ((*make_read_engine(EngineKind::kSync, 0))->name(), "sync");
  EXPECT_STREQ((*make_read_engine(EngineKind::kPool, 3))->name(), "pool");
  const std::string uring = (*make_read_engine(EngineKind::kUring, 3))->name();
  EXPECT_TRUE(uring == "uring" || uring == "pool") << uring;
  EXPECT_EQ(make_read_engine(EngineKind::kPool, 5000).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(*parse_engine_kind("uring"), EngineKind::kUring);
  EXPECT_EQ(parse_engine_kind("mmap").status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace spk
