// The C interface and its C++ owners.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "container/pack.h"
#include "stripepack/stripepack.hpp"
#include "support/test_pack.h"

extern "C" int64_t spk_test_read_in_c(const char* path);

namespace {

using spk::test::TempDir;
using spk::test::TestSample;
using ::testing::HasSubstr;

class CApi : public ::testing::Test {
 protected:
  void SetUp() override {
    spk::test::TestPackOptions options;
    options.schema = spk::test::image_schema({"cat", "dog", std::string("h\0n", 3)});
    options.geometry.shard_count = 2;
    options.look_ahead = false;
    options.settings = {{"seed", "7"}, {"check", "none"}};
    options.rejects = {{"bad.jpg", 40, "cut off"}};
    ASSERT_TRUE(spk::test::write_test_pack(path_, samples_, options).ok());
    ASSERT_EQ(spk_open(path_.c_str(), nullptr, &pack_, &err_), SPK_OK) << err_.message;
  }
  void TearDown() override { spk_close(pack_); }
  const std::string& image(uint64_t i) const {
    return std::get<std::string>(samples_[i].values[0]);
  }
  int64_t label(uint64_t i) const {
    return std::get<std::vector<int64_t>>(samples_[i].values[1])[0];
  }

  TempDir dir_;
  std::string path_ = dir_ / "pack";
  std::vector<TestSample> samples_ = spk::test::image_samples(40, 0, 8000);
  spk_pack* pack_ = nullptr;
  spk_error err_ = stripepack_error();

