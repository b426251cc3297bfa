// One register of float or double, as wide as the instruction set has it, with the operations that
// formulas use.
//
// vec_math.hpp has the formulas. They serve loops where the compiler's vectorization of scalar code
// falls short: AVX-512 scales by powers of two, splits numbers into mantissa and exponent, and
// looks up tables in single instructions.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "candelabra/math.hpp"
#include "dtypes.hpp"
#include "simd/intrinsics.hpp"

namespace candelabra::math {
inline namespace CANDELABRA_ISA_NAMESPACE {

template <typename T>
struct Vec;
// One truth value per element of a Vec<T>.
template <typename T>
struct Mask;

#ifdef __AVX512F__

template <typename T>
struct Mask {
  using Bits = std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>;
  Bits m;
  CANDELABRA_FORMULA friend Mask operator&(Mask a, Mask b) { return {static_cast<Bits>(a.m & b.m)}; }
  CANDELABRA_FORMULA friend Mask operator|(Mask a, Mask b) { return {static_cast<Bits>(a.m | b.m)}; }
  CANDELABRA_FORMULA friend Mask operator!(Mask a) { return {static_cast<Bits>(~a.m)}; }
  CANDELABRA_FORMULA friend bool any(Mask a) { return a.m != 0; }
  bool at(int lane) const { return a_bit(lane); }

 private:
  bool a_bit(int lane) const { return m >> lane & 1; }
};

template <>
struct Vec<float> {
  using Element = float;
  using Raw = __m512;
  static constexpr int64_t size = 16;
  Raw v;
  Vec() = default;
  CANDELABRA_FORMULA Vec(Raw raw) : v(raw) {}
  CANDELABRA_FORMULA Vec(float x) : v(_mm512_set1_ps(x)) {}
  CANDELABRA_FORMULA static Vec load(const float* p) { return _mm512_loadu_ps(p); }
  CANDELABRA_FORMULA static Vec load(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  CANDELABRA_FORMULA void store(float* p) const { _mm512_storeu_ps(p, v); }
  CANDELABRA_FORMULA void store(float* p, int64_t n) const { _mm512_mask_storeu_ps(p, first(n), v); }
  CANDELABRA_FORMULA friend Mask<float> operator<(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
  CANDELABRA_FORMULA friend Mask<float> operator<=(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
  CANDELABRA_FORMULA friend Mask<float> operator==(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
  CANDELABRA_FORMULA friend Mask<float> operator!=(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NEQ_UQ)}; }

 private:
  CANDELABRA_FORMULA static __mmask16 first(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
};

template <>
struct Vec<double> {
  using Element = double;
  using Raw = __m512d;
  static constexpr int64_t size = 8;
  Raw v;
  Vec() = default;
  CANDELABRA_FORMULA Vec(Raw raw) : v(raw) {}
  CANDELABRA_FORMULA Vec(double x) : v(_mm512_set1_pd(x)) {}
  CANDELABRA_FORMULA static Vec load(const double* p) { return _mm512_loadu_pd(p); }
  CANDELABRA_FORMULA static Vec load(const double* p, int64_t n) { return _mm512_maskz_loadu_pd(first(n), p); }
  CANDELABRA_FORMULA void store(double* p) const { _mm512_storeu_pd(p, v); }
  CANDELABRA_FORMULA void store(double* p, int64_t n) const { _mm512_mask_storeu_pd(p, first(n), v); }
  CANDELABRA_FORMULA friend Mask<double> operator<(Vec a, Vec b) { return {_mm512_cmp_pd_mask(a.v, b.v, _CMP_LT_OQ)}; }
  CANDELABRA_FORMULA friend Mask<double> operator<=(Vec a, Vec b) { return {_mm512_cmp_pd_mask(a.v, b.v, _CMP_LE_OQ)}; }
  CANDELABRA_FORMULA friend Mask<double> operator==(Vec a, Vec b) { return {_mm512_cmp_pd_mask(a.v, b.v, _CMP_EQ_OQ)}; }
  CANDELABRA_FORMULA friend Mask<double> operator!=(Vec a, Vec b) {
    return {_mm512_cmp_pd_mask(a.v, b.v, _CMP_NEQ_UQ)};
  }

 private:
  CANDELABRA_FORMULA static __mmask8 first(int64_t n) { return static_cast<__mmask8>((1u << n) - 1); }
};

CANDELABRA_FORMULA Vec<float> select(Mask<float> m, Vec<float> a, Vec<float> b) {
  return _mm512_mask_blend_ps(m.m, b.v, a.v);
}
CANDELABRA_FORMULA Vec<double> select(Mask<double> m, Vec<double> a, Vec<double> b) {
  return _mm512_mask_blend_pd(m.m, b.v, a.v);
}
CANDELABRA_FORMULA Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return _mm512_fmadd_ps(a.v, b.v, c.v);
}
CANDELABRA_FORMULA Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return _mm512_fmadd_pd(a.v, b.v, c.v);
}
// -a b + c
CANDELABRA_FORMULA Vec<float> fnma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return _mm512_fnmadd_ps(a.v, b.v, c.v);
}
CANDELABRA_FORMULA Vec<double> fnma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return _mm512_fnmadd_pd(a.v, b.v, c.v);
}
// Minimum and maximum as in hardware: b if either is NaN or both are zeros.
CANDELABRA_FORMULA Vec<float> min(Vec<float> a, Vec<float> b) {
  return _mm512_maskz_min_ps(0xffff, a.v, b.v);
}
CANDELABRA_FORMULA Vec<double> min(Vec<double> a, Vec<double> b) {
  return _mm512_maskz_min_pd(0xff, a.v, b.v);
}
CANDELABRA_FORMULA Vec<float> max(Vec<float> a, Vec<float> b) {
  return _mm512_maskz_max_ps(0xffff, a.v, b.v);
}
CANDELABRA_FORMULA Vec<double> max(Vec<double> a, Vec<double> b) {
  return _mm512_maskz_max_pd(0xff, a.v, b.v);
}
CANDELABRA_FORMULA Vec<float> abs(Vec<float> x) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x.v), _mm512_set1_epi32(0x7fffffff)));
}
CANDELABRA_FORMULA Vec<double> abs(Vec<double> x) {
  return _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(x.v), _mm512_set1_epi64(0x7fffffffffffffffLL)));
}
CANDELABRA_FORMULA Vec<float> with_sign_of(Vec<float> magnitude, Vec<float> sign) {
  return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_set1_epi32(INT32_MIN), _mm512_castps_si512(sign.v),
                                                       _mm512_castps_si512(magnitude.v), 0xca));
}
CANDELABRA_FORMULA Vec<double> with_sign_of(Vec<double> magnitude, Vec<double> sign) {
  return _mm512_castsi512_pd(_mm512_ternarylogic_epi64(_mm512_set1_epi64(INT64_MIN), _mm512_castpd_si512(sign.v),
                                                       _mm512_castpd_si512(magnitude.v), 0xca));
}
CANDELABRA_FORMULA Mask<float> is_negative(Vec<float> x) {  // true for -0
  return {_mm512_movepi32_mask(_mm512_castps_si512(x.v))};
}
CANDELABRA_FORMULA Mask<double> is_negative(Vec<double> x) {
  return {_mm512_movepi64_mask(_mm512_castpd_si512(x.v))};
}
template <int Mode>
CANDELABRA_FORMULA Vec<float> rounded(Vec<float> x) {
  return _mm512_maskz_roundscale_ps(0xffff, x.v, Mode);
}
template <int Mode>
CANDELABRA_FORMULA Vec<double> rounded(Vec<double> x) {
  return _mm512_maskz_roundscale_pd(0xff, x.v, Mode);
}
CANDELABRA_FORMULA Vec<float> hardware_sqrt(Vec<float> x) {
  return _mm512_maskz_sqrt_ps(0xffff, x.v);
}
CANDELABRA_FORMULA Vec<double> hardware_sqrt(Vec<double> x) {
  return _mm512_maskz_sqrt_pd(0xff, x.v);
}

