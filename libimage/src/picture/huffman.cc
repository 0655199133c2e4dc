#include "picture/huffman.h"

#include <algorithm>

namespace spk::picture {
namespace {

// What begins `whole`, which is of twos to the power of `doublings` times as many, all over it.
template <typename T>
void repeat(T* whole, size_t count, uint32_t doublings) {
  for (; doublings > 0; --doublings, count *= 2) std::copy_n(whole, count, whole + count);
}

}  // namespace

HuffmanTable::Token HuffmanTable::token_of(uint8_t symbol, uint32_t length) const noexcept {
  const uint32_t size = symbol & 15;
  if (!is_ac_) return {length + size, size, 1};
  const uint32_t run = symbol >> 4;
  if (size == 0 && run != 15) return {length, 0, kEnd};
  return {length + size, size, run + 1};
}

void HuffmanTable::fill_tokens(std::span<const Code> codes) {
  tokens_.fill({});
  for (const Code& code : codes) {
    if (code.length > kPeekBits) break;
    const uint32_t spare = kPeekBits - code.length;
    std::fill_n(&tokens_[code.code << spare], size_t{1} << spare, code.token);
  }
  if (!is_ac_) return;
  const auto singles = tokens_;
  for (const Code& code : codes) {
    const uint32_t bits = code.token.bits();
    if (code.length > kPeekBits) break;
    if (bits >= kPeekBits || code.token.ends_block()) continue;
    // What is behind the first value, whatever that is.
    const uint32_t left = kPeekBits - bits;
    Token* const to = &tokens_[code.code << (kPeekBits - code.length)];
    for (uint32_t i = 0; i < 1u << left; ++i) {
      const Token next = singles[i << bits];
      if (!next.is_none() && next.bits() - next.first_size() <= left) to[i] = code.token.with(next);
    }
    repeat(to, size_t{1} << left, code.token.first_size());
  }
}

// First for one bit in sight, then for two, and so on: what follows a code and its value is what a
// shorter sight gives.
void HuffmanTable::fill_runs(std::span<const Code> codes) {
  // For `n` bits from 2^n on.
  std::array<uint16_t, 2 << kFarBits> words{};
  for (uint32_t sight = 1; sight <= kFarBits; ++sight) {
    for (const Code& code : codes) {
      if (code.length > sight) break;
      const uint32_t bits = code.token.bits();
      const bool ends = code.token.ends_block();
      const uint16_t word = Run(bits, ends ? kRunEnd : code.token.step()).word();
      uint16_t* const to = &words[(size_t{1} << sight) + (code.code << (sight - code.length))];
      if (bits >= sight || ends) {
        std::fill_n(to, size_t{1} << (sight - code.length), word);
        continue;
      }
      const size_t behind = size_t{1} << (sight - bits);
      for (size_t i = 0; i < behind; ++i) to[i] = static_cast<uint16_t>(word + words[behind + i]);
      repeat(to, behind, code.token.first_size());
    }
  }
  const uint16_t* const from = &words[runs_.size()];
  for (size_t i = 0; i < runs_.size(); ++i) runs_[i] = from[i] == 0 ? Run() : Run(from[i]);
}

bool HuffmanTable::make(const JpegHuffman& from, bool is_ac) {
  if (!from.defined) return false;
  if (made_from_.defined && is_ac == is_ac_ && made_from_.counts == from.counts &&
      made_from_.symbols == from.symbols) {
    return true;  // many pictures share their tables
  }
  made_from_ = {};
  is_ac_ = is_ac;
  std::array<Code, 256> codes;
  uint32_t code = 0;
  size_t next = 0;
  for (uint32_t length = 1; length <= 16; ++length, code <<= 1) {
    const uint32_t count = from.counts[length - 1];
    if (code + count > 1u << length || next + count > from.symbols.size()) return false;
    offset_[length - 1] = static_cast<int32_t>(next) - static_cast<int32_t>(code);
    for (uint32_t i = 0; i < count; ++i, ++code, ++next) {
      const uint8_t symbol = from.symbols[next];
      if (!is_ac && symbol > 15) return false;
      codes[next] = {code, length, token_of(symbol, length)};
    }
    beyond_[length - 1] = code << (16 - length);
  }
  fill_tokens({codes.data(), next});
  if (is_ac) fill_runs({codes.data(), next});
  made_from_ = from;
  return true;
}

HuffmanTable::Token HuffmanTable::look_long(uint32_t next) const noexcept {
  const uint32_t word = next >> 16;
  uint32_t length = kPeekBits + 1;
  for (; word >= beyond_[length - 1]; ++length) {
    if (length == 16) return {};
  }
  const int32_t place = static_cast<int32_t>(word >> (16 - length)) + offset_[length - 1];
  return token_of(made_from_.symbols[static_cast<size_t>(place)], length);
}

}  // namespace spk::picture
