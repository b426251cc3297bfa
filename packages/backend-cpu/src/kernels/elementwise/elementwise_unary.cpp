// Elementwise operators of one tensor. Formulas are in candelabra/math.hpp; here each is bound to
// its dtypes.
#include <cmath>
#include <limits>

#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/special_functions.hpp"
#include "drivers/elementwise.hpp"
#include "drivers/elementwise_complex.hpp"
#include "simd/half_loops.hpp"
#include "simd/vec_error_function.hpp"
#include "simd/vec_gamma.hpp"
#include "simd/vec_power.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using IntegersAndFloats = RealTypes;
using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});
using BoolAndReals = decltype(BoolType{} + RealTypes{});

template <typename T>
constexpr bool whole = is_integer_v<T>;

// ---- results of the same dtype

struct Neg {
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(-x);
  }
};
struct Sign {  // NaN has sign 0, as in PyTorch
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(static_cast<int>(T(0) < x) - static_cast<int>(x < T(0)));
  }
};
struct Identity {
  template <typename T>
  T operator()(T x) const {
    return x;
  }
};
struct Floor {
  template <typename T>
  T operator()(T x) const {
    if constexpr (whole<T>)
      return x;
    else
      return math::floor(x);
  }
};
struct Ceil {
  template <typename T>
  T operator()(T x) const {
    if constexpr (whole<T>)
      return x;
    else
      return math::ceil(x);
  }
};
struct Trunc {
  template <typename T>
  T operator()(T x) const {
    if constexpr (whole<T>)
      return x;
    else
      return math::trunc(x);
  }
};
struct Frac {
  template <typename T>
  T operator()(T x) const {
    return x - math::trunc(x);
  }
};
struct Square {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>)
      return x;
    else
      return static_cast<T>(x * x);
  }
};
struct Conjugate {
  template <typename T>
  T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return std::conj(x);
    else
      return x;
  }
};
struct Relu {  // NaN stays
  template <typename T>
  T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};
struct BitwiseNot {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>)
      return !x;
    else
      return static_cast<T>(~x);
  }
};
struct Round {
  template <typename T>
  T operator()(T x) const {
    if constexpr (whole<T>)
      return x;
    else
      return math::round_even(x);
  }
};
template <typename T>
struct RoundDecimals {
  T scale;  // 10^|decimals|
  bool fraction;
  T operator()(T x) const {
    return fraction ? math::round_even(x * scale) / scale : math::round_even(x / scale) * scale;
  }
};
template <typename T>
struct NanToNum {
  T nan, above, below;
  T operator()(T x) const {
    T value = x == math::detail::infinity<T> ? above : x == -math::detail::infinity<T> ? below : x;
    return x != x ? nan : value;
  }
};
// A loop over complex numbers as pairs of real ones.
template <typename T>
void nan_to_num_of_parts(void* out, const void* const* in, int64_t n, const void* context) {
  loop1<NanToNum<T>, T, T>(out, in, 2 * n, context);
}

// neg on the bits of half precisions.
struct FlipSignBit {
  uint16_t operator()(uint16_t bits) const { return bits ^ 0x8000u; }
};

void neg(Call& call) {
  if (is_half_dtype(call.output().dtype)) {
    static constexpr FlipSignBit op{};
    return run<1>({loop1<FlipSignBit, uint16_t, uint16_t>, &op, light, false}, call.output(), operands<1>(call));
  }
  if (call.output().dtype == CB_BOOL)
    throw failure(CB_RUNTIME_ERROR,
                  "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
                  "use the `~` or "
                  "`logical_not()` operator instead.");
  unary<Neg, NumberTypes, light>(call);
}

void sgn(Call& call) {
  if (!is_complex_dtype(call.output().dtype)) return unary<Sign, BoolAndReals, light>(call);
  dispatch<ComplexTypes>(call.output().dtype, [&]<typename T>() { map_complex1<complex_formulas::Sgn, T>(call); });
}

void relu(Call& call) {
  if (call.output().dtype == CB_BOOL) throw failure(CB_RUNTIME_ERROR, "Boolean inputs not supported for relu");
  unary<Relu, IntegersAndFloats, light>(call);
}

void round(Call& call) {
  const arguments::Round args(call);
  const int64_t decimals = args.decimals;
  if (decimals == 0 || is_integer_dtype(call.output().dtype)) {
    if (decimals != 0)
      throw failure(CB_NOT_IMPLEMENTED, "round: decimals is for floating-point tensors; got an integer one");
    return unary<Round, IntegersAndFloats, light>(call);
  }
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    auto scale = static_cast<C>(std::pow(10.0, static_cast<double>(std::abs(decimals))));
    map1<T>(call, RoundDecimals<C>{scale, decimals > 0}, light);
  });
}

