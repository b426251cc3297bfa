// Binary arithmetic as function objects, shared by the kernels of all backends. A functor with
// `on_vectors` also accepts a backend's SIMD vector type that provides the same functions.
#ifndef CANDELABRA_FORMULAS_ARITHMETIC_HPP
#define CANDELABRA_FORMULAS_ARITHMETIC_HPP

#include <cstdint>
#include <limits>
#include <type_traits>

#include "candelabra/dtypes.hpp"
#include "candelabra/formulas/complex.hpp"
#include "candelabra/math.hpp"

namespace candelabra::formulas {

// ---- sums, differences, products

struct Add {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return a || b;
    else
      return static_cast<T>(a + b);
  }
};
struct Sub {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    return static_cast<T>(a - b);
  }
};
struct Mul {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return a && b;
    else
      return static_cast<T>(a * b);
  }
};
template <typename T>
struct AddScaled {
  T alpha;
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return a || (alpha && b);
    else
      return static_cast<T>(a + alpha * b);
  }
};

// ---- division

struct Divide {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    return a / b;
  }
};
// fmod, the remainder with the sign of a. It is exact if the quotient is below 2^p, where p is the
// number of digits of T. Then a - trunc(a / b) b is representable, and the rounded quotient is at
// most one too large.
template <typename T>
CANDELABRA_FORMULA bool quotient_in_range(T a, T b) {
  T q = math::abs(a / b);
  // False for NaN, and for an infinite divisor, where quick_fmod would compute 0 * infinity.
  return (q < (sizeof(T) == 4 ? T(8388608) : T(4503599627370496.0))) & (math::abs(b) <= std::numeric_limits<T>::max());
}
template <typename T>
CANDELABRA_FORMULA T quick_fmod(T a, T b) {
  T q = math::trunc(a / b);
  T r;
  if constexpr (sizeof(T) == 4)
    r = __builtin_fmaf(-q, b, a);
  else
    r = __builtin_fma(-q, b, a);
  bool crossed = (r < T(0) && a > T(0)) || (r > T(0) && a < T(0));
  r = crossed ? r + math::with_sign_of(b, a) : r;
  return math::with_sign_of(r, a);
}
template <typename T>
CANDELABRA_FORMULA T toward_divisor(T r, T b) {  // from fmod's sign convention to Python's
  return r != T(0) && (b < T(0)) != (r < T(0)) ? r + b : r;
}
// floor(a / b), from the fmod remainder r. (a - r) / b is an integer up to rounding error, which is
// corrected here.
template <typename T>
CANDELABRA_FORMULA T floor_quotient(T a, T b, T r) {
  T quotient = (a - r) / b;
  quotient = r != T(0) && (b < T(0)) != (r < T(0)) ? quotient - T(1) : quotient;
  T lower = math::floor(quotient);
  lower = quotient - lower > T(0.5) ? lower + T(1) : lower;
  T result = quotient != T(0) ? lower : math::with_sign_of(T(0), a / b);
  return b == T(0) ? a / b : result;
}
// Functions of a, b and the remainder r = fmod(a, b).
struct FloatFmod {
  template <typename T>
  CANDELABRA_FORMULA static T of(T, T, T r) {
    return r;
  }
};
struct FloatRemainder {
  template <typename T>
  CANDELABRA_FORMULA static T of(T, T b, T r) {
    return toward_divisor(r, b);
  }
};
struct FloatFloorDivide {
  template <typename T>
  CANDELABRA_FORMULA static T of(T a, T b, T r) {
    return floor_quotient(a, b, r);
  }
};
struct FloatTruncDivide {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    return math::trunc(a / b);
  }
};

enum class DivisionKind { Floor, Trunc, Remainder, Fmod };

// Integer division by a nonzero divisor. The minimum divided by -1 wraps.
template <DivisionKind Kind, typename T>
CANDELABRA_FORMULA T divide_integers(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    if (b == T(-1)) return Kind == DivisionKind::Floor || Kind == DivisionKind::Trunc ? static_cast<T>(-a) : T(0);
  const auto quotient = static_cast<T>(a / b);
  const auto rest = static_cast<T>(a - quotient * b);
  const bool differ = rest != 0 && (rest < 0) != (b < 0);
  if constexpr (Kind == DivisionKind::Trunc)
    return quotient;
  else if constexpr (Kind == DivisionKind::Floor)
    return static_cast<T>(quotient - (differ ? 1 : 0));
  else if constexpr (Kind == DivisionKind::Fmod)
    return rest;
  else
    return static_cast<T>(differ ? rest + b : rest);
}

// ---- powers

