// Arithmetic of two arguments.
#include <cmath>
#include <limits>

#include "candelabra/math.hpp"
#include "complex_math.cuh"
#include "elementwise.cuh"

namespace candelabra::cuda {
namespace {

using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});
using BoolAndReals = decltype(BoolType{} + RealTypes{});
using BoolAndIntegers = decltype(BoolType{} + IntegerTypes{});

// ---- sums, differences, products

struct Add {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return a || b;
    else
      return static_cast<T>(a + b);
  }
};
struct Sub {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(a - b);
  }
};
struct Mul {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return a && b;
    else
      return static_cast<T>(a * b);
  }
};
template <typename T>
struct AddScaled {
  T alpha;
  __device__ T operator()(T a, T b) const {
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
    map2<T>(call, AddScaled<C>{factor}, first, second);
  });
}

void add(Call& call) {
  if (is_one(call.scalar(2))) return binary<Add, AllTypes>(call);
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
  if (is_one(call.scalar(2))) return binary<Sub, NumberTypes>(call);
  add_scaled(call, -1, 0, 1);
}
void rsub(Call& call) {  // other - alpha * self
  refuse_bool(call);
  add_scaled(call, -1, 1, 0);
}

// ---- division

struct Divide {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a / b;
  }
};

// The remainder with the sign of a. Exact: where the quotient is below 2^p (p digits), a - trunc(a / b) b is a number of the type,
// and the truncated quotient is at most one too large.
template <typename T>
__device__ __forceinline__ bool quotient_in_range(T a, T b) {
  T q = math::abs(a / b);
  // NaN is not, nor is what an infinite divisor leaves whole: zero times infinity would be taken off it.
  return (q < (sizeof(T) == 4 ? T(8388608) : T(4503599627370496.0))) & (math::abs(b) <= std::numeric_limits<T>::max());
}
template <typename T>
__device__ __forceinline__ T quick_fmod(T a, T b) {
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
__device__ __forceinline__ T exact_fmod(T a, T b) {
  return quotient_in_range(a, b) ? quick_fmod(a, b) : ::cuda::std::fmod(a, b);
}
template <typename T>
__device__ __forceinline__ T toward_divisor(T r, T b) {  // from the sign of a to the sign of b
  return r != T(0) && (b < T(0)) != (r < T(0)) ? r + b : r;
}
// floor(a / b), with the quotient rounded to the whole number that a - remainder is a multiple of.
template <typename T>
__device__ __forceinline__ T floor_quotient(T a, T b, T r) {
  T quotient = (a - r) / b;
  quotient = r != T(0) && (b < T(0)) != (r < T(0)) ? quotient - T(1) : quotient;
  T lower = math::floor(quotient);
  lower = quotient - lower > T(0.5) ? lower + T(1) : lower;
  T result = quotient != T(0) ? lower : math::with_sign_of(T(0), a / b);
  return b == T(0) ? a / b : result;
}

struct FloatFmod {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return exact_fmod(a, b);
  }
};
struct FloatRemainder {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return toward_divisor(exact_fmod(a, b), b);
  }
};
struct FloatFloorDivide {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return floor_quotient(a, b, exact_fmod(a, b));
  }
};
struct FloatTruncDivide {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return math::trunc(a / b);
  }
};

enum class Whole { Floor, Trunc, Remainder, Fmod };

// A division by zero, which nobody waits for here to be told of, gives all bits set (and the dividend as the remainder), as the
// device's own division does; the least number divided by -1 wraps.
template <Whole Kind>
struct IntegerDivision {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    constexpr bool quotient_wanted = Kind == Whole::Floor || Kind == Whole::Trunc;
    if (b == 0) return quotient_wanted ? static_cast<T>(-1) : a;
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return quotient_wanted ? static_cast<T>(-a) : T(0);
    const auto quotient = static_cast<T>(a / b);
    const auto rest = static_cast<T>(a - quotient * b);
    const bool differ = rest != 0 && (rest < 0) != (b < 0);
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
template <Whole Kind, typename FloatOp>
void whole_division(Call& call) {
  if (!is_integer_dtype(call.output().dtype)) return binary<Heavy<FloatOp>, FloatTypes>(call);
  binary<Heavy<IntegerDivision<Kind>>, IntegerTypes>(call);
}

void div(Call& call) {
  std::string_view mode = call.string(2);
  if (mode.empty()) return binary<Heavy<Divide>, FloatsAndComplex>(call);
  if (mode == "floor") return whole_division<Whole::Floor, FloatFloorDivide>(call);
  if (mode == "trunc") return whole_division<Whole::Trunc, FloatTruncDivide>(call);
  throw failure(CB_RUNTIME_ERROR, "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%.*s'",
                static_cast<int>(mode.size()), mode.data());
}

// ---- powers

struct Power {
  template <typename T>
  __device__ T operator()(T a, T b) const {
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
  __device__ T operator()(T a) const {
    return a * a * a;
  }
};
struct SquareOf {
  template <typename T>
  __device__ T operator()(T a) const {
    return a * a;
  }
};
struct RootOf {  // PyTorch takes the root here, too: NaN for -inf, where C's pow gives inf
  template <typename T>
  __device__ T operator()(T a) const {
    return math::sqrt(a);
  }
};
struct InverseRootOf {
  template <typename T>
  __device__ T operator()(T a) const {
    return T(1) / math::sqrt(a);
  }
};
struct InverseOf {
  template <typename T>
  __device__ T operator()(T a) const {
    return T(1) / a;
  }
};
struct InverseSquareOf {
  template <typename T>
  __device__ T operator()(T a) const {
    return T(1) / (a * a);
  }
};
struct SameAs {
  template <typename T>
  __device__ T operator()(T a) const {
    return a;
  }
};

template <typename T>
bool common_power(Call& call, double exponent) {
  if (exponent == 2) return map1<T>(call, SquareOf{}), true;
  if (exponent == 3) return map1<T>(call, Cube{}), true;
  if (exponent == 0.5) return map1<T>(call, RootOf{}), true;
  if (exponent == -0.5) return map1<T>(call, InverseRootOf{}), true;
  if (exponent == 1) return map1<T>(call, SameAs{}), true;
  if (exponent == -1) return map1<T>(call, InverseOf{}), true;
  if (exponent == -2) return map1<T>(call, InverseSquareOf{}), true;
  return false;
}

void pow(Call& call) {
  const cb_tensor& exponent = call.tensor(1);
  dispatch<AllTypes>(call.output().dtype, [&]<typename T>() {
    if constexpr (is_floating_v<T>) {
      if (is_number(exponent) && common_power<T>(call, static_cast<double>(number_of<compute_t<T>>(exponent)))) return;
    } else if constexpr (is_integer_v<T> && std::is_signed_v<T>) {
      if (is_number(exponent) && number_of<T>(exponent) < 0)
        throw failure(CB_RUNTIME_ERROR, "Integers to negative integer powers are not allowed.");
    }
    map2<T>(call, Heavy<Power>{});
  });
}

// ---- the larger, the smaller

struct Maximum {  // NaN wins
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};
struct Minimum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a != a || a < b ? a : b;
  }
};
struct Fmax {  // NaN loses
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return b != b || a > b ? a : b;
  }
};
struct Fmin {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return b != b || a < b ? a : b;
  }
};