template <typename T>
constexpr double largest = static_cast<double>(std::numeric_limits<T>::max());
template <>
constexpr double largest<Half> = 65504.0;
template <>
constexpr double largest<BFloat16> = 3.3895313892515355e38;

void nan_to_num(Call& call) {
  if (is_integer_dtype(call.output().dtype)) return unary<Identity, decltype(BoolType{} + IntegerTypes{}), light>(call);
  const arguments::NanToNum args(call);
  dispatch<FloatsAndComplex>(call.output().dtype, [&]<typename T>() {
    using R = compute_t<real_t<T>>;
    R nan = static_cast<R>(args.nan.value_or(0));
    R above = static_cast<R>(args.posinf.value_or(largest<real_t<T>>));
    R below = static_cast<R>(args.neginf.value_or(-largest<real_t<T>>));
    const NanToNum<R> op{nan, above, below};
    if constexpr (is_complex_v<T>)
      run<1>({nan_to_num_of_parts<R>, &op, light}, call.output(), operands<1>(call));
    else
      map1<T>(call, op, light);
  });
}

// ---- floating and complex results

struct Exp {
  static constexpr bool on_vectors = true;
  static constexpr int unroll = 4;
  template <typename T>
  T operator()(T x) const {
    return math::exp(x);
  }
};
struct Exp2 {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::exp2(x);
  }
};
struct Expm1 {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::expm1(x);
  }
};
struct Log {
  static constexpr bool on_vectors = true;
  static constexpr int unroll = 4;
  template <typename T>
  T operator()(T x) const {
    return math::log(x);
  }
};
struct Log2 {
  static constexpr bool on_vectors = true;
  static constexpr int unroll = 2;
  template <typename T>
  T operator()(T x) const {
    return math::log2(x);
  }
};
struct Log10 {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::log10(x);
  }
};
struct Log1p {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::log1p(x);
  }
};
struct Sqrt {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::sqrt(x);
  }
};
struct Rsqrt {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::rsqrt(x);
  }
};
struct Reciprocal {
  template <typename T>
  T operator()(T x) const {
    return T(1) / x;
  }
};
// Numbers far from zero are computed by the C library, one by one. The result for a number must not
// depend on its neighbours in the register, which change with the number of threads.
struct Sin {
  static constexpr bool on_vectors = true;
  static constexpr int unroll = 2;
  template <typename T>
  math::Mask<T> outside(math::Vec<T> x) const {
    return math::Vec<T>(math::vec_trigonometric_limit<T>) < abs(x);
  }
  template <typename T>
  T slow_path(T x) const {
    return std::sin(x);
  }
  template <typename T>
  T operator()(T x) const {
    return math::sin(x);
  }
};
struct Cos {
  static constexpr bool on_vectors = true;
  static constexpr int unroll = 2;
  template <typename T>
  math::Mask<T> outside(math::Vec<T> x) const {
    return math::Vec<T>(math::vec_trigonometric_limit<T>) < abs(x);
  }
  template <typename T>
  T slow_path(T x) const {
    return std::cos(x);
  }
  template <typename T>
  T operator()(T x) const {
    return math::cos(x);
  }
};
struct Tan {
  static constexpr bool on_vectors = true;
  template <typename T>
  math::Mask<T> outside(math::Vec<T> x) const {
    return math::Vec<T>(math::vec_trigonometric_limit<T>) < abs(x);
  }
  template <typename T>
  T slow_path(T x) const {
    return std::tan(x);
  }
  template <typename T>
  T operator()(T x) const {
    return math::tan(x);
  }
};
struct Asin {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::asin(x);
  }
};
struct Acos {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::acos(x);
  }
};
struct Atan {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::atan(x);
  }
};
struct Sinh {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::sinh(x);
  }
};
struct Cosh {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::cosh(x);
  }
};
struct Tanh {
  static constexpr bool on_vectors = true;
  static constexpr int unroll = 2;
  template <typename T>
  T operator()(T x) const {
    return math::tanh(x);
  }
};
struct Asinh {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::asinh(x);
  }
};
struct Acosh {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::acosh(x);
  }
};
struct Atanh {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::atanh(x);
  }
};
struct Sigmoid {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::sigmoid(x);
  }
};
struct Erf {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::erf(x);
  }
};
struct Erfc {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::erfc(x);
  }
};
struct Erfinv {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::erfinv(x);
  }
};
struct Lgamma {
  template <typename T>
  T operator()(T x) const {
    return math::lgamma(x);
  }
};
struct LgammaOfFloat {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::lgamma(x);
  }
};
// float64 uses the C library, which is accurate near the zeros.
void lgamma(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    if constexpr (std::is_same_v<T, double>)
      map1<T>(call, Lgamma{}, heavy);
    else
      map1<T>(call, LgammaOfFloat{}, heavy);
  });
}
struct Digamma {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::digamma(x);
  }
};

