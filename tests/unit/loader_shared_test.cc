// Loaders of one node that read each chunk once for all of them.
#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/text.h"
#include "loader/shared_chunks.h"
#include "support/sanitizers.h"
#include "unit/loader_fixture.h"

namespace spk::test {
namespace {

using ::testing::HasSubstr;

class LoaderShared : public LoaderTest {
 protected:
  void TearDown() override { EXPECT_FALSE(std::filesystem::exists(segment_path())); }

  std::string group() const { return dir_.path(); }  // of this test alone
  std::string segment_path() const {
    return "/dev/shm/" + shared_segment_name(pack_->content_id(), group());
  }
  // Three ranks do not divide the lanes: most chunks are wanted by more than one.
  LoaderOptions shared() const {
    LoaderOptions options = this->options();
    options.engine = EngineChoice::kPool;
    options.world = 3;
    options.node_ranks = 3;
    options.node_group = group();
    return options;
  }

  struct Told {
    std::vector<std::vector<uint64_t>> batches;
    LoaderStats stats;
    std::string why;
  };
  // Each rank in a thread of its own, all at once. They end together, so that none leaves before
  // another comes.
  std::vector<Told> all_ranks(const LoaderOptions& options, uint64_t ranks) const {
    std::vector<Told> told(ranks);
    std::vector<std::unique_ptr<Loader>> loaders(ranks);
    std::vector<std::thread> threads;
    for (uint64_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        LoaderOptions mine = options;
        mine.rank = rank % options.world;
        mine.worker = rank / options.world;
        loaders[rank] = open(mine);
        told[rank] = {rest(*loaders[rank]), loaders[rank]->stats(), loaders[rank]->reading().why};
      });
    }
    for (std::thread& thread : threads) thread.join();
    return told;
  }
  // What they would be given without sharing.
  std::vector<std::vector<uint64_t>> alone(LoaderOptions options, uint64_t rank,
                                           uint64_t worker = 0) const {
    options.node_ranks = 0;
    options.rank = rank;
    options.worker = worker;
    return rest(*open(options));
  }
};

TEST_F(LoaderShared, EachChunkIsReadOnceForAll) {
  for (const EngineChoice engine : {EngineChoice::kPool, EngineChoice::kUring}) {
    if (engine == EngineChoice::kUring && !kRingsInThreadsWork) continue;
    for (const DirectChoice direct : {DirectChoice::kOff, DirectChoice::kOn}) {
      LoaderOptions asked = shared();
      asked.engine = engine;
      asked.direct = direct;
      const auto told = all_ranks(asked, 3);
      uint64_t reads = 0, shared_reads = 0, hits = 0, bytes = 0, chunk_bytes = 0;
      for (uint64_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(told[rank].batches, alone(asked, rank));
        EXPECT_THAT(told[rank].why, HasSubstr("; chunks are shared on the node"));
        reads += told[rank].stats.reads;
        bytes += told[rank].stats.read_bytes;
        shared_reads += told[rank].stats.shared_reads;
        hits += told[rank].stats.shared_hits;
      }
      for (uint64_t i = 0; i < pack_->chunk_count(); ++i) {
        chunk_bytes += pack_->chunk(i)->read_bytes;
      }
      EXPECT_EQ(reads, pack_->chunk_count());
      EXPECT_EQ(shared_reads, pack_->chunk_count());
      EXPECT_EQ(bytes, chunk_bytes);
      EXPECT_GT(hits, 0u);
    }
  }
}

TEST_F(LoaderShared, WorkersOfOneRankShare) {
  LoaderOptions asked = shared();
  asked.world = asked.node_ranks = 1;
  asked.workers = 4;
  const auto told = all_ranks(asked, 4);
  uint64_t reads = 0;
  for (uint64_t worker = 0; worker < 4; ++worker) {
    EXPECT_EQ(told[worker].batches, alone(asked, 0, worker));
    reads += told[worker].stats.reads;
  }
  EXPECT_EQ(reads, pack_->chunk_count());
}

TEST_F(LoaderShared, LaterEpochsFindWhatIsThere) {
  LoaderOptions asked = shared();
  asked.world = 1;
  asked.workers = 2;
  const auto loader = open(asked);
  EXPECT_EQ(rest(*loader), alone(asked, 0));
  EXPECT_EQ(loader->stats().shared_reads, pack_->chunk_count());
  ASSERT_TRUE(loader->start_epoch(1).ok());
  asked.epoch = 1;
  EXPECT_EQ(rest(*loader), alone(asked, 0));
  EXPECT_EQ(loader->stats().reads, pack_->chunk_count());
  EXPECT_TRUE(std::filesystem::exists(segment_path()));
}

