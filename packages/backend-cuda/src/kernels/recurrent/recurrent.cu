// Recurrent layers over whole sequences, padded or packed, of every cell: lstm_sequence and
// recurrent_sequence with their gradients. Each time step is a product by cuBLASLt and one
// elementwise kernel. cuDNN runs stacks of layers (recurrent_stack); where it does not support
// them, they are composed of the operators here.
//
// Row n of a step belongs to sequence n. Packed sequences come longest first, so that the rows of a
// step are the first rows of any step with more rows. The first `known` rows of a step continue the
// previous step; the others start with h0 and c0.
#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "candelabra/arguments/recurrent.hpp"
#include "candelabra/formulas/recurrent.hpp"
#include "drivers/elementwise.cuh"
#include "vendor/cublas/cublas.hpp"
#include "vendor/cudnn/cudnn_recurrent.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;
constexpr cb_scalar one{CB_SCALAR_INT, 0, 1, 1.0, 0.0, 0}, zero{CB_SCALAR_INT, 0, 0, 0.0, 0.0, 0};

enum class Cell { lstm, gru, tanh, relu };

Cell cell_named(std::string_view name) {
  return name == "lstm" ? Cell::lstm : name == "gru" ? Cell::gru : name == "rnn_tanh" ? Cell::tanh : Cell::relu;
}

// The rows of each step, in the order of iteration.
class Sequence {
 public:
  struct Step {
    int64_t start, rows, known;
  };

  Sequence(const cb_tensor& over_time, const cb_tensor& h0, std::span<const int64_t> batch_sizes, bool reverse,
           Cell cell)
      : batch(h0.sizes[0]),
        hidden(h0.sizes[1]),
        gates((cell == Cell::lstm  ? 4
               : cell == Cell::gru ? 3
                                   : 1) *
              hidden) {
    const auto times = batch_sizes.empty() ? over_time.sizes[0] : static_cast<int64_t>(batch_sizes.size());
    steps.reserve(static_cast<size_t>(times));
    for (int64_t time = 0; time < times; ++time) {
      const int64_t size = batch_sizes.empty() ? batch : batch_sizes[static_cast<size_t>(time)];
      steps.push_back({rows, size, 0});
      rows += size;
    }
    if (reverse) std::reverse(steps.begin(), steps.end());
    for (size_t i = 1; i < steps.size(); ++i) steps[i].known = std::min(steps[i].rows, steps[i - 1].rows);
  }

  bool empty() const { return rows == 0 || hidden == 0; }
  int64_t states() const { return batch * hidden; }

  int64_t batch, hidden, gates, rows = 0;
  std::vector<Step> steps;
};

// result = op(a) @ op(b) (+ result) of column-major matrices; op transposes where asked to.
template <typename T>
struct Product {
  int64_t rows, columns, inner;
  const T* a;
  int64_t a_leading;
  bool a_transposed;
  const T* b;
  int64_t b_leading;
  bool b_transposed;
  T* result;
};

template <typename T>
void multiply_into(const Call& call, const Product<T>& p, bool add) {
  if (p.columns == 0) return;
  Gemm gemm{};
  gemm.dtype = call.output(0).dtype;
  gemm.rows = p.rows, gemm.columns = p.columns, gemm.inner = p.inner, gemm.batches = 1;
  gemm.a = {p.a, p.a_leading, 0, p.a_transposed};
  gemm.b = {p.b, p.b_leading, 0, p.b_transposed};
  gemm.result = p.result;
  gemm.result_leading = p.rows;
  if (!multiply(call, gemm, one, add ? one : zero))
    throw failure(CB_RUNTIME_ERROR, "%s: cuBLASLt has no algorithm for matrices of %lld x %lld by %lld",
                  call.raw()->operator_name, static_cast<long long>(gemm.rows), static_cast<long long>(gemm.inner),
                  static_cast<long long>(gemm.columns));
}

