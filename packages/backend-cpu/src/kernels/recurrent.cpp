// lstm_sequence and lstm_sequence_backward: all steps of a long short-term memory. Rows of the batch do not depend on each other,
// so blocks of them go through all steps by themselves, with one product a step, and no thread waits for another in between.
#include <algorithm>
#include <type_traits>

#include "../allocator.hpp"
#include "../dtypes.hpp"
#include "../kernels.hpp"
#include "../matmul/gemm.hpp"
#include "../parallel.hpp"
#include "candelabra/math.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// Rows of the batch that go through the steps together: enough for products at full speed, few enough for all threads.
constexpr int64_t block = 16;

template <typename T>
void load(const T* from, compute_t<T>* to, int64_t n) {
  if constexpr (is_half_v<T>)
    to_float(from, to, n);
  else
    std::copy_n(from, n, to);
}

template <typename T>
void store(const compute_t<T>* from, T* to, int64_t n) {
  if constexpr (is_half_v<T>)
    from_float(from, to, n);
  else
    std::copy_n(from, n, to);
}

// The whole of a contiguous tensor as numbers to compute with: its own memory, or a copy for half precisions.
template <typename T>
class Numbers {
 public:
  using C = compute_t<T>;
  Numbers(const T* from, int64_t count) : copy_(is_half_v<T> ? count : 0) {
    if constexpr (is_half_v<T>) {
      load(from, copy_.data(), count);
      data_ = copy_.data();
    } else {
      data_ = from;
    }
  }
  const C* data() const { return data_; }

 private:
  Scratch<C> copy_;
  const C* data_;
};

// What all steps of a call have in common.
struct Sizes {
  int64_t steps, batch, hidden;
  bool reverse;
  int64_t gates() const { return 4 * hidden; }
  int64_t time(int64_t step) const { return reverse ? steps - 1 - step : step; }
  // The first element of a row at a step, in a tensor (T, N, width).
  int64_t at(int64_t step, int64_t row, int64_t width) const { return (time(step) * batch + row) * width; }
  bool empty() const { return steps == 0 || batch == 0 || hidden == 0; }
};

template <typename T>
void forward(Call& call) {
  using C = compute_t<T>;
  const cb_tensor& out = call.output(0);
  const Sizes size{out.sizes[0], out.sizes[1], out.sizes[2], call.boolean(4)};
  if (size.empty()) return;
  const int64_t hidden = size.hidden, width = size.gates();
  const T *gates = data<T>(call.tensor(0)), *h0 = data<T>(call.tensor(1)), *c0 = data<T>(call.tensor(2));
  T *output = mutable_data<T>(out), *cells = mutable_data<T>(call.output(1)), *activations = mutable_data<T>(call.output(2));
  const Numbers<T> weight(data<T>(call.tensor(3)), width * hidden);
  const int64_t blocks = (size.batch + block - 1) / block;
  parallel_for(blocks, grain_for(size.steps * block * width * hidden / 8), [&](int64_t begin, int64_t end) {
    Scratch<C> states(block * hidden), cell(block * hidden), pre(block * width);
    for (int64_t first = begin * block; first < std::min(end * block, size.batch); first += block) {
      const int64_t rows = std::min(block, size.batch - first);
      load(h0 + first * hidden, states.data(), rows * hidden);
      load(c0 + first * hidden, cell.data(), rows * hidden);
      for (int64_t step = 0; step < size.steps; ++step) {
        load(gates + size.at(step, first, width), pre.data(), rows * width);
        gemm(Gemm<C>{false, true, rows, width, hidden, 1, states.data(), hidden, weight.data(), hidden, 1, pre.data(), width});
        for (int64_t row = 0; row < rows; ++row) {
          C *i = pre.data() + row * width, *f = i + hidden, *g = f + hidden, *o = g + hidden;
          C *h = states.data() + row * hidden, *c = cell.data() + row * hidden;
#pragma omp simd
          for (int64_t j = 0; j < hidden; ++j) {
            i[j] = math::sigmoid(i[j]);
            f[j] = math::sigmoid(f[j]);
            g[j] = math::tanh(g[j]);
            o[j] = math::sigmoid(o[j]);
            c[j] = f[j] * c[j] + i[j] * g[j];
            h[j] = o[j] * math::tanh(c[j]);
          }
        }
        store(states.data(), output + size.at(step, first, hidden), rows * hidden);
        store(cell.data(), cells + size.at(step, first, hidden), rows * hidden);
        store(pre.data(), activations + size.at(step, first, width), rows * width);
      }
    }
  });
}

// The gradient of one row at one step: of the gates before sigmoid and tanh into `d`, of the cell state before into `dc`, from that
// of the output state in `dh` and that of the cell state in `dc`.
template <typename C>
void step_back(int64_t hidden, const C* activations, const C* cell, const C* cell_before, const C* of_activations, const C* dh,
               C* dc, C* d) {
  const C *i = activations, *f = i + hidden, *g = f + hidden, *o = g + hidden;
  const C *ai = of_activations, *af = ai + hidden, *ag = af + hidden, *ao = ag + hidden;
  C *di = d, *df = di + hidden, *dg = df + hidden, *d_o = dg + hidden;
#pragma omp simd
  for (int64_t j = 0; j < hidden; ++j) {
    const C t = math::tanh(cell[j]);
    const C c = dc[j] + dh[j] * o[j] * (1 - t * t);
    di[j] = (c * g[j] + ai[j]) * i[j] * (1 - i[j]);
    df[j] = (c * cell_before[j] + af[j]) * f[j] * (1 - f[j]);
    dg[j] = (c * i[j] + ag[j]) * (1 - g[j] * g[j]);
    d_o[j] = (dh[j] * t + ao[j]) * o[j] * (1 - o[j]);
    dc[j] = c * f[j];
  }
}

