// Packs that are damaged, cut, incomplete, or something else: what is said, and what still reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/text.h"
#include "container/pack.h"
#include "container/part_reader.h"
#include "container/shard_files.h"
#include "support/test_pack.h"

namespace spk {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using test::TestSample;
using ::testing::HasSubstr;

constexpr EngineChoice kEngines[] = {EngineChoice::kPread, EngineChoice::kPool,
                                     EngineChoice::kUring, EngineChoice::kMmap};

// A pack of 60 samples in 2 shards, in the order of the list.
class PackDamage : public ::testing::Test {
 protected:
  void SetUp() override {
    test::TestPackOptions options;
    options.schema = test::image_schema();
    options.geometry.shard_count = 2;
    options.look_ahead = false;
    ASSERT_TRUE(test::write_test_pack(path_, samples_, options).ok());
  }
  std::shared_ptr<Pack> open(EngineChoice engine = EngineChoice::kAuto, bool check = true) {
    OpenOptions options;
    options.engine = engine;
    options.check_checksums = check;
    auto pack = Pack::open(path_, options);
    EXPECT_TRUE(pack.ok()) << pack.status().to_string();
    return pack.ok() ? std::move(pack).value() : nullptr;
  }
  std::string shard(uint32_t number) const { return path_ + "/" + shard_file_name(number); }
  const std::string& image(uint64_t i) const {
    return std::get<std::string>(samples_[i].values[0]);
  }

  // Statuses of all samples from one read_many.
  std::vector<Status> read_all(const Pack& pack, Status* overall) {
    std::vector<std::vector<uint8_t>> memory;
    std::vector<ReadItem> items(samples_.size());
    for (uint64_t i = 0; i < items.size(); ++i) memory.emplace_back(image(i).size());
    for (uint64_t i = 0; i < items.size(); ++i) {
      items[i].sample = i;
      items[i].into = memory[i];
    }
    *overall = pack.read_many(0, items);
    std::vector<Status> statuses;
    for (uint64_t i = 0; i < items.size(); ++i) {
      if (items[i].status.ok()) {
        EXPECT_EQ(as_text(memory[i]), image(i));
      }
      statuses.push_back(items[i].status);
    }
    return statuses;
  }

