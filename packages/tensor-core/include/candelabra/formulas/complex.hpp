// Functions of complex numbers that the libraries lack or compute less accurately, shared by the
// kernels of all backends. Z is the backend's complex type (candelabra/dtypes.hpp); its library's
// own functions are found by argument-dependent lookup.
#ifndef CANDELABRA_FORMULAS_COMPLEX_HPP
#define CANDELABRA_FORMULAS_COMPLEX_HPP

#include <cmath>

#include "candelabra/host_device.hpp"

namespace candelabra::complex_math {
inline namespace CANDELABRA_ISA_NAMESPACE {

template <typename Z>
CANDELABRA_HOST_DEVICE Z exp2(Z z) {
  return exp(z * static_cast<typename Z::value_type>(0.693147180559945309417));
}

// e^x cos y - 1 = expm1(x) cos y - 2 sin^2(y/2)
template <typename Z>
CANDELABRA_HOST_DEVICE Z expm1(Z z) {
  using T = typename Z::value_type;
  const T x = z.real(), y = z.imag();
  if (y == 0) return {std::expm1(x), y};
  const T s = std::sin(y / 2);
  return {std::expm1(x) * std::cos(y) - 2 * s * s, std::exp(x) * std::sin(y)};
}

// log |1 + z| = log1p(x (2 + x) + y^2) / 2, used for small |x| and |y|
template <typename Z>
CANDELABRA_HOST_DEVICE Z log1p(Z z) {
  using T = typename Z::value_type;
  const T x = z.real(), y = z.imag();
  const T angle = std::atan2(y, x + 1);
  if (std::fabs(x) > T(0.5) || std::fabs(y) > T(0.5)) return {std::log(std::hypot(x + 1, y)), angle};
  return {std::log1p(x * (2 + x) + y * y) / 2, angle};
}

template <typename Z>
CANDELABRA_HOST_DEVICE Z log2(Z z) {
  return log(z) * static_cast<typename Z::value_type>(1.44269504088896340736);
}

// z / |z|, and 0 for z = 0
template <typename Z>
CANDELABRA_HOST_DEVICE Z sgn(Z z) {
  using T = typename Z::value_type;
  if constexpr (sizeof(T) == 4) {  // squares of floats stay in the range of double
    const double x = z.real(), y = z.imag(), magnitude = std::sqrt(x * x + y * y);
    const double by = magnitude == 0 ? 1 : magnitude;
    return {static_cast<T>(x / by), static_cast<T>(y / by)};
  } else {
    const T magnitude = abs(z);
    return magnitude == 0 ? Z(0) : z / magnitude;
  }
}

template <typename Z>
CANDELABRA_HOST_DEVICE Z power(Z z, Z w) {
  if (w == Z(0)) return 1;
  if (z == Z(0) && w.imag() == 0 && w.real() > 0) return 0;
  if (w.imag() == 0 && w.real() == 2) return z * z;
  return pow(z, w);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::complex_math

#endif  // CANDELABRA_FORMULAS_COMPLEX_HPP
