// Comparison, logic and selection. The formulas are in candelabra/formulas/compare.hpp.
#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/formulas/compare.hpp"
#include "candelabra/positions.hpp"
#include "simd/half_loops.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace formulas;
using BoolAndReals = decltype(BoolType{} + RealTypes{});
using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});

// Only copies elements, so it is compiled per element size.
void where(Call& call) {
  dispatch_size(itemsize(call.output().dtype), [&]<typename U>() {
    static constexpr Select op{};
    Blocks blocks{loop3<Select, U, uint8_t, U, U>, &op, light};
    blocks.halves_as_float = false;
    run<3>(blocks, call.output(), operands<3>(call));
  });
}

template <typename T>
struct ClampNumbers {
  T low, high;
  T operator()(T x) const { return Clamp{}(x, low, high); }
};
template <typename T>
struct ClampMinNumber {
  T low;
  T operator()(T x) const { return ClampMin{}(x, low); }
};
template <typename T>
struct ClampMaxNumber {
  T high;
  T operator()(T x) const { return ClampMax{}(x, high); }
};
bool is_number(const cb_tensor* tensor) {
  return tensor && (tensor->flags & CB_TENSOR_NUMBER);
}
// clamp with Python numbers, which stay in registers; false where a bound is a tensor.
bool clamp_by_numbers(Call& call, const cb_tensor* low, const cb_tensor* high) {
  if ((low && !is_number(low)) || (high && !is_number(high)) || !(low || high)) return false;
  dispatch<RealTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    auto number = [](const cb_tensor* tensor) { return static_cast<C>(*data<T>(*tensor)); };
    if (low && high)
      map1<T>(call, ClampNumbers<C>{number(low), number(high)}, light);
    else if (low)
      map1<T>(call, ClampMinNumber<C>{number(low)}, light);
    else
      map1<T>(call, ClampMaxNumber<C>{number(high)}, light);
  });
  return true;
}
void clamp(Call& call) {
  namespace at = positions::clamp;
  const arguments::Clamp args(call);
  if (clamp_by_numbers(call, args.min, args.max)) return;
  if (args.min && args.max)
    return dispatch<RealTypes>(call.output().dtype, [&]<typename T>() { map3<T>(call, Clamp{}, light); });
  dispatch<RealTypes>(call.output().dtype, [&]<typename T>() {
    if (args.min)
      map2<T>(call, ClampMin{}, light, at::self, at::min);
    else
      map2<T>(call, ClampMax{}, light, at::self, at::max);
  });
}

void lerp(Call& call) {
  dispatch<FloatsAndComplex>(call.output().dtype, [&]<typename T>() { map3<T>(call, Lerp{}, light); });
}

void addcmul(Call& call) {
  const arguments::Addcmul args(call);
  dispatch<NumberTypes>(widened<complex32_dtype>(call.output().dtype), [&]<typename T>() {
    using C = compute_t<T>;
    const AddProduct<C> op{scalar_to<C>(*args.value)};
    map_in_registers<T, 3>(call, op, op, light);
  });
}
void addcdiv(Call& call) {
  const arguments::Addcdiv args(call);
  dispatch<FloatsAndComplex>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    const AddQuotient<C> op{scalar_to<C>(*args.value)};
    map_in_registers<T, 3>(call, op, op, light);
  });
}

}  // namespace

void register_elementwise_compare(KernelTable& table) {
  table.add<binary_bool<Equal, AllTypes, light, float8_dtypes | complex32_dtype>>("eq");
  table.add<binary_bool<NotEqual, AllTypes, light, float8_dtypes | complex32_dtype>>("ne");
  table.add<binary_bool<Less, BoolAndReals, light>>("lt");
  table.add<binary_bool<LessEqual, BoolAndReals, light>>("le");
  table.add<binary_bool<Greater, BoolAndReals, light>>("gt");
  table.add<binary_bool<GreaterEqual, BoolAndReals, light>>("ge");
  table.add<binary_bool<LogicalAnd, AllTypes, light>>("logical_and");
  table.add<binary_bool<LogicalOr, AllTypes, light>>("logical_or");
  table.add<binary_bool<LogicalXor, AllTypes, light>>("logical_xor");
  table.add<where>("where");
  table.add<clamp>("clamp");
  table.add<lerp>("lerp");
  table.add<addcmul>("addcmul");
  table.add<addcdiv>("addcdiv");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