// Converts half precisions in registers: for formulas that are light or frequent in networks, a
// separate conversion pass would cost too much.
template <typename Op, typename OfComplex, int64_t Work>
void floating_simd(Call& call) {
  if (is_complex_dtype(call.output().dtype)) return unary_floating<Op, OfComplex, Work>(call);
  unary_simd<Op, FloatTypes, Work>(call);
}

}  // namespace

void register_elementwise_unary(KernelTable& table) {
  table.add<neg>("neg");
  table.add<unary<Sign, BoolAndReals, light>>("sign");
  table.add<sgn>("sgn");
  table.add<unary<Floor, IntegersAndFloats, light>>("floor");
  table.add<unary<Ceil, IntegersAndFloats, light>>("ceil");
  table.add<unary<Trunc, IntegersAndFloats, light>>("trunc");
  table.add<unary<Frac, FloatTypes, light>>("frac");
  table.add<unary_simd<Square, AllTypes, light>>("square");
  table.add<unary<Conjugate, AllTypes, light>>("conj_physical");
  table.add<relu>("relu");
  table.add<round>("round");
  table.add<unary<BitwiseNot, decltype(BoolType{} + IntegerTypes{}), light>>("bitwise_not");
  table.add<nan_to_num>("nan_to_num");

  table.add<floating_simd<Exp, complex_formulas::Exp, moderate>>("exp");
  table.add<unary_floating<Exp2, complex_formulas::Exp2, moderate>>("exp2");
  table.add<unary_floating<Expm1, complex_formulas::Expm1, moderate>>("expm1");
  table.add<unary_floating<Log, complex_formulas::Log, moderate>>("log");
  table.add<unary_floating<Log2, complex_formulas::Log2, moderate>>("log2");
  table.add<unary_floating<Log10, complex_formulas::Log10, moderate>>("log10");
  table.add<unary_floating<Log1p, complex_formulas::Log1p, moderate>>("log1p");
  table.add<floating_simd<Sqrt, complex_formulas::Sqrt, light>>("sqrt");
  table.add<floating_simd<Rsqrt, complex_formulas::Rsqrt, light>>("rsqrt");
  table.add<unary_simd<Reciprocal, FloatsAndComplex, light>>("reciprocal");
  table.add<unary_floating<Sin, complex_formulas::Sin, moderate>>("sin");
  table.add<unary_floating<Cos, complex_formulas::Cos, moderate>>("cos");
  table.add<unary_floating<Tan, complex_formulas::Tan, moderate>>("tan");
  table.add<unary_floating<Asin, complex_formulas::Asin, moderate>>("asin");
  table.add<unary_floating<Acos, complex_formulas::Acos, moderate>>("acos");
  table.add<unary_floating<Atan, complex_formulas::Atan, moderate>>("atan");
  table.add<unary_floating<Sinh, complex_formulas::Sinh, moderate>>("sinh");
  table.add<unary_floating<Cosh, complex_formulas::Cosh, moderate>>("cosh");
  table.add<floating_simd<Tanh, complex_formulas::Tanh, moderate>>("tanh");
  table.add<unary_floating<Asinh, complex_formulas::Asinh, moderate>>("asinh");
  table.add<unary_floating<Acosh, complex_formulas::Acosh, moderate>>("acosh");
  table.add<unary_floating<Atanh, complex_formulas::Atanh, moderate>>("atanh");
  table.add<floating_simd<Sigmoid, complex_formulas::Sigmoid, moderate>>("sigmoid");
  table.add<unary<Erf, FloatTypes, moderate>>("erf");
  table.add<unary<Erfc, FloatTypes, moderate>>("erfc");
  table.add<unary<Erfinv, FloatTypes, moderate>>("erfinv");
  table.add<lgamma>("lgamma");
  table.add<unary<Digamma, FloatTypes, heavy>>("digamma");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
