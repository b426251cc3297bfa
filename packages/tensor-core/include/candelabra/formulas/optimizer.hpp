// Optimizer steps on one element of a parameter, shared by the kernels of all backends. The
// formulas are those of torch/optim (the single-tensor forms).
//
// V is float, double or a backend's SIMD vector type, whose functions are overloads in
// candelabra::math, declared before this header. A step updates the values `a` of an element:
// parameter, gradient, then the states. Its numbers are computed once, in double.
#ifndef CANDELABRA_FORMULAS_OPTIMIZER_HPP
#define CANDELABRA_FORMULAS_OPTIMIZER_HPP

#include <cmath>
#include <type_traits>

#include "candelabra/arguments/optimizer.hpp"
#include "candelabra/math.hpp"

namespace candelabra::formulas {

using math::select;

// `value` in all lanes.
template <typename V>
CANDELABRA_FORMULA V filled(double value) {
  if constexpr (std::is_floating_point_v<V>)
    return static_cast<V>(value);
  else
    return V(static_cast<typename V::Element>(value));
}

// The maximum of each lane; NaN where either is NaN.
template <typename V>
CANDELABRA_FORMULA V maximum(V a, V b) {
  return select(a != a, a, math::max(a, b));
}

// The gradient to descend: negated for maximize, plus the weight decay. Without decay the parameter
// is not read into it, because 0 * infinity is NaN.
template <typename V>
struct DecayedGradient {
  V sign, decay;
  bool decays;

  CANDELABRA_FORMULA DecayedGradient(double weight_decay, bool maximize)
      : sign(filled<V>(maximize ? -1 : 1)), decay(filled<V>(weight_decay)), decays(weight_decay != 0) {}
  CANDELABRA_FORMULA V operator()(V gradient, V parameter) const {
    return decays ? math::fma(decay, parameter, sign * gradient) : sign * gradient;
  }
};

// The running averages of the gradient and of its square (exp_avg, exp_avg_sq), as Adam updates
// them.
template <typename V>
struct Averages {
  V weight1, keep2, weight2;

  CANDELABRA_FORMULA Averages(double beta1, double beta2)
      : weight1(filled<V>(1 - beta1)), keep2(filled<V>(beta2)), weight2(filled<V>(1 - beta2)) {}
  CANDELABRA_FORMULA void update(V gradient, V& mean, V& square) const {
    mean = math::fma(weight1, gradient - mean, mean);
    square = math::fma(keep2, square, weight2 * gradient * gradient);
  }
};

// ---- stochastic gradient descent

struct Sgd {
  template <typename V>
  struct Step {
    static constexpr int operands = 2;
    V rate;
    DecayedGradient<V> decayed;

    CANDELABRA_FORMULA explicit Step(const arguments::FusedSgd& args)
        : rate(filled<V>(args.lr)), decayed(args.weight_decay, args.maximize) {}
    template <typename Values>
    CANDELABRA_FORMULA void operator()(Values& a) const {
      a[0] = math::fnma(rate, decayed(a[1], a[0]), a[0]);
    }
  };
};

struct SgdWithMomentum {
  template <typename V>
  struct Step {
    static constexpr int operands = 3;
    V rate, keep, add;
    DecayedGradient<V> decayed;
    bool nesterov, first;

    CANDELABRA_FORMULA explicit Step(const arguments::FusedSgd& args)
        : rate(filled<V>(args.lr)),
          keep(filled<V>(args.momentum)),
          add(filled<V>(1 - args.dampening)),
          decayed(args.weight_decay, args.maximize),
          nesterov(args.nesterov),
          first(args.first) {}
    template <typename Values>
    CANDELABRA_FORMULA void operator()(Values& a) const {
      const V d = decayed(a[1], a[0]);
      const V buffer = first ? d : math::fma(keep, a[2], add * d);  // the first step must not read it
      a[2] = buffer;
      a[0] = math::fnma(rate, nesterov ? math::fma(keep, buffer, d) : buffer, a[0]);
    }
  };
};

// ---- Adam and AdamW

struct AdamNumbers {
  double rate, scale, epsilon, beta1, beta2, shrink, decay;
  bool maximize;

