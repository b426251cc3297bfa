// Activation functions and their gradients, each in one pass. The formulas are in candelabra/activation.hpp.
#include "candelabra/activation.hpp"
#include "elementwise.cuh"

namespace candelabra::cuda {
namespace {

using namespace formulas;
using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});

struct SigmoidBackward {
  template <typename T>
  __device__ T operator()(T grad, T y) const {
    if constexpr (is_complex_v<T>)
      return grad * ::cuda::std::conj((T(1) - y) * y);
    else
      return grad * (T(1) - y) * y;
  }
};
struct TanhBackward {
  template <typename T>
  __device__ T operator()(T grad, T y) const {
    if constexpr (is_complex_v<T>)
      return grad * ::cuda::std::conj(T(1) - y * y);
    else
      return grad * (T(1) - y * y);
  }
};

bool approximate_by_tanh(const Call& call, int argument) {
  const std::string_view name = call.string(argument);
  if (name == "tanh") return true;
  if (name == "none") return false;
  throw failure(CB_RUNTIME_ERROR, "approximate argument must be either none or tanh.");
}
void gelu(Call& call) {
  if (approximate_by_tanh(call, 1)) return unary<Heavy<GeluTanh>, FloatTypes>(call);
  unary<Heavy<Gelu>, FloatTypes>(call);
}
void gelu_backward(Call& call) {
  if (approximate_by_tanh(call, 2)) return binary<Heavy<GeluTanhBackward>, FloatTypes>(call);
  binary<Heavy<GeluBackward>, FloatTypes>(call);
}

// Runs a formula over the tensors before argument `First`: one or two.
template <typename T, int First, typename Op>
void over_tensors(Call& call, const Op& op) {
  if constexpr (First == 1)
    map1<T>(call, op);
  else
    map2<T>(call, op);
}
// Kernels of formulas whose state is the numbers from argument `First` on, in the element's type.
template <template <typename> typename Op, int First, typename List = FloatTypes>
void with_one(Call& call) {
  dispatch<List>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    over_tensors<T, First>(call, Op<C>{scalar_to<C>(call.scalar(First))});
  });
}
template <template <typename> typename Op, int First>
void with_two(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    over_tensors<T, First>(call, Op<C>{scalar_to<C>(call.scalar(First)), scalar_to<C>(call.scalar(First + 1))});
  });
}
template <template <typename> typename Op, int First>
void with_three(Call& call) {
  const double alpha = call.scalar(First).re, scale = call.scalar(First + 1).re, input_scale = call.scalar(First + 2).re;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    const double negative = First == 1 ? alpha * scale : alpha * scale * input_scale;
    over_tensors<T, First>(call, Op<C>{static_cast<C>(negative), static_cast<C>(scale), static_cast<C>(input_scale)});
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
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { map1<T>(call, logit_of<compute_t<T>>(call)); });
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
  table.add<with_two<Softplus, 1>>("softplus");
  table.add<with_two<SoftplusBackward, 2>>("softplus_backward");
  table.add<logit>("logit");
  table.add<with_three<Elu, 1>>("elu");
  table.add<with_three<EluBackward, 2>>("elu_backward");
  table.add<with_one<LeakyRelu, 1>>("leaky_relu");
  table.add<with_one<LeakyReluBackward, 2>>("leaky_relu_backward");
  table.add<binary<Prelu, FloatTypes>>("prelu");
  table.add<with_two<HardTanh, 1>>("hardtanh");
  table.add<with_two<HardTanhBackward, 2>>("hardtanh_backward");
  table.add<unary<HardSwish, FloatTypes>>("hardswish");
  table.add<binary<HardSwishBackward, FloatTypes>>("hardswish_backward");
  table.add<unary<HardSigmoid, FloatTypes>>("hardsigmoid");
  table.add<binary<HardSigmoidBackward, FloatTypes>>("hardsigmoid_backward");
  table.add<with_one<HardShrink, 1>>("hardshrink");
  table.add<with_one<SoftShrink, 1>>("softshrink");
  table.add<with_one<ShrinkBackward, 2>>("shrink_backward");
  table.add<with_two<Threshold, 1>>("threshold");
  table.add<with_one<ThresholdBackward, 2, RealTypes>>("threshold_backward");
  table.add<binary<SigmoidBackward, FloatsAndComplex>>("sigmoid_backward");
  table.add<binary<TanhBackward, FloatsAndComplex>>("tanh_backward");
}

}  // namespace candelabra::cuda
