// Elementary functions of float and double, on the host and on devices.
//
// They have no branches, so that the compiler can vectorize a loop over them. Each is accurate to
// about two units in the last place, with C99's results for zeros, infinities and NaN. Where there
// is no polynomial for double here, the C library computes the function. Compile with fused
// multiply-add and without -ffast-math: the argument reductions rely on fusion and on rounding.
#ifndef CANDELABRA_MATH_HPP
#define CANDELABRA_MATH_HPP

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "candelabra/host_device.hpp"

namespace candelabra::math {

namespace detail {

template <typename T>
struct Format;
template <>
struct Format<float> {
  using Bits = int32_t;
  using Unsigned = uint32_t;
  static constexpr int fraction = 23, bias = 127;
  // 1.5 * 2^23; adding it rounds to an integer, which the low bits hold
  static constexpr float round_magic = 12582912.0f;
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  static constexpr float exp_low = -104.0f, exp_high = 89.0f;
  static constexpr float tiny_scale = 33554432.0f;  // 2^25: scales subnormal numbers to normal ones
  static constexpr int tiny_shift = 25;
};
template <>
struct Format<double> {
  using Bits = int64_t;
  using Unsigned = uint64_t;
  static constexpr int fraction = 52, bias = 1023;
  static constexpr double round_magic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
  static constexpr double exp_low = -746.0, exp_high = 710.0;
  static constexpr double tiny_scale = 18014398509481984.0;  // 2^54
  static constexpr int tiny_shift = 54;
};

template <typename T>
CANDELABRA_FORMULA typename Format<T>::Bits bits_of(T x) {
  return __builtin_bit_cast(typename Format<T>::Bits, x);
}
template <typename T>
CANDELABRA_FORMULA T from_bits(typename Format<T>::Bits bits) {
  return __builtin_bit_cast(T, bits);
}

// 2^n, for n in the exponent range of normal numbers.
template <typename T>
CANDELABRA_FORMULA T power_of_two(typename Format<T>::Bits n) {
  return from_bits<T>((n + Format<T>::bias) << Format<T>::fraction);
}

template <typename T>
constexpr T infinity = std::numeric_limits<T>::infinity();
template <typename T>
constexpr T nan = std::numeric_limits<T>::quiet_NaN();

// Horner's scheme, highest coefficient first.
template <typename T, typename... Cs>
CANDELABRA_FORMULA T polynomial(T x, T leading, Cs... rest) {
  T sum = leading;
  ((sum = sum * x + static_cast<T>(rest)), ...);
  return sum;
}

// e^r - 1 for |r| <= ln(2)/2, by the Taylor series. The first omitted term is below a tenth of a
// unit in the last place.
CANDELABRA_FORMULA float expm1_series(float r) {
  float p = polynomial(r, 1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f);
  return r + r * r * p;
}
CANDELABRA_FORMULA double expm1_series(double r) {
  double p = polynomial(r, 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
                        1.0 / 40320.0, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5);
  return r + r * r * p;
}

// x = n ln 2 + r (Cody and Waite). ln 2 is split in two parts, so that n times the first part is
// exact.
template <typename T>
struct ExpParts {
  T r;
  typename Format<T>::Bits n;
};
template <typename T>
CANDELABRA_FORMULA ExpParts<T> reduce_exp(T x) {
  using F = Format<T>;
  T shifted = x * static_cast<T>(1.44269504088896340736) + F::round_magic;
  T whole = shifted - F::round_magic;
  return {(x - whole * F::ln2_high) - whole * F::ln2_low, bits_of(shifted) - bits_of(F::round_magic)};
}

template <typename T>
CANDELABRA_FORMULA T clip(T x, T low, T high) {  // NaN propagates
  x = x > high ? high : x;
  return x < low ? low : x;
}

// x = 2^exponent m, with x > 0 and m in [sqrt(1/2), sqrt(2)). Then log m = f - (f^2/2 - s (f^2/2 +
// R)), with f = m - 1 and s = f / (2 + f). R follows from log m = 2 atanh s = 2 s + 2 s^3/3 + 2
// s^5/5 + … (the scheme of FreeBSD's msun, after Ng).
template <typename T>
struct LogParts {
  T exponent, f, half_square, correction;
};
template <typename T>
CANDELABRA_FORMULA LogParts<T> reduce_log(T x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  using Unsigned = typename F::Unsigned;  // NaN and negative numbers may wrap around
  bool tiny = x < std::numeric_limits<T>::min();
  T scaled = tiny ? x * F::tiny_scale : x;
  constexpr Bits sqrt_half = sizeof(T) == 4 ? static_cast<Bits>(0x3f3504f3) : static_cast<Bits>(0x3fe6a09e667f3bcdLL);
  Bits word = bits_of(scaled), exponent;
  const Unsigned above = static_cast<Unsigned>(word) - static_cast<Unsigned>(sqrt_half);
  T e;
#ifndef __AVX512DQ__
  if constexpr (sizeof(T) == 8) {
    // Without AVX-512DQ, x86 has neither an arithmetic shift of 64-bit vector lanes nor their
    // conversion to double. A bias keeps the exponent non-negative for the shift. Adding the
    // exponent to the bits of round_magic converts it.
    constexpr Bits bias = F::bias;
    exponent = static_cast<Bits>((above + (Unsigned{F::bias} << F::fraction)) >> F::fraction) - bias;
    e = from_bits<T>(bits_of(F::round_magic) + exponent) - F::round_magic;
  } else
#endif
  {
    exponent = static_cast<Bits>(above) >> F::fraction;
    e = static_cast<T>(exponent);
  }
  T m = from_bits<T>(static_cast<Bits>(static_cast<Unsigned>(word) - (static_cast<Unsigned>(exponent) << F::fraction)));
  e -= tiny ? static_cast<T>(F::tiny_shift) : T(0);
  T f = m - T(1), s = f / (m + T(1)), z = s * s;
  T series;
  if constexpr (sizeof(T) == 4)
    series = polynomial(z, T(2.0 / 11), T(2.0 / 9), T(2.0 / 7), T(2.0 / 5), T(2.0 / 3));
  else
    series = polynomial(z, T(2.0 / 25), T(2.0 / 23), T(2.0 / 21), T(2.0 / 19), T(2.0 / 17), T(2.0 / 15), T(2.0 / 13),
                        T(2.0 / 11), T(2.0 / 9), T(2.0 / 7), T(2.0 / 5), T(2.0 / 3));
  T half_square = T(0.5) * f * f;
  return {e, f, half_square, s * (half_square + z * series)};
}
// Results of a logarithm for zero, negative numbers, infinity and NaN.
template <typename T>
CANDELABRA_FORMULA T log_special(T x, T result) {
  result = x == T(0) ? -infinity<T> : result;
  result = x < T(0) ? nan<T> : result;
  result = x == infinity<T> ? x : result;
  return x != x ? x : result;
}

}  // namespace detail

// ---- selection, signs and rounding

// For formulas of numbers and SIMD vectors alike: vectors have a mask instead of the condition.
template <typename T>
CANDELABRA_FORMULA T select(bool condition, T a, T b) {
  return condition ? a : b;
}
template <typename T>
CANDELABRA_FORMULA T max(T a, T b) {  // returns b if either is NaN
  return a > b ? a : b;
}
// a b + c, rounded once.
template <typename T>
CANDELABRA_FORMULA T fma(T a, T b, T c) {
  if constexpr (sizeof(T) == 4)
    return __builtin_fmaf(a, b, c);
  else
    return __builtin_fma(a, b, c);
}
template <typename T>
CANDELABRA_FORMULA T fnma(T a, T b, T c) {  // -a b + c
  return fma(-a, b, c);
}
template <typename T>
CANDELABRA_FORMULA T with_sign_of(T magnitude, T sign) {
  if constexpr (sizeof(T) == 4)
    return __builtin_copysignf(magnitude, sign);
  else
    return __builtin_copysign(magnitude, sign);
}
template <typename T>
CANDELABRA_FORMULA T abs(T x) {
  if constexpr (sizeof(T) == 4)
    return __builtin_fabsf(x);
  else
    return __builtin_fabs(x);
}
template <typename T>
CANDELABRA_FORMULA T sqrt(T x) {
  if constexpr (sizeof(T) == 4)
    return __builtin_sqrtf(x);
  else
    return __builtin_sqrt(x);
}
template <typename T>
CANDELABRA_FORMULA T rsqrt(T x) {
  return T(1) / sqrt(x);
}
template <typename T>
CANDELABRA_FORMULA T floor(T x) {
  if constexpr (sizeof(T) == 4)
    return __builtin_floorf(x);
  else
    return __builtin_floor(x);
}
template <typename T>
CANDELABRA_FORMULA T ceil(T x) {
  if constexpr (sizeof(T) == 4)
    return __builtin_ceilf(x);
  else
    return __builtin_ceil(x);
}
template <typename T>
CANDELABRA_FORMULA T trunc(T x) {
  if constexpr (sizeof(T) == 4)
    return __builtin_truncf(x);
  else
    return __builtin_trunc(x);
}
// Rounds to the nearest integer, ties to even.
template <typename T>
CANDELABRA_FORMULA T round_even(T x) {
  if constexpr (sizeof(T) == 4)
    return __builtin_rintf(x);
  else
    return __builtin_rint(x);
}

// ---- exponentials

template <typename T>
CANDELABRA_FORMULA T exp(T x) {
  using F = detail::Format<T>;
  auto [r, n] = detail::reduce_exp(detail::clip(x, F::exp_low, F::exp_high));
  T p = detail::expm1_series(r) + T(1);
  auto half = n >> 1;  // two factors, so that neither overflows before the result does
  return p * detail::power_of_two<T>(half) * detail::power_of_two<T>(n - half);
}

template <typename T>
CANDELABRA_FORMULA T exp2(T x) {
  using F = detail::Format<T>;
  x = detail::clip(x, sizeof(T) == 4 ? T(-152) : T(-1080), sizeof(T) == 4 ? T(129) : T(1025));
  T shifted = x + F::round_magic;
  T whole = shifted - F::round_magic;
  auto n = detail::bits_of(shifted) - detail::bits_of(F::round_magic);
  T p = detail::expm1_series((x - whole) * static_cast<T>(0.693147180559945309417)) + T(1);
  auto half = n >> 1;
  return p * detail::power_of_two<T>(half) * detail::power_of_two<T>(n - half);
}

template <typename T>
CANDELABRA_FORMULA T expm1(T x) {
  using F = detail::Format<T>;
  // Below -50 the result rounds to -1.
  auto [r, n] = detail::reduce_exp(detail::clip(x, T(-50), F::exp_high));
  T p = detail::expm1_series(r);
  T half = detail::power_of_two<T>(n - 1);
  T result = T(2) * (half * p + (half - T(0.5)));
  return x == T(0) ? x : result;  // keeps the sign of zero
}

// ---- logarithms

template <typename T>
CANDELABRA_FORMULA T log(T x) {
  using F = detail::Format<T>;
  auto [e, f, h, c] = detail::reduce_log(x);
  return detail::log_special(x, e * F::ln2_high - ((h - (c + e * F::ln2_low)) - f));
}

template <typename T>
CANDELABRA_FORMULA T log2(T x) {
  auto [e, f, h, c] = detail::reduce_log(x);
  T m = f - (h - c);
  return detail::log_special(x, e + m * static_cast<T>(1.44269504088896340736));
}

template <typename T>
CANDELABRA_FORMULA T log10(T x) {
  auto [e, f, h, c] = detail::reduce_log(x);
  T m = f - (h - c);
  // log10(2) is split in two parts, so that e times the high part is exact.
  constexpr T high = sizeof(T) == 4 ? T(3.0102539062e-01) : T(3.01029995663611771306e-01);
  constexpr T low = sizeof(T) == 4 ? T(4.6050389811952137e-06) : T(3.69423907715893078616e-13);
  return detail::log_special(x, e * high + (e * low + m * static_cast<T>(0.434294481903251827651)));
}

// log(1 + x), with a first-order correction of the rounding error of 1 + x (Kahan).
template <typename T>
CANDELABRA_FORMULA T log1p(T x) {
  T u = T(1) + x;
  T result = log(u) + (x - (u - T(1))) / u;
  result = x == T(-1) ? -detail::infinity<T> : result;
  result = x == detail::infinity<T> ? x : result;
  return x == T(0) ? x : result;
}

// log(e^a + e^b) without overflow.
template <typename T>
CANDELABRA_FORMULA T logaddexp(T a, T b) {
  T high = a > b ? a : b, low = a > b ? b : a;
  T result = high + log1p(exp(low - high));
  // also for equal infinities
  result = a == b ? a + static_cast<T>(0.693147180559945309417) : result;
  return a != a || b != b ? a + b : result;
}
template <typename T>
CANDELABRA_FORMULA T logaddexp2(T a, T b) {
  T high = a > b ? a : b, low = a > b ? b : a;
  T result = high + log1p(exp2(low - high)) * static_cast<T>(1.44269504088896340736);
  result = a == b ? a + T(1) : result;
  return a != a || b != b ? a + b : result;
}

// ---- hyperbolic functions

template <typename T>
CANDELABRA_FORMULA T tanh(T x) {
  T t = expm1(detail::clip(T(2) * abs(x), T(0), T(80)));
  return x != x ? x : with_sign_of(t / (t + T(2)), x);
}

template <typename T>
CANDELABRA_FORMULA T sinh(T x) {
  T a = abs(x);
  T t = expm1(a > T(20) ? T(20) : a);
  T small = T(0.5) * (t + t / (t + T(1)));
  T root = exp(T(0.5) * a);  // e^a overflows before sinh does
  T result = a > T(20) ? (T(0.5) * root) * root : small;
  return x != x ? x : with_sign_of(result, x);
}

template <typename T>
CANDELABRA_FORMULA T cosh(T x) {
  T a = abs(x);
  T e = exp(a > T(20) ? T(20) : a);
  T root = exp(T(0.5) * a);
  return a > T(20) ? (T(0.5) * root) * root : T(0.5) * e + T(0.5) / e;
}

template <typename T>
CANDELABRA_FORMULA T asinh(T x) {
  T a = abs(x);
  constexpr T large = sizeof(T) == 4 ? T(1e8) : T(1e16);
  T b = a > large ? T(1) : a;
  T small = log1p(b + b * b / (T(1) + sqrt(b * b + T(1))));
  T result = with_sign_of(a > large ? log(a) + static_cast<T>(0.693147180559945309417) : small, x);
  return x != x ? x : result;
}

template <typename T>
CANDELABRA_FORMULA T acosh(T x) {
  constexpr T large = sizeof(T) == 4 ? T(1e8) : T(1e16);
  T t = (x > large ? T(2) : x) - T(1);
  T small = log1p(t + sqrt(T(2) * t + t * t));
  T result = x > large ? log(x) + static_cast<T>(0.693147180559945309417) : small;
  return x < T(1) ? detail::nan<T> : result;
}

template <typename T>
CANDELABRA_FORMULA T atanh(T x) {
  T a = abs(x);
  T result = T(0.5) * log1p(T(2) * a / (T(1) - a));
  result = a == T(1) ? detail::infinity<T> : result;
  result = a > T(1) ? detail::nan<T> : result;
  return with_sign_of(result, x);
}

// ---- trigonometric functions

// The largest |x| that sin, cos and tan below can reduce. Use the C library beyond (Payne and
// Hanek).
template <typename T>
constexpr T trigonometric_limit = sizeof(T) == 4 ? T(1e7) : T(1e5);

namespace detail {

// x = n pi/2 + r. For float, the reduction is done in double. For double, pi/2 is split in three
// parts, so that n times each of the first two is exact.
template <typename T>
struct Quadrant {
  T r;
  int32_t n;
};
CANDELABRA_FORMULA Quadrant<float> reduce_quadrant(float x) {
  double wide = x;
  double shifted = wide * 0.636619772367581343076 + Format<double>::round_magic;
  double whole = shifted - Format<double>::round_magic;
  double r = wide - whole * 1.57079632679489655800 - whole * 6.12323399573676603587e-17;
  return {static_cast<float>(r), static_cast<int32_t>(bits_of(shifted))};
}
CANDELABRA_FORMULA Quadrant<double> reduce_quadrant(double x) {
  double shifted = x * 0.636619772367581343076 + Format<double>::round_magic;
  double whole = shifted - Format<double>::round_magic;
  double r =
      ((x - whole * 1.57079632673412561417) - whole * 6.07710050630396597660e-11) - whole * 2.02226624879595063154e-21;
  return {r, static_cast<int32_t>(bits_of(shifted))};
}
// Taylor's series for |r| <= pi/4.
CANDELABRA_FORMULA float sin_series(float r) {
  float z = r * r;
  return r + r * z * polynomial(z, 1.0f / 362880, -1.0f / 5040, 1.0f / 120, -1.0f / 6);
}
CANDELABRA_FORMULA float cos_series(float r) {
  float z = r * r;
  return 1.0f - z * polynomial(z, 1.0f / 3628800, -1.0f / 40320, 1.0f / 720, -1.0f / 24, 0.5f);
}
CANDELABRA_FORMULA double sin_series(double r) {
  double z = r * r;
  return r + r * z *
                 polynomial(z, 1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
                            1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0);
}
CANDELABRA_FORMULA double cos_series(double r) {
  double z = r * r;
  return 1.0 - z * polynomial(z, 1.0 / 6402373705728000.0, -1.0 / 20922789888000.0, 1.0 / 87178291200.0,
                              -1.0 / 479001600.0, 1.0 / 3628800.0, -1.0 / 40320.0, 1.0 / 720.0, -1.0 / 24.0, 0.5);
}

}  // namespace detail

template <typename T>
CANDELABRA_FORMULA T sin(T x) {
  auto [r, n] = detail::reduce_quadrant(x);
  T value = n & 1 ? detail::cos_series(r) : detail::sin_series(r);
  value = n & 2 ? -value : value;
  return x == T(0) ? x : value;
}
template <typename T>
CANDELABRA_FORMULA T cos(T x) {
  auto [r, n] = detail::reduce_quadrant(x);
  T value = n & 1 ? detail::sin_series(r) : detail::cos_series(r);
  return (n + 1) & 2 ? -value : value;
}
template <typename T>
CANDELABRA_FORMULA T tan(T x) {
  auto [r, n] = detail::reduce_quadrant(x);
  T s = detail::sin_series(r), c = detail::cos_series(r);
  T value = n & 1 ? -c / s : s / c;
  return x == T(0) ? x : value;
}

// Near-minimax polynomial of atan(x)/x in x^2 on [0, 1], fitted for this file. For larger x: pi/2 -
// atan(1/x).
CANDELABRA_FORMULA float atan(float x) {
  float a = abs(x);
  bool far = a > 1.0f;
  float t = far ? 1.0f / a : a;
  float z = t * t;
  float p = t * detail::polynomial(z, -1.753906449e-03f, 1.072683765e-02f, -3.080439819e-02f, 5.755190157e-02f,
                                   -8.377303685e-02f, 1.094202661e-01f, -1.426193232e-01f, 1.999826597e-01f,
                                   -3.333328364e-01f, 9.999999976e-01f);
  return with_sign_of(far ? 1.57079632679f - p : p, x);
}
CANDELABRA_FORMULA double atan(double x) {
  return std::atan(x);
}

// Near-minimax polynomial of asin(x)/x in x^2 on [0, 1/4], fitted for this file. For larger x: pi/2
// - 2 asin(sqrt((1 - x) / 2)).
CANDELABRA_FORMULA float asin(float x) {
  float a = abs(x);
  bool far = a > 0.5f;
  float z = far ? 0.5f * (1.0f - a) : a * a;
  float t = far ? sqrt(z) : a;
  float p =
      detail::polynomial(z, 4.263556778e-02f, 2.385821598e-02f, 4.555017512e-02f, 7.494434851e-02f, 1.666679011e-01f);
  p = t + t * z * p;
  return with_sign_of(far ? 1.57079632679f - 2.0f * p : p, x);
}
CANDELABRA_FORMULA float acos(float x) {
  float a = abs(x);
  bool far = a > 0.5f;
  float z = far ? 0.5f * (1.0f - a) : a * a;
  float t = far ? sqrt(z) : a;
  float p =
      detail::polynomial(z, 4.263556778e-02f, 2.385821598e-02f, 4.555017512e-02f, 7.494434851e-02f, 1.666679011e-01f);
  p = t + t * z * p;
  float near = 1.57079632679f - with_sign_of(p, x);
  float away = x < 0.0f ? 3.14159265359f - 2.0f * p : 2.0f * p;
  return far ? away : near;
}
CANDELABRA_FORMULA double asin(double x) {
  return std::asin(x);
}
CANDELABRA_FORMULA double acos(double x) {
  return std::acos(x);
}

CANDELABRA_FORMULA float atan2(float y, float x) {
  float ay = abs(y), ax = abs(x);
  bool steep = ay > ax;
  float high = steep ? ay : ax, low = steep ? ax : ay;
  float t = high == 0.0f ? 0.0f : low / high;
  t = low == detail::infinity<float> ? 1.0f : t;  // both infinite
  float angle = atan(t);
  angle = steep ? 1.57079632679f - angle : angle;
  angle = __builtin_signbit(x) ? 3.14159265359f - angle : angle;
  angle = x != x || y != y ? x + y : angle;
  return with_sign_of(angle, y);
}
CANDELABRA_FORMULA double atan2(double y, double x) {
  return std::atan2(y, x);
}

template <typename T>
CANDELABRA_FORMULA T hypot(T x, T y) {
  if constexpr (sizeof(T) == 4) {
    // the squares neither overflow nor underflow
    double wide = static_cast<double>(x) * x + static_cast<double>(y) * y;
    bool infinite = abs(x) == detail::infinity<T> || abs(y) == detail::infinity<T>;
    return infinite ? detail::infinity<T> : static_cast<T>(__builtin_sqrt(wide));
  } else {
    return std::hypot(x, y);
  }
}

// ---- sigmoid and related functions

template <typename T>
CANDELABRA_FORMULA T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

// log(1 + e^x) without overflow.
template <typename T>
CANDELABRA_FORMULA T softplus(T x) {
  return (x > T(0) ? x : T(0)) + log1p(exp(-abs(x))) + (x != x ? x : T(0));
}

template <typename T>
CANDELABRA_FORMULA T log_sigmoid(T x) {
  return (x < T(0) ? x : T(0)) - log1p(exp(-abs(x))) + (x != x ? x : T(0));
}

template <typename T>
CANDELABRA_FORMULA T silu(T x) {
  return x / (T(1) + exp(-x));
}
template <typename T>
CANDELABRA_FORMULA T silu_derivative(T x) {
  T s = sigmoid(x);
  return s * (T(1) + x * (T(1) - s));
}

// x tanh(softplus(x)). With n = e^x (e^x + 2), tanh(softplus(x)) = n / (n + 2).
template <typename T>
CANDELABRA_FORMULA T mish(T x) {
  T e = exp(x > T(20) ? T(20) : x);
  T n = e * (e + T(2));
  T result = x * (n / (n + T(2)));
  return x > T(20) || x != x ? x : result;
}

// ---- powers

// x^y with C99's special cases. float is computed in double, which makes the rounding error of y
// log x harmless.
CANDELABRA_FORMULA float pow(float base, float exponent) {
  double x = base, y = exponent;
  double a = abs(x);
  double p = exp(y * log(a));
  p = a == 1.0 ? 1.0 : p;
  double whole = floor(y), half = 0.5 * y;
  bool integer = whole == y;
  bool odd = integer && floor(half) != half;
  bool finite = abs(y) != detail::infinity<double>;
  bool negative = __builtin_signbit(base);
  p = negative && odd && finite ? -p : p;
  p = x < 0.0 && !integer && finite && a != detail::infinity<double> ? detail::nan<double> : p;
  p = x != x || y != y ? x + y : p;
  p = y == 0.0 || x == 1.0 ? 1.0 : p;
  return static_cast<float>(p);
}
CANDELABRA_FORMULA double pow(double x, double y) {
  return std::pow(x, y);
}

// x log y, 0 where x is 0.
template <typename T>
CANDELABRA_FORMULA T xlogy(T x, T y) {
  return y != y ? y : x == T(0) ? T(0) : x * log(y);
}

}  // namespace candelabra::math

#endif