// One step. LSTM: `active` holds the gates before the activations and gets those after. GRU: the
// gates are `input_gates` and `sums`; `active` gets the values for the gradient. Other cells:
// `output` holds the gates. The cell state is kept in compute_t.
template <typename T>
struct Step {
  Cell cell;
  T *active, *output, *cells;
  const T *input_gates, *sums, *bias;
  const T *before, *first;  // the previous state: h of a GRU; `first` is h0, for an LSTM c0
  compute_t<T>* state;
  int64_t known, count, hidden;  // elements of the state
};

template <typename T>
__global__ void __launch_bounds__(threads) step_kernel(const __grid_constant__ Step<T> s) {
  using C = compute_t<T>;
  const int64_t width = s.hidden;
  for (int64_t at = first_index(); at < s.count; at += index_step()) {
    const int64_t row = at / width, unit = at - row * width;
    if (s.cell == Cell::lstm) {
      T* gates = s.active + row * 4 * width + unit;
      formulas::LstmGates<C> x{loaded<T>(gates[0]), loaded<T>(gates[width]), loaded<T>(gates[2 * width]),
                               loaded<T>(gates[3 * width])};
      C c = at < s.known ? s.state[at] : loaded<T>(s.first[at]);
      const C h = formulas::lstm_step(x, c);
      gates[0] = stored<T>(x.i);
      gates[width] = stored<T>(x.f);
      gates[2 * width] = stored<T>(x.g);
      gates[3 * width] = stored<T>(x.o);
      s.state[at] = c;
      s.cells[at] = stored<T>(c);
      s.output[at] = stored<T>(h);
    } else if (s.cell == Cell::gru) {
      const T *input_gates = s.input_gates + row * 3 * width + unit, *sums = s.sums + row * 3 * width + unit;
      C own[3];
      for (int k = 0; k < 3; ++k)
        own[k] = loaded<T>(sums[k * width]) + (s.bias ? loaded<T>(s.bias[k * width + unit]) : C(0));
      formulas::GruGates<C> x{loaded<T>(input_gates[0]) + own[0], loaded<T>(input_gates[width]) + own[1],
                              loaded<T>(input_gates[2 * width]), own[2]};
      const C h = formulas::gru_step(x, loaded<T>(at < s.known ? s.before[at] : s.first[at]));
      T* kept = s.active + row * 4 * width + unit;
      kept[0] = stored<T>(x.r);
      kept[width] = stored<T>(x.z);
      kept[2 * width] = stored<T>(x.n);
      kept[3 * width] = stored<T>(x.m);
      s.output[at] = stored<T>(h);
    } else {
      s.output[at] = stored<T>(formulas::elman_step(loaded<T>(s.output[at]), s.cell == Cell::relu));
    }
  }
}

// The tensors that both forward operators have; c0 and bias may be null.
struct ForwardTensors {
  const cb_tensor *gates, *h0, *c0, *weight, *bias;
};

template <typename T>
void forward(const Call& call, const ForwardTensors& in, const Sequence& sequence, Cell cell) {
  if (sequence.empty()) return;
  const bool lstm = cell == Cell::lstm, gru = cell == Cell::gru;
  const int64_t hidden = sequence.hidden, width = sequence.gates;
  const T *gates = data<T>(*in.gates), *h0 = data<T>(*in.h0), *weight = data<T>(*in.weight);
  T* output = mutable_data<T>(call.output(0));
  T* cells = lstm ? mutable_data<T>(call.output(1)) : nullptr;
  T* active = lstm || gru ? mutable_data<T>(call.output(2)) : nullptr;
  if (!gru) copy_bytes(call, lstm ? active : output, gates, static_cast<size_t>(sequence.rows * width) * sizeof(T));
  const Workspace scratch(call, lstm  ? static_cast<size_t>(sequence.states()) * sizeof(compute_t<T>)
                                : gru ? static_cast<size_t>(sequence.batch * width) * sizeof(T)
                                      : 1);
  const T* before = nullptr;
  for (const auto& [start, rows, known] : sequence.steps) {
    T* sums = lstm ? active + start * width : gru ? scratch.as<T>() : output + start * width;
    const auto product = [&](const T* states, int64_t first, int64_t count) {
      multiply_into<T>(
          call,
          {width, count, hidden, weight, hidden, true, states + first * hidden, hidden, false, sums + first * width},
          !gru);
    };
    if (known) product(before, 0, known);
    product(h0, known, rows - known);
    const Step<T> s{cell,
                    active ? active + start * 4 * hidden : nullptr,
                    output + start * hidden,
                    lstm ? cells + start * hidden : nullptr,
                    gru ? gates + start * width : nullptr,
                    sums,
                    in.bias ? data<T>(*in.bias) : nullptr,
                    before,
                    lstm ? data<T>(*in.c0) : h0,
                    lstm ? scratch.as<compute_t<T>>() : nullptr,
                    known * hidden,
                    rows * hidden,
                    hidden};
    launch(call, step_kernel<T>, grid_for(call, s.count, threads), threads, 0, s);
    before = output + start * hidden;
  }
}

