// Packs that are read from copies of their shards.
#include "container/shard_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "container/pack.h"
#include "container/shard_files.h"
#include "loader/loader.h"
#include "loader/reading.h"
#include "support/test_pack.h"

namespace spk {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr uint32_t kShards = 4;
constexpr EngineChoice kEngines[] = {EngineChoice::kAuto, EngineChoice::kPread, EngineChoice::kPool,
                                     EngineChoice::kUring, EngineChoice::kMmap};

class ShardCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    make(pack_, 1);
    fs::create_directory(cache_);
  }

  void make(const std::string& path, uint64_t seed) {
    test::TestPackOptions options;
    options.schema = test::image_schema();
    options.geometry.shard_count = kShards;
    options.plan_id.low += seed;
    samples_ = test::image_samples(80, 100, 4000, seed);
    auto order = test::write_test_pack(path, samples_, options);
    ASSERT_TRUE(order.ok()) << order.status().to_string();
    order_ = std::move(order).value();
  }
  static std::string in(const std::string& folder, uint32_t shard) {
    return str_cat(folder, "/", shard_file_name(shard));
  }
  void stage(uint32_t shard) const { fs::copy_file(in(pack_, shard), in(cache_, shard)); }
  std::shared_ptr<Pack> open(EngineChoice engine = EngineChoice::kAuto) const {
    OpenOptions options;
    options.engine = engine;
    options.cache = cache_;
    auto pack = Pack::open(pack_, options);
    EXPECT_TRUE(pack.ok()) << pack.status().to_string();
    return pack.ok() ? std::move(pack).value() : nullptr;
  }
  const std::string& image(uint64_t sample) const {
    return std::get<std::string>(samples_[order_[sample]].values[0]);
  }
  static Status read(const Pack& pack, uint64_t sample, std::string* bytes) {
    std::vector<uint8_t> room(5000);
    auto size = pack.read(sample, 0, room);
    if (!size.ok()) return std::move(size).status();
    *bytes = std::string(as_text(ByteSpan(room).first(*size)));
    return {};
  }
  static uint64_t first_of(const Pack& pack, uint32_t shard) {
    uint64_t first = 0;
    for (uint32_t i = 0; i < shard; ++i) first += pack.shards()[i].sample_count;
    return first;
  }
  // Where each shard is read from, proven by reading.
  std::string sources(const Pack& pack) const {
    std::string found;
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      const uint64_t sample = first_of(pack, shard);
      std::string bytes;
      const Status status = read(pack, sample, &bytes);
      EXPECT_TRUE(status.ok()) << status.to_string();
      EXPECT_EQ(bytes, image(sample));
      found += pack.shard_path(shard) == in(cache_, shard)  ? 'c'
               : pack.shard_path(shard) == in(pack_, shard) ? 'p'
                                                            : '?';
    }
    return found;
  }

  TempDir dir_;
  const std::string pack_ = dir_ / "pack";
  const std::string cache_ = dir_ / "cache";
  std::vector<test::TestSample> samples_;
  std::vector<uint64_t> order_;
};

TEST_F(ShardCacheTest, WhatIsThereIsReadFromThere) {
  stage(1);
  stage(3);
  for (const EngineChoice engine : kEngines) {
    const auto pack = open(engine);
    ASSERT_NE(pack, nullptr);
    EXPECT_EQ(sources(*pack), "pcpc");
    EXPECT_EQ(pack->data_directory().path(), pack_);
  }
  // Not only said to be: the pack's own are not needed.
  fs::remove(in(pack_, 1));
  fs::remove(in(pack_, 3));
  for (const EngineChoice engine : kEngines) {
    const auto pack = open(engine);
    EXPECT_EQ(sources(*pack), "pcpc");
    std::vector<std::vector<uint8_t>> rooms(80, std::vector<uint8_t>(5000));
    std::vector<ReadItem> items;
    for (uint64_t i = 0; i < 80; ++i) items.push_back({i, rooms[i], 0, {}});
    const Status status = pack->read_many(0, items);
    ASSERT_TRUE(status.ok()) << status.to_string();
    for (uint64_t i = 0; i < 80; ++i) {
      EXPECT_EQ(as_text(ByteSpan(rooms[i]).first(items[i].bytes)), image(i));
    }
  }
}

