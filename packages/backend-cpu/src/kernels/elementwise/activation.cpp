// Activation functions and their gradients, each in one pass.
#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/positions.hpp"
#include "simd/half_loops.hpp"
#include "simd/vec_math.hpp"

// After vec_math.hpp: its formulas call the functions of vectors.
#include "candelabra/formulas/activation.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace formulas;
using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});

void gelu(Call& call) {
  const arguments::Gelu args(call);
  if (args.approximate == "tanh") return unary_simd<GeluTanh, FloatTypes, moderate>(call);
  unary_simd<Gelu, FloatTypes, moderate>(call);
}
void gelu_backward(Call& call) {
  const arguments::GeluBackward args(call);
  if (args.approximate == "tanh") return binary<GeluTanhBackward, FloatTypes, moderate>(call);
  binary<GeluBackward, FloatTypes, moderate>(call);
}
void elu(Call& call) {
  const arguments::Elu args(call);
  const double alpha = args.alpha->re, scale = args.scale->re, input_scale = args.input_scale->re;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map1<T>(call, Elu<C>{static_cast<C>(alpha * scale), static_cast<C>(scale), static_cast<C>(input_scale)}, moderate);
  });
}
// Kernels of formulas whose state is the Scalar arguments at these positions, in the element's
// type. The numbers follow one operand, or a gradient and an operand.
template <template <typename> typename Op, int64_t Work, int First, int... Others>
void with_numbers(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    const Op<C> op{scalar_to<C>(call.scalar(First)), scalar_to<C>(call.scalar(Others))...};
    constexpr int operand_count = First;
    if constexpr (operand_count == 1)
      map1<T>(call, op, Work);
    else
      map2<T>(call, op, Work);
  });
}
void logit(Call& call) {
  const arguments::Logit args(call);
  dispatch<FloatTypes>(call.output().dtype,
                       [&]<typename T>() { map1<T>(call, logit_of<compute_t<T>>(args.eps.value_or(-1)), moderate); });
}
void elu_backward(Call& call) {
  const arguments::EluBackward args(call);
  const double alpha = args.alpha->re, scale = args.scale->re, input_scale = args.input_scale->re;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    const EluBackward<C> op{static_cast<C>(alpha * scale * input_scale), static_cast<C>(scale),
                            static_cast<C>(input_scale)};
    map2<T>(call, op, moderate);
  });
}
void threshold_backward(Call& call) {
  const arguments::ThresholdBackward args(call);
  dispatch<RealTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map2<T>(call, ThresholdBackward<C>{scalar_to<C>(*args.threshold)}, light);
  });
}

}  // namespace

void register_activation(KernelTable& table) {
  namespace at = positions;
  table.add<gelu>("gelu");
  table.add<gelu_backward>("gelu_backward");
  table.add<unary_simd<Silu, FloatTypes, moderate>>("silu");
  table.add<binary<SiluBackward, FloatTypes, moderate>>("silu_backward");
  table.add<unary<Mish, FloatTypes, moderate>>("mish");
  table.add<unary<LogSigmoid, FloatTypes, moderate>>("log_sigmoid");
  table.add<with_numbers<Softplus, moderate, at::softplus::beta, at::softplus::threshold>>("softplus");
  table.add<logit>("logit");
  table.add<elu>("elu");
  table.add<with_numbers<LeakyRelu, light, at::leaky_relu::negative_slope>>("leaky_relu");
  table.add<with_numbers<LeakyReluBackward, light, at::leaky_relu_backward::negative_slope>>("leaky_relu_backward");
  table.add<binary<Prelu, FloatTypes, light>>("prelu");
  table.add<with_numbers<HardTanh, light, at::hardtanh::min_val, at::hardtanh::max_val>>("hardtanh");
  table.add<with_numbers<HardTanhBackward, light, at::hardtanh_backward::min_val, at::hardtanh_backward::max_val>>(
      "hardtanh_backward");
  table.add<unary<HardSwish, FloatTypes, light>>("hardswish");
  table.add<binary<HardSwishBackward, FloatTypes, light>>("hardswish_backward");
  table.add<unary<HardSigmoid, FloatTypes, light>>("hardsigmoid");
  table.add<binary<HardSigmoidBackward, FloatTypes, light>>("hardsigmoid_backward");
  table.add<with_numbers<HardShrink, light, at::hardshrink::lambd>>("hardshrink");
  table.add<with_numbers<SoftShrink, light, at::softshrink::lambd>>("softshrink");
  table.add<with_numbers<ShrinkBackward, light, at::shrink_backward::lambd>>("shrink_backward");
  table.add<with_numbers<Threshold, light, at::threshold::threshold, at::threshold::value>>("threshold");
  table.add<elu_backward>("elu_backward");
  table.add<with_numbers<SoftplusBackward, moderate, at::softplus_backward::beta, at::softplus_backward::threshold>>(
      "softplus_backward");
  table.add<binary<LogSigmoidBackward, FloatTypes, moderate>>("log_sigmoid_backward");
  table.add<binary<MishBackward, FloatTypes, moderate>>("mish_backward");
  table.add<threshold_backward>("threshold_backward");
  table.add<binary<SigmoidBackward, FloatsAndComplex, light>>("sigmoid_backward");
  table.add<binary<TanhBackward, FloatsAndComplex, light>>("tanh_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