  TempDir dir_;
  std::string path_ = dir_ / "pack";
  std::vector<TestSample> samples_ = test::image_samples(60, 500, 6000);
};

TEST_F(PackDamage, OfABlobCostsThatSampleAndNamesIt) {
  const SampleLocation blob = open()->locate(17, 0).value();
  ASSERT_EQ(blob.shard, 0u);
  test::flip_byte(shard(0), blob.offset + blob.bytes / 2);
  for (const EngineChoice engine : kEngines) {
    const auto pack = open(engine);
    std::vector<uint8_t> buffer(blob.bytes);
    const Status alone = pack->read(17, 0, buffer).status();
    EXPECT_EQ(alone.code(), Code::kDamaged);
    EXPECT_EQ(alone.path(), shard(0));
    EXPECT_EQ(alone.shard(), 0u);
    EXPECT_EQ(alone.offset(), blob.offset);
    EXPECT_EQ(alone.message(),
              str_cat("sample '", samples_[17].key, "' (", blob.bytes, " bytes) has checksum ",
                      to_hex(xxh3_64(buffer)), ", expected ", to_hex(blob.checksum)));
    EXPECT_THAT(alone.hint(), HasSubstr("stripepack verify"));
    Status overall;
    const std::vector<Status> all = read_all(*pack, &overall);
    EXPECT_EQ(overall.code(), Code::kPartial);
    for (uint64_t i = 0; i < 60; ++i) {
      EXPECT_EQ(all[i].code(), i == 17 ? Code::kDamaged : Code::kOk) << i;
    }
    EXPECT_EQ(all[17].to_string(), alone.to_string());

    const uint64_t number = pack->chunk_of(17).value();
    const ChunkLocation chunk = pack->chunk(number).value();
    std::vector<uint8_t> bytes(chunk.read_bytes);
    const Status whole = pack->read_chunk(number, bytes);
    EXPECT_EQ(whole.to_string(), alone.to_string());

    // Unchecked, the bytes come as they are.
    EXPECT_TRUE(open(engine, false)->read(17, 0, buffer).ok());
    EXPECT_TRUE(open(engine, false)->read_chunk(number, bytes).ok());
  }
}

TEST_F(PackDamage, OfAChunksHeadIsSeenAndCostsNoSample) {
  // Every byte of header and table.
  const ChunkLocation chunk = open()->chunk(1).value();
  const std::string good = test::read_file(shard(0));
  const uint64_t first_blob = open()->locate(chunk.first_sample, 0)->offset;
  const auto pack = open(EngineChoice::kPread);
  for (uint64_t at = chunk.offset; at < first_blob; ++at) {
    test::flip_byte(shard(0), at);
    std::vector<uint8_t> bytes(chunk.read_bytes);
    const Status status = pack->read_chunk(1, bytes);
    // Between the table and the first blob there may be padding, which is no reader's business.
    const auto table_bytes =
        load_le<uint64_t>(reinterpret_cast<const uint8_t*>(good.data()) + chunk.offset + 72);
    if (at < chunk.offset + ChunkHeader::kBytes + table_bytes) {
      EXPECT_EQ(status.code(), Code::kDamaged) << at;
      EXPECT_EQ(status.path(), shard(0));
      EXPECT_EQ(status.offset(), chunk.offset);
    } else {
      EXPECT_TRUE(status.ok());
    }
    std::vector<uint8_t> one(image(chunk.first_sample).size());
    EXPECT_TRUE(pack->read(chunk.first_sample, 0, one).ok());
    test::flip_byte(shard(0), at);
  }
  test::flip_byte(shard(0), chunk.offset + 60);
  PartReader reader(*pack, pack->part(0, 1));
  for (uint64_t i = 0; i < 60; ++i) {
    ASSERT_TRUE(reader.next().value());
    EXPECT_EQ(as_text(reader.blob(0).value()), image(i));
  }
}

TEST_F(PackDamage, CostsAPartReaderOnlyTheSamplesItTouches) {
  for (const uint64_t sample : {3, 4, 40}) {
    const SampleLocation blob = open()->locate(sample, 0).value();
    test::flip_byte(shard(blob.shard), blob.offset);
  }
  const auto pack = open();
  PartReader reader(*pack, pack->part(0, 1));
  for (uint64_t i = 0; i < 60; ++i) {
    ASSERT_TRUE(reader.next().value());
    EXPECT_EQ(reader.sample(), i);
    const auto blob = reader.blob(0);
    if (i == 3 || i == 4 || i == 40) {
      EXPECT_EQ(blob.status().code(), Code::kDamaged);
      EXPECT_THAT(blob.status().message(), HasSubstr(samples_[i].key));
    } else {
      ASSERT_TRUE(blob.ok());
      EXPECT_EQ(as_text(*blob), image(i));
    }
  }
  EXPECT_FALSE(reader.next().value());
}

TEST_F(PackDamage, MissingShortAndLongShards) {
  const std::string good = test::read_file(shard(1));
  const SampleLocation cut = open()->locate(45, 0).value();
  for (const EngineChoice engine : kEngines) {
    const auto expect = [&](uint64_t readable, const std::string& message, uint64_t offset) {
      const auto pack = open(engine);
      Status overall;
      const std::vector<Status> all = read_all(*pack, &overall);
      EXPECT_EQ(overall.code(), readable == 60 ? Code::kOk : Code::kPartial);
      PartReader reader(*pack, pack->part(0, 1));
      for (uint64_t i = 0; i < 60; ++i) {
        EXPECT_EQ(all[i].code(), i < readable ? Code::kOk : Code::kDamaged) << i;
        ASSERT_TRUE(reader.next().value());
        EXPECT_EQ(reader.blob(0).status().code(), all[i].code());
      }
      if (readable == 60) return;
      EXPECT_EQ(all[readable].message(), message);
      EXPECT_EQ(all[readable].path(), shard(1));
      EXPECT_EQ(all[readable].offset(), offset);
    };
    fs::remove(shard(1));
    expect(30, "this shard is missing; the index has 2 of them", Status::kNoOffset);
    // What a cut leaves can be read.
    test::write_file(shard(1), good.substr(0, cut.offset + 10));
    expect(45,
           str_cat("sample '", samples_[45].key, "': file ends at ", cut.offset + 10, ", ",
                   cut.bytes, " bytes expected at ", cut.offset),
           cut.offset);
    test::write_file(shard(1), good + "x");
    expect(60, "", 0);
    test::write_file(shard(1), good);
  }
}

TEST_F(PackDamage, OfAShardThatIsCutWhileItIsOpen) {
  for (const EngineChoice engine :
       {EngineChoice::kPread, EngineChoice::kPool, EngineChoice::kUring}) {
    const auto pack = open(engine);
    Status overall;
    read_all(*pack, &overall);
    ASSERT_TRUE(overall.ok());
    const std::string good = test::read_file(shard(1));
    const SampleLocation blob = pack->locate(45, 0).value();
    // Cut in place: it is the same file that is open.
    ASSERT_EQ(::truncate(shard(1).c_str(), static_cast<off_t>(blob.offset + 10)), 0);
    const std::vector<Status> all = read_all(*pack, &overall);
    for (uint64_t i = 0; i < 60; ++i) {
      EXPECT_EQ(all[i].code(), i < 45 ? Code::kOk : Code::kDamaged) << i;
    }
    EXPECT_EQ(all[45].message(),
              str_cat("sample '", samples_[45].key, "': file ends at ", blob.offset + 10, ", ",
                      blob.bytes, " bytes expected at ", blob.offset));
    EXPECT_EQ(all[45].path(), shard(1));
    test::write_file(shard(1), good);
  }
}

// Looks at everything that an index tells; the first error.
Status touch_everything(const std::string& path) {
  SPK_ASSIGN(const auto pack, Pack::open(path));
  for (uint64_t i = 0; i < pack->sample_count(); ++i) {
    SPK_TRY(pack->sample(i).status());
    SPK_TRY(pack->chunk_of(i).status());
  }
  return {};
}

TEST_F(PackDamage, OfEveryByteOfTheIndexIsFound) {
  const std::string index = path_ + "/index.spki";
  const uint64_t bytes = fs::file_size(index);
  ASSERT_TRUE(touch_everything(path_).ok());
  for (uint64_t at = 0; at < bytes; ++at) {
    test::flip_byte(index, at);
    const Status status = touch_everything(path_);
    EXPECT_EQ(status.code(), Code::kDamaged) << at << " " << status.to_string();
    EXPECT_EQ(status.path(), index);
    test::flip_byte(index, at);
  }
}

TEST_F(PackDamage, EveryTruncationOfTheIndexIsFound) {
  const std::string index = path_ + "/index.spki";
  const std::string good = test::read_file(index);
  for (size_t bytes = good.size(); bytes-- > 0;) {
    ASSERT_EQ(::truncate(index.c_str(), static_cast<off_t>(bytes)), 0);
    const auto pack = Pack::open(path_);
    EXPECT_EQ(pack.status().code(), Code::kDamaged) << bytes;
    EXPECT_EQ(pack.status().path(), index);
  }
  test::write_file(index, good + "x");
  EXPECT_EQ(Pack::open(path_).status().message(),
            str_cat("index has ", good.size() + 1, " bytes, its header says ", good.size()));
}

TEST_F(PackDamage, WhatIsNoPackIsSaidInWords) {
  const auto refusal = [](const std::string& path) { return Pack::open(path).status(); };
  EXPECT_EQ(refusal(dir_ / "none").code(), Code::kNotFound);

  fs::rename(path_, dir_ / "out.partial");
  Status status = refusal(dir_ / "out");
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.hint(), HasSubstr("out.partial is unfinished"));
  fs::remove(dir_ / "out.partial/manifest.json");
  status = refusal(dir_ / "out.partial");
  EXPECT_EQ(status.code(), Code::kNotThisFormat);
  EXPECT_EQ(status.message(), "this is an unfinished pack");
  fs::rename(dir_ / "out.partial", dir_ / "lost");
  status = refusal(dir_ / "lost");
  EXPECT_EQ(status.code(), Code::kNotThisFormat);
  EXPECT_EQ(status.message(), "this is an unfinished pack, or one that lost its manifest.json");
  EXPECT_THAT(status.hint(), HasSubstr("stripepack repair"));
  test::write_file(dir_ / "lost/manifest.json", "{}");
  fs::remove(dir_ / "lost/index.spki");
  status = refusal(dir_ / "lost");
  EXPECT_EQ(status.code(), Code::kDamaged);
  EXPECT_EQ(status.message(), "index.spki is missing");

