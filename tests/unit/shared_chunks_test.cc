// Chunks in memory that processes share, and what is left when some of them are killed.
#include "loader/shared_chunks.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include "base/buffer.h"
#include "base/checked.h"
#include "io/process_identity.h"
#include "support/test_pack.h"

namespace spk {

struct SharedChunksPeer {
  static bool lock(SharedChunks& chunks) { return chunks.lock(); }
};

namespace test {
namespace {

using ::testing::HasSubstr;
using State = SharedChunk::State;

// A process that does something, says so, and then waits to be killed.
class Victim {
 public:
  explicit Victim(const std::function<bool()>& act) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const char good = act() ? 'y' : 'n';
      if (::write(ready[1], &good, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char said = 0;
    EXPECT_EQ(::read(ready[0], &said, 1), 1);
    EXPECT_EQ(said, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Victim() {
    kill();
    ::waitpid(pid_, nullptr, 0);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  // It stays a zombie until the end, as ranks do whose launcher does not ask for them.
  void kill() const { ::kill(pid_, SIGKILL); }

 private:
  pid_t pid_ = 0;
};

class SharedChunksTest : public ::testing::Test {
 protected:
  SharedChunksOptions options(uint32_t slots = 4) const {
    SharedChunksOptions options;
    options.segment.directory = dir_.path();
    options.segment.name = "segment";
    options.segment.content_id = {1, 2};
    options.segment.chunk_count = 100;
    options.segment.slot_bytes = page_bytes();
    options.segment.limit_bytes = slots * page_bytes();
    options.segment.members = 3;
    options.read_patience = std::chrono::seconds(20);
    options.lock_patience = std::chrono::seconds(20);
    return options;
  }
  std::shared_ptr<SharedChunks> join(const SharedChunksOptions& options) const {
    auto joined = SharedChunks::join(options);
    EXPECT_TRUE(joined.ok()) << joined.status().to_string();
    return joined.ok() ? *joined : nullptr;
  }
  bool is_there() const { return std::filesystem::exists(dir_ / "segment"); }

  TempDir dir_;
};

void fill(const SharedChunk& chunk, uint64_t number) {
  const MutableByteSpan bytes = chunk.bytes();
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(number * 31 + i);
}
bool is_filled(const SharedChunk& chunk, uint64_t number) {
  const MutableByteSpan bytes = chunk.bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != static_cast<uint8_t>(number * 31 + i)) return false;
  }
  return true;
}
bool put(SharedChunks& chunks, uint64_t number, SharedChunk& held) {
  held = chunks.ask(number);
  if (held.state() != State::kMine) return false;
  fill(held, number);
  held.publish(0);
  return true;
}

TEST_F(SharedChunksTest, OneReadsAndTheOthersFind) {
  {
    const auto one = join(options());
    const auto other = join(options(50));  // who comes first decides
    EXPECT_EQ(other->slot_count(), 4u);
    EXPECT_EQ(other->slot_bytes(), page_bytes());
    SharedChunk mine = one->ask(5);
    ASSERT_EQ(mine.state(), State::kMine);
    EXPECT_EQ(mine.bytes().size(), page_bytes());
    EXPECT_EQ(other->ask(5).state(), State::kBusy);
    EXPECT_EQ(one->ask(5).state(), State::kBusy);
    fill(mine, 5);
    mine.publish(77);
    EXPECT_EQ(mine.state(), State::kReady);
    const SharedChunk found = other->ask(5);
    ASSERT_EQ(found.state(), State::kReady);
    EXPECT_EQ(found.checked(), 77u);
    EXPECT_TRUE(is_filled(found, 5));
    EXPECT_TRUE(is_there());
  }
  EXPECT_FALSE(is_there());
}

TEST_F(SharedChunksTest, WhatIsGivenUpIsReadByAnother) {
  const auto one = join(options());
  const auto other = join(options());
  { const SharedChunk mine = one->ask(5); }
  SharedChunk mine = other->wait(5);
  EXPECT_EQ(mine.state(), State::kMine);

  // One that waits is woken.
  std::thread waiter([&] { EXPECT_EQ(one->wait(5).state(), State::kReady); });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  mine.publish(0);
  waiter.join();
}

TEST_F(SharedChunksTest, PatienceEnds) {
  auto hasty = options();
  hasty.read_patience = std::chrono::milliseconds(30);
  const auto one = join(hasty);
  const SharedChunk mine = one->ask(5);
  EXPECT_EQ(one->wait(5).state(), State::kNone);
  EXPECT_EQ(one->ask(5).state(), State::kBusy);
}

TEST_F(SharedChunksTest, WhatIsHeldStaysAndTheOldestGoes) {
  const auto one = join(options());
  const auto other = join(options());
  SharedChunk held[4];
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(put(*one, i, held[i]));
  EXPECT_EQ(other->ask(9).state(), State::kNone);
  EXPECT_EQ(other->ask(2).state(), State::kReady);
  held[2] = {};
  held[3] = {};
  held[0] = {};
  EXPECT_EQ(other->ask(0).state(), State::kReady);  // used last
  SharedChunk fresh;
  ASSERT_TRUE(put(*other, 9, fresh));  // instead of 3
  EXPECT_EQ(one->ask(2).state(), State::kReady);
  EXPECT_EQ(one->ask(0).state(), State::kReady);
  EXPECT_EQ(one->ask(1).state(), State::kReady);
  EXPECT_EQ(one->ask(3).state(), State::kMine);
  EXPECT_TRUE(is_filled(held[1], 1));
  EXPECT_TRUE(is_filled(fresh, 9));
}

TEST_F(SharedChunksTest, RefusesWhatIsAnothers) {
  const auto one = join(options());
  auto strange = options();
  strange.segment.content_id = {1, 3};
  auto refused = SharedChunks::join(strange);
  EXPECT_EQ(refused.status().code(), Code::kMismatch);
  EXPECT_EQ(refused.status().message(),
            "the shared memory is of the pack with content id 00000000000000020000000000000001, "
            "this one has 00000000000000030000000000000001");
  EXPECT_EQ(refused.status().path(), dir_ / "segment");
  strange = options();
  strange.segment.slot_bytes *= 2;
  EXPECT_EQ(SharedChunks::join(strange).status().code(), Code::kMismatch);
  EXPECT_EQ(one->ask(1).state(), State::kMine);

  auto small = options();
  small.segment.name = "other";
  small.segment.limit_bytes = page_bytes() - 1;
  refused = SharedChunks::join(small);
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("there is no room for a chunk of "));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "other"));
  small.segment.directory = dir_ / "nowhere";
  EXPECT_EQ(SharedChunks::join(small).status().code(), Code::kNotFound);

