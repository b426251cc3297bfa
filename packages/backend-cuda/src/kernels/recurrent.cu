// lstm_sequence and lstm_sequence_backward: a product by cuBLASLt and one kernel for all that is elementwise, at each step. cuDNN's
// recurrent layers do not fit: they make the share of the inputs in the gates themselves, and keep the gates to themselves.
#include <algorithm>

#include "candelabra/math.hpp"
#include "cublas.hpp"
#include "elementwise.cuh"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;
constexpr cb_scalar one{CB_SCALAR_INT, 0, 1, 1.0, 0.0}, zero{CB_SCALAR_INT, 0, 0, 0.0, 0.0};

// What all steps of a call have in common.
struct Sizes {
  int64_t steps, batch, hidden;
  bool reverse;

  int64_t gates() const { return 4 * hidden; }
  int64_t states() const { return batch * hidden; }
  // The first element of a step in a tensor (T, N, width).
  int64_t at(int64_t step, int64_t width) const { return (reverse ? steps - 1 - step : step) * batch * width; }
  bool empty() const { return steps == 0 || batch == 0 || hidden == 0; }
};

void product(const Call& call, const Gemm& gemm, bool add) {
  if (!multiply(call, gemm, one, add ? one : zero))
    throw failure(CB_RUNTIME_ERROR, "%s: cuBLASLt has no algorithm for matrices of %lld x %lld by %lld", call.raw()->operator_name,
                  static_cast<long long>(gemm.rows), static_cast<long long>(gemm.inner), static_cast<long long>(gemm.columns));
}

// `active` holds the gates before sigmoid and tanh, and what they become. The cell state is kept in the type computed in.
template <typename T>
struct Step {
  T *active, *output, *cells;
  const T* first_cell;  // the state before the first step; null later
  compute_t<T>* state;
  int64_t count, hidden;
};

template <typename T>
__global__ void __launch_bounds__(threads) step_kernel(const __grid_constant__ Step<T> s) {
  using C = compute_t<T>;
  for (int64_t at = first_index(); at < s.count; at += index_step()) {
    const int64_t row = at / s.hidden;
    T* gates = s.active + row * 4 * s.hidden + (at - row * s.hidden);
    const C i = math::sigmoid(loaded<T>(gates[0])), f = math::sigmoid(loaded<T>(gates[s.hidden]));
    const C g = math::tanh(loaded<T>(gates[2 * s.hidden])), o = math::sigmoid(loaded<T>(gates[3 * s.hidden]));
    const C before = s.first_cell ? loaded<T>(s.first_cell[at]) : s.state[at];
    const C c = f * before + i * g;
    gates[0] = stored<T>(i);
    gates[s.hidden] = stored<T>(f);
    gates[2 * s.hidden] = stored<T>(g);
    gates[3 * s.hidden] = stored<T>(o);
    s.state[at] = c;
    s.cells[at] = stored<T>(c);
    s.output[at] = stored<T>(o * math::tanh(c));
  }
}

template <typename T>
void forward(const Call& call) {
  const cb_tensor& out = call.output(0);
  const Sizes size{out.sizes[0], out.sizes[1], out.sizes[2], call.boolean(4)};
  if (size.empty()) return;
  const int64_t hidden = size.hidden, width = size.gates();
  T *output = mutable_data<T>(out), *cells = mutable_data<T>(call.output(1)), *active = mutable_data<T>(call.output(2));
  const T *h0 = data<T>(call.tensor(1)), *weight = data<T>(call.tensor(3));
  copy_bytes(call, active, call.tensor(0).data, static_cast<size_t>(size.steps * size.batch * width) * sizeof(T));
  const Workspace state(call, static_cast<size_t>(size.states()) * sizeof(compute_t<T>));
  for (int64_t step = 0; step < size.steps; ++step) {
    const int64_t at = size.at(step, hidden);
    // active += h @ weight^T; the library thinks in columns.
    Gemm gemm{};
    gemm.dtype = out.dtype;
    gemm.rows = width, gemm.columns = size.batch, gemm.inner = hidden, gemm.batches = 1;
    gemm.a = {weight, hidden, 0, true};
    gemm.b = {step == 0 ? h0 : output + size.at(step - 1, hidden), hidden, 0, false};
    gemm.result = active + size.at(step, width);
    gemm.result_leading = width;
    product(call, gemm, true);
    const Step<T> s{active + size.at(step, width), output + at,   cells + at, step == 0 ? data<T>(call.tensor(2)) : nullptr,
                    state.as<compute_t<T>>(),      size.states(), hidden};
    launch(call, step_kernel<T>, grid_for(call, s.count, threads), threads, 0, s);
  }
}

// What comes to a step from later ones: `of_output` without the share of the step itself, and `of_cell`; null at the last step.
template <typename T>
struct StepBack {
  const T *active, *cells, *cells_before;
  const T *grad_output, *grad_cells, *grad_active;  // null where there is none
  const T* of_output;
  compute_t<T>* of_cell;
  bool last;
  T* grad_gates;
  T* grad_first_cell;  // written at the first step
  int64_t count, hidden;
};

