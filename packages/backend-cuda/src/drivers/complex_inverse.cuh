// Inverse trigonometric and hyperbolic functions of complex numbers. Some versions of libcu++
// compute them by logarithms that cancel (asinh left of the imaginary axis). Here complex64 is
// computed in double precision, and complex128 by formulas that neither overflow nor underflow.
// libcu++ handles infinities and NaN, with the special cases of C99.
#pragma once

#include "dtypes.hpp"

namespace candelabra::math {

namespace detail {

// The terms of asin and acos (Hull, Fairgrieve and Tang 1997). a is half the sum of the distances
// from -1 and 1, b the sine of the real part of asin z, `beside` its cosine times a, and `height`
// the magnitude of the imaginary part.
struct Arcs {
  double x, b, beside, height;
};

CANDELABRA_HOST_DEVICE inline Arcs arcs_of(double re, double im) {
  const double x = ::cuda::std::fabs(re), y = ::cuda::std::fabs(im), up = x + 1, down = x - 1;
  const double r = ::cuda::std::hypot(up, y), s = ::cuda::std::hypot(down, y), a = 0.5 * r + 0.5 * s;
  const bool inside = x <= 1;
  // Differences of nearly equal numbers as quotients: y^2 / (r + up) is r - up.
  const double by_up = y * (y / (r + up)), apart = s + ::cuda::std::fabs(down),
               close = apart == 0 ? 0 : y * (y / apart);
  const double above = 0.5 * (by_up + (inside ? close : s + down));  // a - 1
  const double rising = ::cuda::std::sqrt(0.5 * (a + x));
  const double beside = inside ? rising * ::cuda::std::sqrt(by_up + (s - down))
                               : rising * ::cuda::std::sqrt(1 / (r + up) + 1 / apart) * y;
  double height;
  if (a > 1e100) {
    height = ::cuda::std::log(a) + 0.693147180559945309417;
  } else if (inside && y < 1e-100 && down != 0) {
    height = y / ::cuda::std::sqrt(-down * up);
  } else {
    height = ::cuda::std::log1p(above + ::cuda::std::sqrt(above * (a + 1)));
  }
  return {x, x / a, beside, height};
}

constexpr double crossover = 0.6417;  // beyond it, the arc tangent is more accurate

CANDELABRA_HOST_DEVICE inline bool is_finite(double x, double y) {
  return ::cuda::std::isfinite(x) && ::cuda::std::isfinite(y);
}

}  // namespace detail

template <typename T>
CANDELABRA_HOST_DEVICE ::cuda::std::complex<T> asin(::cuda::std::complex<T> z) {
  const double re = z.real(), im = z.imag();
  if (!detail::is_finite(re, im)) return ::cuda::std::asin(z);
  const detail::Arcs arcs = detail::arcs_of(re, im);
  const double real = arcs.b <= detail::crossover ? ::cuda::std::asin(arcs.b) : ::cuda::std::atan2(arcs.x, arcs.beside);
  return {static_cast<T>(::cuda::std::copysign(real, re)), static_cast<T>(::cuda::std::copysign(arcs.height, im))};
}

template <typename T>
CANDELABRA_HOST_DEVICE ::cuda::std::complex<T> acos(::cuda::std::complex<T> z) {
  const double re = z.real(), im = z.imag();
  if (!detail::is_finite(re, im)) return ::cuda::std::acos(z);
  const detail::Arcs arcs = detail::arcs_of(re, im);
  const double real = arcs.b <= detail::crossover ? ::cuda::std::acos(::cuda::std::copysign(arcs.b, re))
                                                  : ::cuda::std::atan2(arcs.beside, re);
  return {static_cast<T>(real), static_cast<T>(::cuda::std::copysign(arcs.height, -im))};
}

template <typename T>
CANDELABRA_HOST_DEVICE ::cuda::std::complex<T> asinh(::cuda::std::complex<T> z) {
  if (!detail::is_finite(z.real(), z.imag())) return ::cuda::std::asinh(z);
  const ::cuda::std::complex<T> rotated = math::asin(::cuda::std::complex<T>(-z.imag(), z.real()));
  return {rotated.imag(), -rotated.real()};
}

template <typename T>
CANDELABRA_HOST_DEVICE ::cuda::std::complex<T> acosh(::cuda::std::complex<T> z) {
  if (!detail::is_finite(z.real(), z.imag())) return ::cuda::std::acosh(z);
  const ::cuda::std::complex<T> rotated = math::acos(z);
  return {::cuda::std::fabs(rotated.imag()), ::cuda::std::copysign(rotated.real(), z.imag())};
}

// log((1 + z) / (1 - z)) / 2 (Kahan 1987), for the right half-plane; the left one is mirrored.
template <typename T>
CANDELABRA_HOST_DEVICE ::cuda::std::complex<T> atanh(::cuda::std::complex<T> z) {
  const double re = z.real(), y = z.imag(), x = ::cuda::std::fabs(re), away = 1 - x;
  if (!detail::is_finite(re, y)) return ::cuda::std::atanh(z);
  const double size = ::cuda::std::hypot(x, y), gap = ::cuda::std::hypot(away, y);
  double real, imag;
  if (size > 1e150) {
    real = x / size / size;
    imag = ::cuda::std::copysign(1.57079632679489661923, y);
  } else {
    real = gap < 1e-140 ? 0.5 * (0.693147180559945309417 - ::cuda::std::log(gap))
                        : 0.25 * ::cuda::std::log1p(4 * x / (away * away + y * y));
    imag = 0.5 * ::cuda::std::atan2(y + y, away * (1 + x) - y * y);
  }
  return {static_cast<T>(::cuda::std::copysign(real, re)), static_cast<T>(imag)};
}

template <typename T>
CANDELABRA_HOST_DEVICE ::cuda::std::complex<T> atan(::cuda::std::complex<T> z) {
  if (!detail::is_finite(z.real(), z.imag())) return ::cuda::std::atan(z);
  const ::cuda::std::complex<T> rotated = math::atanh(::cuda::std::complex<T>(-z.imag(), z.real()));
  return {rotated.imag(), -rotated.real()};
}

}  // namespace candelabra::math
