// Activation functions and their gradients, each in one pass.
#include "candelabra/special_functions.hpp"
#include "elementwise.hpp"
#include "vec_math.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});

struct Gelu {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::gelu(x);
  }
};
struct GeluTanh {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::gelu_tanh(x);
  }
};
struct GeluBackward {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T grad, T x) const {
    return grad * math::gelu_derivative(x);
  }
};
struct GeluTanhBackward {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T grad, T x) const {
    return grad * math::gelu_tanh_derivative(x);
  }
};
struct Silu {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::silu(x);
  }
};
struct SiluBackward {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T grad, T x) const {
    return grad * math::silu_derivative(x);
  }
};
struct Mish {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::mish(x);
  }
};
struct LogSigmoid {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x) const {
    return math::log_sigmoid(x);
  }
};
template <typename T>
struct Softplus {
  static constexpr bool on_vectors = true;
  T beta, threshold;
  template <typename V>
  V operator()(V x) const {
    const V scaled = x * beta;
    return select(V(threshold) < scaled, x, math::log1p(math::exp(scaled)) / beta);
  }
};
template <typename T>
struct Elu {
  static constexpr bool on_vectors = true;
  T negative, positive, input;
  template <typename V>
  V operator()(V x) const {
    return select(V(T(0)) < x, x * positive, negative * math::expm1(x * input));
  }
};
template <typename T>
struct LeakyRelu {
  T slope;
  T operator()(T x) const { return x > T(0) ? x : x * slope; }
};
template <typename T>
struct ThresholdBackward {
  T threshold;
  T operator()(T grad, T x) const { return x <= threshold ? T(0) : grad; }
};
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
  if (approximate_by_tanh(call, 1)) return unary<GeluTanh, FloatTypes, moderate>(call);
  unary<Gelu, FloatTypes, moderate>(call);
}
void gelu_backward(Call& call) {
  if (approximate_by_tanh(call, 2)) return binary<GeluTanhBackward, FloatTypes, moderate>(call);
  binary<GeluBackward, FloatTypes, moderate>(call);
}
void softplus(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map1<T>(call, Softplus<C>{scalar_to<C>(call.scalar(1)), scalar_to<C>(call.scalar(2))}, moderate);
  });
}
void elu(Call& call) {
  double alpha = call.scalar(1).re, scale = call.scalar(2).re, input_scale = call.scalar(3).re;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map1<T>(call, Elu<C>{static_cast<C>(alpha * scale), static_cast<C>(scale), static_cast<C>(input_scale)}, moderate);
  });
}
void leaky_relu(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map1<T>(call, LeakyRelu<C>{scalar_to<C>(call.scalar(1))}, light);
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
  table.add<unary<Silu, FloatTypes, moderate>>("silu");
  table.add<binary<SiluBackward, FloatTypes, moderate>>("silu_backward");
  table.add<unary<Mish, FloatTypes, moderate>>("mish");
  table.add<unary<LogSigmoid, FloatTypes, moderate>>("log_sigmoid");
  table.add<softplus>("softplus");
  table.add<elu>("elu");
  table.add<leaky_relu>("leaky_relu");
  table.add<threshold_backward>("threshold_backward");
  table.add<binary<SigmoidBackward, FloatsAndComplex, light>>("sigmoid_backward");
  table.add<binary<TanhBackward, FloatsAndComplex, light>>("tanh_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
