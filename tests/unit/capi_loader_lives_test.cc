// Loaders through the C interface: callers with other headers, packs from bytes, who closes what
// first, fork, and what happens around a running loader.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/text.h"
#include "support/sanitizers.h"
#include "unit/capi_loader_fixture.h"

namespace spk::test {
namespace {

using ::testing::HasSubstr;

TEST_F(CApiLoader, OlderAndNewerCallers) {
  spk_loader* none = nullptr;
  spk_loader_options unset = {};
  EXPECT_EQ(spk_loader_open(pack_, &unset, &none, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "struct_size of the options is not set");

  // A caller that knows the members up to `batch` only: what lies behind is not looked at.
  auto older = options();
  older.struct_size = offsetof(spk_loader_options, lanes);
  older.tail = 77;
  older.engine = 77;
  const LoaderPtr loader = open(older);
  EXPECT_EQ(info(loader.get()).lanes, 64u);
  older.struct_size = sizeof older;
  EXPECT_EQ(spk_loader_open(pack_, &older, &none, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "there is no tail rule 77");

  struct LongerOptions {
    spk_loader_options known;
    uint64_t later;
  } longer_options = {options(), 5};
  longer_options.known.struct_size = sizeof longer_options;
  EXPECT_EQ(rest(open(longer_options.known).get()).size(), kCApiSamples);

  struct LongerInfo {
    spk_loader_info known;
    uint64_t later;
  } longer_info = {{}, 77};
  longer_info.known.struct_size = sizeof longer_info;
  ASSERT_EQ(spk_loader_get_info(loader.get(), &longer_info.known, &err_), SPK_OK);
  EXPECT_EQ(longer_info.known.struct_size, sizeof longer_info);
  EXPECT_EQ(longer_info.later, 77u);
  spk_loader_info told = {};
  EXPECT_EQ(spk_loader_get_info(loader.get(), &told, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "struct_size is not set");
}

TEST_F(CApiLoader, WrongOptionsAreNamed) {
  const auto refusal = [&](auto&& change) {
    auto wanted = options();
    change(wanted);
    spk_loader* none = nullptr;
    EXPECT_EQ(spk_loader_open(pack_, &wanted, &none, &err_), SPK_INVALID_ARGUMENT);
    return std::string(err_.message);
  };
  EXPECT_EQ(refusal([](auto& o) { o.order = 3; }), "there is no order 3");
  EXPECT_EQ(refusal([](auto& o) { o.tail = 3; }), "there is no tail rule 3");
  EXPECT_EQ(refusal([](auto& o) { o.engine = 5; }), "there is no engine 5");
  EXPECT_EQ(refusal([](auto& o) { o.direct = 3; }), "there is no choice of direct reads 3");
  EXPECT_EQ(refusal([](auto& o) { o.rank = 1; }), "there is no rank 1 in a world of 1 rank");
  EXPECT_EQ(refusal([](auto& o) { o.worker = 2, o.workers = 2; }), "there is no worker 2 of 2");
  EXPECT_THAT(refusal([](auto& o) { o.memory_bytes = 1; }), HasSubstr("is too small: 4 lanes"));
}

TEST_F(CApiLoader, APackFromTheBytesOfItsIndex) {
  const auto due = rest(open(options()).get());
  spk_info here = sized<spk_info>();
  ASSERT_EQ(spk_get_info(pack_, &here, &err_), SPK_OK);
  spk_close(pack_);
  pack_ = nullptr;

  std::string index = read_file(path_ + "/index.spki");
  std::filesystem::rename(path_ + "/index.spki", path_ + "/index.away");
  ASSERT_EQ(spk_open_index(path_.c_str(), index.data(), index.size(), nullptr, &pack_, &err_),
            SPK_OK)
      << err_.message;
  index.assign(index.size(), 'x');  // it was copied
  spk_info there = sized<spk_info>();
  ASSERT_EQ(spk_get_info(pack_, &there, &err_), SPK_OK);
  EXPECT_STREQ(there.content_id, here.content_id);
  EXPECT_EQ(rest(open(options()).get()), due);

  spk_pack* none = nullptr;
  EXPECT_EQ(spk_open_index(path_.c_str(), index.data(), index.size(), nullptr, &none, &err_),
            SPK_DAMAGED);
  EXPECT_EQ(spk_open_index(path_.c_str(), nullptr, 5, nullptr, &none, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_open_index(nullptr, index.data(), 5, nullptr, &none, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_open_index(path_.c_str(), index.data(), 5, nullptr, nullptr, &err_),
            SPK_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
}

TEST_F(CApiLoader, ThePackMayBeClosedFirstAndTheLoaderBeforeItsBatches) {
  for (const uint32_t engine : {SPK_ENGINE_POOL, SPK_ENGINE_MMAP}) {
    auto wanted = options();
    wanted.engine = engine;
    LoaderPtr loader = open(wanted);
    spk_close(pack_);
    pack_ = nullptr;
    const BatchPtr kept = next(loader.get());
    EXPECT_EQ(rest(loader.get()).size(), kCApiSamples - 8);
    loader.reset();
    EXPECT_EQ(checked(kept.get()).size(), 8u);
    int64_t labels[8];
    ASSERT_EQ(spk_batch_ints(kept.get(), 1, labels, nullptr, &err_), SPK_OK);
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(labels[i], label(spk_batch_samples(kept.get())[i]));
    ASSERT_EQ(spk_open(path_.c_str(), nullptr, &pack_, &err_), SPK_OK);
  }
}

TEST_F(CApiLoader, AfterFork) {
  if (!test::kForkWithThreadsWorks) GTEST_SKIP() << "not with a sanitizer";
  const LoaderPtr begun = open(options());
  const LoaderPtr fresh = open(options());
  const auto due = rest(open(options()).get());
  BatchPtr first = next(begun.get());
  const pid_t child = ::fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    // The one that has begun is refused, and may be closed; the others serve.
    spk_batch* none = nullptr;
    bool good = spk_loader_next(begun.get(), &none, &err_) == SPK_INVALID_ARGUMENT;
    good = good && std::string(err_.message).find("before fork()") != std::string::npos;
    good = good && rest(fresh.get()) == due && rest(open(options()).get()) == due;
    const std::string saved = state(begun.get());
    auto wanted = options();
    wanted.state = saved.c_str();
    good = good && rest(open(wanted).get()) == std::vector<uint64_t>(due.begin() + 8, due.end());
    ::_exit(good && !HasFailure() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(rest(begun.get()).size(), kCApiSamples - 8);
}

// Of this process: open descriptors, threads, and mappings of files of the pack.
struct Held {
  size_t descriptors, threads, mappings;
  bool operator==(const Held&) const = default;
};
Held held_of(const std::string& path) {
  const auto entries = [](const char* directory) {
    const auto begin = std::filesystem::directory_iterator(directory);
    return static_cast<size_t>(std::distance(begin, std::filesystem::directory_iterator()));
  };
  Held held = {entries("/proc/self/fd"), entries("/proc/self/task"), 0};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != std::string::npos) ++held.mappings;
  }
  return held;
}

TEST_F(CApiLoader, TenThousandOpensAndClosesLeaveNothing) {
  std::thread([] {}).join();  // with the first thread the thread sanitizer starts its own
  const Held before = held_of(path_);
  for (int i = 0; i < 10'000; ++i) {
    spk_pack* pack = nullptr;
    ASSERT_EQ(spk_open(path_.c_str(), nullptr, &pack, &err_), SPK_OK) << err_.message;
    auto wanted = options();
    wanted.engine = i % 40 < 20 ? SPK_ENGINE_POOL : SPK_ENGINE_MMAP;
    wanted.threads = 1 + i % 3;
    spk_loader* loader = nullptr;
    ASSERT_EQ(spk_loader_open(pack, &wanted, &loader, &err_), SPK_OK) << err_.message;
    spk_batch* batch = nullptr;
    if (i % 10 == 0) {  // closed in the midst of reading
      ASSERT_EQ(spk_loader_next(loader, &batch, &err_), SPK_OK) << err_.message;
    }
    spk_loader_close(loader);
    spk_batch_close(batch);
    spk_close(pack);
  }
  // A thread that was joined may be listed for a moment more.
  Held after = held_of(path_);
  for (int i = 0; i < 100 && after.threads != before.threads; ++i) {
    ::usleep(10'000);
    after = held_of(path_);
  }
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_EQ(after.mappings, before.mappings);
}

TEST_F(CApiLoader, APackThatIsReplacedIsReadToItsEnd) {
  for (const uint32_t engine : {SPK_ENGINE_POOL, SPK_ENGINE_URING, SPK_ENGINE_MMAP}) {
    auto wanted = options();
    wanted.engine = engine;
    wanted.memory_bytes = 14 * 65536;  // so that most is read after the exchange
    const LoaderPtr loader = open(wanted);
    EXPECT_EQ(checked(next(loader.get()).get()).size(), 8u);
    const std::string aside = str_cat(path_, ".old", engine);
    std::filesystem::rename(path_, aside);
    const std::vector<TestSample> others = image_samples(kCApiSamples, 0, 8000, 7 + engine);
    write(path_, others);
    EXPECT_EQ(rest(loader.get()).size(), kCApiSamples - 8);

    // Who opens now gets the new one, and the old one's state is refused.
    spk_pack* old = pack_;
    ASSERT_EQ(spk_open(path_.c_str(), nullptr, &pack_, &err_), SPK_OK) << err_.message;
    spk_close(old);
    const std::string saved = state(loader.get());
    wanted.state = saved.c_str();
    spk_loader* none = nullptr;
    EXPECT_EQ(spk_loader_open(pack_, &wanted, &none, &err_), SPK_MISMATCH);
    samples_ = others;
    wanted.state = nullptr;
    EXPECT_EQ(rest(open(wanted).get()).size(), kCApiSamples);
  }
}

TEST_F(CApiLoader, ReadsWhatItMayOnlyReadAndLeavesNothingBeside) {
  const auto listing = [&] {
    std::vector<std::string> lines;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      struct stat facts = {};
      EXPECT_EQ(::stat(entry.path().c_str(), &facts), 0);
      lines.push_back(str_cat(entry.path().string(), " ", facts.st_size, " ", facts.st_mtim.tv_sec,
                              " ", facts.st_mtim.tv_nsec));
      EXPECT_EQ(::chmod(entry.path().c_str(), 0400), 0);
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  const auto before = listing();
  ASSERT_EQ(::chmod(path_.c_str(), 0500), 0);
  for (const uint32_t engine : {SPK_ENGINE_POOL, SPK_ENGINE_MMAP}) {
    for (const uint32_t order : {SPK_ORDER_SHUFFLED, SPK_ORDER_RANDOM}) {
      auto wanted = options();
      wanted.engine = engine;
      wanted.order = order;
      wanted.lanes = 0;
      wanted.direct = engine == SPK_ENGINE_POOL ? SPK_DIRECT_ON : SPK_DIRECT_AUTO;
      EXPECT_EQ(sorted(rest(open(wanted).get())), every_sample());
    }
  }
  EXPECT_EQ(listing(), before);
  ASSERT_EQ(::chmod(path_.c_str(), 0700), 0);
}

}  // namespace
}  // namespace spk::test