  explicit AdamNumbers(const arguments::FusedAdam& args)
      : rate(args.lr / (1 - std::pow(args.beta1, static_cast<double>(args.step)))),
        scale(1 / std::sqrt(1 - std::pow(args.beta2, static_cast<double>(args.step)))),
        epsilon(args.eps),
        beta1(args.beta1),
        beta2(args.beta2),
        shrink(args.decoupled ? 1 - args.lr * args.weight_decay : 1),
        decay(args.decoupled ? 0 : args.weight_decay),
        maximize(args.maximize) {}
};
// The states are the means and the mean squares, then the greatest mean squares if Amsgrad.
template <bool Amsgrad>
struct Adam {
  template <typename V>
  struct Step {
    static constexpr int operands = Amsgrad ? 5 : 4;
    V rate, scale, epsilon, shrink;
    Averages<V> averages;
    DecayedGradient<V> decayed;

    CANDELABRA_FORMULA explicit Step(const AdamNumbers& numbers)
        : rate(filled<V>(numbers.rate)),
          scale(filled<V>(numbers.scale)),
          epsilon(filled<V>(numbers.epsilon)),
          shrink(filled<V>(numbers.shrink)),
          averages(numbers.beta1, numbers.beta2),
          decayed(numbers.decay, numbers.maximize) {}
    template <typename Values>
    CANDELABRA_FORMULA void operator()(Values& a) const {
      const V d = decayed(a[1], a[0]);
      averages.update(d, a[2], a[3]);
      V mean = a[2], square = a[3];
      if constexpr (Amsgrad) square = a[4] = maximum(a[4], square);
      a[0] = a[0] * shrink - rate * mean / math::fma(scale, math::sqrt(square), epsilon);
    }
  };
};

// ---- RMSprop

// The states are the square averages, then the gradient averages if Centered, then the momentum
// buffers if HasMomentum.
template <bool Centered, bool HasMomentum>
struct Rmsprop {
  template <typename V>
  struct Step {
    static constexpr int operands = 3 + Centered + HasMomentum;
    V rate, keep, weight, epsilon, inertia;
    DecayedGradient<V> decayed;

    CANDELABRA_FORMULA explicit Step(const arguments::FusedRmsprop& args)
        : rate(filled<V>(args.lr)),
          keep(filled<V>(args.alpha)),
          weight(filled<V>(1 - args.alpha)),
          epsilon(filled<V>(args.eps)),
          inertia(filled<V>(args.momentum)),
          decayed(args.weight_decay, args.maximize) {}
    template <typename Values>
    CANDELABRA_FORMULA void operator()(Values& a) const {
      const V d = decayed(a[1], a[0]);
      V spread = a[2] = math::fma(keep, a[2], weight * d * d);
      if constexpr (Centered) {
        const V mean = a[3] = math::fma(weight, d - a[3], a[3]);
        spread = math::fnma(mean, mean, spread);
      }
      V change = d / (math::sqrt(spread) + epsilon);
      if constexpr (HasMomentum) change = a[operands - 1] = math::fma(inertia, a[operands - 1], change);
      a[0] = math::fnma(rate, change, a[0]);
    }
  };
};

// ---- Adagrad

struct Adagrad {
  template <typename V>
  struct Step {
    static constexpr int operands = 3;
    V rate, epsilon;
    DecayedGradient<V> decayed;

    CANDELABRA_FORMULA explicit Step(const arguments::FusedAdagrad& args)
        : rate(filled<V>(args.lr / (1 + (static_cast<double>(args.step) - 1) * args.lr_decay))),
          epsilon(filled<V>(args.eps)),
          decayed(args.weight_decay, args.maximize) {}
    template <typename Values>
    CANDELABRA_FORMULA void operator()(Values& a) const {
      const V d = decayed(a[1], a[0]);
      a[2] = math::fma(d, d, a[2]);
      a[0] = a[0] - rate * d / (math::sqrt(a[2]) + epsilon);
    }
  };
};

}  // namespace candelabra::formulas

#endif  // CANDELABRA_FORMULAS_OPTIMIZER_HPP