// One step of the gradient. `grad_h` holds the gradient of h from later steps. For a GRU it gets
// the part of the previous h's gradient that is not a product.
template <typename T>
struct StepBack {
  Cell cell;
  const T *active, *output, *cells;
  const T *cells_before, *h_before;  // of the `known` elements; the others start with c0 and h0
  const T *c0, *h0;
  const T *grad_output, *grad_cells, *grad_active;  // null: no gradient
  T *grad_h, *grad_gates, *grad_sums, *grad_first_cell;
  T* states_before;  // gets the previous states, for the gradient of the weight
  compute_t<T>* grad_c;
  int64_t known, count, hidden;
};

template <typename T>
__global__ void __launch_bounds__(threads) step_back_kernel(const __grid_constant__ StepBack<T> s) {
  using C = compute_t<T>;
  const int64_t width = s.hidden;
  for (int64_t at = first_index(); at < s.count; at += index_step()) {
    const int64_t row = at / width, unit = at - row * width, kept = row * 4 * width + unit;
    const T h = at < s.known ? s.h_before[at] : s.h0[at];
    s.states_before[at] = h;
    C dh = loaded<T>(s.grad_h[at]);
    if (s.grad_output) dh += loaded<T>(s.grad_output[at]);
    if (s.cell == Cell::tanh || s.cell == Cell::relu) {
      s.grad_gates[at] = stored<T>(formulas::elman_step_backward(loaded<T>(s.output[at]), dh, s.cell == Cell::relu));
      continue;
    }
    C of[4], more[4] = {};
    for (int k = 0; k < 4; ++k) {
      of[k] = loaded<T>(s.active[kept + k * width]);
      if (s.grad_active) more[k] = loaded<T>(s.grad_active[kept + k * width]);
    }
    if (s.cell == Cell::gru) {
      const formulas::GruGates<C> d = formulas::gru_step_backward<C>(
          {of[0], of[1], of[2], of[3]}, {more[0], more[1], more[2], more[3]}, loaded<T>(h), dh);
      const int64_t gate = row * 3 * width + unit;
      s.grad_gates[gate] = s.grad_sums[gate] = stored<T>(d.r);
      s.grad_gates[gate + width] = s.grad_sums[gate + width] = stored<T>(d.z);
      s.grad_gates[gate + 2 * width] = stored<T>(d.n);
      s.grad_sums[gate + 2 * width] = stored<T>(d.m);
      s.grad_h[at] = stored<T>(dh);
      continue;
    }
    const C c_before = loaded<T>(at < s.known ? s.cells_before[at] : s.c0[at]);
    C dc = s.grad_c[at];
    if (s.grad_cells) dc += loaded<T>(s.grad_cells[at]);
    const formulas::LstmGates<C> d = formulas::lstm_step_backward<C>(
        {of[0], of[1], of[2], of[3]}, {more[0], more[1], more[2], more[3]}, c_before, loaded<T>(s.cells[at]), dh, dc);
    s.grad_gates[kept] = stored<T>(d.i);
    s.grad_gates[kept + width] = stored<T>(d.f);
    s.grad_gates[kept + 2 * width] = stored<T>(d.g);
    s.grad_gates[kept + 3 * width] = stored<T>(d.o);
    s.grad_c[at] = dc;
    if (at >= s.known) s.grad_first_cell[at] = stored<T>(dc);
  }
}