template <typename C, typename T>
void add_rows(const T* from, C* to, C* buffer, int64_t n) {
  load(from, buffer, n);
  for (int64_t j = 0; j < n; ++j) to[j] += buffer[j];
}

template <typename T>
void backward(Call& call) {
  using C = compute_t<T>;
  const cb_tensor &out = call.tensor(6), &of_weight = call.output(3);
  const Sizes size{out.sizes[0], out.sizes[1], out.sizes[2], call.boolean(9)};
  const int64_t hidden = size.hidden, width = size.gates();
  T *grad_gates = mutable_data<T>(call.output(0)), *grad_h0 = mutable_data<T>(call.output(1)),
    *grad_c0 = mutable_data<T>(call.output(2));
  if (size.empty()) {
    // No step: the first states are not used, but in what is empty itself.
    for (int i : {1, 2, 3}) std::fill_n(mutable_data<T>(call.output(i)), i == 3 ? width * hidden : size.batch * hidden, T(0));
    return;
  }
  const auto optional = [&](int i) { return call.given(i) ? data<T>(call.tensor(i)) : nullptr; };
  const T *of_output = optional(0), *of_cells = optional(1), *of_activations = optional(2);
  const T *c0 = data<T>(call.tensor(4)), *cells = data<T>(call.tensor(7)), *activations = data<T>(call.tensor(8));
  const Numbers<T> weight(data<T>(call.tensor(5)), width * hidden);
  const int64_t blocks = (size.batch + block - 1) / block;
  parallel_for(blocks, grain_for(size.steps * block * width * hidden / 8), [&](int64_t begin, int64_t end) {
    Scratch<C> dh(block * hidden), dc(block * hidden), d(block * width), buffer(block * width);
    Scratch<C> active(block * width), cell(block * hidden), before(block * hidden), extra(block * width);
    for (int64_t first = begin * block; first < std::min(end * block, size.batch); first += block) {
      const int64_t rows = std::min(block, size.batch - first);
      std::fill_n(dh.data(), rows * hidden, C(0));
      std::fill_n(dc.data(), rows * hidden, C(0));
      std::fill_n(extra.data(), rows * width, C(0));
      for (int64_t step = size.steps - 1; step >= 0; --step) {
        const int64_t state = size.at(step, first, hidden), gate = size.at(step, first, width);
        if (of_output) add_rows(of_output + state, dh.data(), buffer.data(), rows * hidden);
        if (of_cells) add_rows(of_cells + state, dc.data(), buffer.data(), rows * hidden);
        if (of_activations) load(of_activations + gate, extra.data(), rows * width);
        load(activations + gate, active.data(), rows * width);
        load(cells + state, cell.data(), rows * hidden);
        load(step ? cells + size.at(step - 1, first, hidden) : c0 + first * hidden, before.data(), rows * hidden);
        for (int64_t row = 0; row < rows; ++row)
          step_back(hidden, active.data() + row * width, cell.data() + row * hidden, before.data() + row * hidden,
                    extra.data() + row * width, dh.data() + row * hidden, dc.data() + row * hidden, d.data() + row * width);
        gemm(Gemm<C>{false, false, rows, hidden, width, 1, d.data(), width, weight.data(), hidden, 0, dh.data(), hidden});
        store(d.data(), grad_gates + gate, rows * width);
      }
      store(dh.data(), grad_h0 + first * hidden, rows * hidden);
      store(dc.data(), grad_c0 + first * hidden, rows * hidden);
    }
  });
  // The weight's gradient is a product over all steps at once; the state before the first step is not among the outputs.
  const int64_t later = (size.steps - 1) * size.batch, one = size.batch * hidden;
  const Numbers<T> d(grad_gates, size.steps * size.batch * width), h(data<T>(out), size.steps * one),
      h0(data<T>(call.tensor(3)), one);
  Scratch<C> sum(is_half_v<T> ? width * hidden : 0);
  C* result;
  if constexpr (is_half_v<T>)
    result = sum.data();
  else
    result = mutable_data<T>(of_weight);
  const C* first = d.data() + size.at(0, 0, width);
  gemm(Gemm<C>{true, false, width, hidden, size.batch, 1, first, width, h0.data(), hidden, 0, result, hidden});
  if (later > 0) {
    const C* gates_of_later = size.reverse ? d.data() : d.data() + size.batch * width;
    const C* states_before = size.reverse ? h.data() + one : h.data();
    gemm(Gemm<C>{true, false, width, hidden, later, 1, gates_of_later, width, states_before, hidden, 1, result, hidden});
  }
  if constexpr (is_half_v<T>) store(result, mutable_data<T>(of_weight), width * hidden);
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

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