TEST_F(LoaderShared, WhereThereIsNothingToShareNothingIs) {
  const auto told = [&](auto&& change) {
    LoaderOptions asked = shared();
    change(asked);
    const auto loader = open(asked);
    EXPECT_EQ(rest(*loader), alone(asked, 0));
    EXPECT_FALSE(std::filesystem::exists(segment_path()));
    EXPECT_EQ(loader->stats().shared_reads, 0u);
    EXPECT_EQ(loader->stats().shared_hits, 0u);
    return loader->reading().why;
  };
  EXPECT_THAT(told([](LoaderOptions& o) { o.world = o.node_ranks = 2; }),
              HasSubstr("; not shared: each rank has lanes of its own"));
  EXPECT_THAT(told([](LoaderOptions& o) { o.order = OrderKind::kRandom, o.lanes = 0; }),
              HasSubstr("; not shared: each sample is read by who is given it"));
  EXPECT_THAT(told([](LoaderOptions& o) { o.order = OrderKind::kSequential, o.lanes = 0; }),
              HasSubstr("; not shared: each sample is read by who is given it"));
  EXPECT_THAT(told([](LoaderOptions& o) { o.node_ranks = 1; }),
              HasSubstr("; not shared: there is one loader"));
  EXPECT_THAT(told([](LoaderOptions& o) { o.node_ranks = 0; }), testing::Not(HasSubstr("shared")));
  EXPECT_THAT(told([](LoaderOptions& o) { o.engine = EngineChoice::kMmap; }),
              HasSubstr("; not shared: files are mapped"));
  EXPECT_THAT(told([](LoaderOptions& o) { o.node_memory_bytes = 100; }),
              HasSubstr("; not shared: "));
}

TEST_F(LoaderShared, HugeNumbersAreNotTooLittle) {
  LoaderOptions asked = shared();
  asked.memory_bytes = uint64_t{1} << 63;
  asked.node_ranks = 1 << 31;
  asked.world = 1;
  asked.worker = 1;
  asked.workers = uint64_t{1} << 33;  // so many loaders that no number holds them
  const auto loader = open(asked);
  EXPECT_EQ(rest(*loader).size(), 1u);
  EXPECT_GT(loader->stats().shared_reads, 0u);
  EXPECT_THAT(loader->reading().why, HasSubstr("; chunks are shared on the node"));
}

TEST_F(LoaderShared, TooLittleSharedMemoryMeansMoreReads) {
  LoaderOptions asked = shared();
  asked.node_memory_bytes = 3 * pack_->identity().chunk_bytes();
  const auto told = all_ranks(asked, 3);
  uint64_t reads = 0;
  for (uint64_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(told[rank].batches, alone(asked, rank));
    EXPECT_LE(told[rank].stats.ring_peak_bytes, told[rank].stats.ring_limit_bytes);
    reads += told[rank].stats.reads;
  }
  EXPECT_GE(reads, pack_->chunk_count());
}

TEST_F(LoaderShared, DamageIsEverybodys) {
  damage(100);
  LoaderOptions asked = shared();
  asked.skip_damaged = true;
  const auto told = all_ranks(asked, 3);
  uint64_t skipped = 0;
  std::vector<uint64_t> all;
  for (const Told& rank : told) {
    skipped += rank.stats.skipped;
    for (const auto& batch : rank.batches) all.insert(all.end(), batch.begin(), batch.end());
  }
  EXPECT_EQ(skipped, 1u);
  auto due = numbers_up_to(kLoaderSamples);
  due.erase(due.begin() + 100);
  EXPECT_EQ(sorted(all), due);
}

// Two copies of a pack have the same content, and so the same memory.
TEST_F(LoaderShared, DamageOfAnotherCopyIsNotOurs) {
  const std::string copy = dir_ / "copy";
  std::filesystem::copy(path(), copy, std::filesystem::copy_options::recursive);
  damage(123);
  LoaderOptions asked = shared();
  asked.world = asked.node_ranks = 1;
  asked.workers = 2;
  asked.skip_damaged = true;
  const auto ours = open(asked);
  EXPECT_EQ(rest(*ours), alone(asked, 0));
  EXPECT_EQ(ours->stats().shared_reads, pack_->chunk_count());

  pack_ = *Pack::open(copy);
  for (const bool skips : {true, false}) {
    asked.skip_damaged = skips;
    for (const uint64_t worker : {0, 1}) {
      asked.worker = worker;
      const auto other = open(asked);
      EXPECT_EQ(rest(*other), alone(asked, 0, worker));
      EXPECT_GT(other->stats().shared_hits, 0u);
      EXPECT_EQ(other->stats().skipped, 0u);
    }
  }
}

