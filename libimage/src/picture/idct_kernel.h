// The transform, written once for any width of vector. Included by idct.cc in a namespace where Vec
// is a vector of 16-bit values, of one block in each 128 bits, and the functions used here are
// defined for it.

struct Wide {  // twice as many bits
  Vec low;
  Vec high;
};
inline Wide pairs(Vec a, int factor_a, Vec b, int factor_b) {
  const Vec by = all32(static_cast<int>((static_cast<uint32_t>(factor_b) << 16) |
                                        (static_cast<uint32_t>(factor_a) & 0xffff)));
  return {multiply_add(low16(a, b), by), multiply_add(high16(a, b), by)};
}
inline Wide widened(Vec a) {  // times 2^kFactorBits
  return {shift_right32<16 - kFactorBits>(low16(zero(), a)),
          shift_right32<16 - kFactorBits>(high16(zero(), a))};
}
inline Wide plus(const Wide& a, const Wide& b) {
  return {add32(a.low, b.low), add32(a.high, b.high)};
}
inline Wide minus(const Wide& a, const Wide& b) {
  return {subtract32(a.low, b.low), subtract32(a.high, b.high)};
}
template <int kShift>
inline Vec scaled(const Wide& value) {
  const Vec half = all32(1 << (kShift - 1));
  return pack32(shift_right32<kShift>(add32(value.low, half)),
                shift_right32<kShift>(add32(value.high, half)));
}

// One-dimensional transforms of eight columns at once.
template <int kShift>
inline void one_pass(Vec (&a)[8]) {
  const Wide e0 = widened(add16(a[0], a[4]));
  const Wide e1 = widened(subtract16(a[0], a[4]));
  const Wide e2 = pairs(a[2], k0_541, a[6], k0_541 - k1_847);
  const Wide e3 = pairs(a[2], k0_541 + k0_765, a[6], k0_541);
  const Wide even[4] = {plus(e0, e3), plus(e1, e2), minus(e1, e2), minus(e0, e3)};
  const Vec s73 = add16(a[7], a[3]);
  const Vec s51 = add16(a[5], a[1]);
  const Wide z3 = pairs(s73, k1_175 - k1_961, s51, k1_175);
  const Wide z4 = pairs(s73, k1_175, s51, k1_175 - k0_390);
  const Wide odd[4] = {plus(pairs(a[7], -k0_899, a[1], k1_501 - k0_899), z4),
                       plus(pairs(a[5], -k2_562, a[3], k3_072 - k2_562), z3),
                       plus(pairs(a[5], k2_053 - k2_562, a[3], -k2_562), z4),
                       plus(pairs(a[7], k0_298 - k0_899, a[1], -k0_899), z3)};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    a[i] = scaled<kShift>(plus(even[i], odd[i]));
    a[7 - i] = scaled<kShift>(minus(even[i], odd[i]));
  }
}

inline void transpose(Vec (&a)[8]) {
  const Vec b[8] = {low16(a[0], a[1]), high16(a[0], a[1]), low16(a[2], a[3]), high16(a[2], a[3]),
                    low16(a[4], a[5]), high16(a[4], a[5]), low16(a[6], a[7]), high16(a[6], a[7])};
  const Vec c[8] = {low32(b[0], b[2]), high32(b[0], b[2]), low32(b[1], b[3]), high32(b[1], b[3]),
                    low32(b[4], b[6]), high32(b[4], b[6]), low32(b[5], b[7]), high32(b[5], b[7])};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = low64(c[i], c[i + 4]);
    a[2 * i + 1] = high64(c[i], c[i + 4]);
  }
}

// From coefficients to values around zero, row by row.
inline void transform(Vec (&a)[8]) {
  one_pass<kFirstShift>(a);
  transpose(a);
  one_pass<kSecondShift>(a);
  transpose(a);
}
