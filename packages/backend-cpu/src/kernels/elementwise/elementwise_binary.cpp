// Arithmetic of two tensors.
#include <cmath>
#include <limits>

#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/positions.hpp"
#include "drivers/elementwise.hpp"
#include "drivers/elementwise_complex.hpp"
#include "drivers/iterate.hpp"
#include "simd/half_loops.hpp"
#include "simd/vec_power.hpp"

// After the functions of vectors, which their formulas call.
#include "candelabra/formulas/arithmetic.hpp"
#include "candelabra/formulas/unary.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace formulas;
using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});
using BoolAndReals = decltype(BoolType{} + RealTypes{});
using BoolAndIntegers = decltype(BoolType{} + IntegerTypes{});

// ---- sums, differences, products

bool is_one(const cb_scalar& scalar) {
  return scalar.re == 1 && scalar.im == 0 && scalar.kind != CB_SCALAR_BOOL;
}

// a + sign * alpha * b for the operands at these positions
void add_scaled(Call& call, const cb_scalar& alpha, int sign, int a, int b) {
  dispatch<AllTypes>(widened<complex32_dtype>(call.output().dtype), [&]<typename T>() {
    using C = compute_t<T>;
    C factor = scalar_to<C>(alpha);
    if constexpr (!std::is_same_v<T, bool>)
      if (sign < 0) factor = static_cast<C>(-factor);
    map2<T>(call, AddScaled<C>{factor}, light, a, b);
  });
}

void add(Call& call) {
  namespace at = positions::add;
  const arguments::Add args(call);
  if (is_one(*args.alpha)) return binary_simd<Add, AllTypes, light, complex32_dtype>(call);
  add_scaled(call, *args.alpha, 1, at::self, at::other);
}

void sub(Call& call) {
  namespace at = positions::sub;
  const arguments::Sub args(call);
  if (is_one(*args.alpha)) return binary_simd<Sub, NumberTypes, light, complex32_dtype>(call);
  add_scaled(call, *args.alpha, -1, at::self, at::other);
}
void rsub(Call& call) {  // other - alpha * self
  namespace at = positions::rsub;
  const arguments::Rsub args(call);
  add_scaled(call, *args.alpha, -1, at::other, at::self);
}

// ---- division

template <typename Op>
struct OfFmod {
  template <typename T>
  bool in_range(T a, T b) const {
    return quotient_in_range(a, b);
  }
  template <typename T>
  T slow_path(T a, T b) const {
    return Op::of(a, b, std::fmod(a, b));
  }
  template <typename T>
  T operator()(T a, T b) const {
    return Op::of(a, b, quick_fmod(a, b));
  }
};