TEST_F(LoaderShared, WhoDoesNotCheckIsNotTrusted) {
  damage(100);
  LoaderOptions careless = shared();
  careless.check_checksums = false;
  careless.world = 1;
  careless.workers = 2;
  auto first = Loader::open(pack_, careless);
  ASSERT_TRUE(first.ok());
  for (;;) {
    auto batch = (*first)->next();
    ASSERT_TRUE(batch.ok()) << batch.status().to_string();
    if (*batch == nullptr) break;
  }
  LoaderOptions careful = careless;
  careful.check_checksums = true;
  careful.skip_damaged = true;
  uint64_t skipped = 0;
  for (careful.worker = 0; careful.worker < 2; ++careful.worker) {
    const auto loader = open(careful);
    (void)rest(*loader);
    EXPECT_LT(loader->stats().reads, 64u);  // of that chunk, to see whether it is the file's damage
    EXPECT_GT(loader->stats().shared_hits, 0u);
    skipped += loader->stats().skipped;
  }
  EXPECT_EQ(skipped, 1u);
}

TEST_F(LoaderShared, BatchesKeepTheirBytesWhenTheLoaderGoes) {
  LoaderOptions asked = shared();
  asked.world = 1;
  asked.workers = 2;
  auto loader = open(asked);
  auto batch = loader->next();
  ASSERT_TRUE(batch.ok());
  loader = nullptr;
  EXPECT_TRUE(std::filesystem::exists(segment_path()));
  for (size_t i = 0; i < (*batch)->size(); ++i) {
    const ByteSpan bytes = (*batch)->blob(i, 0);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), image((*batch)->sample(i)));
  }
}

// ---- Processes

// What the others of a test do, in a process of this program that runs only this:
// "rank READ" reads the whole epoch, "rank STOP" three batches, and "claim" says that it reads all
// chunks and does not. The last two wait to be killed.
TEST(LoaderSharedOther, DISABLED_Runs) {
  const std::string act = ::getenv("SPK_TEST_ACT");
  const std::string path = ::getenv("SPK_TEST_PACK");
  auto pack = Pack::open(path);
  ASSERT_TRUE(pack.ok());
  const std::string group = path.substr(0, path.size() - 2);  // as LoaderShared::group()
  const auto say = [&](const std::string& what) { write_file(path + "." + act, what); };
  if (act == "claim") {
    SharedChunksOptions options;
    options.segment.content_id = (*pack)->content_id();
    options.segment.name = shared_segment_name(options.segment.content_id, group);
    options.segment.chunk_count = (*pack)->chunk_count();
    options.segment.slot_bytes = round_up((*pack)->identity().chunk_bytes(), page_bytes());
    options.segment.limit_bytes = 64 << 20;
    options.segment.members = 3;
    auto chunks = SharedChunks::join(options);
    ASSERT_TRUE(chunks.ok()) << chunks.status().to_string();
    std::vector<SharedChunk> claimed;
    for (uint64_t i = 0; i < (*pack)->chunk_count(); ++i) {
      claimed.push_back((*chunks)->ask(i));
      ASSERT_EQ(claimed.back().state(), SharedChunk::State::kMine);
      std::fill_n(claimed.back().bytes().begin(), 1000, 99);
    }
    say("claimed");
    for (;;) ::pause();
  }
  LoaderOptions options;
  options.lanes = 4;
  options.batch = 8;
  options.tail = TailRule::kExact;
  options.engine = EngineChoice::kPool;
  options.world = options.node_ranks = 3;
  options.rank = static_cast<uint64_t>(act[0] - '0');
  options.node_group = group;
  auto loader = Loader::open(*pack, options);
  ASSERT_TRUE(loader.ok()) << loader.status().to_string();
  std::string samples;
  std::vector<std::shared_ptr<const Batch>> held;
  for (int step = 0;; ++step) {
    if (act.substr(2) == "STOP" && step == 3) {
      say("stopped");
      for (;;) ::pause();
    }
    auto batch = (*loader)->next();
    ASSERT_TRUE(batch.ok()) << batch.status().to_string();
    if (*batch == nullptr) break;
    for (size_t i = 0; i < (*batch)->size(); ++i) samples += str_cat((*batch)->sample(i), " ");
    if (act.substr(2) == "STOP") held.push_back(*batch);
  }
  say(str_cat((*loader)->stats().reads, " ", samples));
  // Not before the others have come: until the test takes the word away.
  while (std::filesystem::exists(path + "." + act)) ::usleep(1000);
}

