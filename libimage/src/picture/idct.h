// The inverse cosine transform of an 8 x 8 block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spk::picture {

// Where pixels of a block go.
struct BlockPlace {
  uint8_t* out;
  size_t stride;
};

// COUNT (1 or 2) blocks of 64 coefficients, row by row, one block behind the other, and the
// quantisation table that they are to be multiplied by, in the same order; both 32-byte aligned.
// The same bytes as libjpeg's accurate integer transform (JDCT_ISLOW) gives. Nothing that a file
// can hold is undefined here.
void inverse_dct(const int16_t* coefficients, const int16_t* quant, size_t count,
                 const BlockPlace* places) noexcept;
// The same by plain code, for machines without SSE2, and to compare with. One block.
void inverse_dct_portable(const int16_t* coefficients, const int16_t* quant,
                          const BlockPlace& place) noexcept;
// Of a block with nothing but a mean value, which has been multiplied.
void inverse_dct_mean(int16_t mean, const BlockPlace& place) noexcept;

}  // namespace spk::picture
