// Activation functions and their gradients, each in one pass.
#include "half_loops.hpp"
#include "vec_math.hpp"

// After the functions of vectors, which its formulas are to find.
#include "candelabra/activation.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace formulas;
using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});

struct SigmoidBackward {
  template <typename T>
  T operator()(T grad, T y) const {
    if constexpr (is_complex_v<T>)
      return grad * std::conj((T(1) - y) * y);
    else
      return grad * (T(1) - y) * y;
  }
};
struct TanhBackward {
  template <typename T>
  T operator()(T grad, T y) const {
    if constexpr (is_complex_v<T>)
      return grad * std::conj(T(1) - y * y);
    else
      return grad * (T(1) - y * y);
  }
};

bool approximate_by_tanh(const Call& call, int argument) {
  std::string_view name = call.string(argument);
  if (name == "tanh") return true;
  if (name == "none") return false;
  throw failure(CB_RUNTIME_ERROR, "approximate argument must be either none or tanh.");
}
void gelu(Call& call) {
  if (approximate_by_tanh(call, 1)) return unary_of_registers<GeluTanh, FloatTypes, moderate>(call);
  unary_of_registers<Gelu, FloatTypes, moderate>(call);
}
void gelu_backward(Call& call) {
  if (approximate_by_tanh(call, 2)) return binary<GeluTanhBackward, FloatTypes, moderate>(call);
  binary<GeluBackward, FloatTypes, moderate>(call);
}
void elu(Call& call) {
  double alpha = call.scalar(1).re, scale = call.scalar(2).re, input_scale = call.scalar(3).re;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map1<T>(call, Elu<C>{static_cast<C>(alpha * scale), static_cast<C>(scale), static_cast<C>(input_scale)}, moderate);
  });
}
// Kernels of formulas whose state is the numbers from argument `First` on, in the element's type.
template <template <typename> typename Op, int First, int64_t Work = light>
void with_one(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    const Op<C> op{scalar_to<C>(call.scalar(First))};
    if constexpr (First == 1)
      map1<T>(call, op, Work);
    else
      map2<T>(call, op, Work);
  });
}
template <template <typename> typename Op, int First, int64_t Work = light>
void with_two(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    const Op<C> op{scalar_to<C>(call.scalar(First)), scalar_to<C>(call.scalar(First + 1))};
    if constexpr (First == 1)
      map1<T>(call, op, Work);
    else
      map2<T>(call, op, Work);
  });
}
// Without eps, or with one that is negative, nothing is brought inside.
template <typename C>
Logit<C> logit_of(const Call& call) {
  const C low = call.given(1) ? static_cast<C>(call.real(1)) : C(-1);
  if (low < C(0)) return {-std::numeric_limits<C>::infinity(), std::numeric_limits<C>::infinity()};
  return {low, C(1) - low};
}
void logit(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { map1<T>(call, logit_of<compute_t<T>>(call), moderate); });
}
void elu_backward(Call& call) {
  double alpha = call.scalar(2).re, scale = call.scalar(3).re, input_scale = call.scalar(4).re;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    const EluBackward<C> op{static_cast<C>(alpha * scale * input_scale), static_cast<C>(scale), static_cast<C>(input_scale)};
    map2<T>(call, op, moderate);
  });
}
void threshold_backward(Call& call) {
  dispatch<RealTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map2<T>(call, ThresholdBackward<C>{scalar_to<C>(call.scalar(2))}, light);
  });
}

}  // namespace

void register_activation(KernelTable& table) {
  table.add<gelu>("gelu");
  table.add<gelu_backward>("gelu_backward");
  table.add<unary_of_registers<Silu, FloatTypes, moderate>>("silu");
  table.add<binary<SiluBackward, FloatTypes, moderate>>("silu_backward");
  table.add<unary<Mish, FloatTypes, moderate>>("mish");
  table.add<unary<LogSigmoid, FloatTypes, moderate>>("log_sigmoid");
  table.add<with_two<Softplus, 1, moderate>>("softplus");
  table.add<logit>("logit");
  table.add<elu>("elu");
  table.add<with_one<LeakyRelu, 1>>("leaky_relu");
  table.add<with_one<LeakyReluBackward, 2>>("leaky_relu_backward");
  table.add<binary<Prelu, FloatTypes, light>>("prelu");
  table.add<with_two<HardTanh, 1>>("hardtanh");
  table.add<with_two<HardTanhBackward, 2>>("hardtanh_backward");
  table.add<unary<HardSwish, FloatTypes, light>>("hardswish");
  table.add<binary<HardSwishBackward, FloatTypes, light>>("hardswish_backward");
  table.add<unary<HardSigmoid, FloatTypes, light>>("hardsigmoid");
  table.add<binary<HardSigmoidBackward, FloatTypes, light>>("hardsigmoid_backward");
  table.add<with_one<HardShrink, 1>>("hardshrink");
  table.add<with_one<SoftShrink, 1>>("softshrink");
  table.add<with_one<ShrinkBackward, 2>>("shrink_backward");
  table.add<with_two<Threshold, 1>>("threshold");
  table.add<elu_backward>("elu_backward");
  table.add<with_two<SoftplusBackward, 2, moderate>>("softplus_backward");
  table.add<binary<LogSigmoidBackward, FloatTypes, moderate>>("log_sigmoid_backward");
  table.add<binary<MishBackward, FloatTypes, moderate>>("mish_backward");
  table.add<threshold_backward>("threshold_backward");
  table.add<binary<SigmoidBackward, FloatsAndComplex, light>>("sigmoid_backward");
  table.add<binary<TanhBackward, FloatsAndComplex, light>>("tanh_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