class LoaderSharedProcesses : public LoaderShared {
 protected:
  pid_t start(const std::string& act) const {
    std::string name = "SPK_TEST_ACT=" + act;
    std::string pack = "SPK_TEST_PACK=" + path();
    std::vector<char*> environment = {name.data(), pack.data()};
    for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
    environment.push_back(nullptr);
    std::string arguments[] = {"test", "--gtest_filter=LoaderSharedOther.*",
                               "--gtest_also_run_disabled_tests", "--gtest_brief=1"};
    char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(),
                    arguments[3].data(), nullptr};
    pid_t pid = 0;
    EXPECT_EQ(::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv, environment.data()), 0);
    return pid;
  }
  std::string said(const std::string& act) const {
    const std::string file = path() + "." + act;
    for (int i = 0; i < 30'000 && !std::filesystem::exists(file); ++i) ::usleep(1000);
    std::string what;
    for (int i = 0; i < 1000 && what.empty(); ++i, ::usleep(1000)) what = read_file(file);
    return what;
  }
  void hush(const std::string& act) const { std::filesystem::remove(path() + "." + act); }
  static bool ends_well(pid_t pid) {
    int status = 0;
    return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  std::string due(uint64_t rank) const {
    std::string samples;
    for (const uint64_t sample : flat(alone(shared(), rank))) samples += str_cat(sample, " ");
    return samples;
  }
};

TEST_F(LoaderSharedProcesses, ReadEachChunkOnce) {
  std::vector<pid_t> pids;
  for (int rank = 0; rank < 3; ++rank) pids.push_back(start(str_cat(rank, " READ")));
  uint64_t reads = 0;
  for (uint64_t rank = 0; rank < 3; ++rank) {
    const std::string told = said(str_cat(rank, " READ"));
    const size_t space = std::min(told.find(' '), told.size());
    reads += std::stoull("0" + told.substr(0, space));
    EXPECT_EQ(told.substr(std::min(space + 1, told.size())), due(rank));
  }
  EXPECT_EQ(reads, pack_->chunk_count());
  for (int rank = 0; rank < 3; ++rank) hush(str_cat(rank, " READ"));
  for (const pid_t pid : pids) EXPECT_TRUE(ends_well(pid));
}

TEST_F(LoaderSharedProcesses, GoOnWhenOneIsKilledThatHoldsBatches) {
  const pid_t pid = start("2 STOP");
  EXPECT_EQ(said("2 STOP"), "stopped");
  LoaderOptions asked = shared();
  std::vector<std::unique_ptr<Loader>> loaders;
  std::vector<std::vector<std::vector<uint64_t>>> batches(2);
  for (asked.rank = 0; asked.rank < 2; ++asked.rank) {
    loaders.push_back(open(asked));
    batches[asked.rank].push_back(next(*loaders.back()));
  }
  ::kill(pid, SIGKILL);
  for (uint64_t rank = 0; rank < 2; ++rank) {
    for (auto& batch : rest(*loaders[rank])) batches[rank].push_back(std::move(batch));
    EXPECT_EQ(batches[rank], alone(asked, rank));
  }
  ::waitpid(pid, nullptr, 0);
}

TEST_F(LoaderSharedProcesses, GoOnWhenOneIsKilledThatReads) {
  const pid_t pid = start("claim");
  EXPECT_EQ(said("claim"), "claimed");
  std::thread killer([pid] {
    ::usleep(100'000);
    ::kill(pid, SIGKILL);
  });
  const auto told = all_ranks(shared(), 3);
  killer.join();
  uint64_t reads = 0;
  for (uint64_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(told[rank].batches, alone(shared(), rank));
    EXPECT_THAT(told[rank].why, HasSubstr("; chunks are shared on the node"));
    reads += told[rank].stats.reads;
  }
  EXPECT_EQ(reads, pack_->chunk_count());
  ::waitpid(pid, nullptr, 0);
}

}  // namespace
}  // namespace spk::test
