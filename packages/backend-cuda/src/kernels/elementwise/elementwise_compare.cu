// Comparison, logic and selection. The formulas are in candelabra/formulas/compare.hpp.
#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/formulas/compare.hpp"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

using namespace formulas;
using BoolAndReals = decltype(BoolType{} + RealTypes{});
using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});

// Only copies elements, so it is compiled per element size.
void where(Call& call) {
  const arguments::Where args(call);
  dispatch_size(itemsize(call.output().dtype), [&]<typename U>() {
    map<Types<U>, Types<uint8_t, U, U>>(call, Select{}, {&call.output()}, {args.condition, args.input, args.other});
  });
}

void clamp(Call& call) {
  const arguments::Clamp args(call);
  if (args.min && args.max)
    return dispatch<RealTypes>(call.output().dtype, [&]<typename T>() { map3<T>(call, Clamp{}); });
  dispatch<RealTypes>(call.output().dtype, [&]<typename T>() {
    if (args.min)
      map2<T>(call, ClampMin{}, *args.self, *args.min);
    else
      map2<T>(call, ClampMax{}, *args.self, *args.max);
  });
}

void lerp(Call& call) {
  dispatch<FloatsAndComplex>(call.output().dtype, [&]<typename T>() { map3<T>(call, Lerp{}); });
}

void addcmul(Call& call) {
  const arguments::Addcmul args(call);
  dispatch<NumberTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map3<T>(call, AddProduct<C>{scalar_to<C>(*args.value)});
  });
}
void addcdiv(Call& call) {
  const arguments::Addcdiv args(call);
  dispatch<FloatsAndComplex>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map3<T>(call, AddQuotient<C>{scalar_to<C>(*args.value)});
  });
}

}  // namespace

void register_elementwise_compare(KernelTable& table) {
  table.add<binary_bool<Equal, AllTypes>>("eq");
  table.add<binary_bool<NotEqual, AllTypes>>("ne");
  table.add<binary_bool<Less, BoolAndReals>>("lt");
  table.add<binary_bool<LessEqual, BoolAndReals>>("le");
  table.add<binary_bool<Greater, BoolAndReals>>("gt");
  table.add<binary_bool<GreaterEqual, BoolAndReals>>("ge");
  table.add<binary_bool<LogicalAnd, AllTypes>>("logical_and");
  table.add<binary_bool<LogicalOr, AllTypes>>("logical_or");
  table.add<binary_bool<LogicalXor, AllTypes>>("logical_xor");
  table.add<where>("where");
  table.add<clamp>("clamp");
  table.add<lerp>("lerp");
  table.add<addcmul>("addcmul");
  table.add<addcdiv>("addcdiv");
}

}  // namespace candelabra::cuda
