// Functions related to the gamma function and the error function, in double precision.
#ifndef CANDELABRA_SPECIAL_GAMMA_HPP
#define CANDELABRA_SPECIAL_GAMMA_HPP

#include <cmath>
#include <limits>

#include "candelabra/host_device.hpp"
#include "candelabra/special/normal_quantile.hpp"

namespace candelabra::math {

namespace detail {

// log(1 + x) - x, without cancellation near 0.
CANDELABRA_HOST_DEVICE inline double log1p_minus(double x) {
  if (std::abs(x) > 0.4) return std::log1p(x) - x;
  // With r = x / (2 + x): log(1 + x) = 2 (r + r^3/3 + r^5/5 + ...), and x = 2 r / (1 - r).
  const double r = x / (2 + x), square = r * r;
  double power = r * square, sum = 0;
  for (int k = 3; k < 60; k += 2) {
    const double term = 2 * power / k;
    sum += term;
    power *= square;
    if (std::abs(term) < 1e-18 * std::abs(sum)) break;
  }
  return sum - x * r;
}

// log Gamma(a) - (a - 1/2) log a + a - log(2 pi) / 2, for a >= 10 (Stirling's series).
CANDELABRA_HOST_DEVICE inline double stirling_rest(double a) {
  const double r = 1 / (a * a);
  return (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188 - r * (691.0 / 360360 - r / 156.0)))))) /
         a;
}

// x^a e^-x / Gamma(a + 1)
CANDELABRA_HOST_DEVICE inline double gamma_density(double a, double x) {
  if (a < 10) return std::exp(a * std::log(x) - x - std::lgamma(a + 1));
  const double relative = (x - a) / a;
  return std::exp(a * log1p_minus(relative) - stirling_rest(a)) / std::sqrt(2 * 3.14159265358979323846 * a);
}

// The series of the lower incomplete gamma function, divided by gamma_density: 1 + x/(a+1) +
// x^2/((a+1)(a+2)) + ...
CANDELABRA_HOST_DEVICE inline double lower_series(double a, double x) {
  double term = 1, sum = 1;
  for (double k = 1; k < 200000; ++k) {
    term *= x / (a + k);
    sum += term;
    if (term < 1e-17 * sum) break;
  }
  return sum;
}

// The continued fraction of the upper incomplete gamma function, divided by x^a e^-x (Abramowitz
// and Stegun 6.5.31), evaluated by Lentz's method.
CANDELABRA_HOST_DEVICE inline double upper_fraction(double a, double x) {
  constexpr double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
  for (double k = 1; k < 200000; ++k) {
    const double numerator = -k * (k - a);
    b += 2;
    d = numerator * d + b;
    if (std::abs(d) < tiny) d = tiny;
    c = b + numerator / c;
    if (std::abs(c) < tiny) c = tiny;
    d = 1 / d;
    const double factor = d * c;
    h *= factor;
    if (std::abs(factor - 1) < 1e-16) break;
  }
  return h;
}

// Q(a, x) for small x and a, where both functions are differences: 1 - x^a / Gamma(a + 1), minus
// the rest of the series (Temme, 1994, section 4).
CANDELABRA_HOST_DEVICE inline double upper_near_zero(double a, double x) {
  double term = 1, sum = 0;
  for (int k = 1; k < 200; ++k) {
    term *= -x / k;
    const double next = term / (a + k);
    sum += next;
    if (std::abs(next) < 1e-18 * std::abs(sum)) break;
  }
  const double power = a * std::log(x);
  const double first = -std::expm1(power - std::lgamma(1 + a));
  return first - std::exp(power - std::lgamma(a)) * sum;
}

}  // namespace detail

// The regularized incomplete gamma functions: P(a, x) and Q(a, x) = 1 - P(a, x).
CANDELABRA_HOST_DEVICE inline double igammac(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a < 0) return std::numeric_limits<double>::quiet_NaN();
  if (a == 0) return x > 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? std::numeric_limits<double>::quiet_NaN() : 1;
  if (std::isinf(x)) return 0;
  if (x < 1 && a < 1) return detail::upper_near_zero(a, x);
  if (x <= a + 1) return 1 - detail::gamma_density(a, x) * detail::lower_series(a, x);
  return detail::gamma_density(a, x) * a * detail::upper_fraction(a, x);
}
CANDELABRA_HOST_DEVICE inline double igamma(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a < 0) return std::numeric_limits<double>::quiet_NaN();
  if (a == 0) return x > 0 ? 1 : std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? std::numeric_limits<double>::quiet_NaN() : 0;
  if (std::isinf(x)) return 1;
  if (x > a + 1) return 1 - detail::gamma_density(a, x) * a * detail::upper_fraction(a, x);
  return detail::gamma_density(a, x) * detail::lower_series(a, x);
}