  std::vector<std::shared_ptr<SharedChunks>> many;
  for (int i = 0; i < 21; ++i) many.push_back(join(options()));
  refused = SharedChunks::join(options());
  EXPECT_EQ(refused.status().code(), Code::kBusy);
  EXPECT_EQ(refused.status().message(), "all 22 places are taken");
}

// Others put things into /dev/shm as well, such as PyTorch's workers, and die where it is full.
TEST_F(SharedChunksTest, LeavesHalfOfWhatIsFree) {
  const uint64_t free_bytes = std::filesystem::space(dir_.path()).available;
  auto wanted = options();
  wanted.segment.leaves_half = true;
  wanted.segment.limit_bytes = uint64_t{1} << 50;
  wanted.segment.slot_bytes = round_up(free_bytes / 5, page_bytes());
  if (wanted.segment.slot_bytes > uint64_t{1} << 40) GTEST_SKIP() << "too much is free";
  EXPECT_EQ(join(wanted)->slot_count(), 2u);  // of the 100 that there are chunks
}

TEST_F(SharedChunksTest, NamesTellUsersPacksAndGroupsApart) {
  const std::string name = shared_segment_name({1, 2}, "job 7");
  EXPECT_THAT(name, testing::MatchesRegex("stripepack-1-[0-9]+-[0-9a-f]{16}"));
  EXPECT_EQ(shared_segment_name({1, 2}, "job 7"), name);
  EXPECT_NE(shared_segment_name({1, 2}, "job 8"), name);
  EXPECT_NE(shared_segment_name({2, 2}, "job 7"), name);
}

TEST_F(SharedChunksTest, KilledWhileItReads) {
  std::shared_ptr<SharedChunks> theirs;
  SharedChunk half;
  const Victim victim([&] {
    theirs = join(options());
    half = theirs->ask(5);
    half.bytes()[0] = 1;
    return half.state() == State::kMine;
  });
  const auto one = join(options());
  EXPECT_EQ(one->ask(5).state(), State::kBusy);
  victim.kill();
  SharedChunk mine = one->wait(5);
  EXPECT_EQ(mine.state(), State::kMine);
  fill(mine, 5);
  mine.publish(0);
  EXPECT_TRUE(is_filled(join(options())->ask(5), 5));
}

TEST_F(SharedChunksTest, KilledWhileItHolds) {
  std::shared_ptr<SharedChunks> theirs;
  SharedChunk held[4];
  const Victim victim([&] {
    theirs = join(options());
    bool good = true;
    for (uint64_t i = 0; i < 4; ++i) good = put(*theirs, i, held[i]) && good;
    return good;
  });
  const auto one = join(options());
  EXPECT_EQ(one->ask(9).state(), State::kNone);
  EXPECT_TRUE(is_filled(one->ask(3), 3));
  victim.kill();
  SharedChunk fresh;
  for (int i = 0; i < 1000 && fresh.state() == State::kNone; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    fresh = one->ask(9);
  }
  EXPECT_EQ(fresh.state(), State::kMine);
  EXPECT_TRUE(is_filled(one->ask(3), 3));  // its work is not lost
}

TEST_F(SharedChunksTest, KilledOrStoppedWithTheLock) {
  std::shared_ptr<SharedChunks> theirs;
  const Victim victim([&] {
    theirs = join(options());
    return SharedChunksPeer::lock(*theirs);
  });
  auto hasty = options();
  hasty.lock_patience = std::chrono::milliseconds(30);
  const auto one = join(hasty);
  EXPECT_EQ(one->ask(5).state(), State::kNone);
  EXPECT_EQ(one->wait(5).state(), State::kNone);
  victim.kill();
  SharedChunk mine;
  for (int i = 0; i < 1000 && mine.state() == State::kNone; ++i) mine = one->ask(5);
  EXPECT_EQ(mine.state(), State::kMine);
}

TEST_F(SharedChunksTest, WhatAKilledRunLeftIsRemoved) {
  {
    std::shared_ptr<SharedChunks> theirs;
    SharedChunk held;
    const Victim victim([&] {
      theirs = join(options());
      return put(*theirs, 5, held);
    });
  }
  EXPECT_TRUE(is_there());
  {
    auto others = options(7);
    others.segment.content_id = {8, 9};
    const auto one = join(others);
    EXPECT_EQ(one->slot_count(), 7u);
    EXPECT_EQ(one->ask(5).state(), State::kMine);
  }
  EXPECT_FALSE(is_there());
  for (const std::string& junk : {std::string("x"), std::string(5000, 'x'), std::string(5000, 0)}) {
    write_file(dir_ / "segment", junk);
    EXPECT_EQ(join(options())->slot_count(), 4u);
    EXPECT_FALSE(is_there());
  }
}

TEST_F(SharedChunksTest, TheLastOfSomeThatWereKilledRemovesIt) {
  auto one = join(options());
  {
    std::shared_ptr<SharedChunks> theirs;
    const Victim victim([&] { return (theirs = join(options())) != nullptr; });
  }
  EXPECT_TRUE(is_there());
  one = nullptr;
  EXPECT_FALSE(is_there());
}

TEST_F(SharedChunksTest, AChildOfForkLetsGoOfNothing) {
  auto one = join(options(1));
  SharedChunk held;
  ASSERT_TRUE(put(*one, 5, held));
  const Victim victim([&] {
    held = {};
    one = nullptr;
    return true;
  });
  EXPECT_TRUE(is_there());
  EXPECT_EQ(join(options())->ask(9).state(), State::kNone);
}

TEST(ProcessIdentity, EndsWithTheProcess) {
  const uint64_t mine = process_identity();
  EXPECT_TRUE(is_this_process(mine));
  EXPECT_TRUE(is_process_alive(mine));
  EXPECT_FALSE(is_process_alive(mine + 1));  // the same number, begun at another time
  EXPECT_FALSE(is_process_alive(0));
  EXPECT_TRUE(is_process_alive(uint64_t{1} << 32));
  EXPECT_NE(process_namespace(), 0u);
  uint64_t theirs = 0;
  {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const Victim victim([&] {
      const uint64_t identity = process_identity();
      return ::write(pipe[1], &identity, sizeof identity) == sizeof identity;
    });
    ASSERT_EQ(::read(pipe[0], &theirs, sizeof theirs), static_cast<ssize_t>(sizeof theirs));
    ::close(pipe[0]);
    ::close(pipe[1]);
    EXPECT_TRUE(is_process_alive(theirs));
    EXPECT_FALSE(is_this_process(theirs));
    victim.kill();
    for (int i = 0; i < 1000 && is_process_alive(theirs); ++i) ::usleep(1000);
    EXPECT_FALSE(is_process_alive(theirs));  // a zombie
  }
  EXPECT_FALSE(is_process_alive(theirs));
}

// Asks for chunks at random for ever; false where one has other bytes than it should.
bool hammer(SharedChunks& chunks, uint32_t seed, int rounds) {
  std::mt19937 dice(seed);
  std::vector<std::pair<uint64_t, SharedChunk>> held;
  for (int i = 0; i < rounds; ++i) {
    const uint64_t number = dice() % 20;
    SharedChunk chunk = chunks.wait(number);
    if (chunk.state() == State::kMine && dice() % 8 != 0) {
      fill(chunk, number);
      chunk.publish(1);
    }
    if (chunk.state() == State::kReady) held.emplace_back(number, std::move(chunk));
    if (held.size() > dice() % 3) {
      if (!is_filled(held.front().second, held.front().first)) return false;
      held.erase(held.begin());
    }
  }
  return true;
}

TEST_F(SharedChunksTest, ManyThatAreKilledAtAnyMoment) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 dice(seed);
  auto wanted = options(6);
  wanted.segment.members = 60;
  const auto one = join(wanted);
  for (int round = 0; round < 25; ++round) {
    std::vector<pid_t> children;
    for (uint32_t i = 0; i < 3; ++i) {
      const pid_t pid = ::fork();
      ASSERT_NE(pid, -1);
      if (pid == 0) {
        auto mine = SharedChunks::join(wanted);
        const bool good = mine.ok() && hammer(**mine, seed + 100 * i, INT32_MAX);
        ::_exit(good ? 0 : 3);
      }
      children.push_back(pid);
    }
    EXPECT_TRUE(hammer(*one, static_cast<uint32_t>(dice()), 200));
    for (const pid_t pid : children) {
      ::usleep(static_cast<useconds_t>(dice() % 3000));
      ::kill(pid, SIGKILL);
      int status = 0;
      ASSERT_EQ(::waitpid(pid, &status, 0), pid);
      EXPECT_TRUE(WIFSIGNALED(status)) << status;  // else it found wrong bytes
    }
  }
  EXPECT_TRUE(hammer(*one, static_cast<uint32_t>(dice()), 200));
}

}  // namespace
}  // namespace test
}  // namespace spk
