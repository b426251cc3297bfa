// The incomplete gamma functions and the Hurwitz zeta function on registers of double, by the
// formulas of candelabra/special/gamma.hpp. Loops run until the last lane has converged. A
// converged lane no longer changes, so results do not depend on neighbouring lanes.
#pragma once

#include "simd/vec_gamma.hpp"
#include "simd/vec_power.hpp"

namespace candelabra::math {
inline namespace CANDELABRA_ISA_NAMESPACE {

namespace incomplete {

using V = Vec<double>;
using M = Mask<double>;

// log(1 + x) - x for x > -1.
CANDELABRA_FORMULA V log1p_minus(V x) {
  static constexpr double c[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13, 2.0 / 15,
                                 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23, 2.0 / 25, 2.0 / 27, 2.0 / 29};
  const V r = parts::quotient(x, x + 2.0), square = r * r;
  const V near = fma(r * square, parts::series(square, c), -(x * r));
  return select(abs(x) < V(0.4), near, log1p(x) - x);
}

// x^a e^-x / Gamma(a + 1)
CANDELABRA_FORMULA V density(V a, V x) {
  const M small = a < V(10.0);
  V result = V(0.0);
  if (any(small)) {
    const V b = min(V(10.0), a);
    result = exp(b * log(x) - x - parts::lgamma_positive(b + 1.0));
  }
  if (any(!small)) {
    const V b = max(V(10.0), a), inverse = parts::quotient(V(1.0), b);
    const V power = b * log1p_minus((x - b) * inverse) - parts::stirling_series(inverse);
    result = select(small, result, exp(power) / hardware_sqrt(6.28318530717958647693 * b));
  }
  return result;
}

constexpr int max_steps = 200000;

// 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + …
CANDELABRA_FORMULA V lower_series(V a, V x, M wanted, double rounding) {
  V term = V(1.0), sum = V(1.0), k = a;
  for (int step = 0; step < max_steps && any(wanted); ++step) {
    k = k + 1.0;
    term = term * parts::quotient(x, k);
    sum = select(wanted, sum + term, sum);
    wanted = wanted & (V(rounding) * sum <= term);
  }
  return sum;
}
// Lentz's evaluation of the continued fraction 6.5.31 of Abramowitz and Stegun, without the factor
// x^a e^-x.
CANDELABRA_FORMULA V upper_fraction(V a, V x, M wanted, double rounding) {
  const V tiny = V(1e-290);
  V b = x + 1.0 - a, c = V(1e290), d = parts::quotient(V(1.0), b), h = d;
  for (double k = 1; k < max_steps && any(wanted); ++k) {
    const V over = k * (a - k);
    b = b + 2.0;
    V under = fma(over, d, b);
    under = select(abs(under) < tiny, tiny, under);
    c = b + parts::quotient(over, c);
    c = select(abs(c) < tiny, tiny, c);
    d = parts::quotient(V(1.0), under);
    const V factor = d * c;
    h = select(wanted, h * factor, h);
    wanted = wanted & (V(rounding) <= abs(factor - 1.0));
  }
  return h;
}
// For small x and a, where both functions are differences (Temme 1994, section 4).
CANDELABRA_FORMULA V upper_near_zero(V a, V x, M wanted, double rounding) {
  const V power = a * log(x);
  const V logarithm = parts::lgamma_positive(a + 1.0);
  const V first = -expm1(power - logarithm);
  V term = V(1.0), sum = V(0.0);
  for (double k = 1; k < 200 && any(wanted); ++k) {
    term = term * x * (-1 / k);
    const V next = parts::quotient(term, a + k);
    sum = select(wanted, sum + next, sum);
    wanted = wanted & (V(rounding) * abs(sum) <= abs(next));
  }
  return first - exp(power - logarithm) * a * sum;
}

// Domain of the formulas above. Other arguments take the scalar path.
template <typename T>
CANDELABRA_FORMULA Mask<T> is_ordinary(Vec<T> a, Vec<T> x) {
  constexpr T most = T(1e30), least_one = T(1e-30);
  return (Vec<T>(least_one) < a) & (a < Vec<T>(most)) & (Vec<T>(least_one) < x) & (x < Vec<T>(most));
}

// P(a, x), or Q(a, x) = 1 - P(a, x) if `upper`. `rounding` is that of the result's dtype.
template <bool upper>
CANDELABRA_FORMULA V regularized(V a, V x, double rounding) {
  a = min(V(1e30), max(V(1e-30), a));
  x = min(V(1e30), max(V(1e-30), x));
  const V one = V(1.0);
  M near = (x < one) & (a < one);
  if constexpr (!upper) near = x < V(0.0);
  const M beyond = (a + 1.0 < x) & !near, below = !(near | beyond);
  V result = V(0.0);
  if (any(beyond | below)) {
    const V weight = density(a, x);
    if (any(below)) {
      const V p = weight * lower_series(a, x, below, rounding);
      result = upper ? 1.0 - p : p;
    }
    if (any(beyond)) {
      const V q = weight * a * upper_fraction(a, x, beyond, rounding);
      result = select(beyond, upper ? q : 1.0 - q, result);
    }
  }
  if constexpr (upper)
    if (any(near)) result = select(near, upper_near_zero(a, x, near, rounding), result);
  return result;
}

}  // namespace incomplete

namespace zeta_parts {

using V = Vec<double>;

// Euler-Maclaurin summation after this many terms.
constexpr int shifts = 8;
constexpr size_t corrections = 12;
// B_2j / (2j)!
inline constexpr double bernoulli[corrections] = {
    8.33333333333333333e-02, -1.38888888888888889e-03, 3.30687830687830688e-05, -8.26719576719576720e-07,
    2.08767569878680990e-08, -5.28419013868749318e-10, 1.33825365306846788e-11, -3.38968029632258287e-13,
    8.58606205627784456e-15, -2.17486869855806187e-16, 5.50900282836022952e-18, -1.39544646858125233e-19};

// For exponents that differ by lane.
CANDELABRA_FORMULA V of_any_power(V s, V q) {
  V sum = V(0.0), a = q;
#pragma GCC unroll 1
  for (int k = 0; k < shifts; ++k) {
    sum = sum + pow(a, -s);
    a = a + 1.0;
  }
  const V last = pow(a, -s), inverse = parts::inverse(a), square = inverse * inverse;
  V rest = last * parts::quotient(a, s - 1.0) + 0.5 * last;
  V factor = s * last * inverse;
#pragma GCC unroll 1
  for (size_t j = 0; j < corrections; ++j) {
    const auto twice = static_cast<double>(2 * j);
    rest = fma(V(bernoulli[j]), factor, rest);
    factor = factor * ((s + (twice + 1)) * square) * (s + (twice + 2));
  }
  return sum + rest;
}

// For one integral exponent, which is a compile-time constant if it is small (Known, else 0).
// Inverses are multiplied, and the factors of the corrections are computed once.
template <int Known>
struct OfPower {
  int power;
  double factors[corrections];
  explicit OfPower(int whole) : power(whole) {
    double rising = whole;
    for (size_t j = 0; j < corrections; ++j) {
      factors[j] = bernoulli[j] * rising;
      const auto next = static_cast<double>(whole) + static_cast<double>(2 * j + 1);
      rising *= next * (next + 1);
    }
  }
  CANDELABRA_FORMULA V raised(V inverse) const {
    V factor = inverse, result = Known & 1 ? factor : V(1.0);
    if constexpr (Known) {
#pragma GCC unroll 8
      for (int rest = Known >> 1; rest; rest >>= 1) {
        factor = factor * factor;
        if (rest & 1) result = result * factor;
      }
    } else {
      for (int rest = power; rest; rest >>= 1) {
        if (rest & 1) result = result * factor;
        if (rest > 1) factor = factor * factor;
      }
    }
    return result;
  }
  CANDELABRA_FORMULA V operator()(V q) const {
    V sum = V(0.0), a = q;
#pragma GCC unroll 8
    for (int k = 0; k < shifts; ++k) {
      sum = sum + raised(parts::inverse(a));
      a = a + 1.0;
    }
    const V inverse = parts::inverse(a), last = raised(inverse);
    const V rest = fma(inverse, parts::series(inverse * inverse, factors), fma(a, V(1.0 / (power - 1)), V(0.5)));
    return fma(last, rest, sum);
  }
};

}  // namespace zeta_parts

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::math