// Records a division by zero instead of trapping; the minimum divided by -1 wraps. There is
// no vector instruction for integer division, so blocks of quotients are computed in float64. That
// is exact where both numbers have less than 52 bits: a quotient that is not an integer then
// differs from the next integer by more than the rounding error.
template <typename T, DivisionKind Kind>
struct IntegerDivision {
  bool* by_zero;
  bool in_range(T a, T b) const {
    if constexpr (sizeof(T) < 8) return b != 0;
    constexpr uint64_t limit = uint64_t{1} << 51;
    if constexpr (std::is_signed_v<T>)
      return (b != 0) & (static_cast<uint64_t>(a) + limit < 2 * limit) & (static_cast<uint64_t>(b) + limit < 2 * limit);
    else
      return (b != 0) & (static_cast<uint64_t>(a) < limit) & (static_cast<uint64_t>(b) < limit);
  }
  T slow_path(T a, T b) const {
    if (b == 0) {
      *by_zero = true;
      return 0;
    }
    return divide_integers<Kind>(a, b);
  }
  T operator()(T a, T b) const {
    const double exact = static_cast<double>(a) / static_cast<double>(b);
    const double down =
        Kind == DivisionKind::Floor || Kind == DivisionKind::Remainder ? math::floor(exact) : math::trunc(exact);
    // float index: the block was checked: below 2^51, no 0
    const auto quotient = static_cast<int64_t>(down);
    if constexpr (Kind == DivisionKind::Floor || Kind == DivisionKind::Trunc)
      return static_cast<T>(quotient);
    else
      return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(quotient) * static_cast<uint64_t>(b));
  }
};
template <typename T>
bool has_zero(const cb_tensor& tensor) {
  int64_t moving[max_dims], index[max_dims] = {};
  int count = 0;
  for (int d = 0; d < tensor.ndim; ++d) {
    if (tensor.sizes[d] == 0) return false;
    if (tensor.sizes[d] != 1 && tensor.strides[d] != 0) moving[count++] = d;
  }
  const T* at = data<T>(tensor);
  if (count == 0) return *at == 0;
  const int64_t size = tensor.sizes[moving[count - 1]], stride = tensor.strides[moving[count - 1]];
  while (true) {
    for (int64_t i = 0; i < size; ++i) {
      if (at[i * stride] == 0) return true;
    }
    int k = count - 2;
    for (; k >= 0 && ++index[k] == tensor.sizes[moving[k]]; --k) {
      at -= (tensor.sizes[moving[k]] - 1) * tensor.strides[moving[k]];
      index[k] = 0;
    }
    if (k < 0) return false;
    at += tensor.strides[moving[k]];
  }
}
// floor_divide, remainder, fmod, div: the same positions of the operands. In place, a zero divisor
// is found before anything is written. Threads only ever set by_zero to true, and it is read after
// all are done.
template <DivisionKind Kind, typename FloatOp>
void integer_division(Call& call) {
  const arguments::FloorDivide args(call);
  if (!is_integer_dtype(call.output().dtype)) return binary<FloatOp, FloatTypes, moderate>(call);
  dispatch<IntegerTypes>(call.output().dtype, [&]<typename T>() {
    const void* written = call.output().data;
    bool by_zero = false;
    if (written == args.self->data || written == args.other->data)
      dispatch<BoolAndIntegers>(args.other->dtype, [&]<typename B>() { by_zero = has_zero<B>(*args.other); });
    if (!by_zero) map2<T>(call, IntegerDivision<T, Kind>{&by_zero}, moderate);
    if (by_zero) throw failure(CB_RUNTIME_ERROR, "ZeroDivisionError");
  });
}

void div(Call& call) {
  const arguments::Div args(call);
  const std::string_view mode = args.rounding_mode.value_or(std::string_view{});
  if (mode.empty()) return binary_simd<Divide, FloatsAndComplex, light>(call);
  if (mode == "floor") return integer_division<DivisionKind::Floor, OfFmod<FloatFloorDivide>>(call);
  integer_division<DivisionKind::Trunc, FloatTruncDivide>(call);
}

// ---- powers

template <typename T>
bool common_power(Call& call, double exponent) {
  if (exponent == 2) return map1<T>(call, Square{}, light), true;
  if (exponent == 3) return map1<T>(call, Cube{}, light), true;
  if (exponent == 0.5) return map1<T>(call, Sqrt{}, light), true;
  if (exponent == -0.5) return map1<T>(call, Rsqrt{}, light), true;
  if (exponent == 1) return map1<T>(call, Identity{}, light), true;
  if (exponent == -1) return map1<T>(call, Reciprocal{}, light), true;
  if (exponent == -2) return map1<T>(call, InverseSquare{}, light), true;
  return false;
}