TEST_F(ShardCacheTest, AllOfItDecidesHowFilesAreRead) {
  for (uint32_t shard = 0; shard < kShards; ++shard) stage(shard);
  const auto pack = open();
  EXPECT_EQ(pack->data_directory().path(), cache_);
  EXPECT_EQ(pack->directory().path(), pack_);
  EXPECT_EQ(sources(*pack), "cccc");
}

TEST_F(ShardCacheTest, LoadersReadItByEveryEngine) {
  for (const uint32_t shard : {0u, 2u}) {
    stage(shard);
    fs::remove(in(pack_, shard));
  }
  for (const EngineChoice engine :
       {EngineChoice::kPool, EngineChoice::kUring, EngineChoice::kMmap}) {
    for (const DirectChoice direct : {DirectChoice::kOff, DirectChoice::kOn}) {
      if (engine == EngineChoice::kMmap && direct == DirectChoice::kOn) continue;
      LoaderOptions options;
      options.engine = engine;
      options.direct = direct;
      options.batch = 7;
      options.tail = TailRule::kExact;
      auto loader = Loader::open(open(), options);
      ASSERT_TRUE(loader.ok()) << loader.status().to_string();
      uint64_t seen = 0;
      for (;;) {
        auto batch = (*loader)->next();
        ASSERT_TRUE(batch.ok()) << batch.status().to_string();
        if (*batch == nullptr) break;
        seen += (*batch)->size();
      }
      EXPECT_EQ(seen, 80u);
    }
  }
}

TEST_F(ShardCacheTest, AnothersShardsAreNotTakenForIt) {
  make(dir_ / "other", 2);
  fs::copy_file(in(dir_ / "other", 0), in(cache_, 0));
  // Of this pack, but another shard.
  fs::copy_file(in(pack_, 2), in(cache_, 1));
  // Cut.
  stage(2);
  fs::resize_file(in(cache_, 2), fs::file_size(in(cache_, 2)) - 4096);
  // The right size, and nothing in it.
  stage(3);
  fs::resize_file(in(cache_, 3), 0);
  fs::resize_file(in(cache_, 3), fs::file_size(in(pack_, 3)));
  make(pack_ + "-again", 1);  // samples_ as before
  EXPECT_EQ(sources(*open()), "pppp");

  const auto pack = open();
  const auto differs = [&](uint32_t shard) {
    const auto file = File::open_read(in(cache_, shard)).value();
    return check_shard_file(file, shard, pack->shards()[shard]);
  };
  EXPECT_EQ(differs(2).code(), Code::kMismatch);
  EXPECT_THAT(differs(2).message(),
              HasSubstr(str_cat("has ", fs::file_size(in(cache_, 2)), " bytes, shard 2")));
  EXPECT_EQ(differs(3).message(),
            str_cat("no shard's footer lies at ", pack->shards()[3].data_bytes));
}

// Another pack's shard of the very same size.
TEST_F(ShardCacheTest, TheSizeAloneSaysNothing) {
  std::string bytes = test::read_file(in(pack_, 0));
  const auto pack = open();
  bytes[pack->shards()[0].data_bytes + 88] ^= 1;  // in the digest
  test::write_file(in(cache_, 0), bytes);
  EXPECT_EQ(sources(*pack), "pppp");
  const auto file = File::open_read(in(cache_, 0)).value();
  EXPECT_THAT(check_shard_file(file, 0, pack->shards()[0]).message(),
              HasSubstr("is shard 0 with digest "));
}