namespace parts {

// p 2^whole for an integral `whole`, over the range that exp needs.
CANDELABRA_FORMULA Vec<float> scaled(Vec<float> p, Vec<float> whole) {
  return _mm512_maskz_scalef_ps(0xffff, p.v, whole.v);
}
CANDELABRA_FORMULA Vec<double> scaled(Vec<double> p, Vec<double> whole) {
  return _mm512_maskz_scalef_pd(0xff, p.v, whole.v);
}
// The same where p and the result are normal numbers: cheaper without AVX-512.
template <typename T>
CANDELABRA_FORMULA Vec<T> scaled_normal(Vec<T> p, Vec<T> whole) {
  return scaled(p, whole);
}
// Whether bit `bit` of the integer n is set, where x = n + detail::Format<T>::round_magic holds n
// in its low bits.
template <int bit>
CANDELABRA_FORMULA Mask<float> low_bit(Vec<float> x) {
  return {_mm512_test_epi32_mask(_mm512_castps_si512(x.v), _mm512_set1_epi32(1 << bit))};
}
template <int bit>
CANDELABRA_FORMULA Mask<double> low_bit(Vec<double> x) {
  return {_mm512_test_epi64_mask(_mm512_castpd_si512(x.v), _mm512_set1_epi64(1 << bit))};
}
// x, negated where bit 1 of that integer is set.
CANDELABRA_FORMULA Vec<float> negated_by_bit1(Vec<float> x, Vec<float> n) {
  __m512i sign = _mm512_maskz_slli_epi32(0xffff, _mm512_castps_si512(n.v), 30);
  // x ^ (sign & mask)
  return _mm512_castsi512_ps(
      _mm512_ternarylogic_epi32(_mm512_castps_si512(x.v), sign, _mm512_set1_epi32(INT32_MIN), 0x78));
}
CANDELABRA_FORMULA Vec<double> negated_by_bit1(Vec<double> x, Vec<double> n) {
  __m512i sign = _mm512_maskz_slli_epi64(0xff, _mm512_castpd_si512(n.v), 62);
  return _mm512_castsi512_pd(
      _mm512_ternarylogic_epi64(_mm512_castpd_si512(x.v), sign, _mm512_set1_epi64(INT64_MIN), 0x78));
}

// x = 2^exponent mantissa with mantissa in [3/4, 3/2), for finite x > 0, subnormals included.
template <typename T>
struct Parts {
  Vec<T> mantissa, exponent;
};
CANDELABRA_FORMULA Parts<float> parts_of(Vec<float> x) {
  Vec<float> m = _mm512_maskz_getmant_ps(0xffff, x.v, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_zero);
  Vec<float> e = _mm512_maskz_getexp_ps(0xffff, x.v);
  return {m, _mm512_mask_add_ps(e.v, (m < Vec<float>(1.0f)).m, e.v, _mm512_set1_ps(1.0f))};
}
CANDELABRA_FORMULA Parts<double> parts_of(Vec<double> x) {
  Vec<double> m = _mm512_maskz_getmant_pd(0xff, x.v, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_zero);
  Vec<double> e = _mm512_maskz_getexp_pd(0xff, x.v);
  return {m, _mm512_mask_add_pd(e.v, (m < Vec<double>(1.0)).m, e.v, _mm512_set1_pd(1.0))};
}
// `result`, or the special value of log(x) if x is zero, negative, infinite or NaN.
constexpr int log_cases = 2 | 2 << 4 | 4 << 8 | 3 << 16 | 5 << 20 | 3 << 24;
CANDELABRA_FORMULA Vec<float> log_cases_of(Vec<float> x, Vec<float> result) {
  return _mm512_fixupimm_ps(result.v, x.v, _mm512_set1_epi32(log_cases), 0);
}
CANDELABRA_FORMULA Vec<double> log_cases_of(Vec<double> x, Vec<double> result) {
  return _mm512_fixupimm_pd(result.v, x.v, _mm512_set1_epi64(log_cases), 0);
}

// 1 / x to about one ulp, if neither x nor the quotient is near the ends of the range.
CANDELABRA_FORMULA Vec<float> inverse(Vec<float> x) {
  const Vec<float> y = _mm512_maskz_rcp14_ps(0xffff, x.v);
  return fma(y, fnma(x, y, 1.0f), y);
}
CANDELABRA_FORMULA Vec<double> inverse(Vec<double> x) {
  Vec<double> y = _mm512_maskz_rcp14_pd(0xff, x.v);
  y = fma(y, fnma(x, y, 1.0), y);
  return fma(y, fnma(x, y, 1.0), y);
}
// a / b to about half an ulp, in the same range.
CANDELABRA_FORMULA Vec<float> quotient(Vec<float> a, Vec<float> b) {
  const Vec<float> y = inverse(b);
  Vec<float> q = _mm512_mul_ps(a.v, y.v);
  return fma(fnma(b, q, a), y, q);
}
CANDELABRA_FORMULA Vec<double> quotient(Vec<double> a, Vec<double> b) {
  const Vec<double> y = inverse(b);
  Vec<double> q = _mm512_mul_pd(a.v, y.v);
  return fma(fnma(b, q, a), y, q);
}
// Element n mod 16 (or 32) of a table, with n in the low bits as above.
CANDELABRA_FORMULA Vec<float> lookup(const float (&table)[16], Vec<float> n) {
  return _mm512_maskz_permutexvar_ps(0xffff, _mm512_castps_si512(n.v), _mm512_load_ps(table));
}
CANDELABRA_FORMULA Vec<float> lookup(const float (&table)[32], Vec<float> n) {
  return _mm512_permutex2var_ps(_mm512_load_ps(table), _mm512_castps_si512(n.v), _mm512_load_ps(table + 16));
}
CANDELABRA_FORMULA Vec<double> lookup(const double (&table)[16], Vec<double> n) {
  return _mm512_permutex2var_pd(_mm512_load_pd(table), _mm512_castpd_si512(n.v), _mm512_load_pd(table + 8));
}

// Optimization barrier: keeps the rounding of x from being fused away.
template <typename T>
CANDELABRA_FORMULA Vec<T> opaque(Vec<T> x) {
  asm("" : "+v"(x.v));
  return x;
}

}  // namespace parts