template <typename Op>
using OnModerateSquares = complex_formulas::OnDomain<Op, complex_domains::ModerateSquares>;
template <typename T>
bool common_complex_power(Call& call, double exponent) {
  if (exponent == 2) return map1<T>(call, Square{}, light), true;
  if (exponent == 3) return map1<T>(call, Cube{}, light), true;
  if (exponent == 0.5) return map_complex1<OnModerateSquares<Sqrt>, T>(call), true;
  if (exponent == -0.5) return map_complex1<OnModerateSquares<Rsqrt>, T>(call), true;
  if (exponent == -1) return map_complex1<complex_formulas::Reciprocal, T>(call), true;
  if (exponent == 1) return map1<T>(call, Identity{}, light), true;
  return false;
}

void pow(Call& call) {
  const arguments::Pow args(call);
  const cb_tensor& exponent = *args.exponent;
  bool number = exponent.flags & CB_TENSOR_NUMBER;
  dispatch<AllTypes>(call.output().dtype, [&]<typename T>() {
    if constexpr (is_floating_v<T>) {
      if (number && common_power<T>(call, static_cast<double>(static_cast<compute_t<T>>(*data<T>(exponent))))) return;
    } else if constexpr (is_complex_v<T>) {
      if (number && data<T>(exponent)->imag() == 0 &&
          common_complex_power<T>(call, static_cast<double>(data<T>(exponent)->real())))
        return;
    }
    if constexpr (is_complex_v<T>)
      map_complex2<complex_formulas::Power, T>(call);
    else
      map2<T>(call, Power{}, is_floating_v<T> ? moderate : heavy);
  });
}

// ---- floating-point functions of two arguments

// copysign on the bits of half precisions.
struct HalfCopySign {
  uint16_t operator()(uint16_t magnitude, uint16_t sign) const {
    return static_cast<uint16_t>((magnitude & 0x7fffu) | (sign & 0x8000u));
  }
};
void copysign(Call& call) {
  if (!is_half_dtype(call.output().dtype)) return binary<CopySign, FullFloatTypes, light>(call);
  static constexpr HalfCopySign op{};
  run<2>({loop2<HalfCopySign, uint16_t, uint16_t, uint16_t>, &op, light, false}, call.output(), operands<2>(call));
}

void nextafter(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    if constexpr (is_half_v<T>) {
      HalfNextAfter<T> op;
      Blocks blocks{loop2<HalfNextAfter<T>, uint16_t, uint16_t, uint16_t>, &op, moderate};
      blocks.halves_as_float = false;
      run<2>(blocks, call.output(), operands<2>(call));
    } else {
      map2<T>(call, NextAfter{}, moderate);
    }
  });
}

// The maximum of bools is `or`, the minimum `and`.
struct Either {
  bool operator()(bool a, bool b) const { return a | b; }
};
struct Both {
  bool operator()(bool a, bool b) const { return a & b; }
};
template <typename Op, typename OfBools>
void extremum(Call& call) {
  if (call.output().dtype == CB_BOOL) return map2<bool>(call, OfBools{}, light);
  binary<Op, RealTypes, light>(call);
}

}  // namespace

void register_elementwise_binary(KernelTable& table) {
  table.add<add>("add", CB_KERNEL_CONVERTS);
  table.add<sub>("sub", CB_KERNEL_CONVERTS);
  table.add<rsub>("rsub", CB_KERNEL_CONVERTS);
  table.add<binary_simd<Mul, AllTypes, light, float8_dtypes | complex32_dtype>>("mul", CB_KERNEL_CONVERTS);
  table.add<div>("div", CB_KERNEL_CONVERTS);
  table.add<integer_division<DivisionKind::Floor, OfFmod<FloatFloorDivide>>>("floor_divide");
  table.add<integer_division<DivisionKind::Remainder, OfFmod<FloatRemainder>>>("remainder");
  table.add<integer_division<DivisionKind::Fmod, OfFmod<FloatFmod>>>("fmod");
  table.add<pow>("pow");
  table.add<extremum<Maximum, Either>>("maximum");
  table.add<extremum<Minimum, Both>>("minimum");
  table.add<extremum<Fmax, Either>>("fmax");
  table.add<extremum<Fmin, Both>>("fmin");
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
