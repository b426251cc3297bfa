// Powers on whole registers.
#pragma once

#include "simd/vec_math.hpp"

namespace candelabra::math {
inline namespace CANDELABRA_ISA_NAMESPACE {

namespace parts {

// C99's special cases of x^y. `p` is |x|^y for positive finite |x|, also if it overflows or
// underflows.
template <typename T>
CANDELABRA_FORMULA Vec<T> power_cases(Vec<T> x, Vec<T> y, Vec<T> p) {
  const Vec<T> one = T(1), zero = T(0), infinite = detail::infinity<T>;
  p = select(abs(x) == one, one, p);  // also for infinite y
  const Vec<T> half = T(0.5) * y;
  const Mask<T> integer = floor(y) == y, odd = integer & (floor(half) != half), negative = is_negative(x);
  p = select(negative & odd, -p, p);
  p = select((x < zero) & !integer & (x != -infinite), Vec<T>(detail::nan<T>), p);
  p = select((x != x) | (y != y), x + y, p);
  return select((y == zero) | (x == one), one, p);
}

// 2^(y log2 |x|) in double, accurate to about 2^-30, which is enough for float.
CANDELABRA_FORMULA Vec<double> power_for_float(Vec<double> a, Vec<double> y) {
  static constexpr double log_series[] = {1.44269504088893674e+00,  -7.21347520561071209e-01, 4.80898347333195142e-01,
                                          -3.60673244066208265e-01, 2.88538155800524387e-01,  -2.41020297499004693e-01,
                                          2.06752232353200754e-01};
  static constexpr double exp_series[] = {6.93147206235270263e-01, 2.40226513543895959e-01, 5.55032779716848404e-02,
                                          9.61800311099538646e-03, 1.34002696163848783e-03, 1.54764762245438424e-04};
  const auto [m, e] = parts_of(a);
  const auto [shifted, inverse] = sixteenths_of(m);
  const Vec<double> r = fma(m, inverse, Vec<double>(-1.0));
  Vec<double> l = fma(r, series(r, log_series), e + lookup(log2_table, shifted));
  l = select(a == Vec<double>(0.0), Vec<double>(-detail::infinity<double>), l);
  l = select(a == Vec<double>(detail::infinity<double>), Vec<double>(detail::infinity<double>), l);
  const Vec<double> power = clipped(y * l, -160.0, 135.0);
  const Vec<double> magic = detail::Format<double>::round_magic, whole = (power + magic) - magic, d = power - whole;
  return scaled(fma(series(d, exp_series), d, Vec<double>(1.0)), whole);
}

}  // namespace parts

CANDELABRA_FORMULA Vec<float> pow(Vec<float> x, Vec<float> y) {
  Vec<double> a[2], b[2];
  to_double(abs(x), a[0], a[1]);
  to_double(y, b[0], b[1]);
  return parts::power_cases(x, y, to_float(parts::power_for_float(a[0], b[0]), parts::power_for_float(a[1], b[1])));
}

// e^(y log |x|). The logarithm and its product with y are sums of two numbers each.
CANDELABRA_FORMULA Vec<double> pow(Vec<double> x, Vec<double> y) {
  using V = Vec<double>;
  static constexpr double c[] = {3.33333333333333370e-01,  -2.50000000000000111e-01, 1.99999999999715655e-01,
                                 -1.66666666666064472e-01, 1.42857143585194052e-01,  -1.25000001162201363e-01,
                                 1.11110299351827813e-01,  -9.99989582017580536e-02, 9.13193151410288395e-02,
                                 -8.37747109793784833e-02};
  const V a = abs(x);
  const auto [m, e] = parts::parts_of(a);
  const auto [shifted, inverse] = parts::sixteenths_of(m);
  // m inverse = 1 + r + rest
  const V product = parts::opaque(m * inverse), rest = fma(m, inverse, -product), r = product - 1.0;
  // Exact.
  const V high = fma(e, V(0.6931471805601177), parts::lookup(parts::log_high_table, shifted));
  const V square = parts::opaque(r * r), square_rest = fma(r, r, -square), half = 0.5 * square;
  const V first = high + r, first_rest = r - (first - high);
  const V second = first - half, second_rest = (first - second) - half;
  V low = fma(e, V(-1.7239444525614835e-13), parts::lookup(parts::log_low_table, shifted));
  low = low + fma(rest, square - r, rest);
  low = low + fma(V(-0.5), square_rest, first_rest + second_rest);
  low = fma(r * square, parts::series(r, c), low);
  V l = second + low;
  const V l_rest = (second - l) + low;
  l = select(a == V(0.0), V(-detail::infinity<double>), l);
  l = select(a == V(detail::infinity<double>), V(detail::infinity<double>), l);

  const V power = parts::opaque(y * l);
  V power_rest = fma(y, l, -power) + y * l_rest;
  power_rest = select(abs(power) < V(800.0), power_rest, V(0.0));
  auto [s, whole] =
      parts::reduced_exp(parts::clipped(power, detail::Format<double>::exp_low, detail::Format<double>::exp_high));
  s = s + power_rest;
  return parts::power_cases(x, y, parts::scaled(parts::expm1_of(s) + 1.0, whole));
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::math