// Sums columns. One block sums `tile` columns; each of its warps takes every `tile`-th row.
constexpr int tile = 32;
template <typename T>
__global__ void __launch_bounds__(tile* tile) column_sums(const T* from, int64_t rows, int64_t columns, T* out) {
  using C = compute_t<T>;
  __shared__ C parts[tile][tile + 1];
  const int lane = static_cast<int>(threadIdx.x) % tile, rank = static_cast<int>(threadIdx.x) / tile;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * tile + lane;
  C sum = 0;
  if (column < columns)
    for (int64_t row = rank; row < rows; row += tile) sum += loaded<T>(from[row * columns + column]);
  parts[rank][lane] = sum;
  __syncthreads();
  if (rank != 0 || column >= columns) return;
  for (int k = 1; k < tile; ++k) sum += parts[k][lane];
  out[column] = stored<T>(sum);
}

// The tensors that both gradients have; the gradients and c0 may be null.
struct BackwardTensors {
  const cb_tensor *grad_output, *grad_cells, *grad_activations, *h0, *c0, *weight, *output, *cells, *activations;
};
template <typename Arguments>
BackwardTensors backward_tensors(const Arguments& args) {
  return {args.grad_output, args.grad_cells, args.grad_activations, args.h0, args.c0, args.weight,
          args.output,      args.cells,      args.activations};
}

template <typename T>
void backward(const Call& call, const BackwardTensors& in, const Sequence& sequence, Cell cell) {
  const int64_t hidden = sequence.hidden, width = sequence.gates;
  const bool lstm = cell == Cell::lstm, gru = cell == Cell::gru;
  // A state that no step uses has gradient zero.
  fill_bytes(call, call.output(1).data, 0, static_cast<size_t>(call.output(1).numel) * sizeof(T));
  if (sequence.empty()) {
    for (int i : {2, 3})
      fill_bytes(call, call.output(i).data, 0, static_cast<size_t>(call.output(i).numel) * sizeof(T));
    return;
  }
  const auto data_if = [](bool used, const cb_tensor* tensor) { return used && tensor ? data<T>(*tensor) : nullptr; };
  const T *grad_output = data_if(true, in.grad_output), *grad_cells = data_if(lstm, in.grad_cells),
          *grad_active = data_if(lstm || gru, in.grad_activations);
  const T *h0 = data<T>(*in.h0), *c0 = data_if(lstm, in.c0), *weight = data<T>(*in.weight);
  const T *output = data<T>(*in.output), *cells = data_if(lstm, in.cells),
          *active = data_if(lstm || gru, in.activations);
  T *grad_gates = mutable_data<T>(call.output(0)), *grad_h0 = mutable_data<T>(call.output(1)),
    *grad_weight = mutable_data<T>(call.output(3));
  const auto memory = [&](int64_t count, size_t size) {
    return Workspace(call, static_cast<size_t>(std::max<int64_t>(count, 1)) * size);
  };
  const Workspace previous_states = memory(sequence.rows * hidden, sizeof(T)),
                  grad_c_memory = memory(lstm ? sequence.states() : 0, sizeof(compute_t<T>)),
                  own_sums = memory(gru ? sequence.rows * width : 0, sizeof(T));
  if (lstm) fill_bytes(call, grad_c_memory.data(), 0, static_cast<size_t>(sequence.states()) * sizeof(compute_t<T>));
  T* grad_sums = gru ? own_sums.as<T>() : grad_gates;
  const auto shifted = [](auto* from, int64_t by) { return from ? from + by : nullptr; };
  for (size_t i = sequence.steps.size(); i-- > 0;) {
    const auto [start, rows, known] = sequence.steps[i];
    const int64_t at = start * hidden, earlier = i ? sequence.steps[i - 1].start * hidden : 0;
    const StepBack<T> s{cell,
                        shifted(active, 4 * at),
                        output + at,
                        shifted(cells, at),
                        shifted(cells, earlier),
                        output + earlier,
                        c0,
                        h0,
                        shifted(grad_output, at),
                        shifted(grad_cells, at),
                        shifted(grad_active, 4 * at),
                        grad_h0,
                        grad_gates + start * width,
                        grad_sums + start * width,
                        lstm ? mutable_data<T>(call.output(2)) : nullptr,
                        previous_states.as<T>() + at,
                        grad_c_memory.as<compute_t<T>>(),
                        known * hidden,
                        rows * hidden,
                        hidden};
    launch(call, step_back_kernel<T>, grid_for(call, s.count, threads), threads, 0, s);
    // The gradient of the previous state: grad_gates @ weight.
    multiply_into<T>(
        call, {hidden, rows, width, weight, hidden, false, grad_sums + start * width, width, false, grad_h0}, gru);
  }
  // The gradient of the weight is one product over all steps.
  multiply_into<T>(
      call, {hidden, width, sequence.rows, previous_states.as<T>(), hidden, false, grad_sums, width, true, grad_weight},
      false);
  if (gru)
    launch(call, column_sums<T>, static_cast<unsigned>(divide_up(width, tile)), tile * tile, 0,
           static_cast<const T*>(grad_sums), sequence.rows, width, mutable_data<T>(call.output(2)));
}

