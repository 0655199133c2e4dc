// Loaders and batches through the C interface: what they give.
#include <gmock/gmock.h>

#include "base/text.h"
#include "container/layout_record.h"
#include "container/pack.h"
#include "layout/order.h"
#include "unit/capi_loader_fixture.h"

namespace spk::test {
namespace {

using ::testing::HasSubstr;

TEST_F(CApiLoader, AnEpochHasEverySampleOnceAndThenEnds) {
  const LoaderPtr loader = open(options());
  EXPECT_EQ(info(loader.get()).step_count, kCApiSamples / 8);
  const auto first = rest(loader.get());
  EXPECT_EQ(sorted(first), every_sample());
  spk_batch* batch = nullptr;
  EXPECT_EQ(spk_loader_next(loader.get(), &batch, &err_), SPK_END);
  EXPECT_EQ(spk_loader_next(loader.get(), &batch, nullptr), SPK_END);
  EXPECT_EQ(batch, nullptr);

  ASSERT_EQ(spk_loader_start_epoch(loader.get(), 1, &err_), SPK_OK) << err_.message;
  const auto second = rest(loader.get());
  EXPECT_EQ(sorted(second), every_sample());
  EXPECT_NE(first, second);
  ASSERT_EQ(spk_loader_start_epoch(loader.get(), 0, &err_), SPK_OK) << err_.message;
  EXPECT_EQ(rest(loader.get()), first);
}

TEST_F(CApiLoader, DefaultsServe) {
  spk_loader* made = nullptr;
  ASSERT_EQ(spk_loader_open(pack_, nullptr, &made, &err_), SPK_OK) << err_.message;
  const LoaderPtr loader(made);
  const spk_loader_info told = info(made);
  EXPECT_EQ(told.order, static_cast<uint32_t>(SPK_ORDER_SHUFFLED));
  EXPECT_EQ(told.lanes, 64u);
  EXPECT_EQ(told.window, 1u);
  EXPECT_EQ(told.step_count, kCApiSamples / 32);
  EXPECT_EQ(rest(made).size(), kCApiSamples / 32 * 32);  // the rest is dropped
}

TEST_F(CApiLoader, InfoCounts) {
  auto wanted = options();
  wanted.engine = SPK_ENGINE_POOL;
  wanted.seed = 5;
  wanted.epoch = 2;
  wanted.batch = 50;
  wanted.tail = SPK_TAIL_PAD;
  const LoaderPtr loader = open(wanted);
  const auto all = rest(loader.get());
  const spk_loader_info told = info(loader.get());
  EXPECT_EQ(told.order, static_cast<uint32_t>(SPK_ORDER_SHUFFLED));
  EXPECT_EQ(told.lanes, 4u);
  EXPECT_EQ(told.window, 1u);
  EXPECT_EQ(told.seed, 5u);
  EXPECT_EQ(told.epoch, 2u);
  EXPECT_EQ(told.consumed, kCApiSamples);
  EXPECT_EQ(told.step_count, 3u);
  EXPECT_EQ(told.steps, 3u);
  EXPECT_EQ(told.samples, 150u);
  EXPECT_EQ(told.repeated, 30u);
  EXPECT_EQ(told.skipped, 0u);
  uint64_t payload = 0;
  for (const uint64_t sample : all) payload += image(sample).size();
  EXPECT_EQ(told.payload_bytes, payload);
  EXPECT_GT(told.reads, 0u);
  EXPECT_GT(told.read_bytes, payload / 2);
  EXPECT_GT(told.memory_peak_bytes, 0u);
  EXPECT_LE(told.memory_peak_bytes, told.memory_limit_bytes);
  EXPECT_EQ(told.engine, static_cast<uint32_t>(SPK_ENGINE_POOL));
  EXPECT_EQ(told.direct, 0u);
  EXPECT_EQ(std::string(spk_loader_reading(loader.get())).rfind("through the page cache: ", 0), 0u);
  EXPECT_STREQ(spk_loader_reading(nullptr), "");
  EXPECT_STREQ(spk_loader_warning(loader.get()), "");
  EXPECT_STREQ(spk_loader_warning(nullptr), "");
  wanted.direct = SPK_DIRECT_ON;
  EXPECT_EQ(info(open(wanted).get()).direct, 1u);
}

TEST_F(CApiLoader, LoadersOfANodeShare) {
  auto wanted = options();
  wanted.engine = SPK_ENGINE_POOL;
  wanted.workers = 2;
  const std::vector<uint64_t> alone = rest(open(wanted).get());
  wanted.node_ranks = 1;
  wanted.node_group = path_.c_str();
  const LoaderPtr first = open(wanted);
  wanted.worker = 1;
  const LoaderPtr second = open(wanted);
  EXPECT_EQ(rest(first.get()), alone);
  EXPECT_EQ(rest(second.get()).size(), kCApiSamples - alone.size());
  EXPECT_EQ(info(second.get()).reads, info(second.get()).shared_reads);
  EXPECT_GT(info(first.get()).shared_reads, 0u);
  EXPECT_GT(info(second.get()).shared_hits, 0u);
  EXPECT_NE(std::string(spk_loader_reading(first.get())).find("; chunks are shared on the node"),
            std::string::npos);
}

TEST_F(CApiLoader, PositionsAndRepetitions) {
  auto wanted = options();
  wanted.batch = 50;
  wanted.tail = SPK_TAIL_PAD;
  const LoaderPtr loader = open(wanted);
  uint64_t due = 0;
  for (BatchPtr batch = next(loader.get()); batch != nullptr; batch = next(loader.get())) {
    uint64_t positions[50];
    uint8_t repeated[50];
    ASSERT_EQ(spk_batch_positions(batch.get(), positions, repeated, &err_), SPK_OK);
    ASSERT_EQ(spk_batch_positions(batch.get(), nullptr, nullptr, &err_), SPK_OK);
    for (int i = 0; i < 50; ++i, ++due) {
      EXPECT_EQ(positions[i], due % kCApiSamples);
      EXPECT_EQ(repeated[i], due >= kCApiSamples ? 1 : 0);
    }
  }
  EXPECT_EQ(due, 150u);
}

TEST_F(CApiLoader, BlobsCopiesAndNumbers) {
  const LoaderPtr loader = open(options());
  const BatchPtr batch = next(loader.get());
  const auto samples = checked(batch.get());
  ASSERT_EQ(samples.size(), 8u);
  std::string due;
  for (const uint64_t sample : samples) due += image(sample);

  uint64_t size = 0;
  uint64_t offsets[9] = {};
  std::string copy(due.size(), '\0');
  EXPECT_EQ(spk_batch_copy(batch.get(), 0, copy.data(), due.size() - 1, offsets, &size, &err_),
            SPK_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(err_.message),
            str_cat("room for ", due.size() - 1, " bytes, but the batch has ", due.size()));
  EXPECT_EQ(size, due.size());
  size = 0;
  ASSERT_EQ(spk_batch_copy(batch.get(), 0, copy.data(), copy.size(), offsets, &size, &err_),
            SPK_OK);
  EXPECT_EQ(size, due.size());
  EXPECT_EQ(copy, due);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(copy.substr(offsets[i], offsets[i + 1] - offsets[i]), image(samples[i]));
  }

