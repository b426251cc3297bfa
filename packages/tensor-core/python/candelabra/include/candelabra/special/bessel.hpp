// Bessel functions of integer order and the Airy function Ai, in double precision, for real
// arguments.
//
// Power series are used where all terms have one sign. Asymptotic series are used where their
// smallest term is below rounding error (Abramowitz and Stegun 9.6.10, 9.6.11, 9.7.1, 9.7.2). In
// between, integrals over the real line are evaluated with the trapezoidal rule, which converges
// exponentially for them (Trefethen and Weideman, "The exponentially convergent trapezoidal rule",
// 2014). J and Y come from the C library.
#ifndef CANDELABRA_SPECIAL_BESSEL_HPP
#define CANDELABRA_SPECIAL_BESSEL_HPP

#include <math.h>

#include <cmath>
#include <limits>

#include "candelabra/host_device.hpp"

namespace candelabra::math {

namespace detail {

constexpr double euler_gamma = 0.57721566490153286061;
constexpr double pi = 3.14159265358979323846;

// sum_k (mu - 1)(mu - 9)...(mu - (2k - 1)^2) / (k! (8x)^k) * sign^k, for mu = 4 nu^2.
CANDELABRA_HOST_DEVICE inline double hankel_series(double mu, double x, double sign) {
  double term = 1, sum = 1;
  for (int k = 1; k < 60; ++k) {
    const double odd = 2 * k - 1, next = term * sign * (mu - odd * odd) / (8 * x * k);
    if (std::abs(next) >= std::abs(term) || std::abs(next) < 1e-17 * std::abs(sum)) break;
    sum += term = next;
  }
  return sum;
}

// sum_k (x^2/4)^k / (k! (k + order)!) for order 0 or 1
CANDELABRA_HOST_DEVICE inline double ascending_series(double x, int order) {
  const double square = x * x / 4;
  double term = 1, sum = 1;
  for (int k = 1; k < 500; ++k) {
    term *= square / (static_cast<double>(k) * (k + order));
    sum += term;
    if (term < 1e-17 * sum) break;
  }
  return sum;
}

constexpr double modified_far = 20;

// e^x K_nu(x) = integral of exp(-x (cosh t - 1)) cosh(nu t) over t > 0.
CANDELABRA_HOST_DEVICE inline double scaled_k_integral(double nu, double x) {
  constexpr double step = 0.1;
  double sum = 0.5;
  for (int i = 1; i < 400; ++i) {
    const double t = i * step, part = std::exp(-x * (std::cosh(t) - 1)) * std::cosh(nu * t);
    sum += part;
    if (part < 1e-18 * sum) break;
  }
  return sum * step;
}

}  // namespace detail

// e^-|x| I_0(x) and e^-|x| I_1(x)
CANDELABRA_HOST_DEVICE inline double i0e(double x) {
  const double a = std::abs(x);
  if (a <= detail::modified_far) return std::exp(-a) * detail::ascending_series(a, 0);
  if (std::isinf(a)) return 0;
  return detail::hankel_series(0, a, -1) / std::sqrt(2 * detail::pi * a);
}
CANDELABRA_HOST_DEVICE inline double i1e(double x) {
  const double a = std::abs(x);
  double result;
  if (a <= detail::modified_far)
    result = std::exp(-a) * (a / 2) * detail::ascending_series(a, 1);
  else if (std::isinf(a))
    result = 0;
  else
    result = detail::hankel_series(4, a, -1) / std::sqrt(2 * detail::pi * a);
  return std::copysign(result, x);
}
CANDELABRA_HOST_DEVICE inline double i0(double x) {
  const double a = std::abs(x);
  if (a <= detail::modified_far) return detail::ascending_series(a, 0);
  if (std::isinf(a)) return a;
  // Multiplies by e^(a/2) twice, so that no intermediate value overflows before the result does.
  const double half = std::exp(a / 2);
  return half * i0e(a) * half;
}
CANDELABRA_HOST_DEVICE inline double i1(double x) {
  const double a = std::abs(x);
  if (a <= detail::modified_far) return (x / 2) * detail::ascending_series(a, 1);
  if (std::isinf(a)) return x;
  const double half = std::exp(a / 2);
  return half * i1e(x) * half;
}

// e^x K_0(x) and e^x K_1(x)
CANDELABRA_HOST_DEVICE inline double scaled_k0(double x) {
  if (x == 0) return std::numeric_limits<double>::infinity();
  if (!(x > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x <= 1) {
    const double square = x * x / 4;
    double term = 1, harmonic = 0, sum = 0;
    for (int k = 1; k < 40; ++k) {
      term *= square / (static_cast<double>(k) * k);
      harmonic += 1.0 / k;
      sum += term * harmonic;
      if (term * harmonic < 1e-18 * sum) break;
    }
    return std::exp(x) * (sum - (std::log(x / 2) + detail::euler_gamma) * detail::ascending_series(x, 0));
  }
  if (x < 30) return detail::scaled_k_integral(0, x);
  if (std::isinf(x)) return 0;
  return detail::hankel_series(0, x, 1) * std::sqrt(detail::pi / (2 * x));
}
CANDELABRA_HOST_DEVICE inline double scaled_k1(double x) {
  if (x == 0) return std::numeric_limits<double>::infinity();
  if (!(x > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x <= 1) {
    // K_1 = 1/x + ln(x/2) I_1 - x/4 sum_k (psi(k+1) + psi(k+2)) (x^2/4)^k / (k! (k+1)!)
    const double square = x * x / 4;
    double term = 1, psi = -2 * detail::euler_gamma + 1, sum = psi;
    for (int k = 1; k < 40; ++k) {
      term *= square / (static_cast<double>(k) * (k + 1));
      psi += 1.0 / k + 1.0 / (k + 1);
      sum += term * psi;
      if (std::abs(term * psi) < 1e-18 * std::abs(sum)) break;
    }
    return std::exp(x) * (1 / x + std::log(x / 2) * (x / 2) * detail::ascending_series(x, 1) - x / 4 * sum);
  }
  if (x < 30) return detail::scaled_k_integral(1, x);
  if (std::isinf(x)) return 0;
  return detail::hankel_series(4, x, 1) * std::sqrt(detail::pi / (2 * x));
}
CANDELABRA_HOST_DEVICE inline double k0(double x) {
  return std::isinf(x) && x > 0 ? 0 : std::exp(-x) * scaled_k0(x);
}
CANDELABRA_HOST_DEVICE inline double k1(double x) {
  return std::isinf(x) && x > 0 ? 0 : std::exp(-x) * scaled_k1(x);
}

CANDELABRA_HOST_DEVICE inline double bessel_j0(double x) {
  return ::j0(x);
}
CANDELABRA_HOST_DEVICE inline double bessel_j1(double x) {
  return ::j1(x);
}
CANDELABRA_HOST_DEVICE inline double bessel_y0(double x) {
  return x < 0 ? std::numeric_limits<double>::quiet_NaN() : ::y0(x);
}
CANDELABRA_HOST_DEVICE inline double bessel_y1(double x) {
  return x < 0 ? std::numeric_limits<double>::quiet_NaN() : ::y1(x);
}
CANDELABRA_HOST_DEVICE inline double spherical_bessel_j0(double x) {
  if (std::isinf(x)) return 0;
  if (std::abs(x) < 1e-4) return 1 - x * x / 6;
  return std::sin(x) / x;
}

// Ai(x). Near 0: the Maclaurin series. For larger x: K_1/3 of zeta = (2/3) x^(3/2). For smaller x:
// the sum of two values of K_1/3 off the real line, whose integral does not oscillate (Abramowitz
// and Stegun 10.4.7, 10.4.14).
CANDELABRA_HOST_DEVICE inline double airy_ai(double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return 0;
  const double a = std::abs(x);
  if (a <= 1) {
    const double cube = x * x * x;
    double f = 1, g = x, first = 1, second = x;
    for (int k = 1; k < 12; ++k) {
      first *= cube / ((3 * k - 1) * (3.0 * k));
      second *= cube / ((3.0 * k) * (3 * k + 1));
      f += first;
      g += second;
    }
    return 0.355028053887817239260 * f - 0.258819403792806798405 * g;
  }
  const double zeta = 2.0 / 3 * a * std::sqrt(a);
  if (x > 0) {
    const double scaled = zeta < 30 ? detail::scaled_k_integral(1.0 / 3, zeta)
                                    : detail::hankel_series(4.0 / 9, zeta, 1) * std::sqrt(detail::pi / (2 * zeta));
    return std::exp(-zeta) * scaled * std::sqrt(a / 3) / detail::pi;
  }
  // sqrt(pi / 2z) e^-z / Gamma(nu + 1/2) * integral of e^-s s^(nu - 1/2) (1 + s / 2z)^(nu - 1/2),
  // with z = i zeta. Substitutes s = exp(u - e^-u). Powers of 1 - i s / (2 zeta) are computed in
  // polar form.
  // Gamma(5/6)
  constexpr double power = 1.0 / 3 - 0.5, step = 0.0625, gamma = 1.12878702990812596126;
  double real = 0, imaginary = 0;
  for (double u = -4.5; u < 5; u += step) {
    const double e = std::exp(-u), s = std::exp(u - e), weight = std::exp(-s) * std::pow(s, power) * s * (1 + e);
    const double slope = s / (2 * zeta), size = weight * std::pow(1 + slope * slope, power / 2);
    const double angle = -power * std::atan(slope);
    real += size * std::cos(angle);
    imaginary += size * std::sin(angle);
  }
  const double turn = detail::pi / 4 - zeta;
  const double sum = std::cos(turn) * real - std::sin(turn) * imaginary;
  return 2 / detail::pi * std::sqrt(a / 3) * std::sqrt(detail::pi / (2 * zeta)) * step / gamma * sum;
}

}  // namespace candelabra::math

#endif
