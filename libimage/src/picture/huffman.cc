#include "picture/huffman.h"

namespace spk::picture {

HuffmanTable::Token HuffmanTable::token_of(uint8_t symbol, uint32_t value_bits,
                                           uint32_t code_bits) const noexcept {
  const uint32_t size = symbol & 15;
  auto value = static_cast<int32_t>(value_bits);
  if (size > 0 && value < 1 << (size - 1)) value -= (1 << size) - 1;
  if (!is_ac_) return {value, 1, code_bits + size};
  const uint32_t run = symbol >> 4;
  if (size == 0 && run != 15) return {0, kEnd, code_bits};
  return {value, run + 1, code_bits + size};
}

void HuffmanTable::fill(uint32_t code, uint32_t length, uint8_t symbol, CodeLengths& lengths) {
  const uint32_t size = symbol & 15;
  const uint32_t spare = kPeekBits - length;
  const uint32_t first = code << spare;
  for (uint32_t rest = 0; rest < 1u << spare; ++rest) {
    if (is_ac_) {
      // Passing over needs no value, so that the bits behind a code need not be in sight.
      chains_[first + rest] = token_of(symbol, 0, length);
      lengths[first + rest] = static_cast<uint8_t>(length);
    }
    // A code whose value is not all in sight is noted: look_long() need not search for it.
    entries_[first + rest] = size <= spare ? token_of(symbol, rest >> (spare - size), length)
                                           : Token(symbol, kNoStep, length);
  }
}

// Puts codes together that follow each other within the bits of a look-up. Of the last one the code
// alone must be in sight, not the value behind it.
void HuffmanTable::chain(const CodeLengths& lengths) {
  const auto singles = chains_;
  for (uint32_t i = 0; i < singles.size(); ++i) {
    Token all = singles[i];
    while (!all.is_none() && !all.ends_block() && all.bits() < kPeekBits) {
      const uint32_t behind = (i << all.bits()) & (singles.size() - 1);
      const Token next = singles[behind];
      if (next.is_none() || lengths[behind] > kPeekBits - all.bits()) break;
      if (all.step() + next.step() >= kNoStep || all.bits() + next.bits() > kMaxBits) break;
      all = Token(0, all.step() + next.step(), all.bits() + next.bits());
    }
    chains_[i] = all;
  }
}

bool HuffmanTable::make(const JpegHuffman& from, bool is_ac) {
  if (!from.defined) return false;
  if (made_from_.defined && is_ac == is_ac_ && made_from_.counts == from.counts &&
      made_from_.symbols == from.symbols) {
    return true;  // many pictures share their tables
  }
  made_from_ = {};
  is_ac_ = is_ac;
  entries_.fill({});
  if (is_ac) chains_.fill({});
  CodeLengths lengths{};
  uint32_t code = 0;
  size_t next = 0;
  for (uint32_t length = 1; length <= 16; ++length, code <<= 1) {
    const uint32_t count = from.counts[length - 1];
    if (code + count > 1u << length || next + count > from.symbols.size()) return false;
    offset_[length - 1] = static_cast<int32_t>(next) - static_cast<int32_t>(code);
    for (uint32_t i = 0; i < count; ++i, ++code, ++next) {
      const uint8_t symbol = from.symbols[next];
      if (!is_ac && symbol > 15) return false;
      if (length <= kPeekBits) fill(code, length, symbol, lengths);
    }
    beyond_[length - 1] = code << (16 - length);
  }
  if (is_ac) chain(lengths);
  made_from_ = from;
  return true;
}

HuffmanTable::Token HuffmanTable::look_long(uint32_t next) const noexcept {
  const Token noted = entries_[next >> (32 - kPeekBits)];
  uint32_t length = noted.bits();
  auto symbol = static_cast<uint8_t>(noted.value());
  if (length == 0) {
    const uint32_t word = next >> 16;
    for (length = kPeekBits + 1; word >= beyond_[length - 1]; ++length) {
      if (length == 16) return {};
    }
    const int32_t place = static_cast<int32_t>(word >> (16 - length)) + offset_[length - 1];
    symbol = made_from_.symbols[static_cast<size_t>(place)];
  }
  const uint32_t size = symbol & 15;
  const uint32_t behind = next << length;  // length + size is at most 31
  return token_of(symbol, size == 0 ? 0 : behind >> (32 - size), length);
}

}  // namespace spk::picture