  test::write_file(dir_ / "file", "x");
  status = refusal(dir_ / "file");
  EXPECT_EQ(status.code(), Code::kNotThisFormat);
  EXPECT_EQ(status.message(), "this is a file; a pack is a directory");
  status = refusal(dir_ / "lost/manifest.json");
  EXPECT_EQ(status.hint(), "open the directory that it lies in");

  fs::create_directories(dir_ / "splits/val");
  fs::create_directories(dir_ / "splits/train");
  fs::create_directories(dir_ / "splits/notes");
  test::write_file(dir_ / "splits/train/manifest.json", "{}");
  test::write_file(dir_ / "splits/val/manifest.json", "{}");
  status = refusal(dir_ / "splits/");
  EXPECT_EQ(status.code(), Code::kNotThisFormat);
  EXPECT_EQ(status.message(), "this is a folder of packs, one for each split");
  EXPECT_THAT(status.hint(), HasSubstr("train, "));
  EXPECT_THAT(status.hint(), HasSubstr("splits/val"));

  fs::create_directories(dir_ / "pictures/cat");
  status = refusal(dir_ / "pictures");
  EXPECT_EQ(status.code(), Code::kNotThisFormat);
  EXPECT_EQ(status.message(), "not a pack: there is no manifest.json among its 1 entry");
  EXPECT_THAT(status.hint(), HasSubstr("`stripepack pack "));
  fs::create_directories(dir_ / "empty");
  EXPECT_EQ(refusal(dir_ / "empty").message(), "this directory is empty");
}

