// Registers of complex numbers, and functions of them. Both dtypes are computed in float64: a
// float32 argument cannot leave its range, and its error is below float32 rounding.
// elementwise_complex.hpp states the domain of each function. Other arguments (zeros, infinities,
// NaN, the ends of the range) use the C library.
#pragma once

#include <complex>

#include "simd/vec_math.hpp"

namespace candelabra::math {
inline namespace CANDELABRA_ISA_NAMESPACE {

struct VecComplex {
  using Real = Vec<double>;
  static constexpr int64_t size = Real::size;
  Real real, imag;

  // Lanes are in the order of the unpack instructions. Unpacking is its own inverse, so `store`
  // applies it again.
  CANDELABRA_FORMULA static VecComplex unpacked(Real low, Real high) {
#ifdef __AVX512F__
    return {_mm512_maskz_unpacklo_pd(0xff, low.v, high.v), _mm512_maskz_unpackhi_pd(0xff, low.v, high.v)};
#else
    return {_mm256_unpacklo_pd(low.v, high.v), _mm256_unpackhi_pd(low.v, high.v)};
#endif
  }
  CANDELABRA_FORMULA static VecComplex load(const std::complex<double>* p) {
    const auto* numbers = reinterpret_cast<const double*>(p);
    return unpacked(Real::load(numbers), Real::load(numbers + size));
  }
  CANDELABRA_FORMULA static VecComplex load(const std::complex<float>* p) {
    Real low, high;
    to_double(Vec<float>::load(reinterpret_cast<const float*>(p)), low, high);
    return unpacked(low, high);
  }
  CANDELABRA_FORMULA void store(std::complex<double>* p) const {
    const VecComplex packed = unpacked(real, imag);
    auto* numbers = reinterpret_cast<double*>(p);
    packed.real.store(numbers);
    packed.imag.store(numbers + size);
  }
  CANDELABRA_FORMULA void store(std::complex<float>* p) const {
    const VecComplex packed = unpacked(real, imag);
    to_float(packed.real, packed.imag).store(reinterpret_cast<float*>(p));
  }
};

namespace parts {

// Real results in memory order.
CANDELABRA_FORMULA Vec<double> in_order(Vec<double> x) {
#ifdef __AVX512F__
  return _mm512_maskz_permutexvar_pd(0xff, _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), x.v);
#else
  return _mm256_permute4x64_pd(x.v, 0xd8);
#endif
}
CANDELABRA_FORMULA void store_real(Vec<double> x, double* p) {
  in_order(x).store(p);
}
CANDELABRA_FORMULA void store_real(Vec<double> x, float* p) {
#ifdef __AVX512F__
  _mm256_storeu_ps(p, _mm512_maskz_cvtpd_ps(0xff, in_order(x).v));
#else
  _mm_storeu_ps(p, _mm256_cvtpd_ps(in_order(x).v));
#endif
}

struct SinCos {
  Vec<double> sin, cos;
};
CANDELABRA_FORMULA SinCos sin_cos(Vec<double> x) {
  const auto [r, n, low, z] = reduced_angle(x);
  const Vec<double> s = sin_of(r, z, low), c = cos_of(z);
  const Mask<double> odd = low_bit<0>(n);
  const Vec<double> sine = negated_by_bit1(select(odd, c, s), n);
  return {select(x == Vec<double>(0.0), x, sine), negated_by_bit1(select(odd, -s, c), n)};
}
// For |x| < 700. Both are computed from t = (e^|x| - 1) / 2.
struct SinhCosh {
  Vec<double> sinh, cosh;
};
CANDELABRA_FORMULA SinhCosh sinh_cosh(Vec<double> x) {
  const auto [r, whole] = reduced_exp(abs(x));
  const Vec<double> p = expm1_of(r), half_power = scaled(Vec<double>(0.5), whole);
  const Vec<double> t = fma(half_power, p, half_power - 0.5), half = fma(half_power, p, half_power);
  const Vec<double> inverse_power = inverse(half + half);
  return {with_sign_of(fma(t, inverse_power, t), x), fma(Vec<double>(0.5), inverse_power, half)};
}

// a + b and its rounding error (Knuth).
struct Sum {
  Vec<double> high, low;
};
CANDELABRA_FORMULA Sum two_sum(Vec<double> a, Vec<double> b) {
  const Vec<double> sum = opaque(a + b), of_b = opaque(sum - a);
  return {sum, (a - opaque(sum - of_b)) + (b - of_b)};
}
// log(high + low) / 2 for high + low > 0. The rounding error of the sum is corrected to first
// order.
CANDELABRA_FORMULA Vec<double> half_log(Vec<double> high, Vec<double> low) {
  const Vec<double> u = opaque(high + low);
  return 0.5 * fma((high - u) + low, inverse(u), log_positive(u));
}

CANDELABRA_FORMULA Vec<double> magnitude(VecComplex z) {
  return sqrt(fma(z.real, z.real, z.imag * z.imag));
}
// The square of the larger part neither overflows nor underflows, and neither part is NaN.
CANDELABRA_FORMULA Mask<double> moderate_squares(VecComplex z) {
  const Vec<double> high = max(abs(z.real), abs(z.imag));
  return (Vec<double>(1e-140) < high) & (high < Vec<double>(1e140)) & (z.real == z.real) & (z.imag == z.imag);
}

// Zero, or a number whose square is normal.
CANDELABRA_FORMULA Mask<double> zero_or_moderate(Vec<double> x) {
  const Vec<double> a = abs(x);
  return ((Vec<double>(1e-140) < a) & (a < Vec<double>(1e140))) | (a == Vec<double>(0.0));
}

}  // namespace parts

// Domain of functions that need sine and cosine of `turn` and the exponential of `grow`.
CANDELABRA_FORMULA Mask<double> is_in_sincos_exp_range(Vec<double> turn, Vec<double> grow, double most = 700) {
  return (abs(turn) < Vec<double>(vec_trigonometric_limit<double>)) & (abs(grow) < Vec<double>(most));
}

// ---- exponentials

CANDELABRA_FORMULA VecComplex exp(VecComplex z) {
  const Vec<double> e = parts::exp_unclipped(z.real);
  const auto [s, c] = parts::sin_cos(z.imag);
  return {e * c, e * s};
}
CANDELABRA_FORMULA VecComplex exp2(VecComplex z) {
  constexpr double ln2 = 0.693147180559945309417;
  return exp(VecComplex{z.real * ln2, z.imag * ln2});
}
// e^x cos y - 1 = (e^x - 1) cos y - 2 sin(y / 2)^2
CANDELABRA_FORMULA VecComplex expm1(VecComplex z) {
  const auto [half_s, half_c] = parts::sin_cos(0.5 * z.imag);
  const Vec<double> t = expm1(z.real), s = 2.0 * half_s * half_c, c = fnma(half_s + half_s, half_s, Vec<double>(1.0));
  return {fnma(half_s + half_s, half_s, t * c), select(z.imag == Vec<double>(0.0), z.imag, fma(t, s, s))};
}
// 1 / (a + bi)
CANDELABRA_FORMULA VecComplex reciprocal(VecComplex z) {
  const Vec<double> by = parts::inverse(fma(z.real, z.real, z.imag * z.imag));
  return {z.real * by, -(z.imag * by)};
}
CANDELABRA_FORMULA VecComplex sigmoid(VecComplex z) {
  const VecComplex e = exp(VecComplex{-z.real, -z.imag});
  return reciprocal(VecComplex{e.real + 1.0, e.imag});
}

// ---- logarithms: log |z|^2 / 2, with |z|^2 in twice the precision

CANDELABRA_FORMULA VecComplex log(VecComplex z) {
  const Vec<double> a = z.real * z.real, b = z.imag * z.imag;
  const Vec<double> rest = fma(z.real, z.real, -a) + fma(z.imag, z.imag, -b);
  const auto [high, low] = parts::two_sum(a, b);
  return {parts::half_log(high, low + rest), atan2(z.imag, z.real)};
}
CANDELABRA_FORMULA VecComplex log2(VecComplex z) {
  constexpr double by = 1.44269504088896340736;
  const VecComplex natural = log(z);
  return {natural.real * by, natural.imag * by};
}
CANDELABRA_FORMULA VecComplex log10(VecComplex z) {
  constexpr double by = 0.434294481903251827651;
  const VecComplex natural = log(z);
  return {natural.real * by, natural.imag * by};
}
CANDELABRA_FORMULA VecComplex log1p(VecComplex z) {
  const Vec<double> a = z.real * z.real, b = z.imag * z.imag, one = 1.0;
  const Vec<double> rest = fma(z.real, z.real, -a) + fma(z.imag, z.imag, -b);
  const auto first = parts::two_sum(z.real + z.real, a), second = parts::two_sum(first.high, b);
  const auto third = parts::two_sum(one, second.high);
  return {parts::half_log(third.high, third.low + (first.low + second.low + rest)), atan2(z.imag, z.real + 1.0)};
}

// ---- roots

CANDELABRA_FORMULA VecComplex sqrt(VecComplex z) {
  const Vec<double> t = sqrt(0.5 * (parts::magnitude(z) + abs(z.real)));
  const Vec<double> other = parts::quotient(abs(z.imag), t + t);
  const Mask<double> left = z.real < Vec<double>(0.0);
  return {select(left, other, t), with_sign_of(select(left, t, other), z.imag)};
}
CANDELABRA_FORMULA VecComplex rsqrt(VecComplex z) {
  const VecComplex root = sqrt(z);
  const Vec<double> by = parts::inverse(parts::magnitude(z));
  return {root.real * by, -(root.imag * by)};
}
CANDELABRA_FORMULA VecComplex sgn(VecComplex z) {
  const Vec<double> size = parts::magnitude(z);
  return {z.real / size, z.imag / size};
}

// ---- trigonometric and hyperbolic functions

CANDELABRA_FORMULA VecComplex sinh(VecComplex z) {
  const auto [sh, ch] = parts::sinh_cosh(z.real);
  const auto [s, c] = parts::sin_cos(z.imag);
  return {sh * c, ch * s};
}
CANDELABRA_FORMULA VecComplex cosh(VecComplex z) {
  const auto [sh, ch] = parts::sinh_cosh(z.real);
  const auto [s, c] = parts::sin_cos(z.imag);
  return {ch * c, sh * s};
}
// (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y)
CANDELABRA_FORMULA VecComplex tanh(VecComplex z) {
  const auto [sh, ch] = parts::sinh_cosh(z.real);
  const auto [s, c] = parts::sin_cos(z.imag);
  const Vec<double> by = parts::inverse(fma(sh, sh, c * c));
  return {sh * ch * by, s * c * by};
}
// sin z = sinh(iz) / i, cos z = cosh(iz), tan z = tanh(iz) / i.
CANDELABRA_FORMULA VecComplex times_i(VecComplex z) {
  return {-z.imag, z.real};
}
CANDELABRA_FORMULA VecComplex over_i(VecComplex z) {
  return {z.imag, -z.real};
}
CANDELABRA_FORMULA VecComplex sin(VecComplex z) {
  return over_i(sinh(times_i(z)));
}
CANDELABRA_FORMULA VecComplex cos(VecComplex z) {
  return cosh(times_i(z));
}
CANDELABRA_FORMULA VecComplex tan(VecComplex z) {
  return over_i(tanh(times_i(z)));
}

// ---- inverse functions

// log((1 + z) / (1 - z)) / 2 (Kahan 1987), computed right of the imaginary axis and mirrored.
CANDELABRA_FORMULA VecComplex atanh(VecComplex z) {
  const Vec<double> x = abs(z.real), y = z.imag, away = 1.0 - x;
  const Vec<double> grown = parts::quotient(4.0 * x, fma(away, away, y * y)), u = grown + 1.0;
  const Vec<double> real = 0.25 * fma(grown - (u - 1.0), parts::inverse(u), parts::log_positive(u));
  const Vec<double> imag = 0.5 * atan2(y + y, fnma(y, y, away * (x + 1.0)));
  return {with_sign_of(real, z.real), imag};
}
CANDELABRA_FORMULA VecComplex atan(VecComplex z) {
  return over_i(atanh(times_i(z)));
}

namespace parts {
// Terms of asin and acos (Hull, Fairgrieve and Tang 1997), for x = |Re z|, y = |Im z| and a = (|z +
// 1| + |z - 1|) / 2. b is the sine of the real part of asin z, `beside` its cosine times a.
// `height` is the imaginary part.
struct Arcs {
  Vec<double> x, b, beside, height;
};
CANDELABRA_FORMULA Arcs arcs_of(VecComplex z) {
  const Vec<double> x = abs(z.real), y = abs(z.imag), one = 1.0;
  const Vec<double> up = x + 1.0, down = x - 1.0, square = y * y;
  const Vec<double> r = sqrt(fma(up, up, square)), s = sqrt(fma(down, down, square));
  const Vec<double> a = 0.5 * (r + s);
  const Mask<double> inside = x <= one;
  const Vec<double> by_up = quotient(square, r + up);
  // s - |x - 1| would cancel. It equals y^2 / (s + |x - 1|).
  const Vec<double> apart = s + abs(down);
  const Vec<double> close = select(apart == Vec<double>(0.0), apart, quotient(square, apart));
  const Vec<double> low = select(inside, close, s + down), other = select(inside, s - down, close);
  const Vec<double> above = 0.5 * (by_up + low);  // a - 1
  const Vec<double> t = above + sqrt(above * (a + 1.0)), u = t + 1.0;
  return {x, quotient(x, a), sqrt(0.5 * (a + x) * (by_up + other)), fma(t - (u - 1.0), inverse(u), log_positive(u))};
}
constexpr double crossover = 0.6417;
}  // namespace parts

CANDELABRA_FORMULA VecComplex asin(VecComplex z) {
  const auto [x, b, beside, height] = parts::arcs_of(z);
  const Vec<double> real = select(b <= Vec<double>(parts::crossover), asin(b), atan2(x, beside));
  return {with_sign_of(real, z.real), with_sign_of(height, z.imag)};
}
CANDELABRA_FORMULA VecComplex acos(VecComplex z) {
  const auto [x, b, beside, height] = parts::arcs_of(z);
  const Vec<double> signed_b = with_sign_of(b, z.real);
  const Vec<double> real = select(b <= Vec<double>(parts::crossover), acos(signed_b), atan2(beside, z.real));
  return {real, with_sign_of(height, -z.imag)};
}
CANDELABRA_FORMULA VecComplex asinh(VecComplex z) {
  return over_i(asin(times_i(z)));
}
CANDELABRA_FORMULA VecComplex acosh(VecComplex z) {
  const VecComplex turned = acos(z);
  return {abs(turned.imag), with_sign_of(turned.real, z.imag)};
}

// The same functions of one number, for the formulas of candelabra/formulas/unary.hpp.
template <typename T>
CANDELABRA_FORMULA std::complex<T> asin(std::complex<T> z) {
  return std::asin(z);
}
template <typename T>
CANDELABRA_FORMULA std::complex<T> acos(std::complex<T> z) {
  return std::acos(z);
}
template <typename T>
CANDELABRA_FORMULA std::complex<T> atan(std::complex<T> z) {
  return std::atan(z);
}
template <typename T>
CANDELABRA_FORMULA std::complex<T> asinh(std::complex<T> z) {
  return std::asinh(z);
}
template <typename T>
CANDELABRA_FORMULA std::complex<T> acosh(std::complex<T> z) {
  return std::acosh(z);
}
template <typename T>
CANDELABRA_FORMULA std::complex<T> atanh(std::complex<T> z) {
  return std::atanh(z);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::math
