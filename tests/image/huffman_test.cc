// Codes that are looked up, against codes that are walked bit by bit.
#include "picture/huffman.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "picture/random.h"

namespace {

using spk::picture::BitReader;
using spk::picture::HuffmanTable;
using spk::picture::JpegHuffman;
using spk::picture::SampleRandom;

// Any table: codes short or long, and the space of codes full or not.
JpegHuffman any_table(SampleRandom& random, bool is_ac) {
  JpegHuffman table;
  table.defined = true;
  const uint32_t hurry = 1 + random.below(4);
  uint32_t left = 1;  // codes of this length that are not taken
  uint32_t total = 0;
  for (size_t i = 0; i < 16; ++i) {
    left *= 2;
    const uint32_t most = std::min(left, (is_ac ? 162u : 16u) - total);
    table.counts[i] = static_cast<uint8_t>(std::min(random.below(most / hurry + 2), most));
    left -= table.counts[i];
    total += table.counts[i];
  }
  for (uint32_t i = 0; i < total; ++i) {
    table.symbols[i] = static_cast<uint8_t>(random.below(is_ac ? 256 : 16));
  }
  return table;
}

struct Walked {
  uint32_t length = 0;  // of the code; 0: none
  uint32_t size = 0;
  uint32_t step = 0;
  int32_t value = 0;
  uint32_t bits() const { return length + size; }
};

Walked walk(const JpegHuffman& table, bool is_ac, uint64_t bits, uint32_t from) {
  const auto bit = [&](uint32_t at) { return static_cast<uint32_t>(bits >> (63 - from - at)) & 1; };
  uint32_t code = 0;
  uint32_t first = 0;
  size_t symbol = 0;
  for (uint32_t length = 1; length <= 16; ++length) {
    code = code << 1 | bit(length - 1);
    first <<= 1;
    const uint32_t count = table.counts[length - 1];
    if (code - first < count) {
      const uint8_t found = table.symbols[symbol + code - first];
      Walked result{length, found & 15u, 1, 0};
      for (uint32_t i = 0; i < result.size; ++i) {
        result.value = result.value << 1 | static_cast<int32_t>(bit(length + i));
      }
      if (result.size > 0 && bit(length) == 0) result.value -= (1 << result.size) - 1;
      if (is_ac) result.step = (found >> 4) + 1u;
      if (is_ac && result.size == 0 && found >> 4 != 15) result.step = HuffmanTable::kEnd;
      return result;
    }
    first += count;
    symbol += count;
  }
  return {};
}

void check_first(const HuffmanTable& table, const BitReader& reader, bool is_ac,
                 const Walked& first) {
  HuffmanTable::Token token = table.look(reader);
  if (token.is_none()) token = table.look_long(reader.peek(32));
  ASSERT_EQ(token.is_none(), first.length == 0);
  if (token.is_none()) return;
  ASSERT_EQ(token.first_bits(), first.bits());
  ASSERT_EQ(token.first_step(), first.step % HuffmanTable::kEnd);
  if (!is_ac) {
    ASSERT_EQ(token.bits(), first.bits());
  }
  ASSERT_EQ(reader.value(token.first_bits(), token.first_size()), first.value);
}

TEST(ImageHuffman, LookedUpIsWhatIsWalked) {
  int pairs = 0;
  int long_runs = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    SampleRandom random(seed, 0, 0);
    const bool is_ac = seed % 4 != 0;
    const JpegHuffman from = any_table(random, is_ac);
    HuffmanTable table;
    ASSERT_TRUE(table.make(from, is_ac));
    for (int round = 0; round < 300; ++round) {
      std::array<uint8_t, 16> bytes;
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
      const auto bits = spk::load_be<uint64_t>(bytes.data());
      BitReader reader(bytes.data());
      reader.refill();
      const Walked first = walk(from, is_ac, bits, 0);
      ASSERT_NO_FATAL_FAILURE(check_first(table, reader, is_ac, first));
      if (!is_ac) continue;
      const HuffmanTable::Token token = table.look(reader);
      if (!token.is_none() && token.bits() > token.first_bits()) {
        ++pairs;
        const Walked second = walk(from, is_ac, bits, first.bits());
        ASSERT_NE(first.step, HuffmanTable::kEnd);
        ASSERT_EQ(token.bits(), first.bits() + second.bits());
        ASSERT_LE(token.bits(), HuffmanTable::kMaxTokenBits);
        ASSERT_EQ(token.step(), first.step + second.step);
        ASSERT_EQ(token.ends_block(), second.step == HuffmanTable::kEnd);
        ASSERT_EQ(reader.value(token.bits(), token.last_size()), second.value);
      }
      const HuffmanTable::Run run = table.look_far(reader);
      if (run.step() >= 512) continue;  // none in sight
      uint32_t run_bits = 0;
      uint32_t run_step = 0;
      int codes = 0;
      while (run_bits < run.bits()) {
        const Walked next = walk(from, is_ac, bits, run_bits);
        ASSERT_GT(next.length, 0u);
        run_bits += next.bits();
        ++codes;
        if (next.step != HuffmanTable::kEnd) {
          run_step += next.step;
          continue;
        }
        run_step += HuffmanTable::kRunEnd;
        ASSERT_EQ(run_bits, run.bits());
        for (uint32_t k = 1; k < 64; ++k) {
          ASSERT_EQ(run.is_within(k), k + run.step() < HuffmanTable::kRunEnd + 64);
        }
      }
      if (codes > 2) ++long_runs;
      ASSERT_EQ(run_bits, run.bits());
      ASSERT_LE(run_bits, HuffmanTable::kMaxTokenBits);
      ASSERT_EQ(run_step, run.step());
    }
  }
  EXPECT_GT(pairs, 1000);
  EXPECT_GT(long_runs, 1000);
}

TEST(ImageHuffman, ATableThatCannotBeIsRefused) {
  HuffmanTable table;
  JpegHuffman from;
  EXPECT_FALSE(table.make(from, true));  // not defined
  from.defined = true;
  EXPECT_TRUE(table.make(from, true));  // no codes: nothing is found
  from.counts[0] = 3;                   // of two
  EXPECT_FALSE(table.make(from, true));
  from.counts[0] = 1;
  from.symbols[0] = 16;
  EXPECT_TRUE(table.make(from, true));
  EXPECT_FALSE(table.make(from, false));  // a mean value of 16 bits
}

}  // namespace
