// Opening packs and reading them, with every engine.
#include "container/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>

#include "base/text.h"
#include "container/part_reader.h"
#include "support/sanitizers.h"
#include "support/test_pack.h"

namespace spk {
namespace {

using test::TempDir;
using test::TestPackOptions;
using test::TestSample;
using ::testing::HasSubstr;

constexpr EngineChoice kEngines[] = {EngineChoice::kAuto, EngineChoice::kPread, EngineChoice::kPool,
                                     EngineChoice::kUring, EngineChoice::kMmap};

// A pack on disk, with what was put into it in storage order.
struct Made {
  TempDir dir;
  std::string path = dir / "pack";
  std::vector<TestSample> samples;
  std::vector<uint64_t> order;

  Made(std::vector<TestSample> list, const TestPackOptions& options) {
    auto written = test::write_test_pack(path, list, options);
    EXPECT_TRUE(written.ok()) << written.status().to_string();
    if (!written.ok()) return;
    order = std::move(written).value();
    for (const uint64_t i : order) samples.push_back(list[i]);
  }
  const std::string& image(uint64_t sample) const {
    return std::get<std::string>(samples[sample].values[0]);
  }
  std::string shard(uint32_t number) const { return path + "/" + shard_file_name(number); }
};

TestPackOptions image_options(uint32_t shards = 3) {
  TestPackOptions options;
  options.schema = test::image_schema();
  options.geometry.shard_count = shards;
  return options;
}

std::shared_ptr<Pack> open_pack(const std::string& path, EngineChoice engine = EngineChoice::kAuto,
                                bool check = true) {
  OpenOptions options;
  options.engine = engine;
  options.check_checksums = check;
  auto pack = Pack::open(path, options);
  EXPECT_TRUE(pack.ok()) << pack.status().to_string();
  return pack.ok() ? std::move(pack).value() : nullptr;
}

// Room for samples, as the caller of read_many has it.
struct Buffers {
  std::vector<std::vector<uint8_t>> memory;
  std::vector<ReadItem> items;

