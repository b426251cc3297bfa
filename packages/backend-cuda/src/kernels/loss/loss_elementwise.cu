// Elementwise losses and their gradients. The formulas are in candelabra/formulas/loss.hpp.
#include "candelabra/arguments/loss.hpp"
#include "candelabra/formulas/loss.hpp"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

using namespace formulas;

template <typename Op>
void ternary(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { map3<T>(call, Op{}); });
}
void huber_error(Call& call) {
  const arguments::HuberError args(call);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map2<T>(call, HuberError<C>{scalar_to<C>(*args.delta), scalar_to<C>(*args.scale)});
  });
}
void huber_error_backward(Call& call) {
  const arguments::HuberErrorBackward args(call);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map3<T>(call, HuberErrorBackward<C>{scalar_to<C>(*args.delta), scalar_to<C>(*args.scale)});
  });
}

}  // namespace

void register_loss_elementwise(KernelTable& table) {
  table.add<binary<SquaredError, FloatTypes>>("squared_error");
  table.add<ternary<SquaredErrorBackward>>("squared_error_backward");
  table.add<huber_error>("huber_error");
  table.add<huber_error_backward>("huber_error_backward");
  table.add<binary<Heavy<LogitsCrossEntropy>, FloatTypes>>("logits_cross_entropy");
  table.add<ternary<Heavy<LogitsCrossEntropyBackward>>>("logits_cross_entropy_backward");
  table.add<binary<Heavy<ProbabilityCrossEntropy>, FloatTypes>>("probability_cross_entropy");
  table.add<ternary<Heavy<ProbabilityCrossEntropyBackward>>>("probability_cross_entropy_backward");
}

}  // namespace candelabra::cuda
