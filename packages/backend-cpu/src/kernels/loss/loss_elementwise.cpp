// Elementwise losses and their gradients. The formulas are in candelabra/formulas/loss.hpp.
#include "candelabra/arguments/loss.hpp"
#include "drivers/elementwise.hpp"
#include "simd/half_loops.hpp"
#include "simd/vec_math.hpp"

namespace candelabra::math {
inline namespace CANDELABRA_ISA_NAMESPACE {

template <typename T>
CANDELABRA_FORMULA Vec<T> within(Vec<T> x, Vec<T> limit) {  // NaN stays
  return min(limit, max(-limit, x));
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::math

// Included after the vector functions, which its formulas use.
#include "candelabra/formulas/loss.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace formulas;

template <typename Op, int64_t Work>
void ternary(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { map3<T>(call, Op{}, Work); });
}
void huber_error(Call& call) {
  const arguments::HuberError args(call);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    const HuberError<C> op{scalar_to<C>(*args.delta), scalar_to<C>(*args.scale)};
    map_in_registers<T, 2>(
        call, op, HuberError<halves::Floats>{static_cast<float>(op.delta), static_cast<float>(op.scale)}, light);
  });
}
void huber_error_backward(Call& call) {
  const arguments::HuberErrorBackward args(call);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map3<T>(call, HuberErrorBackward<C>{scalar_to<C>(*args.delta), scalar_to<C>(*args.scale)}, light);
  });
}

}  // namespace

void register_loss_elementwise(KernelTable& table) {
  table.add<binary_simd<SquaredError, FloatTypes, light>>("squared_error");
  table.add<ternary<SquaredErrorBackward, light>>("squared_error_backward");
  table.add<huber_error>("huber_error");
  table.add<huber_error_backward>("huber_error_backward");
  table.add<binary<LogitsCrossEntropy, FloatTypes, moderate>>("logits_cross_entropy");
  table.add<ternary<LogitsCrossEntropyBackward, moderate>>("logits_cross_entropy_backward");
  table.add<binary<ProbabilityCrossEntropy, FloatTypes, moderate>>("probability_cross_entropy");
  table.add<ternary<ProbabilityCrossEntropyBackward, light>>("probability_cross_entropy_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
