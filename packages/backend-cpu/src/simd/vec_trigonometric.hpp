// Trigonometric functions and their inverses on whole registers. vec_math.hpp includes them.
#pragma once

#include "simd/vec.hpp"
#include "simd/vec_tables.hpp"

namespace candelabra::math {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Limit of the argument reduction below. Larger arguments need the C library (Payne and Hanek).
template <typename T>
constexpr T vec_trigonometric_limit = sizeof(T) == 4 ? T(6e6) : T(1e9);

namespace parts {

// x = n pi/2 + r + low. The first step is exact, the others round r. For float, `low` is what they
// lost. z is the square of both.
template <typename T>
struct ReducedAngle {
  Vec<T> r, shifted;  // n in the low bits
  Vec<T> low, z;
};
template <typename T>
CANDELABRA_FORMULA ReducedAngle<T> reduced_angle(Vec<T> x) {
  constexpr bool single = sizeof(T) == 4;
  const Vec<T> magic = detail::Format<T>::round_magic;
  const Vec<T> shifted = fma(x, Vec<T>(static_cast<T>(0.636619772367581343076)), magic);
  const Vec<T> n = shifted - magic;
  const Vec<T> second = single ? T(-4.37113900018624283e-8) : T(6.1232339957367660359e-17);
  const Vec<T> third = single ? T(-1.71512449448857263e-15) : T(-1.4973849048591833e-33);
  const Vec<T> first = fnma(n, Vec<T>(single ? T(1.57079637050628662109375) : T(1.5707963267948965580)), x);
  const Vec<T> r = fnma(n, second, first);
  if constexpr (single) {
    // The difference is exact if it is at most half of `first` (Sterbenz).
    const Vec<T> step = first - r;
    const Vec<T> lost = select(abs(step + step) <= abs(first), fnma(n, second, step), Vec<T>(T(0)));
    const Vec<T> low = fnma(n, third, lost);
    return {r, shifted, low, fma(r, r, r * (low + low))};
  } else {
    const Vec<T> both = fnma(n, third, r);
    return {both, shifted, Vec<T>(T(0)), both * both};
  }
}
// sin r and cos r by Taylor series, |r| <= pi/4, z = r^2.
CANDELABRA_FORMULA Vec<float> sin_of(Vec<float> r, Vec<float> z, Vec<float> low) {
  static constexpr float c[] = {-1.0f / 6, 1.0f / 120, -1.0f / 5040, 1.0f / 362880};
  return fma(r * z, series(z, c), low) + r;
}
CANDELABRA_FORMULA Vec<float> cos_of(Vec<float> z) {
  static constexpr float c[] = {-0.5f, 1.0f / 24, -1.0f / 720, 1.0f / 40320, -1.0f / 3628800};
  return fma(z, series(z, c), Vec<float>(1.0f));
}
CANDELABRA_FORMULA Vec<double> sin_of(Vec<double> r, Vec<double> z, Vec<double>) {
  static constexpr double c[] = {-1.0 / 6,
                                 1.0 / 120,
                                 -1.0 / 5040,
                                 1.0 / 362880,
                                 -1.0 / 39916800.0,
                                 1.0 / 6227020800.0,
                                 -1.0 / 1307674368000.0,
                                 1.0 / 355687428096000.0};
  return fma(r * z, series(z, c), r);
}
CANDELABRA_FORMULA Vec<double> cos_of(Vec<double> z) {
  static constexpr double c[] = {-0.5,
                                 1.0 / 24,
                                 -1.0 / 720,
                                 1.0 / 40320,
                                 -1.0 / 3628800,
                                 1.0 / 479001600.0,
                                 -1.0 / 87178291200.0,
                                 1.0 / 20922789888000.0,
                                 -1.0 / 6402373705728000.0};
  return fma(z, series(z, c), Vec<double>(1.0));
}

}  // namespace parts

template <typename T>
CANDELABRA_FORMULA Vec<T> sin(Vec<T> x) {
  const auto [r, n, low, z] = parts::reduced_angle(x);
  const Vec<T> value = select(parts::low_bit<0>(n), parts::cos_of(z), parts::sin_of(r, z, low));
  return select(x == Vec<T>(T(0)), x, parts::negated_by_bit1(value, n));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> cos(Vec<T> x) {
  const auto [r, n, low, z] = parts::reduced_angle(x);
  const Vec<T> value = select(parts::low_bit<0>(n), -parts::sin_of(r, z, low), parts::cos_of(z));
  return parts::negated_by_bit1(value, n);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> tan(Vec<T> x) {
  const auto [r, n, low, z] = parts::reduced_angle(x);
  const Vec<T> s = parts::sin_of(r, z, low), c = parts::cos_of(z);
  const Mask<T> odd = parts::low_bit<0>(n);
  return select(x == Vec<T>(T(0)), x, parts::quotient(select(odd, -c, s), select(odd, s, c)));
}

namespace parts {
// (atan(t) / t - 1) / t^2 and (asin(t) / t - 1) / t^2 as polynomials in z = t^2.
template <typename T>
CANDELABRA_FORMULA Vec<T> atan_tail(Vec<T> z) {
  if constexpr (sizeof(T) == 4) {
    static constexpr T c[] = {-3.333328364e-01f, 1.999826597e-01f,  -1.426193232e-01f,
                              1.094202661e-01f,  -8.377303685e-02f, 5.755190157e-02f,
                              -3.080439819e-02f, 1.072683765e-02f,  -1.753906449e-03f};
    return series(z, c);
  } else {
    static constexpr T c[] = {
        -3.33333333333330706e-01, 1.99999999999514483e-01, -1.42857142825747657e-01, 1.11111110070206687e-01,
        -9.09090700294856863e-02, 7.69227983925274555e-02, -6.66640406014222392e-02, 5.88052784366532508e-02,
        -5.25351873262972432e-02, 4.72232296943394803e-02, -4.21918124031354438e-02, 3.66419627762345559e-02,
        -2.99039477886129355e-02, 2.19849703879895844e-02, -1.39006761776115668e-02, 7.19658889670749154e-03,
        -2.88496410866511841e-03, 8.31338426172773112e-04, -1.52164538888481570e-04, 1.32254502995863535e-05};
    return series(z, c);
  }
}
template <typename T>
CANDELABRA_FORMULA Vec<T> asin_tail(Vec<T> z) {
  if constexpr (sizeof(T) == 4) {
    static constexpr T c[] = {1.666679011e-01f, 7.494434851e-02f, 4.555017512e-02f, 2.385821598e-02f, 4.263556778e-02f};
    return series(z, c);
  } else {
    static constexpr T c[] = {1.66666666666667629e-01, 7.49999999997027628e-02, 4.46428571751087203e-02,
                              3.03819426841398892e-02, 2.23722156468725876e-02, 1.73516003132608392e-02,
                              1.39809590045954935e-02, 1.13977945057790239e-02, 1.07864327586565303e-02,
                              3.68338034517968777e-03, 2.17627314101881443e-02, -2.10762768541414257e-02,
                              3.26762952500919968e-02};
    return series(z, c);
  }
}
template <typename T>
constexpr T half_pi = static_cast<T>(1.57079632679489661923);
template <typename T>
constexpr T half_pi_rest = sizeof(T) == 4 ? T(-4.37113900018624283e-8) : T(6.1232339957367660359e-17);
// atan of t in [0, 1], or of 1 / t where `inverted`.
template <typename T>
CANDELABRA_FORMULA Vec<T> atan_of(Vec<T> t, Mask<T> inverted) {
  const Vec<T> z = t * t, p = fma(t * z, atan_tail(z), t);
  return select(inverted, half_pi<T> - (p - half_pi_rest<T>), p);
}
}  // namespace parts

template <typename T>
CANDELABRA_FORMULA Vec<T> atan(Vec<T> x) {
  const Vec<T> a = abs(x);
  const Mask<T> far = Vec<T>(T(1)) < a;
  const Vec<T> t = select(far, parts::quotient(Vec<T>(T(1)), min(Vec<T>(T(1e30)), a)), a);
  return with_sign_of(parts::atan_of(t, far), x);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> atan2(Vec<T> y, Vec<T> x) {
  const Vec<T> ay = abs(y), ax = abs(x);
  const Mask<T> steep = ax < ay;
  const Vec<T> high = select(steep, ay, ax), low = select(steep, ax, ay);
  Vec<T> t = low / high;
  t = select(high == Vec<T>(T(0)), Vec<T>(T(0)), t);
  t = select(low == Vec<T>(detail::infinity<T>), Vec<T>(T(1)), t);  // both infinite
  Vec<T> angle = parts::atan_of(t, steep);
  angle = select(is_negative(x), T(2) * parts::half_pi<T> - (angle - T(2) * parts::half_pi_rest<T>), angle);
  angle = select((x != x) | (y != y), x + y, angle);
  return with_sign_of(angle, y);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> asin(Vec<T> x) {
  const Vec<T> a = abs(x);
  const Mask<T> far = Vec<T>(T(0.5)) < a;
  const Vec<T> z = select(far, fnma(a, Vec<T>(T(0.5)), Vec<T>(T(0.5))), a * a);
  const Vec<T> t = select(far, hardware_sqrt(z), a);
  const Vec<T> tail = t * z * parts::asin_tail(z);
  const Vec<T> away = (parts::half_pi<T> - (t + t)) - (T(2) * tail - parts::half_pi_rest<T>);
  return with_sign_of(select(far, away, t + tail), x);
}
template <typename T>
CANDELABRA_FORMULA Vec<T> acos(Vec<T> x) {
  const Vec<T> a = abs(x);
  const Mask<T> far = Vec<T>(T(0.5)) < a;
  const Vec<T> z = select(far, fnma(a, Vec<T>(T(0.5)), Vec<T>(T(0.5))), a * a);
  const Vec<T> t = select(far, hardware_sqrt(z), a);
  const Vec<T> p = fma(t * z, parts::asin_tail(z), t);
  const Vec<T> near = parts::half_pi<T> - (with_sign_of(p, x) - parts::half_pi_rest<T>);
  const Vec<T> away =
      select(x < Vec<T>(T(0)), T(2) * parts::half_pi<T> - (T(2) * p - T(2) * parts::half_pi_rest<T>), T(2) * p);
  return select(far, away, near);
}
// Numbers near the ends of the range are scaled towards 1 first.
template <typename T>
CANDELABRA_FORMULA Vec<T> hypot(Vec<T> x, Vec<T> y) {
  constexpr bool single = sizeof(T) == 4;
  constexpr T large = single ? T(0x1p60) : T(0x1p500), up = single ? T(0x1p80) : T(0x1p600);
  const Vec<T> ax = abs(x), ay = abs(y), high = max(ax, ay), one = T(1);
  const Mask<T> huge = Vec<T>(large) < high, small = high < Vec<T>(T(1) / large);
  const Vec<T> scale = select(huge, Vec<T>(T(1) / up), select(small, Vec<T>(up), one));
  const Vec<T> back = select(huge, Vec<T>(up), select(small, Vec<T>(T(1) / up), one));
  const Vec<T> a = ax * scale, b = ay * scale;
  const Vec<T> result = hardware_sqrt(fma(a, a, b * b)) * back, infinite = detail::infinity<T>;
  return select((ax == infinite) | (ay == infinite), infinite, result);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::math