// The Hurwitz zeta function, sum_k (k + q)^-s, by the Euler-Maclaurin formula (Johansson, "Rigorous
// high-precision computation of the Hurwitz zeta function and its derivatives", 2014, section 2).
CANDELABRA_HOST_DEVICE inline double zeta(double s, double q) {
  constexpr double bernoulli[] = {1.0 / 6, -1.0 / 30,     1.0 / 42,      -1.0 / 30,       5.0 / 66,       -691.0 / 2730,
                                  7.0 / 6, -3617.0 / 510, 43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730};
  if (std::isnan(s) || std::isnan(q) || s < 1) return std::numeric_limits<double>::quiet_NaN();
  if (s == 1) return std::numeric_limits<double>::infinity();
  if (q <= 0) {
    if (q == std::floor(q)) return std::numeric_limits<double>::infinity();
    if (s != std::floor(s)) return std::numeric_limits<double>::quiet_NaN();
  }
  if (std::isinf(q)) return 0;
  if (std::isinf(s)) return q > 1 ? 0 : q == 1 ? 1 : std::numeric_limits<double>::infinity();
  double sum = 0, a = q;
  for (int k = 0; k < 12 || a < 12; ++k) {
    if (k >= 12 && q < -1e6) return std::numeric_limits<double>::quiet_NaN();
    const double term = std::pow(a, -s);
    sum += term;
    a += 1;
    if (a > 1 && term < 1e-18 * sum) return sum;
  }
  const double power = std::pow(a, -s);
  sum += power * a / (s - 1) + power / 2;
  // s (s + 1) ... (s + 2j - 2) a^(-s - 2j + 1), and (2j)!
  double factor = s * power / a, factorial = 2;
  for (int j = 1; j <= 12; ++j) {
    const double term = bernoulli[j - 1] * factor / factorial;
    sum += term;
    if (std::abs(term) < 1e-17 * std::abs(sum)) break;
    factor *= (s + 2 * j - 1) * (s + 2 * j) / (a * a);
    factorial *= (2.0 * j + 1) * (2.0 * j + 2);
  }
  return sum;
}

// e^(x^2) erfc(x). Corrects for the rounding error of x^2. Uses the asymptotic series for x >= 25.
CANDELABRA_HOST_DEVICE inline double erfcx(double x) {
  if (x < 25) {
    if (x < -26.7) return std::numeric_limits<double>::infinity();
    const double square = x * x, rest = std::fma(x, x, -square);
    return std::exp(square) * (1 + rest) * std::erfc(x);
  }
  const double half = 0.5 / (x * x);
  return (1 - half * (1 - 3 * half * (1 - 5 * half * (1 - 7 * half * (1 - 9 * half * (1 - 11 * half)))))) /
         (x * 1.77245385090551602730);
}

// The normal distribution function. For x < -1 it uses erfcx, because erfc would multiply the
// rounding error of x / sqrt(2) by x^2.
CANDELABRA_HOST_DEVICE inline double ndtr(double x) {
  const double t = x * 0.70710678118654752440;
  if (x >= -1 || x < -40) return x >= -1 ? std::erfc(-t) / 2 : 0;
  const double square = x * x, rest = std::fma(x, x, -square);
  return std::exp(-square / 2) * (1 - rest / 2) * erfcx(-t) / 2;
}
// The logarithm of the normal distribution function.
CANDELABRA_HOST_DEVICE inline double log_ndtr(double x) {
  if (x > 5) return std::log1p(-ndtr(-x));
  const double t = x * 0.70710678118654752440;
  if (x < -1) return std::log(erfcx(-t) / 2) - t * t;
  return std::log1p(-std::erfc(t) / 2);
}

CANDELABRA_HOST_DEVICE inline double ndtri(double p) {
  return normal_quantile(p - 0.5, p < 0.5 ? p : 1 - p);
}

// -x log x; 0 at 0, and -infinity below.
CANDELABRA_HOST_DEVICE inline double entr(double x) {
  if (std::isnan(x)) return x;
  return x > 0 ? -x * std::log(x) : x == 0 ? 0 : -std::numeric_limits<double>::infinity();
}

// x log(1 + y); 0 for x = 0, unless y is NaN.
CANDELABRA_HOST_DEVICE inline double xlog1py(double x, double y) {
  return std::isnan(y) ? y : x == 0 ? 0 : x * std::log1p(y);
}

}  // namespace candelabra::math

#endif
