// Relatives of the error function on whole registers: erfcx, and the normal distribution with its
// logarithm and its inverse. In double, but for tail() and ndtr().
#pragma once

#include "simd/vec_math.hpp"

namespace candelabra::math {
inline namespace CANDELABRA_ISA_NAMESPACE {

namespace normal {

using V = Vec<double>;
using M = Mask<double>;

// e^(a^2) erfc(a) for a >= 0 (Shepherd and Laframboise 1981). Large a use the asymptotic series
// (Abramowitz and Stegun 7.1.23).
CANDELABRA_FORMULA V erfcx_positive(V a) {
  constexpr double k = parts::erfcx_centre<double>, root_pi = 1.77245385090551602730;
  const M far = V(25.0) < a;
  const V b = select(far, V(25.0), a), t = parts::quotient(b - k, b + k);
  V result = parts::quotient(parts::series(t, parts::erfcx_series<double>), fma(V(2.0), b, V(1.0)));
  if (any(far)) {
    static constexpr double c[] = {1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0};
    const V inverse = 1.0 / select(far, a, V(25.0));
    result = select(far, inverse * (1 / root_pi) * parts::series(0.5 * inverse * inverse, c), result);
  }
  return result;
}
CANDELABRA_FORMULA V erfcx(V x) {
  const V a = abs(x);
  V result = erfcx_positive(a);
  const M negative = x < V(0.0);
  if (any(negative)) {
    const V b = min(V(30.0), a), square = b * b, rest = fma(b, b, -square);
    result = select(negative, fma(V(2.0), exp(square) * (rest + 1.0), -result), result);
  }
  return select(a == V(detail::infinity<double>), select(negative, a, V(0.0)), result);
}
// The probability of values beyond |x| on one side. Accurate for x < 0, and with `both` for either
// sign. The rounding error of x^2 is corrected.
template <bool both, typename T>
CANDELABRA_FORMULA Vec<T> tail(Vec<T> x) {
  using U = Vec<T>;
  constexpr T k = parts::erfcx_centre<T>, end = sizeof(T) == 4 ? T(14.5) : T(40),
              half_root = static_cast<T>(0.70710678118654752440);
  // For x >= 0 the caller subtracts it from 1, so that it may saturate early.
  U farthest = U(end);
  if constexpr (!both) farthest = select(x < U(T(0)), farthest, U(T(9)));
  const U a = min(farthest, abs(x)), square = a * a, rest = fma(a, a, -square), b = half_root * a;
  const U scaled =
      parts::quotient(parts::series(parts::quotient(b - k, b + k), parts::erfcx_series<T>), fma(U(T(2)), b, U(T(1))));
  return T(0.5) * scaled * (exp_negative(T(-0.5) * square) * fma(U(T(-0.5)), rest, U(T(1))));
}
template <typename T>
CANDELABRA_FORMULA Vec<T> ndtr(Vec<T> x) {
  const Vec<T> p = tail<false>(x), result = select(x < Vec<T>(T(0)), p, T(1) - p);
  return select(x != x, x, select(x < Vec<T>(sizeof(T) == 4 ? T(-14.5) : T(-40)), Vec<T>(T(0)), result));
}
CANDELABRA_FORMULA V log_ndtr(V x) {
  const M low = x < V(-1.0), left = x < V(0.0);
  V result = V(0.0);
  if (any(!low)) {
    const V p = tail<true>(x), u = 1.0 - p;  // corrected as in log1p
    result = select(left, parts::log_positive(p), fma((1.0 - u) - p, parts::inverse(u), parts::log_positive(u)));
  }
  if (any(low)) {
    const V far = parts::log_positive(0.5 * erfcx_positive(0.70710678118654752440 * abs(x))) - 0.5 * x * x;
    result = select(low, select(x == V(-detail::infinity<double>), x, far), result);
  }
  return select(x != x, x, result);
}

// Wichura's algorithm AS 241 (1988), as in candelabra/special/normal_quantile.hpp.
CANDELABRA_FORMULA V quantile(V p) {
  static constexpr double middle_over[] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                                           1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                                           3.3430575583588128105e4, 2.5090809287301226727e3};
  static constexpr double middle_under[] = {1.0,
                                            4.2313330701600911252e1,
                                            6.8718700749205790830e2,
                                            5.3941960214247511077e3,
                                            2.1213794301586595867e4,
                                            3.9307895800092710610e4,
                                            2.8729085735721942674e4,
                                            5.2264952788528545610e3};
  static constexpr double near_over[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                         3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                         2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double near_under[] = {1.0,
                                          2.05319162663775882187e0,
                                          1.67638483018380384940e0,
                                          6.89767334985100004550e-1,
                                          1.48103976427480074590e-1,
                                          1.51986665636164571966e-2,
                                          5.47593808499534494600e-4,
                                          1.05075007164441684324e-9};
  static constexpr double far_over[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                        2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double far_under[] = {1.0,
                                         5.99832206555887937690e-1,
                                         1.36929880922735805310e-1,
                                         1.48753612908506148525e-2,
                                         7.86869131145613259100e-4,
                                         1.84631831751005468180e-5,
                                         1.42151175831644588870e-7,
                                         2.04426310338993978564e-15};
  const V from_half = p - 0.5, a = abs(from_half), part = select(from_half < V(0.0), p, 1.0 - p);
  const V z = fnma(a, a, V(0.180625));
  V size = a * parts::quotient(parts::series(z, middle_over), parts::series(z, middle_under));
  const M outer = V(0.425) < a;
  if (any(outer)) {
    const V r = sqrt(-log(part)), s = r - 1.6, t = r - 5.0;
    V beyond = parts::quotient(parts::series(s, near_over), parts::series(s, near_under));
    const M far = V(5.0) < r;
    if (any(far))
      beyond = select(far, parts::quotient(parts::series(t, far_over), parts::series(t, far_under)), beyond);
    size = select(outer, beyond, size);
    size = select(part == V(0.0), V(detail::infinity<double>), size);
    size = select(part < V(0.0), V(detail::nan<double>), size);
  }
  return select(p != p, p, with_sign_of(size, from_half));
}

}  // namespace normal

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::math
