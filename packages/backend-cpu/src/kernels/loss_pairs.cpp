// Losses of single elements, and their gradients.
#include "../elementwise.hpp"
#include "../vec_math.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

struct SquaredError {
  template <typename T>
  T operator()(T x, T target) const {
    T difference = x - target;
    return difference * difference;
  }
};
struct SquaredErrorBackward {
  template <typename T>
  T operator()(T grad, T x, T target) const {
    return grad * (T(2) * (x - target));
  }
};
template <typename T>
[[gnu::always_inline]] inline T within(T x, T limit) {  // NaN stays
  T raised = x < -limit ? -limit : x;
  return raised > limit ? limit : raised;
}
template <typename T>
struct HuberError {
  T delta, scale;
  T operator()(T x, T target) const {
    T difference = x - target, near = within(difference, delta);
    return near * (difference - T(0.5) * near) * scale;
  }
};
template <typename T>
struct HuberErrorBackward {
  T delta, scale;
  T operator()(T grad, T x, T target) const { return grad * (within(x - target, delta) * scale); }
};
struct LogitsCrossEntropy {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T x, T target) const {
    return (T(1) - target) * x - math::log_sigmoid(x);
  }
};
struct LogitsCrossEntropyBackward {
  static constexpr bool on_vectors = true;
  template <typename T>
  T operator()(T grad, T x, T target) const {
    return grad * (math::sigmoid(x) - target);
  }
};
struct ProbabilityCrossEntropy {
  static constexpr bool on_vectors = true;
  template <typename T>
  math::Vec<T> operator()(math::Vec<T> p, math::Vec<T> target) const {
    const math::Vec<T> least = T(-100);
    return (target - T(1)) * greatest(least, math::log1p(-p)) - target * greatest(least, math::log(p));
  }
};
struct ProbabilityCrossEntropyBackward {
  template <typename T>
  T operator()(T grad, T p, T target) const {
    T variance = (T(1) - p) * p;
    return grad * (p - target) / (variance < T(1e-12) ? T(1e-12) : variance);
  }
};

template <typename Op, int64_t Work>
void ternary(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { map3<T>(call, Op{}, Work); });
}
void huber_error(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map2<T>(call, HuberError<C>{scalar_to<C>(call.scalar(2)), scalar_to<C>(call.scalar(3))}, light);
  });
}
void huber_error_backward(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map3<T>(call, HuberErrorBackward<C>{scalar_to<C>(call.scalar(3)), scalar_to<C>(call.scalar(4))}, light);
  });
}

}  // namespace

void register_loss_pairs(KernelTable& table) {
  table.add<binary<SquaredError, FloatTypes, light>>("squared_error");
  table.add<ternary<SquaredErrorBackward, light>>("squared_error_backward");
  table.add<huber_error>("huber_error");
  table.add<huber_error_backward>("huber_error_backward");
  table.add<binary<LogitsCrossEntropy, FloatTypes, moderate>>("logits_cross_entropy");
  table.add<ternary<LogitsCrossEntropyBackward, moderate>>("logits_cross_entropy_backward");
  table.add<binary<ProbabilityCrossEntropy, FloatTypes, moderate>>("probability_cross_entropy");
  table.add<ternary<ProbabilityCrossEntropyBackward, light>>("probability_cross_entropy_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