// ---- floating-point functions of two arguments

struct Atan2 {
  template <typename T>
  __device__ T operator()(T y, T x) const {
    return math::atan2(y, x);
  }
};
struct Hypot {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    return math::hypot(x, y);
  }
};
struct CopySign {
  template <typename T>
  __device__ T operator()(T magnitude, T sign) const {
    return math::with_sign_of(magnitude, sign);
  }
};
struct Xlogy {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    return math::xlogy(x, y);
  }
};
struct LogAddExp {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return math::logaddexp(a, b);
  }
};
struct LogAddExp2 {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return math::logaddexp2(a, b);
  }
};
struct Heaviside {
  template <typename T>
  __device__ T operator()(T x, T at_zero) const {
    if constexpr (std::is_same_v<T, bool>)
      return x || at_zero;
    else
      return x == T(0) ? at_zero : static_cast<T>(x < T(0) ? 0 : x != x ? 0 : 1);
  }
};

struct NextAfter {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return ::cuda::std::nextafter(a, b);
  }
};
// On the bits of a half precision: numbers of one sign are ordered as their bits.
template <typename T>
struct HalfNextAfter {
  __device__ uint16_t operator()(uint16_t a, uint16_t b) const {
    float from = __builtin_bit_cast(T, a), to = __builtin_bit_cast(T, b);
    if (from != from) return a;
    if (to != to || from == to) return b;
    if (from == 0) return static_cast<uint16_t>((b & 0x8000) | 1);
    return static_cast<uint16_t>((from < to) == (from > 0) ? a + 1 : a - 1);
  }
};
void nextafter(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    if constexpr (is_half_v<T>) {
      map2<uint16_t>(call, HalfNextAfter<T>{});
    } else {
      map2<T>(call, NextAfter{});
    }
  });
}

// ---- bits

struct BitwiseAnd {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
// A shift by a negative number or by all bits and more leaves nothing but the sign.
struct LeftShift {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    using U = std::make_unsigned_t<T>;
    constexpr U bits = sizeof(T) * 8;
    U by = static_cast<U>(b);
    return by >= bits ? T(0) : static_cast<T>(static_cast<uint64_t>(static_cast<int64_t>(a)) << by);
  }
};
struct RightShift {
  template <typename T>
  __device__ T operator()(T a, T b) const {
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
  table.add<binary<Mul, AllTypes>>("mul");
  table.add<div>("div");
  table.add<whole_division<Whole::Floor, FloatFloorDivide>>("floor_divide");
  table.add<whole_division<Whole::Remainder, FloatRemainder>>("remainder");
  table.add<whole_division<Whole::Fmod, FloatFmod>>("fmod");
  table.add<pow>("pow");
  table.add<binary<Maximum, BoolAndReals>>("maximum");
  table.add<binary<Minimum, BoolAndReals>>("minimum");
  table.add<binary<Fmax, BoolAndReals>>("fmax");
  table.add<binary<Fmin, BoolAndReals>>("fmin");
  table.add<binary<Heavy<Atan2>, FloatTypes>>("atan2");
  table.add<binary<Heavy<Hypot>, FloatTypes>>("hypot");
  table.add<binary<CopySign, FloatTypes>>("copysign");
  table.add<binary<Heavy<Xlogy>, FloatTypes>>("xlogy");
  table.add<binary<Heavy<LogAddExp>, FloatTypes>>("logaddexp");
  table.add<binary<Heavy<LogAddExp2>, FloatTypes>>("logaddexp2");
  table.add<nextafter>("nextafter");
  table.add<binary<Heaviside, BoolAndReals>>("heaviside");
  table.add<binary<BitwiseAnd, BoolAndIntegers>>("bitwise_and");
  table.add<binary<BitwiseOr, BoolAndIntegers>>("bitwise_or");
  table.add<binary<BitwiseXor, BoolAndIntegers>>("bitwise_xor");
  table.add<binary<LeftShift, IntegerTypes>>("bitwise_left_shift");
  table.add<binary<RightShift, IntegerTypes>>("bitwise_right_shift");
}

}  // namespace candelabra::cuda
