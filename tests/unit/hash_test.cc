#include "base/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "base/text.h"
#include "base/xxh3_portable.h"
#if SPK_HAVE_XXHASH
#include <xxhash.h>
#endif

namespace spk {
namespace {

std::vector<uint8_t> random_bytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

// Every length class and its edges, and some beyond many blocks.
std::vector<size_t> lengths() {
  std::vector<size_t> all;
  for (size_t length = 0; length <= 2000; ++length) all.push_back(length);
  for (const size_t length :
       {2047u, 2048u, 2049u, 4095u, 4096u, 4097u, 65536u, 1000003u, 5242880u}) {
    all.push_back(length);
  }
  return all;
}

struct Vector {
  const char* text;
  uint64_t hash_64;
  const char* hash_128;
};

// As printed by `xxhsum -H3` and `xxhsum -H2`.
constexpr Vector kVectors[] = {
    {"", 0x2d06800538d394c2, "99aa06d3014798d86001c324468d497f"},
    {"a", 0xe6c632b61e964e1f, "a96faf705af16834e6c632b61e964e1f"},
    {"abc", 0x78af5f94892f3950, "06b05ab6733a618578af5f94892f3950"},
    {"abcd", 0x6497a96f53a89890, "8d6b60383dfa90c21be79eecd1b1353d"},
    {"12345678", 0x62e29b4cad9e2ef6, "155c340ccffd12dc2b3f7d2855dc91fc"},
    {"123456789", 0x72dcb18b67a17dff, "33119477ede5dcd5e9716427681d5860"},
    {"0123456789abcdef", 0x64439946d8fa212d, "ccba8085a0434e9e0befb4873dbe58f8"},
    {"0123456789abcdefg", 0xd2e63ed5466f5c32, "d54994a55733db61c7401fb9f6fbf86b"},
    {"The quick brown fox jumps over the lazy dog", 0xce7d19a5418fb365,
     "ddd650205ca3e7fa24a1cc2e3a8a7651"},
    {"The stripe is what the file system deals out, the chunk is what a rank reads, and the shard "
     "is what a part of the job builds, resumes and copies by itself.",
     0xde965a17091aee3f, "d02814024eebd6d26aa2b68fb1e05256"},
};

TEST(HashTest, GivesTheNumbersOfTheSpecification) {
  for (const Vector& vector : kVectors) {
    const ByteSpan bytes = as_bytes(vector.text);
    EXPECT_EQ(xxh3_64(bytes), vector.hash_64) << vector.text;
    EXPECT_EQ(xxh3_128(bytes).to_hex(), vector.hash_128) << vector.text;
    EXPECT_EQ(portable::xxh3_64(bytes), vector.hash_64) << vector.text;
    EXPECT_EQ(portable::xxh3_128(bytes).to_hex(), vector.hash_128) << vector.text;
  }
  // A digest of digests of all lengths, for builds that have nothing to compare with.
  const auto bytes = random_bytes(5242880, 1);
  Xxh3Stream all;
  portable::Xxh3State all_portable;
  for (const size_t length : lengths()) {
    const ByteSpan part = ByteSpan(bytes).first(length);
    const Hash128 hash = portable::xxh3_128(part);
    all.update_u64(xxh3_64(part));
    all.update_u64(xxh3_128(part).low);
    all.update_u64(xxh3_128(part).high);
    uint8_t words[24];
    store_le(words, portable::xxh3_64(part));
    store_le(words + 8, hash.low);
    store_le(words + 16, hash.high);
    all_portable.update(words);
  }
  EXPECT_EQ(all.digest_128().to_hex(), "e23e41b5d1655aa317a4d705ed22b123");
  EXPECT_EQ(all_portable.digest_128().to_hex(), "e23e41b5d1655aa317a4d705ed22b123");
}

TEST(HashTest, StreamingEqualsOneShotInAnyPieces) {
  const uint64_t seed = 7;
  SCOPED_TRACE(str_cat("seed ", seed));
  std::mt19937_64 random(seed);
  const auto bytes = random_bytes(5242880, 2);
  for (const size_t length : lengths()) {
    const ByteSpan all = ByteSpan(bytes).first(length);
    const size_t largest = length > 2000 ? 5000 : 300;
    Xxh3Stream stream;
    portable::Xxh3State state;
    for (size_t done = 0; done < length;) {
      // Now and then a multiple of the block size, where the last block must be held back.
      size_t piece = random() % 8 == 0 ? 1024 * (random() % 3) : random() % largest;
      piece = std::min(piece, length - done);
      stream.update(all.subspan(done, piece));
      state.update(all.subspan(done, piece));
      done += piece;
      if (random() % 64 == 0) {  // a digest in between changes nothing and is right
        ASSERT_EQ(state.digest_64(), portable::xxh3_64(all.first(done)));
        ASSERT_EQ(stream.digest_128(), portable::xxh3_128(all.first(done)));
      }
    }
    ASSERT_EQ(stream.digest_64(), xxh3_64(all)) << length;
    ASSERT_EQ(stream.digest_128(), xxh3_128(all)) << length;
    ASSERT_EQ(state.digest_64(), portable::xxh3_64(all)) << length;
    ASSERT_EQ(state.digest_128(), portable::xxh3_128(all)) << length;
  }
}

TEST(HashTest, UpdateOfANumberIsItsLittleEndianBytes) {
  Xxh3Stream by_number;
  by_number.update_u64(0x0102030405060708);
  const uint8_t bytes[] = {8, 7, 6, 5, 4, 3, 2, 1};
  EXPECT_EQ(by_number.digest_64(), xxh3_64(bytes));
}

#if SPK_HAVE_XXHASH
TEST(HashTest, PortableEqualsLibxxhash) {
  const auto bytes = random_bytes(5242880 + 7, 3);
  for (const size_t length : lengths()) {
    // Not aligned, too: by the length's low bits.
    const ByteSpan part = ByteSpan(bytes).subspan(length % 8, length);
    const XXH128_hash_t expected = XXH3_128bits(part.data(), part.size());
    const Hash128 both = {expected.low64, expected.high64};
    ASSERT_EQ(portable::xxh3_64(part), XXH3_64bits(part.data(), part.size())) << length;
    ASSERT_EQ(portable::xxh3_128(part), both) << length;
  }
}
#endif

}  // namespace
}  // namespace spk
