// Bessel functions of orders 0 and 1 and the Airy function Ai on registers of double. Near zero:
// power series (Abramowitz and Stegun 9.6.10, 9.6.13) and fitted polynomials. Beyond: asymptotic
// forms with fitted polynomials.
#pragma once

#include "simd/vec_bessel_tables.hpp"
#include "simd/vec_math.hpp"

namespace candelabra::math {
inline namespace CANDELABRA_ISA_NAMESPACE {

namespace bessel {

using V = Vec<double>;
using M = Mask<double>;

// Coefficients of z^k, z = x^2 / 4: of I_0(x) and 2 I_1(x) / x, and of the terms of K_0 and K_1
// without the logarithm.
template <size_t N>
struct Ascending {
  double c[N];
  constexpr explicit Ascending(int order) : c{} {
    double term = 1;
    for (size_t k = 0; k < N; ++k) {
      c[k] = term;
      term /= static_cast<double>(k + 1) * static_cast<double>(k + 1 + static_cast<size_t>(order));
    }
  }
};
template <size_t N>
struct Harmonic {
  double c[N];
  constexpr explicit Harmonic(int order) : c{} {
    constexpr double euler_gamma = 0.57721566490153286061;
    double factor = 1, psi = order ? 1 - 2 * euler_gamma : -euler_gamma;
    for (size_t k = 0; k < N; ++k) {
      c[k] = factor * psi;
      const double next = static_cast<double>(k + 1), after = static_cast<double>(k + 2);
      factor /= next * (order ? after : next);
      psi += order ? 1 / next + 1 / after : 1 / next;
    }
  }
};
inline constexpr Ascending<23> long_i0(0), long_i1(1);
inline constexpr Ascending<13> short_i0(0), short_i1(1);
inline constexpr Harmonic<13> k0_rest(0), k1_rest(1);

constexpr double largest = 1e300;  // a quotient by it is still a normal number
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double two_over_pi = 0.636619772367581343076, quarter_pi = 0.785398163397448309616;

// For a = |x|: I(a) below 8, and e^-a I(a) from there.
template <int order>
CANDELABRA_FORMULA V i_near(V a) {
  const V z = 0.25 * a * a;
  if constexpr (order == 0)
    return parts::series(z, long_i0.c);
  else
    return 0.5 * a * parts::series(z, long_i1.c);
}
template <int order>
CANDELABRA_FORMULA V i_far(V a) {
  const V b = max(V(8.0), min(V(largest), a)), t = parts::quotient(V(16.0), b) - 1.0;
  return parts::series(t, order ? bessel_tables::i1_far : bessel_tables::i0_far) / hardware_sqrt(b);
}
template <int order, bool scaled>
CANDELABRA_FORMULA V modified_i(V x) {
  const V a = abs(x);
  const M near = a < V(8.0);
  V result = V(0.0);
  if (any(near)) {
    result = i_near<order>(min(V(8.0), a));
    if constexpr (scaled) result = result * exp_negative(-a);
  }
  if (any(!near)) {
    V far = i_far<order>(a);
    if constexpr (scaled) {
      far = select(a == V(infinite), V(0.0), far);
    } else {  // in two steps, because e^a overflows before the result does
      const V half = exp(0.5 * a);
      far = half * far * half;
    }
    result = select(near, result, far);
  }
  result = select(x != x, x, result);
  return order ? with_sign_of(result, x) : result;
}

template <int order, bool scaled>
CANDELABRA_FORMULA V modified_k(V x) {
  const M near = x < V(2.0);
  V result = V(0.0);
  if (any(near)) {
    const V b = min(V(2.0), x), z = 0.25 * b * b, logarithm = parts::log_positive(0.5 * b);
    if constexpr (order == 0)
      result = parts::series(z, k0_rest.c) - logarithm * parts::series(z, short_i0.c);
    else
      result = 1.0 / b + 0.5 * b * fma(logarithm, parts::series(z, short_i1.c), -0.5 * parts::series(z, k1_rest.c));
    if constexpr (scaled) result = result * exp(b);
  }
  if (any(!near)) {
    const V b = max(V(2.0), min(V(largest), x)), t = parts::quotient(V(4.0), b) - 1.0;
    V far = parts::series(t, order ? bessel_tables::k1_far : bessel_tables::k0_far) / hardware_sqrt(b);
    if constexpr (scaled)
      far = select(x == V(infinite), V(0.0), far);
    else
      far = far * exp_negative(-x);
    result = select(near, result, far);
  }
  result = select(x == V(0.0), V(infinite), result);
  return select(x < V(0.0), V(std::numeric_limits<double>::quiet_NaN()), select(x != x, x, result));
}

struct SineCosine {
  V sine, cosine;
};
CANDELABRA_FORMULA SineCosine sine_cosine(V x) {
  const auto [r, n, low, z] = parts::reduced_angle(x);
  const V s = parts::sin_of(r, z, low), c = parts::cos_of(z);
  const M odd = parts::low_bit<0>(n);
  return {parts::negated_by_bit1(select(odd, c, s), n), parts::negated_by_bit1(select(odd, -s, c), n)};
}

// J(a) for a = |x| <= 8, with its first two zeros factored out.
template <int order>
CANDELABRA_FORMULA V j_near(V a) {
  const auto& zeros = order ? bessel_tables::j1_zeros : bessel_tables::j0_zeros;
  const V t = fma(a * a, V(1.0 / 32), V(-1.0));
  V result = parts::series(t, order ? bessel_tables::j1_near : bessel_tables::j0_near);
  for (const auto& zero : zeros) result = result * (((a - zero.high) - zero.low) * (a + zero.high));
  return order ? a * result : result;
}
// Hankel's expansion, with w = a - pi/4 (order 0) or a - 3 pi/4 (order 1): sqrt(2 / (pi a)) times P
// cos w - Q sin w for J, and times P sin w + Q cos w for Y.
template <int order, bool second>
CANDELABRA_FORMULA V jy_far(V a) {
  const V b = max(V(8.0), a), inverse = parts::quotient(V(1.0), min(V(1e150), b));
  const V t = fma(128.0 * inverse, inverse, V(-1.0));
  const V p = parts::series(t, order ? bessel_tables::p1_far : bessel_tables::p0_far);
  const V q = parts::series(t, order ? bessel_tables::q1_far : bessel_tables::q0_far) * inverse;
  const auto [s, c] = sine_cosine(b);
  const V cosine = order ? s - c : c + s, sine = order ? -(s + c) : s - c;
  const V size = 0.564189583547756286948 * hardware_sqrt(inverse);
  return size * (second ? fma(p, sine, q * cosine) : fma(p, cosine, -(q * sine)));
}
template <int order>
CANDELABRA_FORMULA V first_kind(V x) {
  const V a = abs(x);
  const M near = a < V(8.0);
  V result = V(0.0);
  if (any(near)) result = j_near<order>(min(V(8.0), a));
  if (any(!near)) result = select(near, result, jy_far<order, false>(a));
  result = select(x != x, x, result);
  return order ? select(x < V(0.0), -result, result) : result;
}
template <int order>
CANDELABRA_FORMULA V second_kind(V x) {
  const M near = x < V(8.0);
  V result = V(0.0);
  if (any(near)) {
    const V b = min(V(8.0), x), t = fma(b * b, V(1.0 / 32), V(-1.0)), first = log(b) * j_near<order>(b);
    if constexpr (order == 0)
      result = fma(first, V(two_over_pi), parts::series(t, bessel_tables::y0_near));
    else
      result = fma(first - 1.0 / b, V(two_over_pi), b * parts::series(t, bessel_tables::y1_near));
  }
  if (any(!near)) result = select(near, result, jy_far<order, true>(x));
  result = select(x == V(0.0), V(-infinite), result);
  return select(x < V(0.0), V(std::numeric_limits<double>::quiet_NaN()), select(x != x, x, result));
}

CANDELABRA_FORMULA V spherical(V x) {
  const V a = abs(x), result = sine_cosine(a).sine / a;
  return select(x != x, x, select(a < V(1e-4), fnma(a * V(1.0 / 6), a, V(1.0)), result));
}

// Where the asymptotic forms begin, right and left of zero.
constexpr double airy_right_from = 2.0800838230519041, airy_left_from = 3.3019272488946265;
CANDELABRA_FORMULA V airy(V x) {
  constexpr double root_pi = 1.77245385090551602730, half_root = 0.70710678118654752440;
  const M right = V(airy_right_from) < x, left = x < V(-airy_left_from), middle = !(right | left);
  V result = V(0.0);
  if (any(middle)) {
    const M negative = x < V(0.0);
    const V t = fma(min(V(airy_right_from), max(V(0.0), x)), V(2 / airy_right_from), V(-1.0));
    result = parts::series(t, bessel_tables::airy_middle);
    if (any(negative)) {
      const V u = fma(min(V(airy_left_from), abs(x)), V(2 / airy_left_from), V(-1.0));
      result = select(negative, parts::series(u, bessel_tables::airy_middle_left), result);
    }
  }
  if (any(right | left)) {
    const V a = max(V(airy_right_from), min(V(1e6), abs(x))), root = hardware_sqrt(a), fourth = hardware_sqrt(root);
    const V zeta = (2.0 / 3) * (a * root), inverse = parts::quotient(V(1.0), zeta);
    if (any(right)) {
      const V t = fma(V(4.0), inverse, V(-1.0));
      result = select(right, parts::quotient(exp_negative(-zeta) * parts::series(t, bessel_tables::airy_right), fourth),
                      result);
    }
    if (any(left)) {
      const V t = fma(32.0 * inverse, inverse, V(-1.0));
      const auto [s, c] = sine_cosine(zeta);
      const V p = parts::series(t, bessel_tables::airy_p), q = parts::series(t, bessel_tables::airy_q) * inverse;
      result = select(left, parts::quotient((half_root / root_pi) * fma(p, c + s, q * (s - c)), fourth), result);
    }
  }
  return select(x != x, x, result);
}

}  // namespace bessel

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::math
