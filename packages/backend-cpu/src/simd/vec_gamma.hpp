// lgamma and digamma on whole registers.
#pragma once

#include "simd/vec_math.hpp"

namespace candelabra::math {
inline namespace CANDELABRA_ISA_NAMESPACE {

namespace parts {

// log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2 as a function of 1 / x, for x >= 8: Stirling's
// series (Abramowitz and Stegun 6.1.41).
CANDELABRA_FORMULA Vec<double> stirling_series(Vec<double> inverse) {
  static constexpr double c[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  return inverse * series(inverse * inverse, c);
}

// For x > 0, in double for float results. Small x use Gamma(x + 8) = x (x + 1) … (x + 7) Gamma(x).
CANDELABRA_FORMULA Vec<double> lgamma_positive(Vec<double> x) {
  using V = Vec<double>;
  const Mask<double> low = x < V(8.0);
  const V pairs = x * (x + 7.0);  // (x + k) (x + 7 - k) = pairs + k (7 - k)
  const V product = select(low, pairs * (pairs + 6.0) * ((pairs + 10.0) * (pairs + 12.0)), V(1.0));
  const V z = select(low, x + 8.0, x);
  const V whole = fma(z - 0.5, log_positive(z), 0.918938533204672741780 - z);
  return (whole - log_positive(product)) + stirling_series(quotient(V(1.0), z));
}
// Reflects x < 1/2: log Gamma(x) = log(pi / |sin(pi x)|) - log Gamma(1 - x).
CANDELABRA_FORMULA Vec<double> lgamma_for_float(Vec<double> x) {
  using V = Vec<double>;
  const Mask<double> left = x < V(0.5);
  V result = lgamma_positive(min(V(1e60), select(left, 1.0 - x, x)));
  if (any(left)) {
    const V angle = (x - round_even(x)) * 3.14159265358979323846;
    const V sine = abs(sin_of(angle * select(abs(angle) < V(0.8), V(1.0), V(0.0)), angle * angle, V(0.0)));
    const V other = cos_of((1.57079632679489661923 - abs(angle)) * (1.57079632679489661923 - abs(angle)));
    const V size = select(abs(angle) < V(0.8), sine, other);
    result =
        select(left, log_cases_of(3.14159265358979323846 / size, log_positive(3.14159265358979323846 / size)) - result,
               result);
  }
  return result;
}

}  // namespace parts

CANDELABRA_FORMULA Vec<float> lgamma(Vec<float> x) {
  Vec<double> low, high;
  to_double(x, low, high);
  const Vec<float> infinite = detail::infinity<float>;
  Vec<float> result = to_float(parts::lgamma_for_float(low), parts::lgamma_for_float(high));
  result = select((x == Vec<float>(1.0f)) | (x == Vec<float>(2.0f)), Vec<float>(0.0f), result);
  return select(x != x, x, select(abs(x) == infinite, infinite, result));
}

// Recurrence up to 10, then the asymptotic series (Abramowitz and Stegun 6.3.5, 6.3.18). Negative
// numbers are reflected (6.3.7).
CANDELABRA_FORMULA Vec<double> digamma(Vec<double> x) {
  using V = Vec<double>;
  const V zero = 0.0, one = 1.0;
  const Mask<double> left = x < zero;
  V z = select(left, one - x, x), result = zero;
  for (int step = 0; step < 10; ++step) {
    const Mask<double> low = z < V(10.0);
    if (!any(low)) break;
    result = result - select(low, one / z, zero);
    z = z + select(low, one, zero);
  }
  static constexpr double c[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
  const V inverse = one / z, square = inverse * inverse;
  result = result + log(z) - 0.5 * inverse - square * parts::series(square, c);
  if (any(left)) {
    const V part = x - round_even(x), angle = part * 3.14159265358979323846;
    const V reflected = result - 3.14159265358979323846 / tan(angle);
    result = select(left, select(part == zero, V(detail::nan<double>), reflected), result);
  }
  result = select(x == zero, with_sign_of(V(detail::infinity<double>), -x), result);
  return select(x == V(detail::infinity<double>), x, result);
}
CANDELABRA_FORMULA Vec<float> digamma(Vec<float> x) {
  Vec<double> low, high;
  to_double(x, low, high);
  return to_float(digamma(low), digamma(high));
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::math