CANDELABRA_FORMULA void to_double(Vec<float> x, Vec<double>& low, Vec<double>& high) {
  low = _mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, x.v, 0));
  high = _mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, x.v, 1));
}
CANDELABRA_FORMULA Vec<float> to_float(Vec<double> low, Vec<double> high) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_maskz_cvtpd_ps(0xff, low.v)),
                            _mm512_maskz_cvtpd_ps(0xff, high.v), 1);
}

#else

template <typename T>
struct MaskRegister;
template <>
struct MaskRegister<float> {
  using type = __m256;
};
template <>
struct MaskRegister<double> {
  using type = __m256d;
};
template <typename T>
struct Mask {
  using Raw = typename MaskRegister<T>::type;
  Raw m;
  CANDELABRA_FORMULA friend Mask operator&(Mask a, Mask b) { return {reinterpret_cast<Raw>(bits(a) & bits(b))}; }
  CANDELABRA_FORMULA friend Mask operator|(Mask a, Mask b) { return {reinterpret_cast<Raw>(bits(a) | bits(b))}; }
  CANDELABRA_FORMULA friend Mask operator!(Mask a) { return {reinterpret_cast<Raw>(~bits(a))}; }
  CANDELABRA_FORMULA friend bool any(Mask a) { return _mm256_movemask_epi8(bits(a)) != 0; }
  bool at(int lane) const { return _mm256_movemask_epi8(bits(*this)) >> (lane * static_cast<int>(sizeof(T))) & 1; }

