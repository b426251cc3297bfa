// One step of the cells of recurrent layers and its gradient, shared by the kernels of all
// backends. V is float, double or a backend's SIMD vector type, whose functions are overloads in
// candelabra::math, declared before this header.
//
// A step takes the gates before their activations: the sums of the input part and the recurrent
// part. It leaves them after the activations, as the gradient needs them. Their own gradient
// `grad_kept` is added to what flows back to them.
#ifndef CANDELABRA_FORMULAS_RECURRENT_HPP
#define CANDELABRA_FORMULAS_RECURRENT_HPP

#include "candelabra/math.hpp"

namespace candelabra::math {

// The logistic function as a gate has it. A vector type may have a faster one of a few ulp.
template <typename T>
CANDELABRA_FORMULA T gate(T x) {
  return sigmoid(x);
}

}  // namespace candelabra::math

namespace candelabra::formulas {

using math::select;

// ---- LSTM (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000)

template <typename V>
struct LstmGates {
  V i, f, g, o;
};
// Applies the activations to the gates, and updates the cell state c. Returns the hidden state.
template <typename V>
CANDELABRA_FORMULA V lstm_step(LstmGates<V>& x, V& c) {
  x.i = math::gate(x.i);
  x.f = math::gate(x.f);
  x.g = math::tanh(x.g);
  x.o = math::gate(x.o);
  c = math::fma(x.f, c, x.i * x.g);
  return x.o * math::tanh(c);
}
// From the gates after the activations, the cell states before and after the step, and the
// gradients dh and dc of the states after it. Leaves in dc the gradient of the cell state before
// the step.
template <typename V>
CANDELABRA_FORMULA LstmGates<V> lstm_step_backward(const LstmGates<V>& x, const LstmGates<V>& grad_kept, V c_before,
                                                   V c, V dh, V& dc) {
  const V one(1), t = math::tanh(c);
  const V d = dc + dh * x.o * (one - t * t);
  dc = d * x.f;
  return {(d * x.g + grad_kept.i) * x.i * (one - x.i), (d * c_before + grad_kept.f) * x.f * (one - x.f),
          (d * x.i + grad_kept.g) * (one - x.g * x.g), (dh * t + grad_kept.o) * x.o * (one - x.o)};
}

// ---- GRU (Cho et al. 2014, with the reset gate after the product, as in cuDNN)

// m is the recurrent part of n.
template <typename V>
struct GruGates {
  V r, z, n, m;
};
// Enter with the input part of n. Returns the hidden state after the step.
template <typename V>
CANDELABRA_FORMULA V gru_step(GruGates<V>& x, V h) {
  x.r = math::gate(x.r);
  x.z = math::gate(x.z);
  x.n = math::tanh(math::fma(x.r, x.m, x.n));
  return math::fma(x.z, h - x.n, x.n);
}
// `dh` leaves with the gradient of the state before the step that does not pass through the gates.
template <typename V>
CANDELABRA_FORMULA GruGates<V> gru_step_backward(const GruGates<V>& x, const GruGates<V>& grad_kept, V h_before,
                                                 V& dh) {
  const V one(1);
  const V dn = (dh * (one - x.z) + grad_kept.n) * (one - x.n * x.n);
  const GruGates<V> d{(dn * x.m + grad_kept.r) * x.r * (one - x.r),
                      (dh * (h_before - x.n) + grad_kept.z) * x.z * (one - x.z), dn, dn * x.r + grad_kept.m};
  dh = dh * x.z;
  return d;
}

// ---- Elman 1990, with tanh or relu

template <typename V>
CANDELABRA_FORMULA V elman_step(V x, bool relu) {
  const V zero(0);
  return relu ? select(x <= zero, zero, x) : math::tanh(x);  // NaN propagates
}
// From the hidden state after the step.
template <typename V>
CANDELABRA_FORMULA V elman_step_backward(V h, V dh, bool relu) {
  const V zero(0), one(1);
  return relu ? select(h <= zero, zero, dh) : dh * (one - h * h);
}

}  // namespace candelabra::formulas

#endif  // CANDELABRA_FORMULAS_RECURRENT_HPP
