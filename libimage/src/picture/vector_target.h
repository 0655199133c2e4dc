// Functions between SPK_BEGIN_AVX2 and SPK_END_AVX2 may use AVX2 and BMI2, and may be called only
// where have_avx2(). Includes come before: what is inline in them must run on every machine.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#define SPK_HAVE_AVX2_TARGET 1
#if defined(__clang__)
#define SPK_BEGIN_AVX2 \
  _Pragma("clang attribute push(__attribute__((target(\"avx2,bmi2\"))), apply_to = function)")
#define SPK_END_AVX2 _Pragma("clang attribute pop")
#else
#define SPK_BEGIN_AVX2 _Pragma("GCC push_options") _Pragma("GCC target(\"avx2,bmi2\")")
#define SPK_END_AVX2 _Pragma("GCC pop_options")
#endif
#endif

namespace spk::picture {

inline bool have_avx2() noexcept {
#if SPK_HAVE_AVX2_TARGET
  static const bool have = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  return have;
#else
  return false;
#endif
}

}  // namespace spk::picture
