// Magnitude, angle, sign bit and classification (isnan, isinf, ...) of numbers; complex numbers
// from their parts. The formulas are in candelabra/formulas/parts.hpp.
#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/formulas/parts.hpp"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

using namespace formulas;
using BoolAndReals = decltype(BoolType{} + RealTypes{});

// abs, angle: the same arguments.
template <typename Op>
void to_real(Call& call) {
  const cb_tensor& self = *arguments::Abs(call).self;
  if (!is_complex_dtype(self.dtype)) {
    if constexpr (std::is_same_v<Op, Abs>) {
      if (!is_half_dtype(self.dtype)) return unary<Op, RealTypes>(call);
      return map1<uint16_t>(call, ClearSignBit{});
    } else {
      return unary<Op, FloatTypes>(call);
    }
  }
  dispatch<ComplexTypes>(self.dtype,
                         [&]<typename T>() { map<Types<real_t<T>>, Types<T>>(call, Op{}, {&call.output()}, {&self}); });
}

template <template <typename> typename Op>
void from_parts(Call& call) {
  const auto parts = leading_tensors<2>(call);
  dispatch<FullFloatTypes>(parts.front()->dtype, [&]<typename T>() {
    using Z = ::cuda::std::complex<T>;
    map<Types<Z>, Types<T, T>>(call, Op<Z>{}, {&call.output()}, parts);
  });
}

}  // namespace

void register_elementwise_parts(KernelTable& table) {
  table.add<to_real<Abs>>("abs");
  table.add<to_real<Angle>>("angle");
  table.add<unary_bool<IsNan, AllTypes>>("isnan");
  table.add<unary_bool<IsInf, AllTypes>>("isinf");
  table.add<unary_bool<IsFinite, AllTypes>>("isfinite");
  table.add<unary_bool<IsPosInf, BoolAndReals>>("isposinf");
  table.add<unary_bool<IsNegInf, BoolAndReals>>("isneginf");
  table.add<unary_bool<SignBit, BoolAndReals>>("signbit");
  table.add<unary_bool<LogicalNot, AllTypes>>("logical_not");
  table.add<from_parts<MakeComplex>>("complex");
  table.add<from_parts<Polar>>("polar");
}

}  // namespace candelabra::cuda