 private:
  CANDELABRA_FORMULA static __m256i bits(Mask a) { return reinterpret_cast<__m256i>(a.m); }
};

template <>
struct Vec<float> {
  using Element = float;
  using Raw = __m256;
  static constexpr int64_t size = 8;
  Raw v;
  Vec() = default;
  CANDELABRA_FORMULA Vec(Raw raw) : v(raw) {}
  CANDELABRA_FORMULA Vec(float x) : v(_mm256_set1_ps(x)) {}
  CANDELABRA_FORMULA static Vec load(const float* p) { return _mm256_loadu_ps(p); }
  CANDELABRA_FORMULA static Vec load(const float* p, int64_t n) { return _mm256_maskload_ps(p, first(n)); }
  CANDELABRA_FORMULA void store(float* p) const { _mm256_storeu_ps(p, v); }
  CANDELABRA_FORMULA void store(float* p, int64_t n) const { _mm256_maskstore_ps(p, first(n), v); }
  CANDELABRA_FORMULA friend Mask<float> operator<(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
  CANDELABRA_FORMULA friend Mask<float> operator<=(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
  CANDELABRA_FORMULA friend Mask<float> operator==(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
  CANDELABRA_FORMULA friend Mask<float> operator!=(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_NEQ_UQ)}; }

 private:
  CANDELABRA_FORMULA static __m256i first(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

template <>
struct Vec<double> {
  using Element = double;
  using Raw = __m256d;
  static constexpr int64_t size = 4;
  Raw v;
  Vec() = default;
  CANDELABRA_FORMULA Vec(Raw raw) : v(raw) {}
  CANDELABRA_FORMULA Vec(double x) : v(_mm256_set1_pd(x)) {}
  CANDELABRA_FORMULA static Vec load(const double* p) { return _mm256_loadu_pd(p); }
  CANDELABRA_FORMULA static Vec load(const double* p, int64_t n) { return _mm256_maskload_pd(p, first(n)); }
  CANDELABRA_FORMULA void store(double* p) const { _mm256_storeu_pd(p, v); }
  CANDELABRA_FORMULA void store(double* p, int64_t n) const { _mm256_maskstore_pd(p, first(n), v); }
  CANDELABRA_FORMULA friend Mask<double> operator<(Vec a, Vec b) { return {_mm256_cmp_pd(a.v, b.v, _CMP_LT_OQ)}; }
  CANDELABRA_FORMULA friend Mask<double> operator<=(Vec a, Vec b) { return {_mm256_cmp_pd(a.v, b.v, _CMP_LE_OQ)}; }
  CANDELABRA_FORMULA friend Mask<double> operator==(Vec a, Vec b) { return {_mm256_cmp_pd(a.v, b.v, _CMP_EQ_OQ)}; }
  CANDELABRA_FORMULA friend Mask<double> operator!=(Vec a, Vec b) { return {_mm256_cmp_pd(a.v, b.v, _CMP_NEQ_UQ)}; }

 private:
  CANDELABRA_FORMULA static __m256i first(int64_t n) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
  }
};

CANDELABRA_FORMULA Vec<float> select(Mask<float> m, Vec<float> a, Vec<float> b) {
  return _mm256_blendv_ps(b.v, a.v, m.m);
}
CANDELABRA_FORMULA Vec<double> select(Mask<double> m, Vec<double> a, Vec<double> b) {
  return _mm256_blendv_pd(b.v, a.v, m.m);
}
CANDELABRA_FORMULA Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return _mm256_fmadd_ps(a.v, b.v, c.v);
}
CANDELABRA_FORMULA Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return _mm256_fmadd_pd(a.v, b.v, c.v);
}
CANDELABRA_FORMULA Vec<float> fnma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return _mm256_fnmadd_ps(a.v, b.v, c.v);
}
CANDELABRA_FORMULA Vec<double> fnma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return _mm256_fnmadd_pd(a.v, b.v, c.v);
}
CANDELABRA_FORMULA Vec<float> min(Vec<float> a, Vec<float> b) {
  return _mm256_min_ps(a.v, b.v);
}
CANDELABRA_FORMULA Vec<double> min(Vec<double> a, Vec<double> b) {
  return _mm256_min_pd(a.v, b.v);
}
CANDELABRA_FORMULA Vec<float> max(Vec<float> a, Vec<float> b) {
  return _mm256_max_ps(a.v, b.v);
}
CANDELABRA_FORMULA Vec<double> max(Vec<double> a, Vec<double> b) {
  return _mm256_max_pd(a.v, b.v);
}
CANDELABRA_FORMULA Vec<float> abs(Vec<float> x) {
  return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x.v);
}
CANDELABRA_FORMULA Vec<double> abs(Vec<double> x) {
  return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x.v);
}
CANDELABRA_FORMULA Vec<float> with_sign_of(Vec<float> magnitude, Vec<float> sign) {
  const __m256 mask = _mm256_set1_ps(-0.0f);
  return _mm256_or_ps(_mm256_and_ps(mask, sign.v), _mm256_andnot_ps(mask, magnitude.v));
}
CANDELABRA_FORMULA Vec<double> with_sign_of(Vec<double> magnitude, Vec<double> sign) {
  const __m256d mask = _mm256_set1_pd(-0.0);
  return _mm256_or_pd(_mm256_and_pd(mask, sign.v), _mm256_andnot_pd(mask, magnitude.v));
}
CANDELABRA_FORMULA Mask<float> is_negative(Vec<float> x) {
  return {_mm256_castsi256_ps(_mm256_srai_epi32(_mm256_castps_si256(x.v), 31))};
}
CANDELABRA_FORMULA Mask<double> is_negative(Vec<double> x) {
  return {_mm256_castsi256_pd(_mm256_cmpgt_epi64(_mm256_setzero_si256(), _mm256_castpd_si256(x.v)))};
}
template <int Mode>
CANDELABRA_FORMULA Vec<float> rounded(Vec<float> x) {
  return _mm256_round_ps(x.v, Mode | _MM_FROUND_NO_EXC);
}
template <int Mode>
CANDELABRA_FORMULA Vec<double> rounded(Vec<double> x) {
  return _mm256_round_pd(x.v, Mode | _MM_FROUND_NO_EXC);
}
CANDELABRA_FORMULA Vec<float> hardware_sqrt(Vec<float> x) {
  return _mm256_sqrt_ps(x.v);
}
CANDELABRA_FORMULA Vec<double> hardware_sqrt(Vec<double> x) {
  return _mm256_sqrt_pd(x.v);
}