  void add(uint64_t sample, size_t room) {
    memory.emplace_back(room, 0xEE);
    items.push_back({sample, {}, 0, {}});
  }
  std::span<ReadItem> ready() {
    for (size_t i = 0; i < items.size(); ++i) items[i].into = memory[i];
    return items;
  }
  std::string_view text(size_t i) const {
    return as_text(ByteSpan(memory[i]).first(items[i].bytes));
  }
};

std::string read_text(const Pack& pack, uint64_t sample, uint16_t field = 0) {
  const auto location = pack.locate(sample, field);
  EXPECT_TRUE(location.ok());
  std::vector<uint8_t> buffer(location->bytes);
  const auto bytes = pack.read(sample, field, buffer);
  EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
  return std::string(as_text(buffer));
}

TEST(Pack, TellsWhatItIs) {
  TestPackOptions options = image_options();
  options.settings = {{"seed", "7"}, {"check", "structure"}};
  const Made made(test::image_samples(200, 0, 9000), options);
  const auto pack = open_pack(made.path);
  ASSERT_NE(pack, nullptr);
  EXPECT_EQ(pack->sample_count(), 200u);
  EXPECT_EQ(pack->schema(), options.schema);
  EXPECT_EQ(pack->settings(), options.settings);
  EXPECT_EQ(pack->shards().size(), 3u);
  EXPECT_EQ(pack->identity().plan_id, options.plan_id);
  EXPECT_EQ(pack->identity().chunk_bytes(), 65536u);
  uint64_t chunk_of_next = 0;
  uint64_t next = 0;
  for (uint64_t i = 0; i < pack->chunk_count(); ++i, ++chunk_of_next) {
    const auto chunk = pack->chunk(i);
    ASSERT_TRUE(chunk.ok());
    EXPECT_EQ(chunk->first_sample, next);
    EXPECT_EQ(chunk->offset % 65536, 0u);
    for (; next < chunk->first_sample + chunk->sample_count; ++next) {
      EXPECT_EQ(pack->chunk_of(next).value(), i);
    }
  }
  EXPECT_EQ(next, 200u);
  EXPECT_EQ(pack->chunk(pack->chunk_count()).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(pack->chunk_of(200).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(pack->locate(200, 0).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(pack->locate(0, 5).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(pack->locate(0, 1).status().message(), "field 'label' is numeric, not bytes");
}

TEST(Pack, EveryEngineReadsEverySample) {
  const Made made(test::image_samples(300, 0, 12000), image_options());
  for (const EngineChoice engine : kEngines) {
    for (const bool check : {true, false}) {
      const auto pack = open_pack(made.path, engine, check);
      ASSERT_NE(pack, nullptr);
      Buffers all;
      for (uint64_t i = 0; i < 300; ++i) {
        EXPECT_EQ(read_text(*pack, i), made.image(i));
        all.add(i, made.image(i).size());
      }
      ASSERT_TRUE(pack->read_many(0, all.ready()).ok());
      for (uint64_t i = 0; i < 300; ++i) EXPECT_EQ(all.text(i), made.image(i));
    }
  }
}

TEST(Pack, ReadManyTakesAnyOrderAndRepeats) {
  // Some large, so that runs end for their size; some gaps wide, so that they end for those.
  std::vector<TestSample> samples = test::image_samples(400, 0, 40000, 5);
  const Made made(samples, image_options(7));
  std::mt19937_64 random(42);
  for (const EngineChoice engine : kEngines) {
    const auto pack = open_pack(made.path, engine);
    ASSERT_NE(pack, nullptr);
    for (int round = 0; round < 20; ++round) {
      Buffers some;
      const size_t count = random() % 200;
      for (size_t i = 0; i < count; ++i) {
        const uint64_t sample = random() % 400;
        some.add(sample, made.image(sample).size() + random() % 3);
      }
      const Status status = pack->read_many(0, some.ready());
      ASSERT_TRUE(status.ok()) << status.to_string();
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(some.text(i), made.image(some.items[i].sample));
        for (size_t k = some.items[i].bytes; k < some.memory[i].size(); ++k) {
          ASSERT_EQ(some.memory[i][k], 0xEE) << "wrote beyond the blob";
        }
      }
    }
  }
}

TEST(Pack, EachItemOfReadManyHasItsOwnStatus) {
  TestPackOptions options = image_options(1);
  options.schema.fields.push_back({"mask", FieldKind::kBlob, 1});
  std::vector<TestSample> samples = test::image_samples(4, 100, 200);
  samples[0].values.emplace_back("mask of 0");
  samples[1].values.emplace_back(std::monostate());
  samples[2].values.emplace_back("");
  samples[3].values.emplace_back("mask of 3");
  options.look_ahead = false;
  const Made made(samples, options);
  for (const EngineChoice engine : kEngines) {
    const auto pack = open_pack(made.path, engine);
    ASSERT_NE(pack, nullptr);
    const uint16_t mask = pack->schema().find("mask");
    Buffers some;
    for (const uint64_t sample : {3, 1, 2, 4, 0}) some.add(sample, sample == 0 ? 3 : 9);
    const Status status = pack->read_many(mask, some.ready());
    EXPECT_EQ(status.code(), Code::kPartial);
    EXPECT_EQ(status.message(),
              "3 of 5 samples could not be read; the first: sample 'hen/1.jpg' has no value in "
              "field 'mask'")
        << made.samples[1].key;
    EXPECT_EQ(some.text(0), "mask of 3");
    EXPECT_EQ(some.items[1].status.code(), Code::kNotFound);
    EXPECT_TRUE(some.items[2].status.ok());
    EXPECT_EQ(some.items[2].bytes, 0u);
    EXPECT_EQ(some.items[3].status.code(), Code::kInvalidArgument);
    EXPECT_EQ(some.items[4].status.code(), Code::kInvalidArgument);
    EXPECT_EQ(some.items[4].bytes, 9u);
    EXPECT_THAT(some.items[4].status.message(), HasSubstr("room for 3 bytes"));
    // Absent is not empty.
    EXPECT_EQ(pack->read(1, mask, {}).status().code(), Code::kNotFound);
    EXPECT_EQ(pack->read(2, mask, {}).value(), 0u);
    EXPECT_EQ(pack->read_many(1, some.ready()).code(), Code::kInvalidArgument);
    EXPECT_TRUE(pack->read_many(mask, {}).ok());
  }
}

TEST(Pack, KeysMayHoldAnyBytes) {
  std::vector<TestSample> samples = test::image_samples(260, 1, 50);
  for (size_t i = 0; i < 256; ++i) samples[i].key = std::string(1, static_cast<char>(i));
  samples[256].key = "";
  samples[257].key = std::string(3, '\0');
  samples[258].key = std::string(100000, 'k');
  samples[259].key = "a/b\xff\xfe";
  const Made made(samples, image_options(2));
  const auto pack = open_pack(made.path);
  ASSERT_NE(pack, nullptr);
  for (uint64_t i = 0; i < pack->sample_count(); ++i) {
    EXPECT_EQ(pack->key(i).value(), made.samples[i].key);
    EXPECT_EQ(pack->find_key(made.samples[i].key).value(), i);
    EXPECT_EQ(pack->ordinal(i).value(), made.order[i]);
  }
  const auto missing = pack->find_key("no\nsuch");
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_EQ(missing.status().message(), "no sample has the key 'no\\x0asuch'");
}

TEST(Pack, NumbersOfEveryKind) {
  TestPackOptions options;
  options.schema.fields = {{"data", FieldKind::kBlob, 1},
                           {"label", FieldKind::kInt64, 1},
                           {"box", FieldKind::kFloat32, 4},
                           {"tags", FieldKind::kInt64, 0},
                           {"score", FieldKind::kFloat64, 1}};
  options.geometry.shard_count = 2;
  options.look_ahead = false;
  std::vector<TestSample> samples;
  for (int64_t i = 0; i < 100; ++i) {
    TestSample sample{str_cat(i), {"x", std::vector<int64_t>{i * i * i - 50}, {}, {}, {}}};
    if (i % 3 != 0) sample.values[2] = std::vector<double>{0.5 * i, -1, 2, 1e30f};
    if (i % 4 != 0) sample.values[3] = std::vector<int64_t>(i % 7, -i);
    if (i % 5 != 0) sample.values[4] = std::vector<double>{i / 3.0};
    if (i == 99) sample.values[1] = std::monostate();
    samples.push_back(sample);
  }
  const Made made(samples, options);
  const auto pack = open_pack(made.path);
  ASSERT_NE(pack, nullptr);
  const auto ints_of = [](const test::TestValue& value) {
    return std::holds_alternative<std::monostate>(value) ? std::vector<int64_t>()
                                                         : std::get<std::vector<int64_t>>(value);
  };
  const auto floats_of = [](const test::TestValue& value) {
    return std::holds_alternative<std::monostate>(value) ? std::vector<double>()
                                                         : std::get<std::vector<double>>(value);
  };
  for (uint64_t i = 0; i < 100; ++i) {
    const auto& values = made.samples[i].values;
    EXPECT_EQ(pack->ints(i, 1).value(), ints_of(values[1]));
    EXPECT_EQ(pack->floats(i, 2).value(), floats_of(values[2]));
    EXPECT_EQ(pack->ints(i, 3).value(), ints_of(values[3]));
    EXPECT_EQ(pack->floats(i, 4).value(), floats_of(values[4]));
    const auto sample = pack->sample(i);
    ASSERT_TRUE(sample.ok());
    EXPECT_EQ(sample->key, made.samples[i].key);
    EXPECT_EQ(sample->fields[3].present, i % 4 != 0);
    EXPECT_EQ(sample->fields[3].count, ints_of(values[3]).size());
    EXPECT_EQ(sample->fields[0].checksum, xxh3_64(as_bytes("x")));
  }
  // Over the border of the two shards.
  std::vector<int64_t> labels(60);
  std::vector<uint8_t> present(60);
  ASSERT_TRUE(pack->copy_ints(1, 40, 60, labels.data(), present.data()).ok());
  for (int64_t i = 40; i < 99; ++i) {
    EXPECT_EQ(labels[i - 40], i * i * i - 50);
    EXPECT_EQ(present[i - 40], 1);
  }
  EXPECT_EQ(labels[59], 0);
  EXPECT_EQ(present[59], 0);
  std::vector<double> boxes(400);
  ASSERT_TRUE(pack->copy_floats(2, 0, 100, boxes.data(), nullptr).ok());
  EXPECT_EQ(boxes[4 * 1], 0.5);
  EXPECT_EQ(boxes[4 * 98 + 1], -1);
  EXPECT_EQ(boxes[4 * 99], 0);
  EXPECT_EQ(pack->copy_ints(3, 0, 1, labels.data(), nullptr).code(), Code::kInvalidArgument);
  EXPECT_EQ(pack->copy_ints(2, 0, 1, labels.data(), nullptr).message(),
            "field 'box' is no integer");
  EXPECT_EQ(pack->copy_ints(1, 41, 60, labels.data(), nullptr).code(), Code::kInvalidArgument);
  EXPECT_EQ(pack->floats(0, 1).status().message(), "field 'label' is no float");
}

TEST(Pack, SamplesLargerThanAChunkAndShardsWithout) {
  // More shards than samples: some are empty.
  std::vector<TestSample> samples = test::image_samples(3, 300000, 400000);
  const Made made(samples, image_options(5));
  for (const EngineChoice engine : kEngines) {
    const auto pack = open_pack(made.path, engine);
    ASSERT_NE(pack, nullptr);
    for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(read_text(*pack, i), made.image(i));
    for (uint64_t i = 0; i < pack->chunk_count(); ++i) {
      const auto chunk = pack->chunk(i);
      std::vector<uint8_t> buffer(chunk->read_bytes);
      EXPECT_TRUE(pack->read_chunk(i, buffer).ok());
      EXPECT_EQ(pack->read_chunk(i, MutableByteSpan(buffer).first(100)).code(),
                Code::kInvalidArgument);
    }
  }
  const Made none({}, image_options(1));
  const auto pack = open_pack(none.path);
  ASSERT_NE(pack, nullptr);
  EXPECT_EQ(pack->sample_count(), 0u);
  EXPECT_EQ(pack->find_key("x").status().code(), Code::kNotFound);
  EXPECT_FALSE(PartReader(*pack, pack->part(0, 1)).next().value());
}

TEST(Pack, PartsCoverEverySampleOnceByWholeChunks) {
  const Made made(test::image_samples(237, 0, 9000), image_options(4));
  const auto pack = open_pack(made.path);
  ASSERT_NE(pack, nullptr);
  for (const uint32_t world : {1u, 2u, 4u, 7u, 300u}) {
    uint64_t next = 0;
    for (uint32_t rank = 0; rank < world; ++rank) {
      const PositionRange part = pack->part(rank, world);
      EXPECT_EQ(part.begin, next);
      EXPECT_LE(part.size(), 237 / world + 1);
      PartReader reader(*pack, part);
      for (;;) {
        const auto more = reader.next();
        ASSERT_TRUE(more.ok());
        if (!*more) break;
        EXPECT_EQ(reader.sample(), next);
        EXPECT_EQ(as_text(reader.blob(0).value()), made.image(next));
        ++next;
      }
      EXPECT_EQ(part.end, next);
    }
    EXPECT_EQ(next, 237u);
  }
}

TEST(Pack, ManyThreadsAtOnce) {
  const Made made(test::image_samples(500, 0, 3000), image_options(6));
  for (const EngineChoice engine : kEngines) {
    const auto pack = open_pack(made.path, engine);
    ASSERT_NE(pack, nullptr);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (unsigned seed = 0; seed < 6; ++seed) {
      threads.emplace_back([&, seed] {
        std::mt19937_64 random(seed);
        for (int round = 0; round < 30; ++round) {
          Buffers some;
          for (int i = 0; i < 20; ++i) {
            const uint64_t sample = random() % 500;
            some.add(sample, made.image(sample).size());
          }
          if (!pack->read_many(0, some.ready()).ok()) ++wrong;
          for (size_t i = 0; i < some.items.size(); ++i) {
            const uint64_t sample = some.items[i].sample;
            if (some.text(i) != made.image(sample)) ++wrong;
            if (pack->key(sample).value() != made.samples[sample].key) ++wrong;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Pack, WorksInAChildAfterFork) {
  const Made made(test::image_samples(200, 1000, 5000), image_options(3));
  for (const EngineChoice engine : kEngines) {
    const bool has_threads = engine == EngineChoice::kPool || engine == EngineChoice::kUring;
    if (has_threads && !test::kForkWithThreadsWorks) continue;
    const auto pack = open_pack(made.path, engine);
    ASSERT_NE(pack, nullptr);
    const auto read_all = [&] {
      Buffers all;
      for (uint64_t i = 0; i < 200; ++i) all.add(i, made.image(i).size());
      if (!pack->read_many(0, all.ready()).ok()) return false;
      for (uint64_t i = 0; i < 200; ++i) {
        if (all.text(i) != made.image(i)) return false;
      }
      return true;
    };
    ASSERT_TRUE(read_all());
    const pid_t child = ::fork();
    if (child == 0) ::_exit(read_all() ? 0 : 1);
    int state = -1;
    ASSERT_EQ(::waitpid(child, &state, 0), child);
    EXPECT_EQ(state, 0) << "engine " << static_cast<int>(engine);
    EXPECT_TRUE(read_all());
  }
}

TEST(Pack, GoesOnReadingWhatWasRenamedAside) {
  const Made made(test::image_samples(50, 100, 5000), image_options(3));
  for (const EngineChoice engine : kEngines) {
    const auto pack = open_pack(made.path, engine);
    ASSERT_NE(pack, nullptr);
    std::filesystem::rename(made.path, made.path + ".old");
    const Made other(test::image_samples(50, 100, 5000, 2), image_options(3));
    std::filesystem::rename(other.path, made.path);
    for (uint64_t i = 0; i < 50; ++i) EXPECT_EQ(read_text(*pack, i), made.image(i));
    std::filesystem::remove_all(made.path);
    std::filesystem::rename(made.path + ".old", made.path);
  }
}

TEST(Pack, LoadsALongIndexBlockByBlock) {
  std::vector<TestSample> samples;
  for (uint64_t i = 0; i < 150000; ++i) {
    samples.push_back(
        {str_cat("class/picture-number-", i, ".jpg"),
         {str_cat(i), std::vector<int64_t>{static_cast<int64_t>(i % 1000)}, std::vector<int64_t>{1},
          std::vector<int64_t>{2}, std::vector<int64_t>{3}}});
  }
  TestPackOptions options = image_options(4);
  options.geometry.blob_align_bytes = 8;
  options.look_ahead = false;
  const Made made(samples, options);
  const std::string index = made.path + "/index.spki";
  const uint64_t index_bytes = std::filesystem::file_size(index);
  ASSERT_GT(index_bytes, 6u << 20);
  {
    const auto pack = open_pack(made.path);
    ASSERT_NE(pack, nullptr);
    std::mt19937_64 random(1);
    for (int round = 0; round < 1000; ++round) {
      const uint64_t i = random() % 150000;
      EXPECT_EQ(read_text(*pack, i), str_cat(i));
      EXPECT_EQ(pack->key(i).value(), samples[i].key);
      EXPECT_EQ(pack->ints(i, 1).value(), std::vector<int64_t>{static_cast<int64_t>(i % 1000)});
    }
    EXPECT_EQ(pack->find_key(samples[149999].key).value(), 149999u);
  }
  // Damage to the last block costs the names in it, and nothing else.
  test::flip_byte(index, index_bytes - 20);
  const auto pack = open_pack(made.path);
  ASSERT_NE(pack, nullptr);
  EXPECT_EQ(read_text(*pack, 149999), "149999");
  EXPECT_EQ(pack->key(0).value(), samples[0].key);
  const auto lost = pack->key(149999);
  EXPECT_EQ(lost.status().code(), Code::kDamaged);
  EXPECT_EQ(lost.status().path(), index);
  EXPECT_EQ(lost.status().offset(), pack->index().header.head_bytes +
                                        (pack->index().header.block_count - 1) * kIndexBlockBytes);
  EXPECT_THAT(lost.status().hint(), HasSubstr("stripepack repair"));
}

}  // namespace
}  // namespace spk