  static spk_error stripepack_error() {
    spk_error err = {};
    err.struct_size = sizeof err;
    return err;
  }
};

TEST_F(CApi, VersionAndCodes) {
  EXPECT_EQ(spk_abi_version(), SPK_ABI_VERSION);
  EXPECT_STREQ(spk_version_string(), "0.1.0");
  EXPECT_STREQ(spk_code_name(SPK_END), "end");
  EXPECT_STREQ(spk_code_name(SPK_OK), "ok");
  EXPECT_STREQ(spk_code_name(SPK_DAMAGED), "damaged");
  EXPECT_STREQ(spk_code_name(SPK_DENIED), "denied");
  EXPECT_NE(spk_code_name(12345), nullptr);
}

TEST_F(CApi, InfoFieldsClassesSettings) {
  spk_info info = {};
  EXPECT_EQ(spk_get_info(pack_, &info, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "struct_size is not set");
  info.struct_size = sizeof info;
  ASSERT_EQ(spk_get_info(pack_, &info, &err_), SPK_OK);
  EXPECT_EQ(info.format_version, 1u);
  EXPECT_EQ(info.sample_count, 40u);
  EXPECT_EQ(info.reject_count, 1u);
  EXPECT_EQ(info.chunk_bytes, 65536u);
  EXPECT_EQ(info.shard_count, 2u);
  EXPECT_EQ(info.field_count, 5u);
  EXPECT_EQ(info.class_count, 3u);
  EXPECT_EQ(info.setting_count, 2u);
  EXPECT_STREQ(info.plan_id, "55556666777788881111222233334444");
  EXPECT_EQ(std::strlen(info.content_id), 32u);
  uint64_t payload = 0;
  for (uint64_t i = 0; i < 40; ++i) payload += image(i).size();
  EXPECT_EQ(info.payload_bytes, payload);

  // A caller with a newer header has a longer struct; what the library does not know stays.
  struct Longer {
    spk_info known;
    uint64_t later;
  } longer = {{}, 77};
  longer.known.struct_size = sizeof longer;
  ASSERT_EQ(spk_get_info(pack_, &longer.known, nullptr), SPK_OK);
  EXPECT_EQ(longer.later, 77u);
  EXPECT_EQ(longer.known.struct_size, sizeof longer);

  uint32_t field = 99;
  EXPECT_EQ(spk_field_find(pack_, "label", &field, &err_), SPK_OK);
  EXPECT_EQ(field, 1u);
  EXPECT_EQ(spk_field_find(pack_, "labels", &field, &err_), SPK_NOT_FOUND);
  EXPECT_STREQ(err_.message,
               "there is no field 'labels'; this pack has image, label, height, width, channels");
  spk_field found = {};
  found.struct_size = sizeof found;
  ASSERT_EQ(spk_field_info(pack_, 0, &found, &err_), SPK_OK);
  EXPECT_STREQ(found.name, "image");
  EXPECT_EQ(found.kind, static_cast<uint32_t>(SPK_KIND_BLOB));
  EXPECT_EQ(spk_field_info(pack_, 5, &found, &err_), SPK_INVALID_ARGUMENT);

  const char* text = nullptr;
  uint64_t size = 0;
  ASSERT_EQ(spk_class_name(pack_, 2, &text, &size, &err_), SPK_OK);
  EXPECT_EQ(std::string(text, size), std::string("h\0n", 3));
  EXPECT_EQ(spk_class_name(pack_, 3, &text, &size, &err_), SPK_INVALID_ARGUMENT);
  ASSERT_EQ(spk_get_setting(pack_, "check", &text, &size, &err_), SPK_OK);
  EXPECT_STREQ(text, "none");
  EXPECT_EQ(spk_get_setting(pack_, "x", &text, &size, &err_), SPK_NOT_FOUND);
  const char* name = nullptr;
  ASSERT_EQ(spk_setting_at(pack_, 0, &name, &text, &size, &err_), SPK_OK);
  EXPECT_EQ(std::string(name) + "=" + text, "seed=7");
  EXPECT_EQ(spk_setting_at(pack_, 2, &name, &text, &size, &err_), SPK_INVALID_ARGUMENT);
}

TEST_F(CApi, SamplesOneAtATime) {
  for (uint64_t i = 0; i < 40; ++i) {
    char key[64];
    uint64_t size = 0;
    ASSERT_EQ(spk_sample_key(pack_, i, key, sizeof key, &size, &err_), SPK_OK);
    EXPECT_EQ(key, samples_[i].key);
    uint64_t found = 0;
    ASSERT_EQ(spk_find_key(pack_, key, size, &found, &err_), SPK_OK);
    EXPECT_EQ(found, i);
    EXPECT_EQ(spk_sample_key(pack_, i, key, size, &size, &err_), SPK_INVALID_ARGUMENT);
    EXPECT_EQ(size, samples_[i].key.size());

    std::vector<uint8_t> blob(image(i).size());
    ASSERT_EQ(spk_read(pack_, 0, i, blob.data(), blob.size(), &size, &err_), SPK_OK);
    EXPECT_EQ(spk::as_text(blob), image(i));
    if (!blob.empty()) {
      size = 0;
      EXPECT_EQ(spk_read(pack_, 0, i, blob.data(), blob.size() - 1, &size, &err_),
                SPK_INVALID_ARGUMENT);
      EXPECT_EQ(size, blob.size());
    }
    int64_t one = 0;
    ASSERT_EQ(spk_get_sample_ints(pack_, 1, i, &one, 1, &size, &err_), SPK_OK);
    EXPECT_EQ(one, label(i));
    EXPECT_EQ(size, 1u);
    EXPECT_EQ(spk_get_sample_ints(pack_, 1, i, &one, 0, &size, &err_), SPK_INVALID_ARGUMENT);
  }
  int64_t labels[40];
  ASSERT_EQ(spk_get_ints(pack_, 1, 0, 40, labels, nullptr, &err_), SPK_OK);
  for (uint64_t i = 0; i < 40; ++i) EXPECT_EQ(labels[i], label(i));
  double wrong[1];
  EXPECT_EQ(spk_get_floats(pack_, 1, 0, 1, wrong, nullptr, &err_), SPK_INVALID_ARGUMENT);
  // 65536 + 1 must not be taken for field 1.
  EXPECT_EQ(spk_get_ints(pack_, 65537, 0, 1, labels, nullptr, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "field 65537 does not exist; the pack has 5");
  EXPECT_EQ(spk_read(pack_, 70000, 0, nullptr, 0, nullptr, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "field 70000 does not exist; the pack has 5");
  EXPECT_EQ(spk_read(pack_, 65535, 0, nullptr, 0, nullptr, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "field 65535 does not exist; the pack has 5");
  EXPECT_EQ(spk_read(pack_, 0, 40, nullptr, 0, nullptr, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "sample 40 of 40 does not exist");
}

TEST_F(CApi, ManyAtOnceAndWhereTheyLie) {
  const uint64_t wanted[] = {39, 0, 20, 0, 41, 5};
  spk_extent extents[6];
  EXPECT_EQ(spk_locate(pack_, 0, wanted, 6, extents, &err_), SPK_INVALID_ARGUMENT);
  ASSERT_EQ(spk_locate(pack_, 0, wanted, 4, extents, &err_), SPK_OK);
  EXPECT_EQ(extents[0].shard, 1u);
  char name[32];
  ASSERT_EQ(spk_shard_name(pack_, extents[0].shard, name, sizeof name, &err_), SPK_OK);
  EXPECT_STREQ(name, "shard-00001.spks");
  EXPECT_EQ(spk_shard_name(pack_, 2, name, sizeof name, &err_), SPK_INVALID_ARGUMENT);
  const std::string shard = spk::test::read_file(path_ + "/" + name);
  EXPECT_EQ(shard.substr(extents[0].offset, extents[0].size), image(39));

  std::vector<std::vector<uint8_t>> memory;
  std::vector<spk_read_item> items;
  for (const uint64_t i : wanted) memory.emplace_back(i < 40 ? image(i).size() : 1);
  for (size_t i = 0; i < 6; ++i)
    items.push_back({wanted[i], memory[i].data(), memory[i].size(), 0, 99, 0});
  items[5].capacity = 0;
  ASSERT_GT(image(5).size(), 0u);
  EXPECT_EQ(spk_read_many(pack_, 0, items.data(), items.size(), &err_), SPK_PARTIAL);
  EXPECT_THAT(err_.message, HasSubstr("2 of 6 samples could not be read"));
  for (const size_t i : {0, 1, 2, 3}) {
    EXPECT_EQ(items[i].code, SPK_OK);
    EXPECT_EQ(items[i].size, image(wanted[i]).size());
    EXPECT_EQ(spk::as_text(memory[i]), image(wanted[i]));
  }
  EXPECT_EQ(items[4].code, SPK_INVALID_ARGUMENT);
  EXPECT_EQ(items[5].code, SPK_INVALID_ARGUMENT);
  EXPECT_EQ(items[5].size, image(5).size());
  EXPECT_EQ(spk_read_many(pack_, 1, items.data(), 1, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(items[0].code, SPK_INVALID_ARGUMENT);
  items[0].code = 99;
  EXPECT_EQ(spk_read_many(pack_, 70000, items.data(), 1, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "field 70000 does not exist; the pack has 5");
  EXPECT_EQ(items[0].code, SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_read_many(pack_, 0, items.data(), UINT64_MAX, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "count is 18446744073709551615, more than any array holds");
}

TEST_F(CApi, PartsAndIterators) {
  uint64_t begin = 0;
  uint64_t end = 0;
  ASSERT_EQ(spk_part(pack_, 2, 3, &begin, &end, &err_), SPK_OK);
  EXPECT_EQ(begin, 26u);
  EXPECT_EQ(end, 40u);
  EXPECT_EQ(spk_part(pack_, 3, 3, &begin, &end, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "there is no rank 3 in a world of 3 ranks");
  EXPECT_EQ(spk_part(pack_, 0, 0, &begin, &end, &err_), SPK_INVALID_ARGUMENT);

  spk_iter* iter = nullptr;
  ASSERT_EQ(spk_iter_open(pack_, 2, 3, &iter, &err_), SPK_OK);
  const void* data = nullptr;
  uint64_t size = 0;
  EXPECT_EQ(spk_iter_blob(iter, 0, &data, &size, &err_), SPK_INVALID_ARGUMENT);
  for (uint64_t i = 26; i < 40; ++i) {
    uint64_t sample = 0;
    ASSERT_EQ(spk_iter_next(iter, &sample, &err_), SPK_OK);
    EXPECT_EQ(sample, i);
    ASSERT_EQ(spk_iter_blob(iter, 0, &data, &size, &err_), SPK_OK);
    EXPECT_EQ(std::string_view(static_cast<const char*>(data), size), image(i));
    EXPECT_EQ(spk_iter_blob(iter, 1, &data, &size, &err_), SPK_INVALID_ARGUMENT);
  }
  uint64_t sample = 0;
  EXPECT_EQ(spk_iter_next(iter, &sample, &err_), SPK_END);
  EXPECT_EQ(spk_iter_next(iter, &sample, &err_), SPK_END);
  spk_iter_close(iter);

  int64_t bytes = 0;
  for (uint64_t i = 0; i < 40; ++i) bytes += static_cast<int64_t>(image(i).size());
  EXPECT_EQ(spk_test_read_in_c(path_.c_str()), bytes);
  EXPECT_EQ(spk_test_read_in_c("/nowhere"), -SPK_NOT_FOUND);
}

TEST_F(CApi, NullsAndOldCallers) {
  uint32_t number = 0;
  EXPECT_EQ(spk_open(nullptr, nullptr, &pack_, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "path is NULL");
  EXPECT_EQ(spk_open(path_.c_str(), nullptr, nullptr, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_get_info(nullptr, nullptr, nullptr), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_field_find(pack_, nullptr, &number, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_iter_next(nullptr, nullptr, &err_), SPK_INVALID_ARGUMENT);
  spk_read_item item = {0, nullptr, 5, 0, 0, 0};
  EXPECT_EQ(spk_read_many(pack_, 0, &item, 1, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(spk_read_many(pack_, 0, nullptr, 0, &err_), SPK_OK);
  spk_close(nullptr);
  spk_iter_close(nullptr);

  spk_pack* other = nullptr;
  spk_open_options options = {};
  EXPECT_EQ(spk_open(path_.c_str(), &options, &other, &err_), SPK_INVALID_ARGUMENT);
  options.struct_size = 8;  // a caller that knows the engine only
  options.engine = SPK_ENGINE_PREAD;
  options.threads = 123456789;  // beyond its struct: not looked at
  ASSERT_EQ(spk_open(path_.c_str(), &options, &other, &err_), SPK_OK) << err_.message;
  spk_close(other);
  options.engine = 9;
  EXPECT_EQ(spk_open(path_.c_str(), &options, &other, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.message, "there is no engine 9");

  // Whose error struct is not set up gets the code all the same.
  spk_error unset = {};
  EXPECT_EQ(spk_open("/nowhere", nullptr, &other, &unset), SPK_NOT_FOUND);
  EXPECT_EQ(unset.code, 0);
}

TEST_F(CApi, Caches) {
  const std::string cache = dir_ / "cache";
  std::filesystem::create_directory(cache);
  std::filesystem::rename(path_ + "/shard-00001.spks", cache + "/shard-00001.spks");
  spk_open_options options = {};
  options.struct_size = sizeof options;
  options.cache = cache.c_str();
  spk_pack* other = nullptr;
  ASSERT_EQ(spk_open(path_.c_str(), &options, &other, &err_), SPK_OK) << err_.message;
  std::vector<uint8_t> room(image(39).size());
  ASSERT_EQ(spk_read(other, 0, 39, room.data(), room.size(), nullptr, &err_), SPK_OK);
  EXPECT_EQ(spk::as_text(room), image(39));
  char path[4096];
  uint64_t size = 0;
  ASSERT_EQ(spk_shard_path(other, 1, path, sizeof path, &size, &err_), SPK_OK);
  EXPECT_EQ(std::string(path), cache + "/shard-00001.spks");
  EXPECT_EQ(size, std::string(path).size());
  ASSERT_EQ(spk_shard_path(other, 0, path, sizeof path, nullptr, &err_), SPK_OK);
  EXPECT_EQ(std::string(path), path_ + "/shard-00000.spks");
  EXPECT_EQ(spk_shard_path(other, 0, path, 3, &size, &err_), SPK_INVALID_ARGUMENT);
  EXPECT_EQ(size, path_.size() + 17);
  EXPECT_EQ(spk_shard_path(other, 2, path, sizeof path, nullptr, &err_), SPK_INVALID_ARGUMENT);
  spk_close(other);

  // A caller that does not know of caches, or only of the first half of a pointer.
  for (const size_t bytes : {offsetof(spk_open_options, cache), sizeof options - 4}) {
    options.struct_size = static_cast<uint32_t>(bytes);
    ASSERT_EQ(spk_open(path_.c_str(), &options, &other, &err_), SPK_OK) << err_.message;
    EXPECT_EQ(spk_read(other, 0, 39, room.data(), room.size(), nullptr, &err_), SPK_DAMAGED);
    spk_close(other);
  }
  const stripepack::Pack pack = stripepack::Pack::open(path_, {.cache = cache});
  EXPECT_EQ(spk::as_text(pack.read(0, 39)), image(39));
}

TEST_F(CApi, LongPathsKeepTheirEndInMessages) {
  std::string path = dir_.path();
  for (int i = 0; i < 12; ++i) path += "/a-folder-with-a-long-name";
  std::filesystem::create_directories(path);
  spk_pack* other = nullptr;
  ASSERT_EQ(spk_open(path.c_str(), nullptr, &other, &err_), SPK_NOT_THIS_FORMAT);
  EXPECT_EQ(std::string(err_.message),
            spk::str_cat("...", path.substr(path.size() - 64), ": this directory is empty"));
}

struct Seen {
  std::vector<std::string> what;
};

TEST_F(CApi, Verify) {
  uint64_t damages = 99;
  for (const uint32_t level : {SPK_VERIFY_QUICK, SPK_VERIFY_FULL}) {
    ASSERT_EQ(spk_verify(path_.c_str(), level, 2, nullptr, nullptr, &damages, &err_), SPK_OK)
        << err_.message;
    EXPECT_EQ(damages, 0u);
  }
  const uint64_t sample = 7;
  spk_extent extent = {};
  ASSERT_EQ(spk_locate(pack_, 0, &sample, 1, &extent, &err_), SPK_OK);
  spk::test::flip_byte(path_ + "/shard-00000.spks", extent.offset);
  const auto see = [](const spk_damage* damage, void* user) {
    static_cast<Seen*>(user)->what.push_back(
        spk::str_cat(damage->kind, " ", damage->file, " @", damage->offset, " ",
                     std::string_view(damage->key, damage->key_size), " ", damage->code, " ",
                     damage->shard, " ", damage->samples_lost));
  };
  Seen seen;
  EXPECT_EQ(spk_verify(path_.c_str(), SPK_VERIFY_FULL, 0, see, &seen, &damages, &err_),
            SPK_DAMAGED);
  EXPECT_EQ(damages, 1u);
  ASSERT_EQ(seen.what.size(), 1u);
  EXPECT_EQ(seen.what[0], spk::str_cat("sample shard-00000.spks @", extent.offset, " ",
                                       samples_[7].key, " 4 0 1"));
  EXPECT_EQ(spk_verify(path_.c_str(), 5, 0, see, &seen, &damages, &err_), SPK_INVALID_ARGUMENT);
}

TEST_F(CApi, CppOwners) {
  using stripepack::Error;
  using stripepack::Pack;
  Error error;
  EXPECT_FALSE(Pack::open("/nowhere", {}, error));
  EXPECT_EQ(error.code(), SPK_NOT_FOUND);
  EXPECT_THROW(Pack::open("/nowhere"), Error);
  Pack pack = Pack::open(path_, {SPK_ENGINE_PREAD, 0, true});
  EXPECT_EQ(pack.size(), 40u);
  const uint32_t image_field = pack.field("image");
  EXPECT_EQ(pack.class_name(1), "dog");
  EXPECT_EQ(pack.setting("seed"), "7");
  EXPECT_EQ(pack.key(11), samples_[11].key);
  EXPECT_EQ(pack.find_key(samples_[11].key), 11u);
  EXPECT_EQ(pack.ints(pack.field("label"), {3, 5}), (std::vector<int64_t>{label(3), label(4)}));
  EXPECT_THROW(pack.ints(pack.field("label"), {39, 41}), Error);
  EXPECT_THROW(pack.floats(pack.field("label"), {0, 1}), Error);
  EXPECT_EQ(spk::as_text(pack.read(image_field, 12)), image(12));
  EXPECT_THROW(pack.read(image_field, 40), Error);
  std::vector<uint8_t> room(image(2).size());
  std::vector<spk_read_item> items = {{2, room.data(), room.size(), 0, 0, 0}};
  pack.read_many(image_field, items);
  EXPECT_EQ(spk::as_text(room), image(2));
  uint64_t next = 0;
  for (uint64_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(pack.part(rank, 3).begin, next);
    stripepack::Iterator iterator = pack.iterate(rank, 3);
    for (; iterator.next(); ++next) {
      EXPECT_EQ(iterator.sample(), next);
      EXPECT_EQ(iterator.blob(image_field), image(next));
    }
  }
  EXPECT_EQ(next, 40u);
  Pack moved = std::move(pack);
  EXPECT_TRUE(moved);
  EXPECT_FALSE(pack);  // NOLINT(bugprone-use-after-move): moving leaves none
}

TEST_F(CApi, LongKeysThroughTheOwner) {
  std::vector<TestSample> samples = spk::test::image_samples(3, 1, 2);
  samples[0].key = std::string(255, 'a');
  samples[1].key = std::string(256, 'b');
  samples[2].key = std::string(5000, 'c');
  spk::test::TestPackOptions options;
  options.schema = spk::test::image_schema();
  options.look_ahead = false;
  ASSERT_TRUE(spk::test::write_test_pack(dir_ / "keys", samples, options).ok());
  const stripepack::Pack pack = stripepack::Pack::open(dir_ / "keys");
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(pack.key(i), samples[i].key);
}

}  // namespace
