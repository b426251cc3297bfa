// Activation functions and their gradients, each in one pass over memory. The formulas are in
// candelabra/formulas/activation.hpp.
#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/formulas/activation.hpp"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

using namespace formulas;
using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});

void gelu(Call& call) {
  if (arguments::Gelu(call).approximate == "tanh") return unary<Heavy<GeluTanh>, FloatTypes>(call);
  unary<Heavy<Gelu>, FloatTypes>(call);
}
void gelu_backward(Call& call) {
  if (arguments::GeluBackward(call).approximate == "tanh") return binary<Heavy<GeluTanhBackward>, FloatTypes>(call);
  binary<Heavy<GeluBackward>, FloatTypes>(call);
}

// Runs a formula over self, or over grad and self in the gradients.
template <typename T, typename Arguments, typename Op>
void map_tensors(Call& call, const Arguments& args, const Op& op) {
  if constexpr (requires { args.grad; })
    map2<T>(call, op, *args.grad, *args.self);
  else
    map1<T>(call, op);
}

template <typename Arguments>
Arguments owner_of(const cb_scalar* Arguments::* number);

// Kernels of formulas whose state are numbers of the call, each given as a member of the operator's
// arguments.
template <template <typename> typename Op, typename List, auto First, auto... More>
void with_numbers(Call& call) {
  const decltype(owner_of(First)) args(call);
  dispatch<List>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map_tensors<T>(call, args, Op<C>{scalar_to<C>(*(args.*First)), scalar_to<C>(*(args.*More))...});
  });
}

template <template <typename> typename Op, typename Arguments>
void elu(Call& call) {
  const Arguments args(call);
  const double alpha = args.alpha->re, scale = args.scale->re, input_scale = args.input_scale->re;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    constexpr bool is_gradient = std::is_same_v<Arguments, arguments::EluBackward>;
    const double negative = is_gradient ? alpha * scale * input_scale : alpha * scale;
    map_tensors<T>(call, args, Op<C>{static_cast<C>(negative), static_cast<C>(scale), static_cast<C>(input_scale)});
  });
}

void logit(Call& call) {
  const arguments::Logit args(call);
  dispatch<FloatTypes>(call.output().dtype,
                       [&]<typename T>() { map1<T>(call, logit_of<compute_t<T>>(args.eps.value_or(-1))); });
}

}  // namespace

void register_activation(KernelTable& table) {
  table.add<gelu>("gelu");
  table.add<gelu_backward>("gelu_backward");
  table.add<unary<Heavy<Silu>, FloatTypes>>("silu");
  table.add<binary<Heavy<SiluBackward>, FloatTypes>>("silu_backward");
  table.add<unary<Heavy<Mish>, FloatTypes>>("mish");
  table.add<binary<Heavy<MishBackward>, FloatTypes>>("mish_backward");
  table.add<unary<Heavy<LogSigmoid>, FloatTypes>>("log_sigmoid");
  table.add<binary<Heavy<LogSigmoidBackward>, FloatTypes>>("log_sigmoid_backward");
  table.add<with_numbers<Softplus, FloatTypes, &arguments::Softplus::beta, &arguments::Softplus::threshold>>(
      "softplus");
  table.add<with_numbers<SoftplusBackward, FloatTypes, &arguments::SoftplusBackward::beta,
                         &arguments::SoftplusBackward::threshold>>("softplus_backward");
  table.add<logit>("logit");
  table.add<elu<Elu, arguments::Elu>>("elu");
  table.add<elu<EluBackward, arguments::EluBackward>>("elu_backward");
  table.add<with_numbers<LeakyRelu, FloatTypes, &arguments::LeakyRelu::negative_slope>>("leaky_relu");
  table.add<with_numbers<LeakyReluBackward, FloatTypes, &arguments::LeakyReluBackward::negative_slope>>(
      "leaky_relu_backward");
  table.add<binary<Prelu, FloatTypes>>("prelu");
  table.add<with_numbers<HardTanh, FloatTypes, &arguments::Hardtanh::min_val, &arguments::Hardtanh::max_val>>(
      "hardtanh");
  table.add<with_numbers<HardTanhBackward, FloatTypes, &arguments::HardtanhBackward::min_val,
                         &arguments::HardtanhBackward::max_val>>("hardtanh_backward");
  table.add<unary<HardSwish, FloatTypes>>("hardswish");
  table.add<binary<HardSwishBackward, FloatTypes>>("hardswish_backward");
  table.add<unary<HardSigmoid, FloatTypes>>("hardsigmoid");
  table.add<binary<HardSigmoidBackward, FloatTypes>>("hardsigmoid_backward");
  table.add<with_numbers<HardShrink, FloatTypes, &arguments::Hardshrink::lambd>>("hardshrink");
  table.add<with_numbers<SoftShrink, FloatTypes, &arguments::Softshrink::lambd>>("softshrink");
  table.add<with_numbers<ShrinkBackward, FloatTypes, &arguments::ShrinkBackward::lambd>>("shrink_backward");
  table.add<with_numbers<Threshold, FloatTypes, &arguments::Threshold::threshold, &arguments::Threshold::value>>(
      "threshold");
  table.add<with_numbers<ThresholdBackward, RealTypes, &arguments::ThresholdBackward::threshold>>("threshold_backward");
  table.add<binary<SigmoidBackward, FloatsAndComplex>>("sigmoid_backward");
  table.add<binary<TanhBackward, FloatsAndComplex>>("tanh_backward");
}

}  // namespace candelabra::cuda
