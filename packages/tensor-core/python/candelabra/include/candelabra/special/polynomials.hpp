// Orthogonal polynomials of integer degree by their three-term recurrences (Abramowitz and Stegun, chapter 22), in double
// precision.
#ifndef CANDELABRA_SPECIAL_POLYNOMIALS_HPP
#define CANDELABRA_SPECIAL_POLYNOMIALS_HPP

#include <cmath>
#include <cstdint>

#include "candelabra/float_index.hpp"
#include "candelabra/host_device.hpp"

namespace candelabra::math {

namespace detail {

// p_0 = 1, p_1 = first, and p_(k+1) = next(k, p_k, p_(k-1)). The degree is rounded towards 0; of a negative one, 0.
template <typename F>
CANDELABRA_HOST_DEVICE inline double three_terms(double first, double degree, F&& next) {
  if (!(degree > -1)) return 0;
  // Values of higher degrees than this are not finite, or not known to any digit.
  constexpr int64_t highest = 10'000'000;
  const auto n = index_from_float<int64_t>(degree, 0, highest);
  double before = 1, now = first;
  if (n == 0) return 1;
  for (int64_t k = 1; k < n && !std::isnan(now); ++k) {
    const double after = next(static_cast<double>(k), now, before);
    before = now;
    now = after;
  }
  return now;
}

// The four kinds differ in p_1 only.
CANDELABRA_HOST_DEVICE inline double chebyshev(double first, double x, double n) {
  return three_terms(first, n, [x](double, double now, double before) { return 2 * x * now - before; });
}

}  // namespace detail

CANDELABRA_HOST_DEVICE inline double chebyshev_t(double x, double n) {
  // By angles, where a recurrence would be long.
  if (n > 100 && std::abs(x) < 1) return std::cos(std::trunc(n) * std::acos(x));
  return detail::chebyshev(x, x, n);
}
CANDELABRA_HOST_DEVICE inline double chebyshev_u(double x, double n) {
  if (n > 100 && std::abs(x) < 1) {
    const double angle = std::acos(x);
    return std::sin((std::trunc(n) + 1) * angle) / std::sin(angle);
  }
  return detail::chebyshev(2 * x, x, n);
}
CANDELABRA_HOST_DEVICE inline double chebyshev_v(double x, double n) {
  if (n > 100 && std::abs(x) < 1) {
    const double angle = std::acos(x);
    return std::cos((std::trunc(n) + 0.5) * angle) / std::cos(angle / 2);
  }
  return detail::chebyshev(2 * x - 1, x, n);
}
CANDELABRA_HOST_DEVICE inline double chebyshev_w(double x, double n) {
  if (n > 100 && std::abs(x) < 1) {
    const double angle = std::acos(x);
    return std::sin((std::trunc(n) + 0.5) * angle) / std::sin(angle / 2);
  }
  return detail::chebyshev(2 * x + 1, x, n);
}
CANDELABRA_HOST_DEVICE inline double shifted_chebyshev_t(double x, double n) {
  return chebyshev_t(2 * x - 1, n);
}
CANDELABRA_HOST_DEVICE inline double shifted_chebyshev_u(double x, double n) {
  return chebyshev_u(2 * x - 1, n);
}
CANDELABRA_HOST_DEVICE inline double shifted_chebyshev_v(double x, double n) {
  return chebyshev_v(2 * x - 1, n);
}
CANDELABRA_HOST_DEVICE inline double shifted_chebyshev_w(double x, double n) {
  return chebyshev_w(2 * x - 1, n);
}
CANDELABRA_HOST_DEVICE inline double hermite_h(double x, double n) {
  return detail::three_terms(2 * x, n, [x](double k, double now, double before) { return 2 * (x * now - k * before); });
}
CANDELABRA_HOST_DEVICE inline double hermite_he(double x, double n) {
  return detail::three_terms(x, n, [x](double k, double now, double before) { return x * now - k * before; });
}
CANDELABRA_HOST_DEVICE inline double laguerre_l(double x, double n) {
  return detail::three_terms(1 - x, n,
                             [x](double k, double now, double before) { return ((2 * k + 1 - x) * now - k * before) / (k + 1); });
}
CANDELABRA_HOST_DEVICE inline double legendre_p(double x, double n) {
  return detail::three_terms(x, n,
                             [x](double k, double now, double before) { return ((2 * k + 1) * x * now - k * before) / (k + 1); });
}

}  // namespace candelabra::math

#endif