// More shards than may be open at a time.
TEST(ShardFiles, AreClosedAndOpenedAgain) {
  const TempDir dir;
  test::TestPackOptions options;
  options.schema = test::image_schema();
  options.geometry.shard_count = 9;
  const auto samples = test::image_samples(90, 10, 200);
  ASSERT_TRUE(test::write_test_pack(dir / "pack", samples, options).ok());
  const auto pack = Pack::open(dir / "pack").value();
  const std::vector<ShardRow>& rows = pack->shards();
  for (const ShardAccess access : {ShardAccess::kDescriptor, ShardAccess::kMapping}) {
    const ShardFiles files(pack->directory(), rows, pack->cache(), access, 3);
    EXPECT_EQ(files.open_count(), 0u);
    for (uint32_t round = 0; round < 30; ++round) {
      ShardFiles::Pin pin;
      ASSERT_TRUE(files.pin(round * 4 % 9, pin).ok());
      EXPECT_LE(files.open_count(), 3u);
      uint8_t magic[8];
      ASSERT_TRUE(pin->read(0, magic).ok());
      EXPECT_EQ(load_le<uint64_t>(magic), kChunkMagic);
    }
    // What is pinned stays open, whatever the limit says.
    std::vector<ShardFiles::Pin> pins(9);
    for (uint32_t shard = 0; shard < 9; ++shard) ASSERT_TRUE(files.pin(shard, pins[shard]).ok());
    EXPECT_EQ(files.open_count(), 9u);
    pins.clear();

    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (uint32_t t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        for (uint32_t round = 0; round < 500; ++round) {
          const uint32_t shard = (round * 7 + t * 5) % 9;
          ShardFiles::Pin pin;
          uint8_t head[ChunkHeader::kBytes];
          if (!files.pin(shard, pin).ok() || !pin->read(0, head).ok() ||
              ChunkHeader::decode(head).shard != shard) {
            ++wrong;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace spk
