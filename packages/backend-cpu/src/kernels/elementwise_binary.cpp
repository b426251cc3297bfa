// Arithmetic of two arguments.
#include <cmath>
#include <limits>

#include "candelabra/math.hpp"
#include "complex_math.hpp"
#include "elementwise.hpp"
#include "vec_power.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});
using BoolAndReals = decltype(BoolType{} + RealTypes{});
using BoolAndIntegers = decltype(BoolType{} + IntegerTypes{});

// ---- sums, differences, products

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return a || b;
    else
      return static_cast<T>(a + b);
  }
};
struct Sub {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a - b);
  }
};
struct Mul {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return a && b;
    else
      return static_cast<T>(a * b);
  }
};
template <typename T>
struct AddScaled {
  T alpha;
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return a || (alpha && b);
    else
      return static_cast<T>(a + alpha * b);
  }
};

bool is_one(const cb_scalar& scalar) {
  return scalar.re == 1 && scalar.im == 0 && scalar.kind != CB_SCALAR_BOOL;
}

// a + sign * alpha * b
void add_scaled(Call& call, int sign, int first, int second) {
  const cb_scalar& alpha = call.scalar(2);
  dispatch<AllTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    C factor = scalar_to<C>(alpha);
    if constexpr (!std::is_same_v<T, bool>)
      if (sign < 0) factor = static_cast<C>(-factor);
    map2<T>(call, AddScaled<C>{factor}, light, first, second);
  });
}

void add(Call& call) {
  if (is_one(call.scalar(2))) return binary<Add, AllTypes, light>(call);
  add_scaled(call, 1, 0, 1);
}