namespace parts {

// In two steps, so that neither power of two overflows if the result does not.
CANDELABRA_FORMULA Vec<float> scaled(Vec<float> p, Vec<float> whole) {
  const __m256i n = _mm256_cvtps_epi32(whole.v), half = _mm256_srai_epi32(n, 1), bias = _mm256_set1_epi32(127);
  auto power = [&](__m256i k) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(k, bias), 23)); };
  return p.v * power(half) * power(_mm256_sub_epi32(n, half));
}
CANDELABRA_FORMULA Vec<double> scaled(Vec<double> p, Vec<double> whole) {
  const __m128i n = _mm256_cvtpd_epi32(whole.v), half = _mm_srai_epi32(n, 1), bias = _mm_set1_epi32(1023);
  auto power = [&](__m128i k) {
    return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_cvtepi32_epi64(_mm_add_epi32(k, bias)), 52));
  };
  return p.v * power(half) * power(_mm_sub_epi32(n, half));
}
CANDELABRA_FORMULA Vec<float> scaled_normal(Vec<float> p, Vec<float> whole) {
  const __m256i n = _mm256_slli_epi32(_mm256_cvtps_epi32(whole.v), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p.v), n));
}
CANDELABRA_FORMULA Vec<double> scaled_normal(Vec<double> p, Vec<double> whole) {
  const __m256i n = _mm256_slli_epi64(_mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(whole.v)), 52);
  return _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(p.v), n));
}
template <int bit>
CANDELABRA_FORMULA Mask<float> low_bit(Vec<float> x) {
  return {_mm256_castsi256_ps(_mm256_srai_epi32(_mm256_slli_epi32(_mm256_castps_si256(x.v), 31 - bit), 31))};
}
template <int bit>
CANDELABRA_FORMULA Mask<double> low_bit(Vec<double> x) {
  // blendv reads only the sign bit
  return {_mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(x.v), 63 - bit))};
}
CANDELABRA_FORMULA Vec<float> negated_by_bit1(Vec<float> x, Vec<float> n) {
  const __m256 sign = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(n.v), 30));
  return _mm256_xor_ps(x.v, _mm256_and_ps(sign, _mm256_set1_ps(-0.0f)));
}
CANDELABRA_FORMULA Vec<double> negated_by_bit1(Vec<double> x, Vec<double> n) {
  const __m256d sign = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(n.v), 62));
  return _mm256_xor_pd(x.v, _mm256_and_pd(sign, _mm256_set1_pd(-0.0)));
}

