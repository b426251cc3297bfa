// Powers and the inverse of the error function on whole registers.
#pragma once

#include "vec_math.hpp"

namespace candelabra::math {
inline namespace CANDELABRA_ISA_NAMESPACE {

namespace parts {

// C99's special cases of x^y; `p` is |x|^y for positive finite |x|, also where that over- or underflows.
template <typename T>
CANDELABRA_FORMULA Vec<T> power_cases(Vec<T> x, Vec<T> y, Vec<T> p) {
  const Vec<T> one = T(1), zero = T(0), infinite = detail::infinity<T>;
  p = select(abs(x) == one, one, p);  // of infinite powers, too
  const Vec<T> half = T(0.5) * y;
  const Mask<T> integer = floor(y) == y, odd = integer & (floor(half) != half), negative = is_negative(x);
  p = select(negative & odd, -p, p);
  p = select((x < zero) & !integer & (x != -infinite), Vec<T>(detail::nan<T>), p);
  p = select((x != x) | (y != y), x + y, p);
  return select((y == zero) | (x == one), one, p);
}

// 2^(y log2 |x|) in double, accurate to about 2^-30: enough for float.
CANDELABRA_FORMULA Vec<double> power_for_float(Vec<double> a, Vec<double> y) {
  static constexpr double log_series[] = {1.44269504088893674e+00,  -7.21347520561071209e-01, 4.80898347333195142e-01,
                                          -3.60673244066208265e-01, 2.88538155800524387e-01,  -2.41020297499004693e-01,
                                          2.06752232353200754e-01};
  static constexpr double exp_series[] = {6.93147206235270263e-01, 2.40226513543895959e-01, 5.55032779716848404e-02,
                                          9.61800311099538646e-03, 1.34002696163848783e-03, 1.54764762245438424e-04};
  const auto [m, e] = parts_of(a);
  const auto [shifted, inverse] = sixteenths_of(m);
  const Vec<double> r = fma(m, inverse, Vec<double>(-1.0));
  Vec<double> l = fma(r, series(r, log_series), e + looked_up(log2_table, shifted));
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

// e^(y log |x|), the logarithm and its product with y as sums of two numbers each.
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
  const V product = parts::settled(m * inverse), rest = fma(m, inverse, -product), r = product - 1.0;
  const V high = fma(e, V(0.6931471805601177), parts::looked_up(parts::log_high_table, shifted));  // exact
  const V square = parts::settled(r * r), square_rest = fma(r, r, -square), half = 0.5 * square;
  const V first = high + r, first_rest = r - (first - high);
  const V second = first - half, second_rest = (first - second) - half;
  V low = fma(e, V(-1.7239444525614835e-13), parts::looked_up(parts::log_low_table, shifted));
  low = low + fma(rest, square - r, rest);
  low = low + fma(V(-0.5), square_rest, first_rest + second_rest);
  low = fma(r * square, parts::series(r, c), low);
  V l = second + low;
  const V l_rest = (second - l) + low;
  l = select(a == V(0.0), V(-detail::infinity<double>), l);
  l = select(a == V(detail::infinity<double>), V(detail::infinity<double>), l);

  const V power = parts::settled(y * l);
  V power_rest = fma(y, l, -power) + y * l_rest;
  power_rest = select(abs(power) < V(800.0), power_rest, V(0.0));
  auto [s, whole] = parts::reduced_exp(parts::clipped(power, detail::Format<double>::exp_low, detail::Format<double>::exp_high));
  s = s + power_rest;
  return parts::power_cases(x, y, parts::scaled(parts::expm1_of(s) + 1.0, whole));
}

// x times a polynomial in w = -log(1 - x^2), where that is large in its root (the arrangement of Giles 2012).
CANDELABRA_FORMULA Vec<float> erfinv(Vec<float> x) {
  using V = Vec<float>;
  static constexpr float central[] = {1.501409411e+00f, 2.466402799e-01f,  -4.177386872e-03f, -1.252741786e-03f,
                                      2.183444594e-04f, -4.963365882e-06f, -3.462709856e-06f, 4.661733612e-07f,
                                      2.323309367e-08f, -8.791189110e-09f};
  static constexpr float tail[] = {2.983417511e+00f,  1.004061341e+00f, 6.666208617e-03f,  -4.936872516e-03f, 3.471606178e-03f,
                                   -2.337069483e-03f, 1.267512911e-03f, -3.374072257e-04f, -1.561959216e-04f, 1.173158962e-04f};
  const V a = abs(x);
  const V w = -parts::log_positive(fnma(a, a, V(1.0f)));
  const Mask<float> far = V(5.0f) < w;
  V p = parts::series(w - 2.5f, central);
  if (any(far)) {
    const V exact = -parts::log_positive((1.0f - a) * (1.0f + a));
    p = select(far, parts::series(hardware_sqrt(exact) - 3.15f, tail), p);
  }
  V result = x * p;
  result = select(a == V(1.0f), with_sign_of(V(detail::infinity<float>), x), result);
  return select(a <= V(1.0f), result, V(detail::nan<float>));
}

CANDELABRA_FORMULA Vec<double> erfinv(Vec<double> x) {
  using V = Vec<double>;
  static constexpr double central[] = {
      1.65365456268310274e+00,  2.40158182425588312e-01,  -6.03367087142689992e-03, -7.40702534154320802e-04,
      1.86734208020050544e-04,  -1.38825233949821521e-05, -1.36546917633347336e-06, 4.23478818331159314e-07,
      -2.90703908275844886e-08, -4.11266168025211657e-09, 1.05122311662768252e-09,  -5.41424002528522619e-11,
      -1.29787094015438952e-11, 2.63031666274298889e-12,  -8.07425425794396167e-14, -3.99731243655534717e-14,
      6.52510221411338095e-15,  -4.64889344051339249e-17, -1.22559333261444301e-16, 1.62258847329005803e-17,
      6.34831392280905895e-19,  -3.93498489120888567e-19, 1.89279576227710293e-20,  4.91663809660075337e-21,
      -3.41171432084268115e-22, -2.82852765718353529e-23};
  static constexpr double middle[] = {
      3.08388561049222076e+00,  1.00525896769416567e+00,  5.37091455357089839e-03,  -3.75120850826302131e-03,
      2.49144209701874283e-03,  -1.68827553424951912e-03, 9.53289363068913218e-04,  -3.55037830857754554e-04,
      2.40312631818084429e-05,  6.82872490090774689e-05,  -4.73190157865491161e-05, 1.24644322708999386e-05,
      2.92582471326451629e-06,  -3.98407516856076654e-06, 1.49854513830175080e-06,  -3.02689654714820271e-08,
      -2.71185888738164432e-07, 1.33944681065675977e-07,  6.34025627341169063e-10,  -1.61882335037662120e-08};
  static constexpr double end[] = {
      4.90042105144364015e+00, 1.01028501759777201e+00,  -1.69858091496289168e-04, -2.00312006678630592e-04,
      7.12403154921901414e-05, -1.83745361600875196e-05, 4.19385310480203085e-06,  -9.07085904175348601e-07,
      2.01622081235117612e-07, -5.49323404870926037e-08, 2.18139148461544236e-08,  -1.12068379299633690e-08,
      5.81808387750678845e-09, -2.63172266864112567e-09, 1.03739373488367676e-09,  -3.86512998741560883e-10,
      8.27433543215847264e-11, 2.88395845984791768e-11,  -1.65052008353463663e-11};
  const V a = abs(x);
  const V w = -parts::log_positive(fnma(a, a, V(1.0)));
  const Mask<double> far = V(6.25) < w;
  V p = parts::series(w - 3.125, central);
  if (any(far)) {
    const V root = hardware_sqrt(-parts::log_positive((1.0 - a) * (1.0 + a)));
    p = select(far, select(root < V(4.0), parts::series(root - 3.25, middle), parts::series(root - 5.05, end)), p);
  }
  V result = x * p;
  result = select(a == V(1.0), with_sign_of(V(detail::infinity<double>), x), result);
  return select(a <= V(1.0), result, V(detail::nan<double>));
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::math
