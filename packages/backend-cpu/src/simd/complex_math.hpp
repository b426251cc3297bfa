// Complex functions that the C++ library lacks or computes less accurately.
#pragma once

#include <cmath>
#include <complex>

#include "dtypes.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace complex_math {

template <typename T>
std::complex<T> exp2(std::complex<T> z) {
  return std::exp(z * static_cast<T>(0.693147180559945309417));
}

// e^x cos y - 1 = expm1(x) cos y - 2 sin^2(y/2)
template <typename T>
std::complex<T> expm1(std::complex<T> z) {
  T x = z.real(), y = z.imag();
  if (y == 0) return {std::expm1(x), y};
  T s = std::sin(y / 2);
  return {std::expm1(x) * std::cos(y) - 2 * s * s, std::exp(x) * std::sin(y)};
}

// log |1 + z| = log1p(x (2 + x) + y^2) / 2, used for small |x| and |y|
template <typename T>
std::complex<T> log1p(std::complex<T> z) {
  T x = z.real(), y = z.imag();
  T angle = std::atan2(y, x + 1);
  if (std::abs(x) > T(0.5) || std::abs(y) > T(0.5)) return {std::log(std::hypot(x + 1, y)), angle};
  return {std::log1p(x * (2 + x) + y * y) / 2, angle};
}

template <typename T>
std::complex<T> log2(std::complex<T> z) {
  return std::log(z) * static_cast<T>(1.44269504088896340736);
}

// z / |z|, and 0 for z = 0
template <typename T>
std::complex<T> sgn(std::complex<T> z) {
  if constexpr (sizeof(T) == 4) {  // squares of floats stay in the range of double
    const double x = z.real(), y = z.imag(), magnitude = std::sqrt(x * x + y * y);
    const double by = magnitude == 0 ? 1 : magnitude;
    return {static_cast<T>(x / by), static_cast<T>(y / by)};
  } else {
    T magnitude = std::abs(z);
    return magnitude == 0 ? std::complex<T>(0) : z / magnitude;
  }
}

template <typename T>
std::complex<T> pow(std::complex<T> z, std::complex<T> w) {
  if (w == std::complex<T>(0)) return 1;
  if (z == std::complex<T>(0) && w.imag() == 0 && w.real() > 0) return 0;
  if (w.imag() == 0 && w.real() == 2) return z * z;
  return std::pow(z, w);
}

}  // namespace complex_math
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