// Integer power. A result that is not an integer becomes 0.
template <typename T>
CANDELABRA_FORMULA T integer_power(T a, T b) {
  if (b < 0) return a == 1 ? T(1) : a == static_cast<T>(-1) ? static_cast<T>(b % 2 ? -1 : 1) : T(0);
  using U = std::make_unsigned_t<T>;
  uint64_t result = 1, square = static_cast<uint64_t>(static_cast<int64_t>(a));
  for (auto n = static_cast<U>(b); n; n = static_cast<U>(n >> 1)) {
    if (n & 1) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}
struct Power {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    if constexpr (kernel::is_complex_v<T>)
      return complex_math::power(a, b);
    else if constexpr (std::is_same_v<T, bool>)
      return a || !b;
    else if constexpr (kernel::is_integer_v<T>)
      return integer_power(a, b);
    else
      return math::pow(a, b);
  }
};

// ---- maximum and minimum

struct Maximum {  // NaN propagates
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};
struct Minimum {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    return a != a || a < b ? a : b;
  }
};
struct Fmax {  // ignores NaN
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    return b != b || a > b ? a : b;
  }
};
struct Fmin {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    return b != b || a < b ? a : b;
  }
};

// ---- floating-point functions of two arguments

struct Atan2 {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T y, T x) const {
    return math::atan2(y, x);
  }
};
struct Hypot {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x, T y) const {
    return math::hypot(x, y);
  }
};
struct CopySign {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T magnitude, T sign) const {
    return math::with_sign_of(magnitude, sign);
  }
};
struct Xlogy {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x, T y) const {
    return math::xlogy(x, y);
  }
};
struct LogAddExp {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    return math::logaddexp(a, b);
  }
};
struct LogAddExp2 {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    return math::logaddexp2(a, b);
  }
};
struct Heaviside {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x, T at_zero) const {
    if constexpr (std::is_same_v<T, bool>)
      return x || at_zero;
    else
      return x == T(0) ? at_zero : static_cast<T>(x < T(0) ? 0 : x != x ? 0 : 1);
  }
};
// Steps in the bit representation: numbers of one sign are ordered like their bits.
struct NextAfter {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    using Bits = typename math::detail::Format<T>::Bits;
    const Bits from = math::detail::bits_of(a), to = math::detail::bits_of(b);
    const Bits step = (a < b) == (from >= 0) ? Bits{1} : Bits{-1};
    const Bits smallest = (to & std::numeric_limits<Bits>::min()) | Bits{1};
    T result = math::detail::from_bits<T>(a == T(0) ? smallest : from + step);
    result = a == b ? b : result;
    return a != a || b != b ? a + b : result;
  }
};
// The same for a half-precision type T, on its bits.
template <typename T>
struct HalfNextAfter {
  CANDELABRA_FORMULA uint16_t operator()(uint16_t a, uint16_t b) const {
    float from = __builtin_bit_cast(T, a), to = __builtin_bit_cast(T, b);
    if (from != from) return a;
    if (to != to || from == to) return b;
    if (from == 0) return static_cast<uint16_t>((b & 0x8000) | 1);
    return static_cast<uint16_t>((from < to) == (from > 0) ? a + 1 : a - 1);
  }
};

// ---- bits

struct BitwiseAnd {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
// A shift by a negative number, or by at least the width of the type, shifts out all bits: a left
// shift returns 0 and a right shift returns 0 or -1 by sign.
struct LeftShift {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    using U = std::make_unsigned_t<T>;
    constexpr U bits = sizeof(T) * 8;
    U by = static_cast<U>(b);
    if constexpr (sizeof(T) == 1) {
      // x86 has no per-lane shift of byte vectors. Shifts by 1, 2 and 4 are done by doubling, where
      // these bits of `by` are set.
      const auto doubled = [](U x) { return static_cast<U>(x + x); };
      U value = static_cast<U>(a);
      value = by & 1 ? doubled(value) : value;
      value = by & 2 ? doubled(doubled(value)) : value;
      value = by & 4 ? doubled(doubled(doubled(doubled(value)))) : value;
      return static_cast<T>(by >= bits ? U(0) : value);
    }
    return by >= bits ? T(0) : static_cast<T>(static_cast<uint64_t>(static_cast<int64_t>(a)) << by);
  }
};
struct RightShift {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T a, T b) const {
    using U = std::make_unsigned_t<T>;
    constexpr U bits = sizeof(T) * 8;
    U by = static_cast<U>(b);
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(a >> (by >= bits ? static_cast<U>(bits - 1) : by));
    else
      return by >= bits ? T(0) : static_cast<T>(a >> by);
  }
};

}  // namespace candelabra::formulas

#endif  // CANDELABRA_FORMULAS_ARITHMETIC_HPP
