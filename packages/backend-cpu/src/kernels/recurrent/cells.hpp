// Cells of recurrent layers: gates, values saved for the gradient, and both formulas on registers.
// All code that runs over steps uses these.
//
// In a step, `given` is the input part of the gates and `sums` the recurrent part. Gates of a row
// are adjacent.
#pragma once

#include <cstdint>

#include "simd/vec_math.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace recurrent {

// The logistic function as 1 / (1 + e^-x), clipped to where that power is finite. It is accurate to
// two ulp, enough for a gate, and needs two thirds of the instructions of math::sigmoid.
template <typename C>
CANDELABRA_FORMULA math::Vec<C> gate(math::Vec<C> x) {
  constexpr C most = sizeof(C) == 4 ? C(87) : C(700);
  const math::Vec<C> power = math::parts::exp_unclipped(math::parts::clipped(math::Vec<C>(C(0)) - x, -most, most));
  return math::parts::inverse(power + math::Vec<C>(C(1)));
}

template <typename C, int gates>
struct StepForward {
  using V = math::Vec<C>;
  V sums[gates], given[gates];
  V bias[gates];  // of the recurrent part, if the cell has one
  V h, c;         // the states before the step, then those after it
  V kept[4];
};

// The gradient of a step. `dh` and `dc` enter with the gradient from later steps. They leave with
// the gradient to the earlier step that does not pass through the weight. `of_input` and `of_state`
// are the gradients of `given` and `sums`.
template <typename C, int gates>
struct StepBack {
  using V = math::Vec<C>;
  V kept[4], more[4];          // saved by the step, and further gradients of those
  V h_before, c_before, h, c;  // as far as the cell needs them
  V dh, dc;
  V of_input[gates], of_state[gates];
};

// Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000. Saves i, f, g, o.
struct Lstm {
  static constexpr int gates = 4, kept = 4;
  static constexpr bool has_cell = true, has_bias = false, sees_state_before = false, passes_state = false;

  template <typename C>
  CANDELABRA_FORMULA void forward(StepForward<C, gates>& s) const {
    const auto i = gate(s.sums[0] + s.given[0]), f = gate(s.sums[1] + s.given[1]),
               g = math::tanh(s.sums[2] + s.given[2]), o = gate(s.sums[3] + s.given[3]);
    s.c = math::fma(f, s.c, i * g);
    s.h = o * math::tanh(s.c);
    s.kept[0] = i;
    s.kept[1] = f;
    s.kept[2] = g;
    s.kept[3] = o;
  }
  template <typename C>
  CANDELABRA_FORMULA void backward(StepBack<C, gates>& s) const {
    using V = math::Vec<C>;
    const V one(C(1)), i = s.kept[0], f = s.kept[1], g = s.kept[2], o = s.kept[3], t = math::tanh(s.c);
    const V c = s.dc + s.dh * o * (one - t * t);
    s.of_input[0] = (c * g + s.more[0]) * i * (one - i);
    s.of_input[1] = (c * s.c_before + s.more[1]) * f * (one - f);
    s.of_input[2] = (c * i + s.more[2]) * (one - g * g);
    s.of_input[3] = (s.dh * t + s.more[3]) * o * (one - o);
    for (int gate = 0; gate < gates; ++gate) s.of_state[gate] = s.of_input[gate];
    s.dc = c * f;
  }
};

// Cho et al. 2014, with the reset gate after the product, as in cuDNN. Saves r, z, n and the
// recurrent part of n.
struct Gru {
  static constexpr int gates = 3, kept = 4;
  static constexpr bool has_cell = false, has_bias = true, sees_state_before = true, passes_state = true;

  template <typename C>
  CANDELABRA_FORMULA void forward(StepForward<C, gates>& s) const {
    const auto r = gate(s.sums[0] + s.bias[0] + s.given[0]), z = gate(s.sums[1] + s.bias[1] + s.given[1]),
               m = s.sums[2] + s.bias[2], n = math::tanh(math::fma(r, m, s.given[2]));
    s.h = math::fma(z, s.h - n, n);
    s.kept[0] = r;
    s.kept[1] = z;
    s.kept[2] = n;
    s.kept[3] = m;
  }
  template <typename C>
  CANDELABRA_FORMULA void backward(StepBack<C, gates>& s) const {
    using V = math::Vec<C>;
    const V one(C(1)), r = s.kept[0], z = s.kept[1], n = s.kept[2], m = s.kept[3];
    const V new_state = (s.dh * (one - z) + s.more[2]) * (one - n * n);
    s.of_input[0] = s.of_state[0] = (new_state * m + s.more[0]) * r * (one - r);
    s.of_input[1] = s.of_state[1] = (s.dh * (s.h_before - n) + s.more[1]) * z * (one - z);
    s.of_input[2] = new_state;
    s.of_state[2] = new_state * r + s.more[3];
    s.dh = s.dh * z;
  }
};

// Elman 1990. The gradient needs only the output.
struct Elman {
  static constexpr int gates = 1, kept = 0;
  static constexpr bool has_cell = false, has_bias = false, sees_state_before = false, passes_state = false;
  bool relu;

  template <typename C>
  CANDELABRA_FORMULA void forward(StepForward<C, gates>& s) const {
    using V = math::Vec<C>;
    const V x = s.sums[0] + s.given[0], zero(C(0));
    s.h = relu ? select(x <= zero, zero, x) : math::tanh(x);  // keeps NaN
  }
  template <typename C>
  CANDELABRA_FORMULA void backward(StepBack<C, gates>& s) const {
    using V = math::Vec<C>;
    const V zero(C(0));
    s.of_input[0] = s.of_state[0] = relu ? select(s.h <= zero, zero, s.dh) : s.dh * (V(C(1)) - s.h * s.h);
  }
};

}  // namespace recurrent
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
