// Formulas of candelabra/math.hpp on whole registers: the same functions with the same special
// cases, accurate to one or two ulp. Polynomials are minimax (Remez), fitted for this file.
#pragma once

#include "simd/vec.hpp"
#include "simd/vec_tables.hpp"
#include "simd/vec_trigonometric.hpp"

namespace candelabra::math {
inline namespace CANDELABRA_ISA_NAMESPACE {

namespace parts {

// x = whole ln 2 + r, for x clipped to about where e^x is neither 0 nor infinite.
template <typename T>
struct Reduced {
  Vec<T> r, whole;
};
template <typename T>
CANDELABRA_FORMULA Reduced<T> reduced_exp(Vec<T> x) {
  constexpr bool single = sizeof(T) == 4;
  const Vec<T> magic = detail::Format<T>::round_magic;
  const Vec<T> whole = fma(x, Vec<T>(static_cast<T>(1.44269504088896340736)), magic) - magic;
  Vec<T> r = fnma(whole, Vec<T>(static_cast<T>(0.693147180559945309417)), x);
  r = fnma(whole, Vec<T>(single ? T(-1.9046542121259335e-09) : T(2.3190468138462996e-17)), r);
  return {r, whole};
}
// e^r - 1
template <typename T>
CANDELABRA_FORMULA Vec<T> expm1_of(Vec<T> r) {
  if constexpr (sizeof(T) == 4) {
    static constexpr T c[] = {4.999999404e-01f, 1.666652113e-01f, 4.166838527e-02f, 8.368717507e-03f, 1.381483860e-03f};
    return fma(r * r, series(r, c), r);
  } else {
    static constexpr T c[] = {5.00000000000001110e-01, 1.66666666666664104e-01, 4.16666666665304192e-02,
                              8.33333333349637294e-03, 1.38888889435793820e-03, 1.98412695028029484e-04,
                              2.48014931377858133e-05, 2.75575894536722731e-06, 2.76302381980727741e-07,
                              2.49991706002454634e-08};
    return fma(r * r, series(r, c), r);
  }
}
template <typename T>
CANDELABRA_FORMULA Vec<T> clipped(Vec<T> x, T low, T high) {  // keeps NaN
  return min(Vec<T>(high), max(Vec<T>(low), x));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> exp_unclipped(Vec<T> x) {
  const auto [r, whole] = reduced_exp(x);
  return scaled(expm1_of(r) + T(1), whole);
}

// log m for m in [3/4, 3/2).
CANDELABRA_FORMULA Vec<float> log_near_one(Vec<float> m) {
  static constexpr float c[] = {3.333334029e-01f,  -2.500016391e-01f, 1.999960393e-01f,
                                -1.665529758e-01f, 1.427624673e-01f,  -1.272777319e-01f,
                                1.170058325e-01f,  -9.116067737e-02f, 3.767237812e-02f};
  const Vec<float> f = m - 1.0f, square = f * f;
  return fma(Vec<float>(-0.5f), square, f * square * series(f, c)) + f;
}
// m = n / 16 (1 + r) with the nearest n, so that |r| <= 1/24. Around 1, m is 1 + r itself.
struct Sixteenths {
  Vec<double> shifted, inverse;
};
CANDELABRA_FORMULA Sixteenths sixteenths_of(Vec<double> m) {
  const Vec<double> shifted = fma(m, Vec<double>(16.0), Vec<double>(detail::Format<double>::round_magic));
  return {shifted, lookup(inverse_table, shifted)};
}
CANDELABRA_FORMULA Vec<double> log_near_one(Vec<double> m) {
  if constexpr (Vec<double>::size == 8) {
    // A lookup is one instruction: log(n / 16) + log1p r, the first as a sum of two numbers.
    static constexpr double c[] = {3.33333333333326876e-01,  -2.49999999999994060e-01, 2.00000000119271493e-01,
                                   -1.66666666776002975e-01, 1.42856799440387955e-01,  -1.24999685190488916e-01,
                                   1.11427406406664389e-01,  -1.00289944968337680e-01};
    const auto [shifted, inverse] = sixteenths_of(m);
    const Vec<double> r = fma(m, inverse, Vec<double>(-1.0)), square = r * r;
    const Vec<double> low = fma(Vec<double>(-0.5), square, lookup(log_low_table, shifted));
    return lookup(log_high_table, shifted) + (r + fma(r * square, series(r, c), low));
  } else {
    // f - (f^2/2 - s (f^2/2 + R)), s = f / (2 + f) (as in FreeBSD's msun, after Ng).
    static constexpr double c[] = {6.66666666666665964e-01, 4.00000000000569511e-01, 2.85714285557675307e-01,
                                   2.22222243029532279e-01, 1.81816655037891017e-01, 1.53911236905063947e-01,
                                   1.31734071277616216e-01, 1.38443121728005408e-01};
    const Vec<double> f = m - 1.0, s = quotient(f, m + 1.0), z = s * s, half_square = 0.5 * f * f;
    return f - (half_square - s * fma(z, series(z, c), half_square));
  }
}
template <typename T>
CANDELABRA_FORMULA Vec<T> natural(Vec<T> exponent, Vec<T> mantissa) {
  constexpr bool single = sizeof(T) == 4;
  const Vec<T> low = fma(exponent, Vec<T>(single ? T(-1.9046542121259335e-09) : T(2.3190468138462996e-17)), mantissa);
  return fma(exponent, Vec<T>(static_cast<T>(0.693147180559945309417)), low);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> log_positive(Vec<T> x) {
  const auto [m, e] = parts_of(x);
  return natural(e, log_near_one(m));
}

}  // namespace parts

// ---- rounding and roots

template <typename T>
CANDELABRA_FORMULA Vec<T> floor(Vec<T> x) {
  return rounded<_MM_FROUND_TO_NEG_INF>(x);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> trunc(Vec<T> x) {
  return rounded<_MM_FROUND_TO_ZERO>(x);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> round_even(Vec<T> x) {
  return rounded<_MM_FROUND_TO_NEAREST_INT>(x);
}

#ifdef __AVX512F__
namespace parts {
CANDELABRA_FORMULA Vec<float> approximate_rsqrt(Vec<float> x) {
  return _mm512_maskz_rsqrt14_ps(0xffff, x.v);
}
CANDELABRA_FORMULA Vec<double> approximate_rsqrt(Vec<double> x) {
  return _mm512_maskz_rsqrt14_pd(0xff, x.v);
}
// Whether the iteration below neither overflows nor underflows. This holds for typical data.
CANDELABRA_FORMULA bool all_moderate(Vec<float> x) {
  const __m512i bits = _mm512_castps_si512(x.v);
  return _mm512_cmpge_epu32_mask(_mm512_sub_epi32(bits, _mm512_set1_epi32(0x0d000000)),
                                 _mm512_set1_epi32(0x70000000 - 0x0d000000)) == 0;
}
CANDELABRA_FORMULA bool all_moderate(Vec<double> x) {
  const __m512i bits = _mm512_castpd_si512(x.v);
  return _mm512_cmpge_epu64_mask(_mm512_sub_epi64(bits, _mm512_set1_epi64(0x0800000000000000LL)),
                                 _mm512_set1_epi64(0x7000000000000000LL - 0x0800000000000000LL)) == 0;
}
// The root and half its inverse by Goldschmidt's iteration (Markstein 1990): faster than the
// divider, with the same rounding.
template <typename T>
struct Root {
  Vec<T> root, half_inverse;
};
template <typename T>
CANDELABRA_FORMULA Root<T> root_of(Vec<T> x) {
  const Vec<T> y = approximate_rsqrt(x);
  Vec<T> g = x * y, h = y * T(0.5);
#pragma GCC unroll 2
  for (int step = 0; step < (sizeof(T) == 4 ? 1 : 2); ++step) {
    const Vec<T> r = fnma(g, h, Vec<T>(T(0.5)));
    g = fma(g, r, g);
    h = fma(h, r, h);
  }
  return {fma(fnma(g, g, x), h, g), h};
}
}  // namespace parts
#endif

template <typename T>
CANDELABRA_FORMULA Vec<T> sqrt(Vec<T> x) {
#ifdef __AVX512F__
  if (parts::all_moderate(x)) [[likely]]
    return parts::root_of(x).root;
#endif
  return hardware_sqrt(x);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> rsqrt(Vec<T> x) {
  return T(1) / sqrt(x);
}

// ---- exponentials

template <typename T>
CANDELABRA_FORMULA Vec<T> exp(Vec<T> x) {
  return parts::exp_unclipped(parts::clipped(x, detail::Format<T>::exp_low, detail::Format<T>::exp_high));
}
// For x <= 0.
template <typename T>
CANDELABRA_FORMULA Vec<T> exp_negative(Vec<T> x) {
  return parts::exp_unclipped(max(Vec<T>(detail::Format<T>::exp_low), x));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> exp2(Vec<T> x) {
  constexpr bool single = sizeof(T) == 4;
  x = parts::clipped(x, single ? T(-152) : T(-1080), single ? T(129) : T(1025));
  const Vec<T> magic = detail::Format<T>::round_magic, whole = (x + magic) - magic;
  const Vec<T> d = x - whole, r = d * static_cast<T>(0.693147180559945309417);
  const Vec<T> low = d * (single ? T(-1.9046542121259335e-09) : T(2.3190468138462996e-17));
  return parts::scaled((parts::expm1_of(r) + low) + T(1), whole);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> expm1(Vec<T> x) {
  const auto [r, whole] = parts::reduced_exp(parts::clipped(x, T(-50), detail::Format<T>::exp_high));
  const Vec<T> p = parts::expm1_of(r);
  // half of 2^whole, which may overflow although the result does not
  const Vec<T> half = parts::scaled_normal(Vec<T>(T(0.5)), whole);
  const Vec<T> result = T(2) * fma(half, p, half - T(0.5));
  return with_sign_of(result, x);
}

// ---- logarithms

template <typename T>
CANDELABRA_FORMULA Vec<T> log(Vec<T> x) {
  return parts::log_cases_of(x, parts::log_positive(x));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> log2(Vec<T> x) {
  const auto [m, e] = parts::parts_of(x);
  return parts::log_cases_of(x, fma(parts::log_near_one(m), Vec<T>(static_cast<T>(1.44269504088896340736)), e));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> log10(Vec<T> x) {
  constexpr bool single = sizeof(T) == 4;
  const auto [m, e] = parts::parts_of(x);
  const Vec<T> low = fma(e, Vec<T>(single ? T(-1.43209889e-08) : T(-2.8037281277851704e-18)),
                         parts::log_near_one(m) * static_cast<T>(0.434294481903251827651));
  return parts::log_cases_of(x, fma(e, Vec<T>(static_cast<T>(0.301029995663981195214)), low));
}
// log(1 + x), with the rounding error of 1 + x corrected to first order (Kahan).
template <typename T>
CANDELABRA_FORMULA Vec<T> log1p(Vec<T> x) {
  const Vec<T> u = x + T(1);
  const Vec<T> result = fma(x - (u - T(1)), parts::inverse(u), parts::log_positive(u));
  return with_sign_of(parts::log_cases_of(u, result), x);
}
namespace parts {
// For x in [0, 1].
template <typename T>
CANDELABRA_FORMULA Vec<T> log1p_small(Vec<T> x) {
  const Vec<T> u = x + T(1);
  return fma(x - (u - T(1)), inverse(u), log_positive(u));
}
}  // namespace parts
template <typename T>
CANDELABRA_FORMULA Vec<T> logaddexp(Vec<T> a, Vec<T> b) {
  const Mask<T> first = b < a;
  const Vec<T> high = select(first, a, b), low = select(first, b, a);
  Vec<T> result = high + parts::log1p_small(exp_negative(low - high));
  // also for equal infinities
  result = select(a == b, a + static_cast<T>(0.693147180559945309417), result);
  return select((a != a) | (b != b), a + b, result);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> logaddexp2(Vec<T> a, Vec<T> b) {
  const Mask<T> first = b < a;
  const Vec<T> high = select(first, a, b), low = select(first, b, a);
  Vec<T> result = fma(parts::log1p_small(exp2(low - high)), Vec<T>(static_cast<T>(1.44269504088896340736)), high);
  result = select(a == b, a + T(1), result);
  return select((a != a) | (b != b), a + b, result);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> xlogy(Vec<T> x, Vec<T> y) {
  return select(y != y, y, select(x == Vec<T>(T(0)), Vec<T>(T(0)), x * log(y)));
}

// ---- hyperbolic functions

namespace parts {
// (tanh(x) / x - 1) / x^2 for |x| < tanh_near, in x^2. The first coefficient is added last, so that
// it is rounded once.
inline constexpr float tanh_near = 0.92f;
inline constexpr float tanh_first = -3.333331645e-01f;
inline constexpr float tanh_series[] = {1.333283633e-01f,  -5.391763896e-02f, 2.161934599e-02f,
                                        -8.179863915e-03f, 2.502953401e-03f,  -4.261694849e-04f};
}  // namespace parts
template <typename T>
CANDELABRA_FORMULA Vec<T> tanh(Vec<T> x) {
  const Vec<T> a = abs(x);
  if constexpr (Vec<T>::size == 16) {
    const Vec<T> result = parts::piecewise(parts::tanh_table, min(Vec<T>(parts::tanh_table.top), a));
    return with_sign_of(select(Vec<T>(T(9.02)) < a, Vec<T>(T(1)), result), x);
  } else {
    const auto [r, whole] = parts::reduced_exp(min(Vec<T>(T(80)), a + a));
    const Vec<T> p = parts::expm1_of(r), power = parts::scaled_normal(Vec<T>(T(1)), whole);
    if constexpr (sizeof(T) == 8) {
      const Vec<T> t = fma(power, p, power - T(1));
      return with_sign_of(parts::quotient(t, t + T(2)), x);
    } else {  // rounding errors would add up near zero
      const Vec<T> far = T(1) - parts::quotient(Vec<T>(T(2)), fma(power, p, power + T(1)));
      const Vec<T> z = x * x, terms = fma(z, parts::series(z, parts::tanh_series), Vec<T>(parts::tanh_first));
      const Vec<T> near = fma(a, z * terms, a);
      return with_sign_of(select(a < Vec<T>(parts::tanh_near), near, far), x);
    }
  }
}
// From e^a - 1 for small a. For large a from e^a / 2, computed directly because e^a overflows
// first.
template <typename T>
CANDELABRA_FORMULA Vec<T> sinh(Vec<T> x) {
  const Vec<T> a = abs(x);
  const auto [r, whole] = parts::reduced_exp(min(Vec<T>(detail::Format<T>::exp_high + T(1)), a));
  const Vec<T> p = parts::expm1_of(r), half_power = parts::scaled(Vec<T>(T(0.5)), whole);
  const Vec<T> large = parts::scaled(p + T(1), whole - T(1));
  const Vec<T> half_t = fma(half_power, p, half_power - T(0.5));  // (e^a - 1) / 2
  const Vec<T> small = half_t + parts::quotient(half_t, fma(Vec<T>(T(2)), half_t, Vec<T>(T(1))));
  return with_sign_of(select(a < Vec<T>(T(20)), small, large), x);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> cosh(Vec<T> x) {
  const auto [r, whole] = parts::reduced_exp(min(Vec<T>(detail::Format<T>::exp_high + T(1)), abs(x)));
  const Vec<T> half = parts::scaled(parts::expm1_of(r) + T(1), whole - T(1));
  return half + parts::quotient(Vec<T>(T(0.25)), min(Vec<T>(T(1e30)), half));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> asinh(Vec<T> x) {
  constexpr T large = sizeof(T) == 4 ? T(1e8) : T(1e16);
  const Vec<T> a = abs(x);
  const Mask<T> far = Vec<T>(large) < a;
  const Vec<T> b = select(far, Vec<T>(T(1)), a);
  const Vec<T> small = log1p(b + parts::quotient(b * b, T(1) + hardware_sqrt(fma(b, b, Vec<T>(T(1))))));
  const Vec<T> result = select(far, log(a) + static_cast<T>(0.693147180559945309417), small);
  return with_sign_of(result, x);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> acosh(Vec<T> x) {
  constexpr T large = sizeof(T) == 4 ? T(1e8) : T(1e16);
  const Mask<T> far = Vec<T>(large) < x;
  const Vec<T> t = select(far, Vec<T>(T(2)), x) - T(1);
  const Vec<T> result = log(select(far, x, Vec<T>(T(1)))) + static_cast<T>(0.693147180559945309417);
  const Vec<T> small = log1p(t + hardware_sqrt(fma(t, t, t + t)));
  return select(x < Vec<T>(T(1)), Vec<T>(detail::nan<T>), select(far, result, small));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> atanh(Vec<T> x) {
  const Vec<T> a = abs(x);
  Vec<T> result = T(0.5) * log1p((a + a) / (T(1) - a));
  result = select(a == Vec<T>(T(1)), Vec<T>(detail::infinity<T>), result);
  return with_sign_of(select(Vec<T>(T(1)) < a, Vec<T>(detail::nan<T>), result), x);
}

// ---- the logistic function and its relatives

namespace parts {
// The logistic function from e = e^-|x|.
template <typename T>
CANDELABRA_FORMULA Vec<T> logistic(Vec<T> x, Vec<T> e) {
  return quotient(select(x < Vec<T>(T(0)), e, Vec<T>(T(1))), e + T(1));
}
}  // namespace parts
template <typename T>
CANDELABRA_FORMULA Vec<T> sigmoid(Vec<T> x) {
  // A subnormal e^-x is negligible beside 1, and slow.
  constexpr T lost = sizeof(T) == 4 ? T(-80) : T(-700);
  const Vec<T> least_power = select(x < Vec<T>(T(0)), Vec<T>(detail::Format<T>::exp_low), Vec<T>(lost));
  return parts::logistic(x, parts::exp_unclipped(max(least_power, -abs(x))));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> softplus(Vec<T> x) {
  return max(Vec<T>(T(0)), x) + parts::log1p_small(exp_negative(-abs(x)));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> log_sigmoid(Vec<T> x) {
  return min(Vec<T>(T(0)), x) - parts::log1p_small(exp_negative(-abs(x)));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> silu(Vec<T> x) {
  return x * sigmoid(x);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> silu_derivative(Vec<T> x) {
  const Vec<T> s = sigmoid(x);
  return s * fma(x, T(1) - s, Vec<T>(T(1)));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> mish(Vec<T> x) {
  const Vec<T> e = exp(min(Vec<T>(T(20)), x));
  const Vec<T> n = e * (e + T(2));
  return select(Vec<T>(T(20)) < x, x, x * parts::quotient(n, n + T(2)));
}

// With n = e^x (e^x + 2), as above.
template <typename T>
CANDELABRA_FORMULA Vec<T> mish_derivative(Vec<T> x) {
  const Vec<T> e = exp(min(Vec<T>(T(20)), x));
  const Vec<T> n = e * (e + T(2)), inverse = parts::inverse(n + T(2)), squashed = n * inverse;
  const Vec<T> rest = T(4) * (n + T(1)) * inverse * inverse;  // 1 - squashed^2
  return select(Vec<T>(T(20)) < x, Vec<T>(T(1)), fma(x * parts::quotient(e, e + T(1)), rest, squashed));
}

// ---- error function

namespace parts {
// For registers of eight floats, which cannot hold the table: erf as a polynomial beside zero, and
// erfc as e to the power of another one (Juffa 2018).
struct ErrorFunction {
  Vec<float> near, far;  // erf(x), erfc(|x|)
  Mask<float> is_near;
};
CANDELABRA_FORMULA ErrorFunction error_function(Vec<float> x) {
  using V = Vec<float>;
  static constexpr float near_series[] = {1.28379166e-1f,  -3.76125336e-1f, 1.12819925e-1f,
                                          -2.67681349e-2f, 4.99119423e-3f,  -5.96761703e-4f};
  static constexpr float far_series[] = {-1.28717512e-1f, -6.34846687e-1f, -1.06777877e-1f, 2.42546219e-2f,
                                         -3.88396438e-3f, 3.83197126e-4f,  -1.72853470e-5f};
  const V a = min(V(erf_one<float>), abs(x)), z = x * x;
  const V near = fma(x, series(z, near_series), x);
  const auto [r, whole] = reduced_exp(fma(a, series(a, far_series), -a));
  return {near, scaled_normal(expm1_of(r) + 1.0f, whole), a < V(0.9277f)};
}
}  // namespace parts

template <typename T>
CANDELABRA_FORMULA Vec<T> erf(Vec<T> x) {
  if constexpr (std::is_same_v<T, float> && Vec<T>::size == 8) {
    const auto [near, far, is_near] = parts::error_function(x);
    return select(is_near, near, with_sign_of(T(1) - far, x));
  } else {
    const Vec<T> a = abs(x);
    const auto& table = parts::erf_table<T>;
    const Vec<T> result = parts::piecewise(table, min(Vec<T>(table.top), a));
    return with_sign_of(select(Vec<T>(parts::erf_one<T>) < a, Vec<T>(T(1)), result), x);
  }
}
namespace parts {
// 1 + erf(x)
template <typename T>
CANDELABRA_FORMULA Vec<T> one_plus_erf(Vec<T> x) {
  if constexpr (std::is_same_v<T, float> && Vec<T>::size == 8) {
    const auto [near, far, is_near] = error_function(x);
    const Vec<T> low = select(Vec<T>(-erf_one<T>) < x, far, Vec<T>(T(0)));
    return select(is_near, near + T(1), select(x < Vec<T>(T(0)), low, T(2) - far));
  } else {
    return T(1) + erf(x);
  }
}
}  // namespace parts

template <typename T>
CANDELABRA_FORMULA Vec<T> gelu(Vec<T> x) {
  return T(0.5) * x * parts::one_plus_erf(x * static_cast<T>(0.707106781186547524401));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> gelu_derivative(Vec<T> x) {
  const Vec<T> cdf = T(0.5) * parts::one_plus_erf(x * static_cast<T>(0.707106781186547524401));
  return fma(x * static_cast<T>(0.398942280401432677940), exp_negative(T(-0.5) * x * x), cdf);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> gelu_tanh(Vec<T> x) {
  const Vec<T> inner = static_cast<T>(0.797884560802865355880) * fma(static_cast<T>(0.044715) * x * x, x, x);
  return T(0.5) * x * (T(1) + tanh(inner));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> gelu_tanh_derivative(Vec<T> x) {
  constexpr T beta = static_cast<T>(0.797884560802865355880), kappa = static_cast<T>(0.044715);
  const Vec<T> square = x * x, t = tanh(beta * fma(kappa * square, x, x));
  return fma(T(0.5) * x * fnma(t, t, Vec<T>(T(1))), beta * fma(Vec<T>(T(3) * kappa), square, Vec<T>(T(1))),
             fma(Vec<T>(T(0.5)), t, Vec<T>(T(0.5))));
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::math
