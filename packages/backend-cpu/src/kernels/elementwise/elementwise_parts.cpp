// Magnitude, angle, sign and finiteness of numbers; complex numbers from their parts. The formulas
// are in candelabra/formulas/parts.hpp.
#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/formulas/parts.hpp"
#include "drivers/elementwise.hpp"
#include "drivers/elementwise_complex.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace formulas;
using BoolAndReals = decltype(BoolType{} + RealTypes{});

// PyTorch has isfinite of no other float8 dtype.
constexpr uint64_t finite_dtypes = CB_DTYPE_BIT(CB_FLOAT8_E5M2) | CB_DTYPE_BIT(CB_FLOAT8_E8M0FNU);

// abs, angle: the same schema
template <typename Op, typename OfComplex>
void to_real(Call& call) {
  const arguments::Abs args(call);
  const cb_tensor& self = *args.self;
  if (!is_complex_dtype(self.dtype)) {
    if constexpr (std::is_same_v<Op, Abs>)
      if (is_float8_dtype(self.dtype) && self.dtype != CB_FLOAT8_E8M0FNU) return map1<float>(call, Abs{}, light);
    if constexpr (std::is_same_v<Op, Abs>) {
      if (!is_half_dtype(self.dtype)) return unary<Op, RealTypes, light>(call);
      static constexpr ClearSignBit op{};
      return run<1>({loop1<ClearSignBit, uint16_t, uint16_t>, &op, light, false}, call.output(), {&self});
    } else {
      return unary<Op, FloatTypes, light>(call);
    }
  }
  dispatch<ComplexTypes>(widened<complex32_dtype>(self.dtype),
                         [&]<typename T>() { map_complex1<OfComplex, T, real_t<T>>(call); });
}

template <template <typename> typename Op, int64_t Work>
void from_parts(Call& call) {
  const auto in = operands<2>(call);
  dispatch<FullFloatTypes>(widened<CB_DTYPE_BIT(CB_FLOAT16)>(in[0]->dtype), [&]<typename T>() {
    using Z = std::complex<T>;
    static constexpr Op<Z> op{};
    run<2>({loop2<Op<Z>, Z, T, T>, &op, Work}, call.output(), in);
  });
}

}  // namespace

void register_elementwise_parts(KernelTable& table) {
#ifdef __AVX512F__
  use_widening_conversions(widening_conversions);
#endif
  table.add<to_real<Abs, complex_formulas::Abs>>("abs");
  table.add<to_real<Angle, complex_formulas::Angle>>("angle");
  table.add<unary_bool<IsNan, AllTypes, light, float8_dtypes | complex32_dtype>>("isnan");
  table.add<unary_bool<IsInf, AllTypes, light, CB_DTYPE_BIT(CB_FLOAT8_E5M2) | complex32_dtype>>("isinf");
  table.add<unary_bool<IsFinite, AllTypes, light, finite_dtypes | complex32_dtype>>("isfinite");
  table.add<unary_bool<IsPosInf, BoolAndReals, light>>("isposinf");
  table.add<unary_bool<IsNegInf, BoolAndReals, light>>("isneginf");
  table.add<unary_bool<SignBit, BoolAndReals, light>>("signbit");
  table.add<unary_bool<LogicalNot, AllTypes, light>>("logical_not");
  table.add<from_parts<MakeComplex, light>>("complex");
  table.add<from_parts<Polar, heavy>>("polar");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
