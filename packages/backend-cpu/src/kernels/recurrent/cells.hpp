// Cells of recurrent layers on registers: gates, values saved for the gradient, and both formulas
// (candelabra/formulas/recurrent.hpp). All code that runs over steps uses these.
//
// In a step, `given` is the input part of the gates and `sums` the recurrent part. Gates of a row
// are adjacent.
#pragma once

#include <cstdint>

#include "simd/vec_math.hpp"

namespace candelabra::math {
inline namespace CANDELABRA_ISA_NAMESPACE {

// 1 / (1 + e^-x), clipped to where that power is finite. It is accurate to two ulp, enough for a
// gate, and needs two thirds of the instructions of sigmoid.
template <typename T>
CANDELABRA_FORMULA Vec<T> gate(Vec<T> x) {
  constexpr T most = sizeof(T) == 4 ? T(87) : T(700);
  const Vec<T> power = parts::exp_unclipped(parts::clipped(Vec<T>(T(0)) - x, -most, most));
  return parts::inverse(power + Vec<T>(T(1)));
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::math

// After the functions of vectors, which its formulas call.
#include "candelabra/formulas/recurrent.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace recurrent {

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

// Saves i, f, g, o.
struct Lstm {
  static constexpr int gates = 4, kept = 4;
  static constexpr bool has_cell = true, has_bias = false, sees_state_before = false, passes_state = false;

  template <typename C>
  CANDELABRA_FORMULA void forward(StepForward<C, gates>& s) const {
    formulas::LstmGates<math::Vec<C>> x{s.sums[0] + s.given[0], s.sums[1] + s.given[1], s.sums[2] + s.given[2],
                                        s.sums[3] + s.given[3]};
    s.h = formulas::lstm_step(x, s.c);
    s.kept[0] = x.i;
    s.kept[1] = x.f;
    s.kept[2] = x.g;
    s.kept[3] = x.o;
  }
  template <typename C>
  CANDELABRA_FORMULA void backward(StepBack<C, gates>& s) const {
    using X = formulas::LstmGates<math::Vec<C>>;
    const X x{s.kept[0], s.kept[1], s.kept[2], s.kept[3]}, more{s.more[0], s.more[1], s.more[2], s.more[3]};
    const X d = formulas::lstm_step_backward(x, more, s.c_before, s.c, s.dh, s.dc);
    s.of_input[0] = s.of_state[0] = d.i;
    s.of_input[1] = s.of_state[1] = d.f;
    s.of_input[2] = s.of_state[2] = d.g;
    s.of_input[3] = s.of_state[3] = d.o;
  }
};

// Saves r, z, n and the recurrent part of n.
struct Gru {
  static constexpr int gates = 3, kept = 4;
  static constexpr bool has_cell = false, has_bias = true, sees_state_before = true, passes_state = true;

  template <typename C>
  CANDELABRA_FORMULA void forward(StepForward<C, gates>& s) const {
    formulas::GruGates<math::Vec<C>> x{s.sums[0] + s.bias[0] + s.given[0], s.sums[1] + s.bias[1] + s.given[1],
                                       s.given[2], s.sums[2] + s.bias[2]};
    s.h = formulas::gru_step(x, s.h);
    s.kept[0] = x.r;
    s.kept[1] = x.z;
    s.kept[2] = x.n;
    s.kept[3] = x.m;
  }
  template <typename C>
  CANDELABRA_FORMULA void backward(StepBack<C, gates>& s) const {
    using X = formulas::GruGates<math::Vec<C>>;
    const X x{s.kept[0], s.kept[1], s.kept[2], s.kept[3]}, more{s.more[0], s.more[1], s.more[2], s.more[3]};
    const X d = formulas::gru_step_backward(x, more, s.h_before, s.dh);
    s.of_input[0] = s.of_state[0] = d.r;
    s.of_input[1] = s.of_state[1] = d.z;
    s.of_input[2] = d.n;
    s.of_state[2] = d.m;
  }
};

// The gradient needs only the output.
struct Elman {
  static constexpr int gates = 1, kept = 0;
  static constexpr bool has_cell = false, has_bias = false, sees_state_before = false, passes_state = false;
  bool relu;

  template <typename C>
  CANDELABRA_FORMULA void forward(StepForward<C, gates>& s) const {
    s.h = formulas::elman_step(s.sums[0] + s.given[0], relu);
  }
  template <typename C>
  CANDELABRA_FORMULA void backward(StepBack<C, gates>& s) const {
    s.of_input[0] = s.of_state[0] = formulas::elman_step_backward(s.h, s.dh, relu);
  }
};

}  // namespace recurrent
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
