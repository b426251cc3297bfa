// Elementwise operators of one tensor. The formulas are in candelabra/formulas/unary.hpp; here each
// is bound to its dtypes.
#include <cmath>

#include "candelabra/arguments/elementwise.hpp"
#include "drivers/elementwise.hpp"
#include "drivers/elementwise_complex.hpp"
#include "simd/half_loops.hpp"
#include "simd/vec_error_function.hpp"
#include "simd/vec_gamma.hpp"
#include "simd/vec_power.hpp"

// After the functions of vectors, which its formulas call.
#include "candelabra/formulas/unary.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace formulas;
using namespace complex_domains;
using IntegersAndFloats = RealTypes;
using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});
using BoolAndReals = decltype(BoolType{} + RealTypes{});

// ---- results of the same dtype

// A loop over complex numbers as pairs of real ones.
template <typename T>
void nan_to_num_of_parts(void* out, const void* const* in, int64_t n, const void* context) {
  loop1<NanToNum<T>, T, T>(out, in, 2 * n, context);
}

void neg(Call& call) {
  if (is_half_dtype(call.output().dtype)) {
    static constexpr FlipSignBit op{};
    return run<1>({loop1<FlipSignBit, uint16_t, uint16_t>, &op, light, false}, call.output(), operands<1>(call));
  }
  unary<Neg, NumberTypes, light, complex32_dtype>(call);
}

void sgn(Call& call) {
  if (!is_complex_dtype(call.output().dtype)) return unary<Sign, BoolAndReals, light>(call);
  dispatch<ComplexTypes>(widened<complex32_dtype>(call.output().dtype),
                         [&]<typename T>() { map_complex1<complex_formulas::Sgn, T>(call); });
}

void round(Call& call) {
  const int64_t decimals = arguments::Round(call).decimals;
  if (decimals == 0) return unary<Round, IntegersAndFloats, light>(call);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    auto scale = static_cast<C>(std::pow(10.0, static_cast<double>(std::abs(decimals))));
    map1<T>(call, RoundDecimals<C>{scale, decimals > 0}, light);
  });
}

void nan_to_num(Call& call) {
  if (is_integer_dtype(call.output().dtype)) return unary<Identity, decltype(BoolType{} + IntegerTypes{}), light>(call);
  const arguments::NanToNum args(call);
  dispatch<FloatsAndComplex>(call.output().dtype, [&]<typename T>() {
    using R = compute_t<real_t<T>>;
    R nan = static_cast<R>(args.nan.value_or(0));
    R above = static_cast<R>(args.posinf.value_or(largest_finite<real_t<T>>));
    R below = static_cast<R>(args.neginf.value_or(-largest_finite<real_t<T>>));
    const NanToNum<R> op{nan, above, below};
    if constexpr (is_complex_v<T>)
      run<1>({nan_to_num_of_parts<R>, &op, light}, call.output(), operands<1>(call));
    else
      map1<T>(call, op, light);
  });
}

// ---- floating and complex results

// Sets the registers per iteration (drivers/elementwise.hpp).
template <typename Op, int Registers>
struct Unrolled : Op {
  static constexpr int unroll = Registers;
};
// Numbers far from zero are computed by the C library, one by one. The result for a number must not
// depend on its neighbours in the register, which change with the number of threads.
template <typename Op>
struct Periodic : Op {
  template <typename T>
  math::Mask<T> outside(math::Vec<T> x) const {
    return math::Vec<T>(math::vec_trigonometric_limit<T>) < abs(x);
  }
};
struct LgammaOfFloat : Lgamma {
  static constexpr bool on_vectors = true;
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

// Converts half precisions in registers: for formulas that are light or frequent in networks, a
// separate conversion pass would cost too much.
template <typename Op, typename Domain, int64_t Work>
void floating_simd(Call& call) {
  if (is_complex_dtype(call.output().dtype)) return unary_floating<Op, Domain, Work>(call);
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
  table.add<unary<Conjugate, AllTypes, light, complex32_dtype>>("conj_physical");
  table.add<unary<Relu, IntegersAndFloats, light>>("relu");
  table.add<round>("round");
  table.add<unary<BitwiseNot, decltype(BoolType{} + IntegerTypes{}), light>>("bitwise_not");
  table.add<nan_to_num>("nan_to_num");

  table.add<floating_simd<Unrolled<Exp, 4>, GrowsWithReal<>, moderate>>("exp");
  table.add<unary_floating<Exp2, GrowsWithReal<>, moderate>>("exp2");
  table.add<unary_floating<Expm1, GrowsWithReal<>, moderate>>("expm1");
  table.add<unary_floating<Unrolled<Log, 4>, ModerateSquares, moderate>>("log");
  table.add<unary_floating<Unrolled<Log2, 2>, ModerateSquares, moderate>>("log2");
  table.add<unary_floating<Log10, ModerateSquares, moderate>>("log10");
  table.add<unary_floating<Log1p, BesidesMinusOne, moderate>>("log1p");
  table.add<floating_simd<Sqrt, ModerateSquares, light>>("sqrt");
  table.add<floating_simd<Rsqrt, ModerateSquares, light>>("rsqrt");
  table.add<unary_simd<Reciprocal, FloatsAndComplex, light>>("reciprocal");
  table.add<unary_floating<Unrolled<Periodic<Sin>, 2>, GrowsWithImag<>, moderate>>("sin");
  table.add<unary_floating<Unrolled<Periodic<Cos>, 2>, GrowsWithImag<>, moderate>>("cos");
  table.add<unary_floating<Periodic<Tan>, GrowsWithImag<300>, moderate>>("tan");
  table.add<unary_floating<Asin, ModerateParts, moderate>>("asin");
  table.add<unary_floating<Acos, ModerateParts, moderate>>("acos");
  table.add<unary_floating<Atan, BesidesImaginaryOnes, moderate>>("atan");
  table.add<unary_floating<Sinh, GrowsWithReal<>, moderate>>("sinh");
  table.add<unary_floating<Cosh, GrowsWithReal<>, moderate>>("cosh");
  table.add<floating_simd<Unrolled<Tanh, 2>, GrowsWithReal<300>, moderate>>("tanh");
  table.add<unary_floating<Asinh, ModerateParts, moderate>>("asinh");
  table.add<unary_floating<Acosh, ModerateParts, moderate>>("acosh");
  table.add<unary_floating<Atanh, BesidesOnes, moderate>>("atanh");
  table.add<floating_simd<Sigmoid, GrowsWithReal<300>, moderate>>("sigmoid");
  table.add<unary<Erf, FloatTypes, moderate>>("erf");
  table.add<unary<Erfc, FloatTypes, moderate>>("erfc");
  table.add<unary<Erfinv, FloatTypes, moderate>>("erfinv");
  table.add<lgamma>("lgamma");
  table.add<unary<Digamma, FloatTypes, heavy>>("digamma");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