template <typename T>
__global__ void __launch_bounds__(threads) step_back_kernel(const __grid_constant__ StepBack<T> s) {
  using C = compute_t<T>;
  for (int64_t at = first_index(); at < s.count; at += index_step()) {
    const int64_t row = at / s.hidden, gate = row * 4 * s.hidden + (at - row * s.hidden);
    const C i = loaded<T>(s.active[gate]), f = loaded<T>(s.active[gate + s.hidden]);
    const C g = loaded<T>(s.active[gate + 2 * s.hidden]), o = loaded<T>(s.active[gate + 3 * s.hidden]);
    C more[4] = {};
    if (s.grad_active)
      for (int k = 0; k < 4; ++k) more[k] = loaded<T>(s.grad_active[gate + k * s.hidden]);
    C dh = s.of_output ? loaded<T>(s.of_output[at]) : C(0), dc = s.last ? C(0) : s.of_cell[at];
    if (s.grad_output) dh += loaded<T>(s.grad_output[at]);
    if (s.grad_cells) dc += loaded<T>(s.grad_cells[at]);
    const C t = math::tanh(loaded<T>(s.cells[at]));
    dc += dh * o * (C(1) - t * t);
    s.grad_gates[gate] = stored<T>((dc * g + more[0]) * i * (C(1) - i));
    s.grad_gates[gate + s.hidden] = stored<T>((dc * loaded<T>(s.cells_before[at]) + more[1]) * f * (C(1) - f));
    s.grad_gates[gate + 2 * s.hidden] = stored<T>((dc * i + more[2]) * (C(1) - g * g));
    s.grad_gates[gate + 3 * s.hidden] = stored<T>((dh * t + more[3]) * o * (C(1) - o));
    s.of_cell[at] = dc * f;
    if (s.grad_first_cell) s.grad_first_cell[at] = stored<T>(dc * f);
  }
}

template <typename T>
void backward(const Call& call) {
  const cb_tensor& out = call.tensor(6);
  const Sizes size{out.sizes[0], out.sizes[1], out.sizes[2], call.boolean(9)};
  const int64_t hidden = size.hidden, width = size.gates();
  if (size.empty()) {
    // No step: the first states are not used.
    for (int i : {1, 2, 3}) fill_bytes(call, call.output(i).data, 0, static_cast<size_t>(call.output(i).numel) * sizeof(T));
    return;
  }
  const auto optional = [&](int i) { return call.given(i) ? data<T>(call.tensor(i)) : nullptr; };
  const T *of_output = optional(0), *of_cells = optional(1), *of_active = optional(2);
  const T *h0 = data<T>(call.tensor(3)), *c0 = data<T>(call.tensor(4)), *weight = data<T>(call.tensor(5));
  const T *output = data<T>(out), *cells = data<T>(call.tensor(7)), *active = data<T>(call.tensor(8));
  T *grad_gates = mutable_data<T>(call.output(0)), *grad_h0 = mutable_data<T>(call.output(1)),
    *grad_c0 = mutable_data<T>(call.output(2)), *grad_weight = mutable_data<T>(call.output(3));
  const Workspace to_output(call, static_cast<size_t>(size.states()) * sizeof(T)),
      to_cell(call, static_cast<size_t>(size.states()) * sizeof(compute_t<T>));
  const auto shifted = [](const T* from, int64_t by) { return from ? from + by : nullptr; };
  for (int64_t step = size.steps - 1; step >= 0; --step) {
    const int64_t at = size.at(step, hidden), gate = size.at(step, width);
    const bool last = step == size.steps - 1;
    const StepBack<T> s{active + gate,
                        cells + at,
                        step ? cells + size.at(step - 1, hidden) : c0,
                        shifted(of_output, at),
                        shifted(of_cells, at),
                        shifted(of_active, gate),
                        last ? nullptr : to_output.as<T>(),
                        to_cell.as<compute_t<T>>(),
                        last,
                        grad_gates + gate,
                        step == 0 ? grad_c0 : nullptr,
                        size.states(),
                        hidden};
    launch(call, step_back_kernel<T>, grid_for(call, s.count, threads), threads, 0, s);
    // The gradient of the state before: that of the gates @ weight.
    Gemm gemm{};
    gemm.dtype = out.dtype;
    gemm.rows = hidden, gemm.columns = size.batch, gemm.inner = width, gemm.batches = 1;
    gemm.a = {weight, hidden, 0, false};
    gemm.b = {grad_gates + gate, width, 0, false};
    gemm.result = step == 0 ? grad_h0 : to_output.as<T>();
    gemm.result_leading = hidden;
    product(call, gemm, false);
  }
  // The weight's gradient is a product over all steps at once; the state before the first step is not among the outputs.
  const int64_t later = (size.steps - 1) * size.batch;
  Gemm gemm{};
  gemm.dtype = out.dtype;
  gemm.rows = hidden, gemm.columns = width, gemm.inner = size.batch, gemm.batches = 1;
  gemm.a = {h0, hidden, 0, false};
  gemm.b = {grad_gates + size.at(0, width), width, 0, true};
  gemm.result = grad_weight;
  gemm.result_leading = hidden;
  product(call, gemm, false);
  if (later == 0) return;
  gemm.inner = later;
  gemm.a.data = output + (size.reverse ? size.states() : 0);
  gemm.b.data = grad_gates + (size.reverse ? 0 : size.batch * width);
  product(call, gemm, true);
}

void lstm_sequence(Call& call) {
  dispatch<FloatTypes>(call.tensor(0).dtype, [&]<typename T>() { forward<T>(call); });
}
void lstm_sequence_backward(Call& call) {
  dispatch<FloatTypes>(call.tensor(6).dtype, [&]<typename T>() { backward<T>(call); });
}

}  // namespace

void register_recurrent(KernelTable& table) {
  table.add<lstm_sequence>("lstm_sequence");
  table.add<lstm_sequence_backward>("lstm_sequence_backward");
}

}  // namespace candelabra::cuda
