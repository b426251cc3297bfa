// Operators of one operand. The formulas are in candelabra/formulas/unary.hpp; here each is bound
// to its dtypes.
#include <cmath>

#include "candelabra/arguments/elementwise.hpp"
#include "drivers/complex_inverse.cuh"
#include "drivers/elementwise.cuh"

// After complex_inverse.cuh, whose functions its formulas call.
#include "candelabra/formulas/unary.hpp"

namespace candelabra::cuda {
namespace {

using namespace formulas;
using IntegersAndFloats = RealTypes;
using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});
using BoolAndReals = decltype(BoolType{} + RealTypes{});

void neg(Call& call) {
  if (is_half_dtype(call.output().dtype)) {
    return map1<uint16_t>(call, FlipSignBit{});
  }
  unary<Neg, NumberTypes>(call);
}

void round(Call& call) {
  const int64_t decimals = arguments::Round(call).decimals;
  if (decimals == 0) return unary<Round, IntegersAndFloats>(call);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    auto scale = static_cast<C>(std::pow(10.0, static_cast<double>(std::abs(decimals))));
    map1<T>(call, RoundDecimals<C>{scale, decimals > 0});
  });
}

void nan_to_num(Call& call) {
  const arguments::NanToNum args(call);
  if (is_integer_dtype(call.output().dtype)) return unary<Identity, decltype(BoolType{} + IntegerTypes{})>(call);
  dispatch<FloatsAndComplex>(call.output().dtype, [&]<typename T>() {
    using R = compute_t<real_t<T>>;
    R nan = args.nan ? static_cast<R>(*args.nan) : R(0);
    R above = static_cast<R>(args.posinf.value_or(largest_finite<real_t<T>>));
    R below = static_cast<R>(args.neginf.value_or(-largest_finite<real_t<T>>));
    map1<T>(call, NanToNum<R>{nan, above, below});
  });
}

// The real formulas lose digits far from zero.
template <typename Op>
struct Periodic {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (!is_complex_v<T>)
      if (math::abs(x) > math::trigonometric_limit<T>) return Op{}.slow_path(x);
    return Op{}(x);
  }
};

}  // namespace

void register_elementwise_unary(KernelTable& table) {
  table.add<neg>("neg");
  table.add<unary<Sign, BoolAndReals>>("sign");
  table.add<unary<Sgn, AllTypes>>("sgn");
  table.add<unary<Floor, IntegersAndFloats>>("floor");
  table.add<unary<Ceil, IntegersAndFloats>>("ceil");
  table.add<unary<Trunc, IntegersAndFloats>>("trunc");
  table.add<unary<Frac, FloatTypes>>("frac");
  table.add<unary<Square, AllTypes>>("square");
  table.add<unary<Conjugate, AllTypes>>("conj_physical");
  table.add<unary<Relu, IntegersAndFloats>>("relu");
  table.add<round>("round");
  table.add<unary<BitwiseNot, decltype(BoolType{} + IntegerTypes{})>>("bitwise_not");
  table.add<nan_to_num>("nan_to_num");

  table.add<unary<Heavy<Exp>, FloatsAndComplex>>("exp");
  table.add<unary<Heavy<Exp2>, FloatsAndComplex>>("exp2");
  table.add<unary<Heavy<Expm1>, FloatsAndComplex>>("expm1");
  table.add<unary<Heavy<Log>, FloatsAndComplex>>("log");
  table.add<unary<Heavy<Log2>, FloatsAndComplex>>("log2");
  table.add<unary<Heavy<Log10>, FloatsAndComplex>>("log10");
  table.add<unary<Heavy<Log1p>, FloatsAndComplex>>("log1p");
  table.add<unary<Heavy<Sqrt>, FloatsAndComplex>>("sqrt");
  table.add<unary<Heavy<Rsqrt>, FloatsAndComplex>>("rsqrt");
  table.add<unary<Heavy<Reciprocal>, FloatsAndComplex>>("reciprocal");
  table.add<unary<Heavy<Periodic<Sin>>, FloatsAndComplex>>("sin");
  table.add<unary<Heavy<Periodic<Cos>>, FloatsAndComplex>>("cos");
  table.add<unary<Heavy<Periodic<Tan>>, FloatsAndComplex>>("tan");
  table.add<unary<Heavy<Asin>, FloatsAndComplex>>("asin");
  table.add<unary<Heavy<Acos>, FloatsAndComplex>>("acos");
  table.add<unary<Heavy<Atan>, FloatsAndComplex>>("atan");
  table.add<unary<Heavy<Sinh>, FloatsAndComplex>>("sinh");
  table.add<unary<Heavy<Cosh>, FloatsAndComplex>>("cosh");
  table.add<unary<Heavy<Tanh>, FloatsAndComplex>>("tanh");
  table.add<unary<Heavy<Asinh>, FloatsAndComplex>>("asinh");
  table.add<unary<Heavy<Acosh>, FloatsAndComplex>>("acosh");
  table.add<unary<Heavy<Atanh>, FloatsAndComplex>>("atanh");
  table.add<unary<Heavy<Sigmoid>, FloatsAndComplex>>("sigmoid");
  table.add<unary<Heavy<Erf>, FloatTypes>>("erf");
  table.add<unary<Heavy<Erfc>, FloatTypes>>("erfc");
  table.add<unary<Heavy<Erfinv>, FloatTypes>>("erfinv");
  table.add<unary<Heavy<Lgamma>, FloatTypes>>("lgamma");
  table.add<unary<Heavy<Digamma>, FloatTypes>>("digamma");
}

}  // namespace candelabra::cuda