template <typename T>
struct Parts {
  Vec<T> mantissa, exponent;
};
CANDELABRA_FORMULA Parts<float> parts_of(Vec<float> x) {
  const Mask<float> tiny = x < Vec<float>(1.17549435e-38f);
  const __m256i word = _mm256_castps_si256(select(tiny, x.v * _mm256_set1_ps(0x1p25f), x).v);
  // the bits of x minus those of 3/4
  const __m256i above = _mm256_sub_epi32(word, _mm256_set1_epi32(0x3f400000));
  const __m256i exponent = _mm256_srai_epi32(above, 23);
  const __m256i mantissa = _mm256_sub_epi32(word, _mm256_slli_epi32(exponent, 23));
  Vec<float> e = _mm256_cvtepi32_ps(exponent);
  return {_mm256_castsi256_ps(mantissa), select(tiny, e.v - _mm256_set1_ps(25.0f), e)};
}
CANDELABRA_FORMULA Parts<double> parts_of(Vec<double> x) {
  const Mask<double> tiny = x < Vec<double>(2.2250738585072014e-308);
  const __m256i word = _mm256_castpd_si256(select(tiny, x.v * _mm256_set1_pd(0x1p54), x).v);
  // AVX2 has no arithmetic right shift of 64-bit integers. The exponent is kept positive, and
  // converted in the low bits of a double.
  const __m256i above = _mm256_add_epi64(word, _mm256_set1_epi64x((int64_t{1023} << 52) - 0x3fe8000000000000LL));
  const __m256i biased = _mm256_srli_epi64(above, 52);
  const __m256i mantissa =
      _mm256_sub_epi64(word, _mm256_slli_epi64(_mm256_sub_epi64(biased, _mm256_set1_epi64x(1023)), 52));
  Vec<double> e = _mm256_castsi256_pd(_mm256_or_si256(biased, _mm256_castpd_si256(_mm256_set1_pd(0x1p52)))) -
                  _mm256_set1_pd(0x1p52 + 1023);
  return {_mm256_castsi256_pd(mantissa), select(tiny, e.v - _mm256_set1_pd(54.0), e)};
}
template <typename T>
CANDELABRA_FORMULA Vec<T> log_cases_of(Vec<T> x, Vec<T> result) {
  const Vec<T> zero = T(0), infinite = std::numeric_limits<T>::infinity();
  result = select(x == zero, Vec<T>(-std::numeric_limits<T>::infinity()), result);
  result = select(x < zero, Vec<T>(std::numeric_limits<T>::quiet_NaN()), result);
  return select((x == infinite) | (x != x), x, result);
}