  int64_t labels[8];
  uint8_t present[8];
  ASSERT_EQ(spk_batch_ints(batch.get(), 1, labels, present, &err_), SPK_OK) << err_.message;
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(labels[i], label(samples[i]));
    EXPECT_EQ(present[i], 1);
  }
  double floats[8];
  EXPECT_EQ(spk_batch_floats(batch.get(), 1, floats, nullptr, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "field 'label' holds integers");
  spk_span spans[8];
  EXPECT_EQ(spk_batch_blobs(batch.get(), 1, spans, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message,
               "field 'label' is not among the blob fields that the loader was asked for");
  EXPECT_EQ(spk_batch_blobs(batch.get(), 65536, spans, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message,
               "field 65536 is not among the blob fields that the loader was asked for");
}

TEST_F(CApiLoader, OnlyTheFieldsThatWereAskedFor) {
  auto wanted = options();
  const char* fields[] = {"label"};
  wanted.fields = fields;
  wanted.field_count = 1;
  const LoaderPtr loader = open(wanted);
  const BatchPtr batch = next(loader.get());
  int64_t labels[8];
  ASSERT_EQ(spk_batch_ints(batch.get(), 1, labels, nullptr, &err_), SPK_OK) << err_.message;
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(labels[i], label(spk_batch_samples(batch.get())[i]));
  spk_span spans[8];
  EXPECT_EQ(spk_batch_blobs(batch.get(), 0, spans, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_batch_ints(batch.get(), 2, labels, nullptr, &err_), SPK_INVALID_ARGUMENT);

  spk_loader* none = nullptr;
  fields[0] = "mask";
  EXPECT_EQ(spk_loader_open(pack_, &wanted, &none, &err_), SPK_NOT_FOUND);
  fields[0] = nullptr;
  EXPECT_EQ(spk_loader_open(pack_, &wanted, &none, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
}

TEST_F(CApiLoader, StateGoesOnWithAnyNumberOfRanks) {
  auto wanted = options();
  wanted.seed = 3;
  const LoaderPtr loader = open(wanted);
  for (int i = 0; i < 5; ++i) next(loader.get());
  const std::string saved = state(loader.get());
  EXPECT_THAT(saved, HasSubstr(" seed=3 epoch=0 lanes=4 window=1 consumed=40"));
  const auto left = rest(loader.get());

  char small[256];
  EXPECT_EQ(spk_loader_state(loader.get(), small, saved.size(), &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_loader_state(loader.get(), small, saved.size() + 2, &err_), SPK_OK);

  wanted.state = saved.c_str();
  wanted.seed = 99;  // the state's counts
  EXPECT_EQ(rest(open(wanted).get()), left);
  wanted.world = 2;
  wanted.batch = 4;
  std::vector<uint64_t> together;
  for (wanted.rank = 0; wanted.rank < 2; ++wanted.rank) {
    const auto mine = rest(open(wanted).get());
    together.insert(together.end(), mine.begin(), mine.end());
  }
  EXPECT_EQ(sorted(together), sorted(left));

  spk_loader* none = nullptr;
  wanted.rank = 0;
  wanted.state = "stripepack-state/9 later";
  EXPECT_EQ(spk_loader_open(pack_, &wanted, &none, &err_), SPK_UNSUPPORTED);
  wanted.state = "";
  EXPECT_EQ(spk_loader_open(pack_, &wanted, &none, &err_), SPK_INVALID_ARGUMENT);
  std::string other = saved;
  char& digit = other[other.find("content=") + 8];
  digit = digit == '0' ? '1' : '0';
  wanted.state = other.c_str();
  EXPECT_EQ(spk_loader_open(pack_, &wanted, &none, &err_), SPK_MISMATCH);
  EXPECT_EQ(none, nullptr);
}

TEST_F(CApiLoader, BatchesThatAreHeldAreBusy) {
  auto wanted = options();
  wanted.engine = SPK_ENGINE_POOL;
  wanted.lanes = 1;
  wanted.memory_bytes = 4 * 65536;
  const LoaderPtr loader = open(wanted);
  std::vector<BatchPtr> held;
  spk_batch* batch = nullptr;
  int32_t code = SPK_OK;
  while ((code = spk_loader_next(loader.get(), &batch, &err_)) == SPK_OK) held.emplace_back(batch);
  EXPECT_EQ(code, SPK_BUSY);
  EXPECT_THAT(err_.message, HasSubstr("batches that were given out hold"));
  const uint64_t given = 8 * held.size();
  held.clear();
  EXPECT_EQ(rest(loader.get()).size(), kCApiSamples - given);
}

TEST_F(CApiLoader, DamageIsNamedOrSkipped) {
  const uint64_t sample = 77;
  spk_extent extent = {};
  ASSERT_EQ(spk_locate(pack_, 0, &sample, 1, &extent, &err_), SPK_OK);
  ASSERT_GT(extent.size, 0u);
  char shard[32];
  ASSERT_EQ(spk_shard_name(pack_, extent.shard, shard, sizeof shard, &err_), SPK_OK);
  flip_byte(path_ + "/" + shard, extent.offset);

  auto wanted = options();
  const LoaderPtr loader = open(wanted);
  spk_batch* batch = nullptr;
  int32_t code = SPK_OK;
  while ((code = spk_loader_next(loader.get(), &batch, &err_)) == SPK_OK) spk_batch_close(batch);
  EXPECT_EQ(code, SPK_DAMAGED);
  EXPECT_THAT(err_.message, HasSubstr(samples_[77].key));
  EXPECT_EQ(err_.shard, extent.shard);
  EXPECT_EQ(spk_loader_next(loader.get(), &batch, &err_), SPK_DAMAGED);

  wanted.skip_damaged = 1;
  const LoaderPtr skipping = open(wanted);
  EXPECT_EQ(rest(skipping.get()).size(), kCApiSamples - 1);
  EXPECT_EQ(info(skipping.get()).skipped, 1u);
  EXPECT_EQ(info(skipping.get()).steps, kCApiSamples / 8);

  wanted.skip_damaged = 0;
  wanted.skip_checksums = 1;
  const LoaderPtr unchecked = open(wanted);
  uint64_t samples = 0;
  for (BatchPtr given = next(unchecked.get()); given != nullptr; given = next(unchecked.get())) {
    samples += spk_batch_size(given.get());
  }
  EXPECT_EQ(samples, kCApiSamples);
}

TEST_F(CApiLoader, TheRecordedMapIsToldAndUsed) {
  auto pack = sized<spk_info>();
  ASSERT_EQ(spk_get_info(pack_, &pack, &err_), SPK_OK);
  uint64_t count = 77;
  EXPECT_EQ(spk_recorded_targets(pack_, nullptr, nullptr, 0, &count, &err_), SPK_OK);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(spk_recorded_targets(pack_, "12", nullptr, 0, &count, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_recorded_targets(pack_, "00000000000000ff", nullptr, 0, &count, &err_),
            SPK_MISMATCH);
  EXPECT_EQ(spk_recorded_targets(nullptr, nullptr, nullptr, 0, &count, &err_),
            SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_recorded_targets(pack_, nullptr, nullptr, 0, nullptr, &err_), SPK_INVALID_ARGUMENT);
  const auto without = rest(open(options()).get());

  // Chunks in turn on two targets, as the file system numbers them.
  LayoutMap map;
  for (uint32_t shard = 0; shard < pack.shard_count; ++shard) {
    StripeLayout layout;
    layout.system = StripeSystem::kLustre;
    layout.components.resize(1);
    layout.components[0].stripe_bytes = pack.chunk_bytes;
    layout.components[0].stripe_count = 2;
    layout.components[0].targets = {90, 40};
    map.shards.push_back(std::move(layout));
  }
  const auto opened = Pack::open(path_);
  ASSERT_TRUE(opened.ok());
  const std::vector<uint32_t> expected = chunk_targets(map.shards, *chunk_places(**opened));
  map.digest = target_map_digest(expected);
  LayoutRecord record;
  record.chunk_bytes = pack.chunk_bytes;
  record.maps.push_back(map);
  ASSERT_TRUE(write_layout_record((*opened)->directory(), record).ok());

  std::vector<uint32_t> targets(pack.chunk_count);
  EXPECT_EQ(spk_recorded_targets(pack_, "", targets.data(), 1, &count, &err_),
            SPK_INVALID_ARGUMENT);
  EXPECT_EQ(count, pack.chunk_count);
  const std::string digest = to_hex(map.digest);
  for (const char* which : {"", digest.c_str()}) {
    std::fill(targets.begin(), targets.end(), 9);
    EXPECT_EQ(spk_recorded_targets(pack_, which, targets.data(), targets.size(), &count, &err_),
              SPK_OK);
    EXPECT_EQ(count, pack.chunk_count);
    EXPECT_EQ(targets, expected);
  }
  EXPECT_EQ(targets[0], 1u);  // 90 is the second of the two

  const auto with = rest(open(options()).get());
  EXPECT_NE(with, without);
  auto given = options();
  given.targets = targets.data();
  given.target_count = targets.size();
  EXPECT_EQ(rest(open(given).get()), with);
  given.target_count = UINT64_MAX;
  spk_loader* refused = nullptr;
  EXPECT_EQ(spk_loader_open(pack_, &given, &refused, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(err_.message),
            str_cat("target_count is 18446744073709551615, but the pack has ", pack.chunk_count,
                    " chunks"));
  auto none = options();
  none.no_recorded_map = 1;
  EXPECT_EQ(rest(open(none).get()), without);
}

TEST_F(CApiLoader, Nulls) {
  const auto wanted = options();
  spk_loader* none = nullptr;
  EXPECT_EQ(spk_loader_open(nullptr, &wanted, &none, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "pack is NULL");
  EXPECT_EQ(spk_loader_open(pack_, &wanted, nullptr, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "out is NULL");
  spk_batch* batch = nullptr;
  EXPECT_EQ(spk_loader_next(nullptr, &batch, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_loader_start_epoch(nullptr, 1, &err_), SPK_INVALID_ARGUMENT);
  char text[256];
  EXPECT_EQ(spk_loader_state(nullptr, text, sizeof text, &err_), SPK_INVALID_ARGUMENT);
  auto told = sized<spk_loader_info>();
  EXPECT_EQ(spk_loader_get_info(nullptr, &told, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_batch_size(nullptr), 0u);
  EXPECT_EQ(spk_batch_samples(nullptr), nullptr);
  EXPECT_EQ(spk_batch_positions(nullptr, nullptr, nullptr, &err_), SPK_INVALID_ARGUMENT);
  uint64_t size = 0;
  EXPECT_EQ(spk_batch_blobs(nullptr, 0, nullptr, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_batch_copy(nullptr, 0, nullptr, 0, nullptr, &size, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_batch_ints(nullptr, 0, nullptr, nullptr, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_batch_floats(nullptr, 0, nullptr, nullptr, &err_), SPK_INVALID_ARGUMENT);
  spk_loader_close(nullptr);
  spk_batch_close(nullptr);

  const LoaderPtr loader = open(wanted);
  EXPECT_EQ(spk_loader_next(loader.get(), nullptr, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_loader_state(loader.get(), nullptr, 256, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_loader_get_info(loader.get(), nullptr, &err_), SPK_INVALID_ARGUMENT);
  const BatchPtr given = next(loader.get());
  EXPECT_EQ(spk_batch_blobs(given.get(), 0, nullptr, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_batch_copy(given.get(), 0, nullptr, UINT64_MAX, nullptr, &size, &err_),
            SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_batch_copy(given.get(), 0, text, 0, nullptr, nullptr, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_batch_ints(given.get(), 1, nullptr, nullptr, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(rest(loader.get()).size(), kCApiSamples - 8);  // nothing of that has hurt it
}

}  // namespace
}  // namespace spk::test