void refuse_bool(const Call& call) {
  if (call.output().dtype == CB_BOOL)
    throw failure(
        CB_RUNTIME_ERROR,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.");
}
void sub(Call& call) {
  refuse_bool(call);
  if (is_one(call.scalar(2))) return binary<Sub, NumberTypes, light>(call);
  add_scaled(call, -1, 0, 1);
}
void rsub(Call& call) {  // other - alpha * self
  refuse_bool(call);
  add_scaled(call, -1, 1, 0);
}

// ---- division

struct Divide {
  template <typename T>
  T operator()(T a, T b) const {
    return a / b;
  }
};

// The remainder with the sign of a. Exact: where the quotient is below 2^p (p digits), a - trunc(a / b) b is a number of the type,
// and the truncated quotient is at most one too large.
template <typename T>
[[gnu::always_inline]] inline bool quotient_in_range(T a, T b) {
  T q = math::abs(a / b);
  // NaN is not, nor is what an infinite divisor leaves whole: zero times infinity would be taken off it.
  return (q < (sizeof(T) == 4 ? T(8388608) : T(4503599627370496.0))) & (math::abs(b) <= std::numeric_limits<T>::max());
}
template <typename T>
[[gnu::always_inline]] inline T quick_fmod(T a, T b) {
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
[[gnu::always_inline]] inline T toward_divisor(T r, T b) {  // from the sign of a to the sign of b
  return r != T(0) && (b < T(0)) != (r < T(0)) ? r + b : r;
}
// floor(a / b), with the quotient rounded to the whole number that a - remainder is a multiple of.
template <typename T>
[[gnu::always_inline]] inline T floor_quotient(T a, T b, T r) {
  T quotient = (a - r) / b;
  quotient = r != T(0) && (b < T(0)) != (r < T(0)) ? quotient - T(1) : quotient;
  T lower = math::floor(quotient);
  lower = quotient - lower > T(0.5) ? lower + T(1) : lower;
  T result = quotient != T(0) ? lower : math::with_sign_of(T(0), a / b);
  return b == T(0) ? a / b : result;
}

struct FloatFmod {
  template <typename T>
  bool in_range(T a, T b) const {
    return quotient_in_range(a, b);
  }
  template <typename T>
  T slowly(T a, T b) const {
    return std::fmod(a, b);
  }
  template <typename T>
  T operator()(T a, T b) const {
    return quick_fmod(a, b);
  }
};
struct FloatRemainder {
  template <typename T>
  bool in_range(T a, T b) const {
    return quotient_in_range(a, b);
  }
  template <typename T>
  T slowly(T a, T b) const {
    return toward_divisor(std::fmod(a, b), b);
  }
  template <typename T>
  T operator()(T a, T b) const {
    return toward_divisor(quick_fmod(a, b), b);
  }
};
struct FloatFloorDivide {
  template <typename T>
  bool in_range(T a, T b) const {
    return quotient_in_range(a, b);
  }
  template <typename T>
  T slowly(T a, T b) const {
    return floor_quotient(a, b, std::fmod(a, b));
  }
  template <typename T>
  T operator()(T a, T b) const {
    return floor_quotient(a, b, quick_fmod(a, b));
  }
};
struct FloatTruncDivide {
  template <typename T>
  T operator()(T a, T b) const {
    return math::trunc(a / b);
  }
};

enum class Whole { Floor, Trunc, Remainder, Fmod };

// Notes a division by zero instead of trapping; the least number divided by -1 wraps.
template <typename T, Whole Kind>
struct IntegerDivision {
  bool* by_zero;
  T operator()(T a, T b) const {
    if (b == 0) {
      *by_zero = true;
      return 0;
    }
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return Kind == Whole::Floor || Kind == Whole::Trunc ? static_cast<T>(-a) : T(0);
    auto quotient = static_cast<T>(a / b);
    auto rest = static_cast<T>(a % b);
    bool differ = rest != 0 && (rest < 0) != (b < 0);
    if constexpr (Kind == Whole::Trunc)
      return quotient;
    else if constexpr (Kind == Whole::Floor)
      return static_cast<T>(quotient - (differ ? 1 : 0));
    else if constexpr (Kind == Whole::Fmod)
      return rest;
    else
      return static_cast<T>(differ ? rest + b : rest);
  }
};
// Every thread writes the same value, and it is read after all are done.
template <Whole Kind, typename FloatOp>
void whole_division(Call& call) {
  if (!is_integer_dtype(call.output().dtype)) return binary<FloatOp, FloatTypes, moderate>(call);
  dispatch<IntegerTypes>(call.output().dtype, [&]<typename T>() {
    bool by_zero = false;
    map2<T>(call, IntegerDivision<T, Kind>{&by_zero}, moderate);
    if (by_zero) throw failure(CB_RUNTIME_ERROR, "ZeroDivisionError");
  });
}

void div(Call& call) {
  std::string_view mode = call.string(2);
  if (mode.empty()) return binary<Divide, FloatsAndComplex, light>(call);
  if (mode == "floor") return whole_division<Whole::Floor, FloatFloorDivide>(call);
  if (mode == "trunc") return whole_division<Whole::Trunc, FloatTruncDivide>(call);
  throw failure(CB_RUNTIME_ERROR, "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%.*s'",
                static_cast<int>(mode.size()), mode.data());
}

// ---- powers

struct Power {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (is_complex_v<T>) {
      return complex_math::pow(a, b);
    } else if constexpr (std::is_same_v<T, bool>) {
      return a || !b;
    } else if constexpr (is_integer_v<T>) {
      if (b < 0) return a == 1 ? T(1) : a == static_cast<T>(-1) ? static_cast<T>(b % 2 ? -1 : 1) : T(0);
      using U = std::make_unsigned_t<T>;
      uint64_t result = 1, square = static_cast<uint64_t>(static_cast<int64_t>(a));
      for (auto n = static_cast<U>(b); n; n = static_cast<U>(n >> 1)) {
        if (n & 1) result *= square;
        square *= square;
      }
      return static_cast<T>(result);
    } else {
      return math::pow(a, b);
    }
  }
};
struct Cube {
  template <typename T>
  T operator()(T a) const {
    return a * a * a;
  }
};
struct SquareOf {
  template <typename T>
  T operator()(T a) const {
    return a * a;
  }
};
struct RootOf {  // PyTorch takes the root here, too: NaN for -inf, where C's pow gives inf
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T a) const {
    return math::sqrt(a);
  }
};
struct InverseRootOf {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T a) const {
    return math::rsqrt(a);
  }
};
struct InverseOf {
  template <typename T>
  T operator()(T a) const {
    return T(1) / a;
  }
};
struct InverseSquareOf {
  template <typename T>
  T operator()(T a) const {
    return T(1) / (a * a);
  }
};
struct SameAs {
  template <typename T>
  T operator()(T a) const {
    return a;
  }
};