template <typename T>
CANDELABRA_FORMULA Vec<T> quotient(Vec<T> a, Vec<T> b) {
  return a.v / b.v;
}
template <typename T>
CANDELABRA_FORMULA Vec<T> inverse(Vec<T> x) {
  return Vec<T>(T(1)).v / x.v;
}

// Permutations within registers: a gather takes several times as long on many processors.
CANDELABRA_FORMULA Vec<float> lookup_of_16(const float* table, __m256i index) {
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_load_ps(table), index);
  const __m256 high = _mm256_permutevar8x32_ps(_mm256_load_ps(table + 8), index);
  return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
}
CANDELABRA_FORMULA Vec<float> lookup(const float (&table)[16], Vec<float> n) {
  return lookup_of_16(table, _mm256_castps_si256(n.v));
}
CANDELABRA_FORMULA Vec<float> lookup(const float (&table)[32], Vec<float> n) {
  const __m256i index = _mm256_castps_si256(n.v);
  const Vec<float> low = lookup_of_16(table, index), high = lookup_of_16(table + 16, index);
  return _mm256_blendv_ps(low.v, high.v, _mm256_castsi256_ps(_mm256_slli_epi32(index, 27)));
}
template <size_t N>
CANDELABRA_FORMULA Vec<double> lookup(const double (&table)[N], Vec<double> n) {
  const __m256i index = _mm256_and_si256(_mm256_castpd_si256(n.v), _mm256_set1_epi64x(static_cast<int64_t>(N) - 1));
  return _mm256_i64gather_pd(table, index, 8);
}

