// Huffman codes of a JPEG, looked up rather than walked.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

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
  // The value in the last SIZE (0 to 15) of the next BITS (1 to 32) bits: where its first bit is
  // zero it is negative, and counted from its lowest.
  int32_t value(uint32_t bits, uint32_t size) const noexcept {
    const uint32_t beyond = 1u << size;
    const uint32_t given =
        static_cast<uint32_t>(std::rotl(bits_, static_cast<int>(bits))) & (beyond - 1);
    return static_cast<int32_t>(given - (given < beyond / 2 ? beyond - 1 : 0));
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
// look-up gives as much as fits into its bits: look() up to two codes, look_far() any number. Of
// the last one only the code must be in sight, not the value behind it.
class HuffmanTable {
 public:
  // False where the table is none that can be.
  bool make(const JpegHuffman& from, bool is_ac);

  static constexpr uint32_t kEnd = 64;      // of a Token
  static constexpr uint32_t kRunEnd = 256;  // more than all steps that do not end a block
  // The most bits of a Token or a Run.
  static constexpr uint32_t kMaxTokenBits = 28;

  // One or two codes with their values, in one word, so that little stands between one look-up and
  // the next. From its lowest bits up: all bits (6), the last value's (4), the first value's (4),
  // bits of the first code and value (5), its step (5), all steps (8).
  class Token {
   public:
    constexpr Token() = default;  // no such code
    constexpr Token(uint32_t bits, uint32_t size, uint32_t step)
        : word_(bits | size << 6 | size << 10 | bits << 14 | (step & 31) << 19 | step << 24) {}
    // This one, and NEXT behind it. REQUIRES one code in each.
    constexpr Token with(Token next) const {
      constexpr uint32_t kAdded = 255u << 24 | 63;
      constexpr uint32_t kOfLast = 15u << 6;
      return Token((word_ & ~kOfLast) + (next.word_ & (kAdded | kOfLast)));
    }
    // Places to go on by: the zeros before a value and the value itself. kEnd more where the block
    // ends.
    uint32_t step() const noexcept { return word_ >> 24; }
    uint32_t bits() const noexcept { return word_ & 63; }
    uint32_t last_size() const noexcept { return word_ >> 6 & 15; }
    uint32_t first_size() const noexcept { return word_ >> 10 & 15; }
    uint32_t first_bits() const noexcept { return word_ >> 14 & 31; }
    uint32_t first_step() const noexcept { return word_ >> 19 & 31; }  // 0 where the block ends
    bool ends_block() const noexcept { return step() >= kEnd && !is_none(); }
    // No code with so few bits: there may be a longer one.
    bool is_none() const noexcept { return step() == kNoStep; }

   private:
    static constexpr uint32_t kNoStep = 255;
    explicit constexpr Token(uint32_t word) : word_(word) {}
    uint32_t word_ = kNoStep << 24;
  };

  // Any number of codes with their values.
  class Run {
   public:
    constexpr Run() = default;  // no such code
    constexpr Run(uint32_t bits, uint32_t step) : word_(static_cast<uint16_t>(step << 6 | bits)) {}
    explicit constexpr Run(uint16_t word) : word_(word) {}
    // kRunEnd more where the block ends.
    uint32_t step() const noexcept { return uint32_t{word_} >> 6; }
    uint32_t bits() const noexcept { return word_ & 63u; }
    // True where all of it is in a block that is read up to place `k`: it does not reach beyond
    // place 64, or ends the block before. At that place a block ends without saying so, and what
    // says it belongs to the next.
    bool is_within(uint32_t k) const noexcept {
      return k + step() <= 64 || k + step() - kRunEnd < 64;
    }
    // Runs are put together by adding their words; to none, nothing is added.
    uint16_t word() const noexcept { return word_ == kNone ? uint16_t{0} : word_; }

   private:
    static constexpr uint16_t kNone = 0xffc0;
    uint16_t word_ = kNone;
  };

  // REQUIRES kMaxTokenBits in the reader. Whoever looks drops the bits.
  Token look(const BitReader& bits) const noexcept { return tokens_[bits.peek(kPeekBits)]; }
  // Goes beyond place 64 without heed: at the end of a block, look().
  Run look_far(const BitReader& bits) const noexcept { return runs_[bits.peek(kFarBits)]; }
  // Where look() gave none: from the next 32 bits. Apart from the reader, which may then stay in
  // registers.
  Token look_long(uint32_t next) const noexcept;

 private:
  static constexpr uint32_t kPeekBits = 11;
  static constexpr uint32_t kFarBits = 12;
  static_assert(kFarBits + 15 <= kMaxTokenBits && 64 + kFarBits * 16 <= kRunEnd);
  struct Code {
    uint32_t code;
    uint32_t length;
    Token token;
  };

  Token token_of(uint8_t symbol, uint32_t length) const noexcept;
  void fill_tokens(std::span<const Code> codes);
  void fill_runs(std::span<const Code> codes);

  bool is_ac_ = false;
  JpegHuffman made_from_;
  std::array<Token, 1 << kPeekBits> tokens_{};
  std::array<Run, 1 << kFarBits> runs_{};
  // For codes of n + 1 bits: the first 16-bit word beyond them, and what to add for the symbol.
  std::array<uint32_t, 16> beyond_{};
  std::array<int32_t, 16> offset_{};
};

}  // namespace spk::picture
