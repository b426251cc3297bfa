// Activation functions and their gradients as function objects, shared by the kernels of all
// backends. A functor with `on_vectors` also accepts a backend's SIMD vector type that provides the
// same functions.
#ifndef CANDELABRA_FORMULAS_ACTIVATION_HPP
#define CANDELABRA_FORMULAS_ACTIVATION_HPP

#include <limits>

#include "candelabra/dtypes.hpp"
#include "candelabra/special_functions.hpp"

namespace candelabra::math {

// With n = e^x (e^x + 2), tanh(softplus(x)) = n / (n + 2).
template <typename T>
CANDELABRA_FORMULA T mish_derivative(T x) {
  const T e = exp(x < T(20) ? x : T(20)), n = e * (e + T(2)), inverse = T(1) / (n + T(2));
  const T rest = T(4) * (n + T(1)) * inverse * inverse;  // 1 - tanh^2
  return x > T(20) ? T(1) : n * inverse + x * (e / (e + T(1))) * rest;
}

}  // namespace candelabra::math

namespace candelabra::formulas {

using math::select;

struct Gelu {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::gelu(x);
  }
};
struct GeluTanh {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::gelu_tanh(x);
  }
};
struct GeluBackward {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T grad, T x) const {
    return grad * math::gelu_derivative(x);
  }
};
struct GeluTanhBackward {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T grad, T x) const {
    return grad * math::gelu_tanh_derivative(x);
  }
};
struct Silu {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::silu(x);
  }
};
struct SiluBackward {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T grad, T x) const {
    return grad * math::silu_derivative(x);
  }
};
struct Mish {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::mish(x);
  }
};
struct LogSigmoid {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::log_sigmoid(x);
  }
};
template <typename T>
struct Logit {  // clamps to [low, high] first; NaN propagates
  static constexpr bool on_vectors = true;
  T low, high;
  template <typename V>
  CANDELABRA_FORMULA V operator()(V x) const {
    const V p = select(x < V(low), V(low), select(V(high) < x, V(high), x));
    return math::log(p / (V(T(1)) - p));
  }
};
// Without eps, or with a negative one, the input is not clamped.
template <typename T>
CANDELABRA_FORMULA Logit<T> logit_of(double eps) {
  const T low = static_cast<T>(eps);
  if (low < T(0)) return {-std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity()};
  return {low, T(1) - low};
}
template <typename T>
struct Softplus {
  static constexpr bool on_vectors = true;
  T beta, threshold;
  template <typename V>
  CANDELABRA_FORMULA V operator()(V x) const {
    const V scaled = x * beta;
    return select(V(threshold) < scaled, x, math::log1p(math::exp(scaled)) / beta);
  }
};
template <typename T>
struct Elu {
  static constexpr bool on_vectors = true;
  T negative, positive, input;
  template <typename V>
  CANDELABRA_FORMULA V operator()(V x) const {
    return select(V(T(0)) < x, x * positive, negative * math::expm1(x * input));
  }
};
template <typename T>
struct LeakyRelu {
  T slope;
  CANDELABRA_FORMULA T operator()(T x) const { return x > T(0) ? x : x * slope; }
};
template <typename T>
struct LeakyReluBackward {
  T slope;
  CANDELABRA_FORMULA T operator()(T grad, T x) const { return x > T(0) ? grad : grad * slope; }
};
struct Prelu {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x, T weight) const {
    return x > T(0) ? x : x * weight;
  }
};
template <typename T>
struct HardTanh {  // NaN propagates
  T low, high;
  CANDELABRA_FORMULA T operator()(T x) const {
    T raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
};
template <typename T>
struct HardTanhBackward {
  T low, high;
  CANDELABRA_FORMULA T operator()(T grad, T x) const { return (x <= low) | (x >= high) ? T(0) : grad; }
};
template <typename T>
CANDELABRA_FORMULA T relu6(T x) {
  T raised = x < T(0) ? T(0) : x;
  return raised > T(6) ? T(6) : raised;
}
struct HardSwish {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return x * relu6(x + T(3)) / T(6);
  }
};
struct HardSwishBackward {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T grad, T x) const {
    T result = x < T(3) ? grad * (x / T(3) + T(0.5)) : grad;
    return x <= T(-3) ? T(0) : result;
  }
};
struct HardSigmoid {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return relu6(x + T(3)) / T(6);
  }
};
struct HardSigmoidBackward {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T grad, T x) const {
    return (x > T(-3)) & (x < T(3)) ? grad / T(6) : T(0);
  }
};
template <typename T>
struct HardShrink {
  T limit;
  CANDELABRA_FORMULA T operator()(T x) const { return math::abs(x) <= limit ? T(0) : x; }
};
template <typename T>
struct SoftShrink {  // NaN propagates
  T limit;
  CANDELABRA_FORMULA T operator()(T x) const {
    T inside = x < -limit ? x + limit : x * T(0);
    return x > limit ? x - limit : inside;
  }
};
template <typename T>
struct ShrinkBackward {
  T limit;
  CANDELABRA_FORMULA T operator()(T grad, T x) const { return math::abs(x) <= limit ? T(0) : grad; }
};
template <typename T>
struct Threshold {
  T threshold, value;
  CANDELABRA_FORMULA T operator()(T x) const { return x <= threshold ? value : x; }
};
template <typename T>
struct EluBackward {
  static constexpr bool on_vectors = true;
  T negative, positive, input;
  template <typename V>
  CANDELABRA_FORMULA V operator()(V grad, V x) const {
    return grad * select(V(T(0)) < x, V(positive), negative * math::exp(x * input));
  }
};
template <typename T>
struct SoftplusBackward {
  static constexpr bool on_vectors = true;
  T beta, threshold;
  template <typename V>
  CANDELABRA_FORMULA V operator()(V grad, V x) const {
    const V scaled = x * beta;
    return select(V(threshold) < scaled, grad, grad * math::sigmoid(scaled));
  }
};
struct LogSigmoidBackward {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T grad, T x) const {
    return grad * math::sigmoid(-x);
  }
};
struct MishBackward {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T grad, T x) const {
    return grad * math::mish_derivative(x);
  }
};
template <typename T>
struct ThresholdBackward {
  T threshold;
  CANDELABRA_FORMULA T operator()(T grad, T x) const { return x <= threshold ? T(0) : grad; }
};

// From the result y of the function.
struct SigmoidBackward {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T grad, T y) const {
    if constexpr (kernel::is_complex_v<T>)
      return grad * conj((T(1) - y) * y);
    else
      return grad * (T(1) - y) * y;
  }
};
struct TanhBackward {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T grad, T y) const {
    if constexpr (kernel::is_complex_v<T>)
      return grad * conj(T(1) - y * y);
    else
      return grad * (T(1) - y * y);
  }
};

}  // namespace candelabra::formulas

#endif  // CANDELABRA_FORMULAS_ACTIVATION_HPP
