// Arithmetic of two arguments.
#include <cmath>
#include <limits>

#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/formulas/arithmetic.hpp"
#include "candelabra/formulas/unary.hpp"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

using namespace formulas;
using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});
using BoolAndReals = decltype(BoolType{} + RealTypes{});
using BoolAndIntegers = decltype(BoolType{} + IntegerTypes{});

// ---- sums, differences, products

bool is_one(const cb_scalar& scalar) {
  return scalar.re == 1 && scalar.im == 0 && scalar.kind != CB_SCALAR_BOOL;
}

// a + sign * alpha * b
void add_scaled(Call& call, const cb_tensor& a, int sign, const cb_scalar& alpha, const cb_tensor& b) {
  dispatch<AllTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    C factor = scalar_to<C>(alpha);
    if constexpr (!std::is_same_v<T, bool>)
      if (sign < 0) factor = static_cast<C>(-factor);
    map2<T>(call, AddScaled<C>{factor}, a, b);
  });
}

void add(Call& call) {
  const arguments::Add args(call);
  if (is_one(*args.alpha)) return binary<Add, AllTypes>(call);
  add_scaled(call, *args.self, 1, *args.alpha, *args.other);
}

void sub(Call& call) {
  const arguments::Sub args(call);
  if (is_one(*args.alpha)) return binary<Sub, NumberTypes>(call);
  add_scaled(call, *args.self, -1, *args.alpha, *args.other);
}
void rsub(Call& call) {  // other - alpha * self
  const arguments::Rsub args(call);
  add_scaled(call, *args.other, -1, *args.alpha, *args.self);
}

// ---- division

template <typename T>
__device__ __forceinline__ T exact_fmod(T a, T b) {
  return quotient_in_range(a, b) ? quick_fmod(a, b) : ::cuda::std::fmod(a, b);
}

template <typename Op>
struct OfFmod {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return Op::of(a, b, exact_fmod(a, b));
  }
};

// Division by zero is not reported: the host would have to wait for the device. As in the device's
// own division the quotient has all bits set and the remainder is the dividend. The minimum
// over -1 wraps.
template <DivisionKind Kind>
struct IntegerDivision {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    constexpr bool is_quotient = Kind == DivisionKind::Floor || Kind == DivisionKind::Trunc;
    if (b == 0) return is_quotient ? static_cast<T>(-1) : a;
    return divide_integers<Kind>(a, b);
  }
};
template <DivisionKind Kind, typename FloatOp>
void integer_division(Call& call) {
  if (!is_integer_dtype(call.output().dtype)) return binary<Heavy<FloatOp>, FloatTypes>(call);
  binary<Heavy<IntegerDivision<Kind>>, IntegerTypes>(call);
}

void div(Call& call) {
  const std::string_view mode = arguments::Div(call).rounding_mode.value_or(std::string_view{});
  if (mode.empty()) return binary<Heavy<Divide>, FloatsAndComplex>(call);
  if (mode == "floor") return integer_division<DivisionKind::Floor, OfFmod<FloatFloorDivide>>(call);
  integer_division<DivisionKind::Trunc, FloatTruncDivide>(call);
}

// ---- powers

template <typename T>
bool common_power(Call& call, double exponent) {
  if (exponent == 2) return map1<T>(call, Square{}), true;
  if (exponent == 3) return map1<T>(call, Cube{}), true;
  if (exponent == 0.5) return map1<T>(call, Sqrt{}), true;
  if (exponent == -0.5) return map1<T>(call, Rsqrt{}), true;
  if (exponent == 1) return map1<T>(call, Identity{}), true;
  if (exponent == -1) return map1<T>(call, Reciprocal{}), true;
  if (exponent == -2) return map1<T>(call, InverseSquare{}), true;
  return false;
}

void pow(Call& call) {
  const cb_tensor& exponent = *arguments::Pow(call).exponent;
  dispatch<AllTypes>(call.output().dtype, [&]<typename T>() {
    if constexpr (is_floating_v<T>) {
      if (is_number(exponent) && common_power<T>(call, static_cast<double>(number_of<compute_t<T>>(exponent)))) return;
    }
    map2<T>(call, Heavy<Power>{});
  });
}

// ---- floating-point functions of two arguments

void nextafter(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    if constexpr (is_half_v<T>) {
      map2<uint16_t>(call, HalfNextAfter<T>{});
    } else {
      map2<T>(call, NextAfter{});
    }
  });
}

}  // namespace

void register_elementwise_binary(KernelTable& table) {
  table.add<add>("add");
  table.add<sub>("sub");
  table.add<rsub>("rsub");
  table.add<binary<Mul, AllTypes>>("mul");
  table.add<div>("div");
  table.add<integer_division<DivisionKind::Floor, OfFmod<FloatFloorDivide>>>("floor_divide");
  table.add<integer_division<DivisionKind::Remainder, OfFmod<FloatRemainder>>>("remainder");
  table.add<integer_division<DivisionKind::Fmod, OfFmod<FloatFmod>>>("fmod");
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