TEST_F(ShardCacheTest, WhatComesLaterIsUsedWhenItIsOpened) {
  fs::remove(cache_);
  const auto pack = open();
  ASSERT_NE(pack, nullptr);
  std::string bytes;
  ASSERT_TRUE(read(*pack, 0, &bytes).ok());
  fs::create_directory(cache_);
  for (uint32_t shard = 0; shard < kShards; ++shard) stage(shard);
  EXPECT_EQ(sources(*pack), "pccc");  // the first is open already
}

TEST_F(ShardCacheTest, ACacheThatIsGoneIsNoLoss) {
  for (uint32_t shard = 0; shard < kShards; ++shard) stage(shard);
  const auto pack = open();
  fs::remove_all(cache_);
  EXPECT_EQ(sources(*pack), "pppp");
}

TEST_F(ShardCacheTest, LinksAndWhatIsNoFile) {
  fs::create_symlink(in(pack_, 0), in(cache_, 0));
  fs::create_directory(in(cache_, 1));
  fs::create_symlink(dir_ / "nowhere", in(cache_, 2));
  EXPECT_EQ(sources(*open()), "cppp");
}

TEST_F(ShardCacheTest, ErrorsNameTheCopy) {
  for (uint32_t shard = 0; shard < kShards; ++shard) stage(shard);
  for (const EngineChoice engine : kEngines) {
    const auto pack = open(engine);
    const uint64_t sample = first_of(*pack, 2);
    const SampleLocation place = pack->locate(sample, 0).value();
    test::flip_byte(in(cache_, 2), place.offset);
    std::string bytes;
    const Status status = read(*pack, sample, &bytes);
    EXPECT_EQ(status.code(), Code::kDamaged);
    EXPECT_EQ(status.path(), in(cache_, 2));
    EXPECT_EQ(status.shard(), 2u);
    EXPECT_EQ(status.offset(), place.offset);
    EXPECT_THAT(status.hint(), HasSubstr("this is the cache's copy"));
    std::vector<uint8_t> room(1 << 16);
    const Status chunk = pack->read_chunk(pack->chunk_of(sample).value(), room);
    EXPECT_EQ(chunk.code(), Code::kDamaged);
    EXPECT_EQ(chunk.path(), in(cache_, 2));
    EXPECT_THAT(chunk.hint(), HasSubstr("this is the cache's copy"));
    test::flip_byte(in(cache_, 2), place.offset);
  }
}

TEST_F(ShardCacheTest, OfAPackItselfTheHintIsAnother) {
  const auto pack = open();
  const SampleLocation place = pack->locate(0, 0).value();
  test::flip_byte(in(pack_, place.shard), place.offset);
  std::string bytes;
  const Status status = read(*pack, 0, &bytes);
  EXPECT_EQ(status.path(), in(pack_, place.shard));
  EXPECT_EQ(status.hint(), "`stripepack verify` lists all damage");
}

TEST_F(ShardCacheTest, AFileIsNoCache) {
  test::write_file(dir_ / "file", "text");
  OpenOptions options;
  options.cache = dir_ / "file";
  const auto pack = Pack::open(pack_, options);
  EXPECT_EQ(pack.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(pack.status().path(), dir_ / "file");
  EXPECT_EQ(pack.status().message(), "a cache is a directory; this is none");
}

TEST_F(ShardCacheTest, ARelativePathStaysWhatItWas) {
  stage(0);
  const fs::path before = fs::current_path();
  fs::current_path(dir_.path());
  auto cache = ShardCache::open("cache");
  fs::current_path(before);
  ASSERT_TRUE(cache.ok());
  EXPECT_THAT(cache->path(), EndsWith("/cache"));
  const auto pack = open();
  const auto found = cache->find(0, pack->shards()[0]);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->is_open());
  EXPECT_FALSE(cache->find(1, pack->shards()[1])->is_open());
  EXPECT_FALSE(cache->has_all(pack->shards()));
  EXPECT_TRUE(ShardCache::open("")->is_none());
}

}  // namespace
}  // namespace spk
