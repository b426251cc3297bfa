// The error function and related functions, and the gamma function, in the style of math.hpp.
#ifndef CANDELABRA_SPECIAL_FUNCTIONS_HPP
#define CANDELABRA_SPECIAL_FUNCTIONS_HPP

#include <cmath>

#include "candelabra/math.hpp"
#include "candelabra/special/normal_quantile.hpp"

namespace candelabra::math {

// ---- error function

namespace detail {

// e^(x^2) erfc(x) for x in [0.95, 11]: a near-minimax polynomial in (x - 2) / (x + 2), fitted for
// this file (after Shepherd and Laframboise).
CANDELABRA_FORMULA float erfcx(float x) {
  float t = (x - 2.0f) / (x + 2.0f);
  return polynomial(t, -5.216131082e-05f, 2.235330280e-04f, 4.967061799e-05f, -9.961018288e-04f, -8.450232489e-04f,
                    6.998689292e-03f, 3.732615136e-03f, -7.897861840e-02f, 2.416582030e-01f, -4.271858471e-01f, 2.553956763e-01f);
}
// erf(x) for |x| <= 1: x times a near-minimax polynomial in x^2.
CANDELABRA_FORMULA float erf_near(float x) {
  return x * polynomial(x * x, 7.853857680e-05f, -8.010192512e-04f, 5.188327559e-03f, -2.685381187e-02f, 1.128358515e-01f,
                        -3.761262582e-01f, 1.128379166e+00f);
}
// erfc for x >= 0.95. Corrects for the rounding error of x^2, which the exponential would amplify.
CANDELABRA_FORMULA float erfc_far(float x) {
  x = x > 10.5f ? 10.5f : x;
  float square = x * x;
  float rest = __builtin_fmaf(x, x, -square);
  float e = exp(-square);
  return (e - e * rest) * erfcx(x);
}

}  // namespace detail

CANDELABRA_FORMULA float erf(float x) {
  float a = abs(x);
  float far = 1.0f - detail::erfc_far(a < 1.0f ? 1.0f : a);
  float result = a < 1.0f ? detail::erf_near(a) : far;
  return x != x ? x : with_sign_of(result, x);
}
CANDELABRA_FORMULA float erfc(float x) {
  float a = abs(x);
  float far = detail::erfc_far(a < 1.0f ? 1.0f : a);
  float near = 1.0f - detail::erf_near(x);
  float result = a < 1.0f ? near : (x < 0.0f ? 2.0f - far : far);
  return x != x ? x : result;
}
CANDELABRA_FORMULA double erf(double x) {
  return std::erf(x);
}
CANDELABRA_FORMULA double erfc(double x) {
  return std::erfc(x);
}

// Computed from the quantile of the normal distribution.
CANDELABRA_FORMULA double erfinv(double x) {
  return 0.707106781186547524401 * normal_quantile(0.5 * x, 0.5 * (1.0 - abs(x)));
}
CANDELABRA_FORMULA float erfinv(float x) {
  return static_cast<float>(erfinv(static_cast<double>(x)));
}

// gelu: x Phi(x); its derivative: Phi(x) + x phi(x).
template <typename T>
CANDELABRA_FORMULA T gelu(T x) {
  return T(0.5) * x * (T(1) + erf(x * static_cast<T>(0.707106781186547524401)));
}
template <typename T>
CANDELABRA_FORMULA T gelu_derivative(T x) {
  T cdf = T(0.5) * (T(1) + erf(x * static_cast<T>(0.707106781186547524401)));
  return cdf + x * static_cast<T>(0.398942280401432677940) * exp(T(-0.5) * x * x);
}
// The tanh approximation of gelu (Hendrycks and Gimpel).
template <typename T>
CANDELABRA_FORMULA T gelu_tanh(T x) {
  T inner = static_cast<T>(0.797884560802865355880) * (x + static_cast<T>(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + tanh(inner));
}
template <typename T>
CANDELABRA_FORMULA T gelu_tanh_derivative(T x) {
  constexpr T beta = static_cast<T>(0.797884560802865355880), kappa = static_cast<T>(0.044715);
  T t = tanh(beta * (x + kappa * x * x * x));
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * beta * (T(1) + T(3) * kappa * x * x);
}

// ---- gamma function

CANDELABRA_FORMULA double lgamma(double x) {
#if defined(__CUDA_ARCH__)
  return ::lgamma(x);
#else
  int sign;
  return ::lgamma_r(x, &sign);  // lgamma would write the sign to a global variable
#endif
}
CANDELABRA_FORMULA float lgamma(float x) {
#if defined(__CUDA_ARCH__)
  return ::lgammaf(x);
#else
  int sign;
  return ::lgammaf_r(x, &sign);
#endif
}

// Applies the recurrence until x >= 10, then the asymptotic series (Abramowitz and Stegun 6.3.5,
// 6.3.18). Negative numbers use reflection (6.3.7).
CANDELABRA_FORMULA double digamma(double x) {
  if (x == 0.0) return with_sign_of(detail::infinity<double>, -x);
  double result = 0.0;
  if (x < 0.0) {
    double part = x - round_even(x);
    if (part == 0.0) return detail::nan<double>;
    result = -3.14159265358979323846 / std::tan(3.14159265358979323846 * part);
    x = 1.0 - x;
  }
  while (x < 10.0) {
    result -= 1.0 / x;
    x += 1.0;
  }
  double z = 1.0 / (x * x);
  double series = z * detail::polynomial(z, 1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12);
  return result + std::log(x) - 0.5 / x - (x > 1e17 ? 0.0 : series);
}
CANDELABRA_FORMULA float digamma(float x) {
  return static_cast<float>(digamma(static_cast<double>(x)));
}

}  // namespace candelabra::math

#endif
