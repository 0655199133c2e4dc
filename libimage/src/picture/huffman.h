// Huffman codes of a JPEG, looked up rather than walked.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "picture/jpeg_markers.h"

namespace spk::picture {

// Bits of a byte string, from the highest down. Never checks where the string ends: whoever reads
// asks bits_read() often enough, and leaves kSlack bytes behind it.
class BitReader {
 public:
  // One block reads less: 64 codes of 16 bits, with 15 bits each.
  static constexpr size_t kSlack = 512;

  explicit BitReader(const uint8_t* data) : begin_(data), next_(data) {}
  // At least 56 bits are there afterwards. Without a branch, which would often be guessed wrong.
  void refill() noexcept {
    bits_ |= load_be<uint64_t>(next_) >> count_;
    next_ += (63 - count_) >> 3;
    count_ |= 56;
  }
  // 1 to 32 bits.
  uint32_t peek(uint32_t bits) const noexcept {
    return static_cast<uint32_t>(bits_ >> (64 - bits));
  }
  void drop(uint32_t bits) noexcept {
    bits_ <<= bits;
    count_ -= bits;
  }
  uint64_t bits_read() const noexcept { return static_cast<uint64_t>(next_ - begin_) * 8 - count_; }

 private:
  const uint8_t* begin_;
  const uint8_t* next_;
  uint64_t bits_ = 0;
  uint32_t count_ = 0;  // at most 63
};

// One table. Mean values (DC) and the others (AC) differ in what a symbol means.
//
// Codes wait for each other: where one ends is known only when it has been looked up. So each
// look-up gives as much as fits into its bits: read() a code and the value behind it, skip()
// several of both.
class HuffmanTable {
 public:
  // False where the table is none that can be.
  bool make(const JpegHuffman& from, bool is_ac);

  // What was looked up, in one word, so that little stands between one look-up and the next.
  class Token {
   public:
    constexpr Token() = default;  // no such code
    constexpr Token(int32_t value, uint32_t step, uint32_t bits)
        : word_(static_cast<uint32_t>(value) << 16 | step << 8 | bits) {}
    int32_t value() const noexcept { return static_cast<int32_t>(word_) >> 16; }
    // Places to go on by: the zeros before the value and the value itself. kEnd more where the
    // block ends.
    uint32_t step() const noexcept { return word_ >> 8 & 255; }
    uint32_t bits() const noexcept { return word_ & 63; }
    bool ends_block() const noexcept { return step() >= kEnd && step() < kNoStep; }
    // No code with so few bits: there may be a longer one.
    bool is_none() const noexcept { return step() == kNoStep; }

   private:
    uint32_t word_ = kNoStep << 8;
  };
  static constexpr uint32_t kEnd = 64;
  static constexpr uint32_t kNoStep = 255;

  // One code and its value, or none. REQUIRES 32 bits in the reader, as do the others. Whoever
  // looks drops the bits.
  Token look(const BitReader& bits) const noexcept { return entries_[bits.peek(kPeekBits)]; }
  // As many codes as there are in sight; their values are not given. Goes beyond place 64 without
  // heed: at the end of a block, look().
  Token look_far(const BitReader& bits) const noexcept { return chains_[bits.peek(kPeekBits)]; }
  // Where look() gave none: from the next 32 bits. Apart from the reader, which may then stay in
  // registers.
  Token look_long(uint32_t next) const noexcept;

 private:
  static constexpr uint32_t kPeekBits = 11;
  static constexpr uint32_t kMaxBits = 32;                  // of an entry: what a reader has
  using CodeLengths = std::array<uint8_t, 1 << kPeekBits>;  // of the first code in sight

  Token token_of(uint8_t symbol, uint32_t value_bits, uint32_t code_bits) const noexcept;
  void fill(uint32_t code, uint32_t length, uint8_t symbol, CodeLengths& lengths);
  void chain(const CodeLengths& lengths);

  bool is_ac_ = false;
  JpegHuffman made_from_;
  std::array<Token, 1 << kPeekBits> entries_{};
  std::array<Token, 1 << kPeekBits> chains_{};
  // For codes of n + 1 bits: the first 16-bit word beyond them, and what to add for the symbol.
  std::array<uint32_t, 16> beyond_{};
  std::array<int32_t, 16> offset_{};
};

}  // namespace spk::picture