template <typename T>
bool common_power(Call& call, double exponent) {
  if (exponent == 2) return map1<T>(call, SquareOf{}, light), true;
  if (exponent == 3) return map1<T>(call, Cube{}, light), true;
  if (exponent == 0.5) return map1<T>(call, RootOf{}, light), true;
  if (exponent == -0.5) return map1<T>(call, InverseRootOf{}, light), true;
  if (exponent == 1) return map1<T>(call, SameAs{}, light), true;
  if (exponent == -1) return map1<T>(call, InverseOf{}, light), true;
  if (exponent == -2) return map1<T>(call, InverseSquareOf{}, light), true;
  return false;
}

void pow(Call& call) {
  const cb_tensor& exponent = call.tensor(1);
  bool number = exponent.flags & CB_TENSOR_NUMBER;
  dispatch<AllTypes>(call.output().dtype, [&]<typename T>() {
    if constexpr (is_floating_v<T>) {
      if (number && common_power<T>(call, static_cast<double>(static_cast<compute_t<T>>(*data<T>(exponent))))) return;
    } else if constexpr (is_integer_v<T> && std::is_signed_v<T>) {
      if (number && *data<T>(exponent) < 0) throw failure(CB_RUNTIME_ERROR, "Integers to negative integer powers are not allowed.");
    }
    map2<T>(call, Power{}, is_floating_v<T> ? moderate : heavy);
  });
}

// ---- the larger, the smaller

struct Maximum {  // NaN wins
  template <typename T>
  T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};
struct Minimum {
  template <typename T>
  T operator()(T a, T b) const {
    return a != a || a < b ? a : b;
  }
};
struct Fmax {  // NaN loses
  template <typename T>
  T operator()(T a, T b) const {
    return b != b || a > b ? a : b;
  }
};
struct Fmin {
  template <typename T>
  T operator()(T a, T b) const {
    return b != b || a < b ? a : b;
  }
};

// ---- floating-point functions of two arguments

struct Atan2 {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T y, T x) const {
    return math::atan2(y, x);
  }
};
struct Hypot {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x, T y) const {
    return math::hypot(x, y);
  }
};
struct CopySign {
  template <typename T>
  T operator()(T magnitude, T sign) const {
    return math::with_sign_of(magnitude, sign);
  }
};
// Of half precisions on the bits.
struct HalfCopySign {
  uint16_t operator()(uint16_t magnitude, uint16_t sign) const {
    return static_cast<uint16_t>((magnitude & 0x7fffu) | (sign & 0x8000u));
  }
};
void copysign(Call& call) {
  const cb_tensor &magnitude = call.tensor(0), &sign = call.tensor(1);
  if (!is_half_dtype(call.output().dtype)) return binary<CopySign, FullFloatTypes, light>(call);
  static constexpr HalfCopySign op{};
  run<2>({loop2<HalfCopySign, uint16_t, uint16_t, uint16_t>, &op, light, false}, call.output(), {&magnitude, &sign});
}
struct Xlogy {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x, T y) const {
    return math::xlogy(x, y);
  }
};
struct LogAddExp {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T a, T b) const {
    return math::logaddexp(a, b);
  }
};
struct LogAddExp2 {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T a, T b) const {
    return math::logaddexp2(a, b);
  }
};
struct Heaviside {
  template <typename T>
  T operator()(T x, T at_zero) const {
    if constexpr (std::is_same_v<T, bool>)
      return x || at_zero;
    else
      return x == T(0) ? at_zero : static_cast<T>(x < T(0) ? 0 : x != x ? 0 : 1);
  }
};