void lstm_sequence(Call& call) {
  const arguments::LstmSequence args(call);
  const ForwardTensors in{args.gates, args.h0, args.c0, args.weight, nullptr};
  const Sequence sequence(*args.gates, *args.h0, {}, args.reverse, Cell::lstm);
  dispatch<FloatTypes>(args.gates->dtype, [&]<typename T>() { forward<T>(call, in, sequence, Cell::lstm); });
}
void lstm_sequence_backward(Call& call) {
  const arguments::LstmSequenceBackward args(call);
  const Sequence sequence(*args.output, *args.h0, {}, args.reverse, Cell::lstm);
  dispatch<FloatTypes>(args.output->dtype,
                       [&]<typename T>() { backward<T>(call, backward_tensors(args), sequence, Cell::lstm); });
}

void recurrent_sequence(Call& call) {
  const arguments::RecurrentSequence args(call);
  const Cell cell = cell_named(args.cell);
  const ForwardTensors in{args.gates, args.h0, args.c0, args.weight, args.bias};
  const Sequence sequence(*args.gates, *args.h0, args.batch_sizes, args.reverse, cell);
  dispatch<FloatTypes>(args.gates->dtype, [&]<typename T>() { forward<T>(call, in, sequence, cell); });
}
void recurrent_sequence_backward(Call& call) {
  const arguments::RecurrentSequenceBackward args(call);
  const Cell cell = cell_named(args.cell);
  const Sequence sequence(*args.output, *args.h0, args.batch_sizes, args.reverse, cell);
  dispatch<FloatTypes>(args.output->dtype,
                       [&]<typename T>() { backward<T>(call, backward_tensors(args), sequence, cell); });
}

void recurrent_stack(Call& call) {
  if (!cudnn_recurrent_forward(call, false)) throw not_implemented();
}
void recurrent_stack_kept(Call& call) {
  if (!cudnn_recurrent_forward(call, true)) throw not_implemented();
}
void recurrent_stack_backward(Call& call) {
  if (!cudnn_recurrent_backward(call)) throw not_implemented();
}

}  // namespace

void register_recurrent(KernelTable& table) {
  table.add<lstm_sequence>("lstm_sequence");
  table.add<lstm_sequence_backward>("lstm_sequence_backward");
  table.add<recurrent_sequence>("recurrent_sequence");
  table.add<recurrent_sequence_backward>("recurrent_sequence_backward");
  table.add<recurrent_stack>("recurrent_stack");
  table.add<recurrent_stack_kept>("recurrent_stack_kept");
  table.add<recurrent_stack_backward>("recurrent_stack_backward");
}

}  // namespace candelabra::cuda
