// Complex functions that libcu++ lacks or computes less accurately. The same as the CPU backend's
// complex_math.hpp.
#pragma once

#include "dtypes.hpp"

namespace candelabra::cuda::complex_math {

template <typename T>
__device__::cuda::std::complex<T> exp2(::cuda::std::complex<T> z) {
  return ::cuda::std::exp(z * static_cast<T>(0.693147180559945309417));
}

// e^x cos y - 1 = expm1(x) cos y - 2 sin^2(y/2)
template <typename T>
__device__::cuda::std::complex<T> expm1(::cuda::std::complex<T> z) {
  const T x = z.real(), y = z.imag();
  if (y == 0) return {::cuda::std::expm1(x), y};
  const T s = ::cuda::std::sin(y / 2);
  return {::cuda::std::expm1(x) * ::cuda::std::cos(y) - 2 * s * s, ::cuda::std::exp(x) * ::cuda::std::sin(y)};
}

// log |1 + z| = log1p(x (2 + x) + y^2) / 2, where the sum is small
template <typename T>
__device__::cuda::std::complex<T> log1p(::cuda::std::complex<T> z) {
  const T x = z.real(), y = z.imag();
  const T angle = ::cuda::std::atan2(y, x + 1);
  if (::cuda::std::fabs(x) > T(0.5) || ::cuda::std::fabs(y) > T(0.5))
    return {::cuda::std::log(::cuda::std::hypot(x + 1, y)), angle};
  return {::cuda::std::log1p(x * (2 + x) + y * y) / 2, angle};
}

template <typename T>
__device__::cuda::std::complex<T> log2(::cuda::std::complex<T> z) {
  return ::cuda::std::log(z) * static_cast<T>(1.44269504088896340736);
}

// sgn(z) = z / |z|
template <typename T>
__device__::cuda::std::complex<T> sgn(::cuda::std::complex<T> z) {
  const T magnitude = ::cuda::std::abs(z);
  return magnitude == 0 ? ::cuda::std::complex<T>(0) : z / magnitude;
}

template <typename T>
__device__::cuda::std::complex<T> pow(::cuda::std::complex<T> z, ::cuda::std::complex<T> w) {
  if (w == ::cuda::std::complex<T>(0)) return 1;
  if (z == ::cuda::std::complex<T>(0) && w.imag() == 0 && w.real() > 0) return 0;
  if (w.imag() == 0 && w.real() == 2) return z * z;
  return ::cuda::std::pow(z, w);
}

}  // namespace candelabra::cuda::complex_math