template <typename T>
CANDELABRA_FORMULA Vec<T> opaque(Vec<T> x) {
#ifdef __AVX2__
  asm("" : "+x"(x.v));
#else
  asm("" : "+m"(x.v));  // two registers of the processor
#endif
  return x;
}

}  // namespace parts

CANDELABRA_FORMULA void to_double(Vec<float> x, Vec<double>& low, Vec<double>& high) {
  low = _mm256_cvtps_pd(_mm256_castps256_ps128(x.v));
  high = _mm256_cvtps_pd(_mm256_extractf128_ps(x.v, 1));
}
CANDELABRA_FORMULA Vec<float> to_float(Vec<double> low, Vec<double> high) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low.v)), _mm256_cvtpd_ps(high.v), 1);
}

#endif

// Scalars mix with vectors.
template <typename T>
CANDELABRA_FORMULA Vec<T> operator+(Vec<T> a, Vec<T> b) {
  return a.v + b.v;
}
template <typename T>
CANDELABRA_FORMULA Vec<T> operator-(Vec<T> a, Vec<T> b) {
  return a.v - b.v;
}
template <typename T>
CANDELABRA_FORMULA Vec<T> operator*(Vec<T> a, Vec<T> b) {
  return a.v * b.v;
}
template <typename T>
CANDELABRA_FORMULA Vec<T> operator/(Vec<T> a, Vec<T> b) {
  return a.v / b.v;
}
template <typename T>
CANDELABRA_FORMULA Vec<T> operator+(Vec<T> a, std::type_identity_t<T> b) {
  return a + Vec<T>(b);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> operator-(Vec<T> a, std::type_identity_t<T> b) {
  return a - Vec<T>(b);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> operator*(Vec<T> a, std::type_identity_t<T> b) {
  return a * Vec<T>(b);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> operator/(Vec<T> a, std::type_identity_t<T> b) {
  return a / Vec<T>(b);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> operator+(std::type_identity_t<T> a, Vec<T> b) {
  return Vec<T>(a) + b;
}
template <typename T>
CANDELABRA_FORMULA Vec<T> operator-(std::type_identity_t<T> a, Vec<T> b) {
  return Vec<T>(a) - b;
}
template <typename T>
CANDELABRA_FORMULA Vec<T> operator*(std::type_identity_t<T> a, Vec<T> b) {
  return Vec<T>(a) * b;
}
template <typename T>
CANDELABRA_FORMULA Vec<T> operator/(std::type_identity_t<T> a, Vec<T> b) {
  return Vec<T>(a) / b;
}
template <typename T>
CANDELABRA_FORMULA Vec<T> operator-(Vec<T> a) {
  return -a.v;
}
template <typename T>
CANDELABRA_FORMULA Mask<T> operator>(Vec<T> a, Vec<T> b) {
  return b < a;
}
template <typename T>
CANDELABRA_FORMULA Mask<T> operator>=(Vec<T> a, Vec<T> b) {
  return b <= a;
}

template <typename T>
constexpr bool is_vec_v = false;
template <typename T>
constexpr bool is_vec_v<Vec<T>> = true;

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::math