// On the bits: numbers of one sign are ordered as they are.
struct NextAfter {
  template <typename T>
  T operator()(T a, T b) const {
    using Bits = typename math::detail::Format<T>::Bits;
    const Bits from = math::detail::bits_of(a), to = math::detail::bits_of(b);
    const Bits step = (a < b) == (from >= 0) ? Bits{1} : Bits{-1};
    const Bits least = (to & std::numeric_limits<Bits>::min()) | Bits{1};
    T result = math::detail::from_bits<T>(a == T(0) ? least : from + step);
    result = a == b ? b : result;
    return a != a || b != b ? a + b : result;
  }
};
// On the bits of a half precision: numbers of one sign are ordered as their bits.
template <typename T>
struct HalfNextAfter {
  uint16_t operator()(uint16_t a, uint16_t b) const {
    float from = std::bit_cast<T>(a), to = std::bit_cast<T>(b);
    if (from != from) return a;
    if (to != to || from == to) return b;
    if (from == 0) return static_cast<uint16_t>((b & 0x8000) | 1);
    return static_cast<uint16_t>((from < to) == (from > 0) ? a + 1 : a - 1);
  }
};
void nextafter(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    if constexpr (is_half_v<T>) {
      HalfNextAfter<T> op;
      Blocks blocks{loop2<HalfNextAfter<T>, uint16_t, uint16_t, uint16_t>, &op, moderate};
      blocks.halves_as_float = false;
      run<2>(blocks, call.output(), {&call.tensor(0), &call.tensor(1)});
    } else {
      map2<T>(call, NextAfter{}, moderate);
    }
  });
}

// ---- bits

struct BitwiseAnd {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
// A shift by a negative number or by all bits and more leaves nothing but the sign.
struct LeftShift {
  template <typename T>
  T operator()(T a, T b) const {
    using U = std::make_unsigned_t<T>;
    constexpr U bits = sizeof(T) * 8;
    U by = static_cast<U>(b);
    return by >= bits ? T(0) : static_cast<T>(static_cast<uint64_t>(static_cast<int64_t>(a)) << by);
  }
};
struct RightShift {
  template <typename T>
  T operator()(T a, T b) const {
    using U = std::make_unsigned_t<T>;
    constexpr U bits = sizeof(T) * 8;
    U by = static_cast<U>(b);
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(a >> (by >= bits ? static_cast<U>(bits - 1) : by));
    else
      return by >= bits ? T(0) : static_cast<T>(a >> by);
  }
};

}  // namespace

void register_elementwise_binary(KernelTable& table) {
  table.add<add>("add");
  table.add<sub>("sub");
  table.add<rsub>("rsub");
  table.add<binary<Mul, AllTypes, light>>("mul");
  table.add<div>("div");
  table.add<whole_division<Whole::Floor, FloatFloorDivide>>("floor_divide");
  table.add<whole_division<Whole::Remainder, FloatRemainder>>("remainder");
  table.add<whole_division<Whole::Fmod, FloatFmod>>("fmod");
  table.add<pow>("pow");
  table.add<binary<Maximum, BoolAndReals, light>>("maximum");
  table.add<binary<Minimum, BoolAndReals, light>>("minimum");
  table.add<binary<Fmax, BoolAndReals, light>>("fmax");
  table.add<binary<Fmin, BoolAndReals, light>>("fmin");
  table.add<binary<Atan2, FloatTypes, moderate>>("atan2");
  table.add<binary<Hypot, FloatTypes, moderate>>("hypot");
  table.add<copysign>("copysign");
  table.add<binary<Xlogy, FloatTypes, moderate>>("xlogy");
  table.add<binary<LogAddExp, FloatTypes, moderate>>("logaddexp");
  table.add<binary<LogAddExp2, FloatTypes, moderate>>("logaddexp2");
  table.add<nextafter>("nextafter");
  table.add<binary<Heaviside, BoolAndReals, light>>("heaviside");
  table.add<binary<BitwiseAnd, BoolAndIntegers, light>>("bitwise_and");
  table.add<binary<BitwiseOr, BoolAndIntegers, light>>("bitwise_or");
  table.add<binary<BitwiseXor, BoolAndIntegers, light>>("bitwise_xor");
  table.add<binary<LeftShift, IntegerTypes, light>>("bitwise_left_shift");
  table.add<binary<RightShift, IntegerTypes, light>>("bitwise_right_shift");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
