// Elementwise losses and their gradients as function objects, shared by the kernels of all
// backends. A functor with `on_vectors` also accepts a backend's SIMD vector type that provides the
// same functions.
#ifndef CANDELABRA_FORMULAS_LOSS_HPP
#define CANDELABRA_FORMULAS_LOSS_HPP

#include "candelabra/math.hpp"

namespace candelabra::formulas {

using math::max;

template <typename T>
CANDELABRA_FORMULA T within(T x, T limit) {  // NaN propagates
  const T raised = x < -limit ? -limit : x;
  return raised > limit ? limit : raised;
}

struct SquaredError {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x, T target) const {
    const T difference = x - target;
    return difference * difference;
  }
};
struct SquaredErrorBackward {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T grad, T x, T target) const {
    return grad * (T(2) * (x - target));
  }
};
template <typename T>
struct HuberError {
  T delta, scale;
  CANDELABRA_FORMULA T operator()(T x, T target) const {
    const T difference = x - target, near = within(difference, delta);
    return near * (difference - T(0.5) * near) * scale;
  }
};
template <typename T>
struct HuberErrorBackward {
  T delta, scale;
  CANDELABRA_FORMULA T operator()(T grad, T x, T target) const { return grad * (within(x - target, delta) * scale); }
};
struct LogitsCrossEntropy {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x, T target) const {
    return (T(1) - target) * x - math::log_sigmoid(x);
  }
};
struct LogitsCrossEntropyBackward {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T grad, T x, T target) const {
    return grad * (math::sigmoid(x) - target);
  }
};
// Logarithms are clamped to at least -100, as in PyTorch.
struct ProbabilityCrossEntropy {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T p, T target) const {
    const T lowest = T(-100);
    return (target - T(1)) * max(lowest, math::log1p(-p)) - target * max(lowest, math::log(p));
  }
};
struct ProbabilityCrossEntropyBackward {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T grad, T p, T target) const {
    const T variance = (T(1) - p) * p;
    return grad * (p - target) / (variance < T(1e-12) ? T(1e-12) : variance);
  }
};

}  // namespace candelabra::formulas

#endif  // CANDELABRA_FORMULAS_LOSS_HPP
