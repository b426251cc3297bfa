// lstm_sequence and lstm_sequence_backward: all steps of a long short-term memory. The weight is packed once for all steps. Rows of
// the batch do not depend on each other, so blocks of them go through all steps by themselves, and no thread waits for another in
// between; only where the weight is too large for that do the threads take a part of it each, step by step.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "../allocator.hpp"
#include "../dtypes.hpp"
#include "../kernels.hpp"
#include "../matmul/gemm.hpp"
#include "../matmul/panels.hpp"
#include "../parallel.hpp"
#include "../split/split_factor.hpp"
#include "../split/split_gemm.hpp"
#include "../vec_math.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// Rows of the batch that go through the steps together at most: what they need in between stays in the second cache level.
constexpr int64_t block = 32;

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

// Sums of gates become states: of `rows` rows and the `n` hidden units from j on, of which `sums` has the four gates `gate_step`
// elements apart, rows `sums_step` apart; with `gates` those are added. All other pointers are to the first row, and to unit 0.
template <typename C>
void step_forward(const C* sums, int64_t sums_step, int64_t gate_step, const C* gates, int64_t rows, int64_t hidden, int64_t j,
                  int64_t n, const C* before, C* activations, C* cells, C* states) {
  using V = math::Vec<C>;
  for (int64_t row = 0; row < rows; ++row) {
    const C *sum = sums + row * sums_step, *given = gates ? gates + row * 4 * hidden + j : nullptr;
    C* active = activations + row * 4 * hidden + j;
    const int64_t at = row * hidden + j;
    const auto gate = [&](int number) {
      const V value = V::load(sum + number * gate_step, n);
      return given ? value + V::load(given + number * hidden, n) : value;
    };
    const V i = math::sigmoid(gate(0)), f = math::sigmoid(gate(1)), g = math::tanh(gate(2)), o = math::sigmoid(gate(3));
    const V c = math::fma(f, V::load(before + at, n), i * g);
    i.store(active, n);
    f.store(active + hidden, n);
    g.store(active + 2 * hidden, n);
    o.store(active + 3 * hidden, n);
    c.store(cells + at, n);
    (o * math::tanh(c)).store(states + at, n);
  }
}

// The weight is packed for so many rows, all steps together; fewer are multiplied by it as it lies.
constexpr int64_t rows_worth_packing = 48;
// A weight of more bytes than this is divided among the threads, so that each keeps its part in its second cache level through all
// steps; with a smaller one the threads go their own way with rows of their own, and never wait.
constexpr int64_t divided_weight = int64_t{1} << 20;

// The same on tile units, where there are any and they are filled.
template <typename T>
bool by_tiles(const Sizes& size) {
  constexpr int64_t least_rows = 16;
  return std::is_same_v<T, float> && size.gates() * size.hidden * static_cast<int64_t>(sizeof(float)) > divided_weight &&
         size.batch >= least_rows && size.steps * size.batch >= rows_worth_packing && size.hidden % split_columns == 0 &&
         has_split_gemm();
}

template <typename T>
void forward(Call& call) {
  using C = compute_t<T>;
  constexpr int64_t lanes = math::Vec<C>::size;
  const cb_tensor& out = call.output(0);
  const Sizes size{out.sizes[0], out.sizes[1], out.sizes[2], call.boolean(4)};
  if (size.empty()) return;
  const int64_t hidden = size.hidden, width = size.gates(), batch = size.batch;
  const T *gates = data<T>(call.tensor(0)), *h0 = data<T>(call.tensor(1)), *c0 = data<T>(call.tensor(2));
  T *output = mutable_data<T>(out), *cells = mutable_data<T>(call.output(1)), *activations = mutable_data<T>(call.output(2));
  const Numbers<T> weight(data<T>(call.tensor(3)), width * hidden);
  const bool packed = size.steps * batch >= rows_worth_packing;
  // A panel has the four gates of as many hidden units as a register holds.
  const int64_t panels_of = (hidden + lanes - 1) / lanes;
  Panels<C> panels(weight.data(), hidden, true, hidden, packed && !by_tiles<T>(size) ? panels_of : 0,
                   [&](int64_t p, int gate) { return std::pair{gate * hidden + p * lanes, std::min(lanes, hidden - p * lanes)}; });
  // Steps of the rows from `first` on, in numbers to compute with: the tensors' own memory but for half precisions.
  struct Step {
    const C *gates, *h, *c;
    C *states, *cells, *activations;
  };
  const auto multiply_panels = [&](const Step& step, int64_t rows, int64_t begin, int64_t end, C* sums) {
    constexpr int64_t wide = Panels<C>::width, together = 2 * panel_rows;
    for (int64_t p = begin; p < end; ++p) {
      const int64_t j = p * lanes, n = std::min(lanes, hidden - j);
      for (int64_t first = 0; first < rows; first += together) {
        const int64_t here = std::min(together, rows - first), gate = first * width, state = first * hidden;
        // What comes after the product lies far apart, a line here and there: it is asked for on the way.
        const auto ask = [&](int64_t part, int64_t parts) {
          for (int64_t row = first + part * here / parts; row < first + (part + 1) * here / parts; ++row) {
            for (int number = 0; number < 4; ++number) {
              __builtin_prefetch(step.gates + row * width + number * hidden + j);
              __builtin_prefetch(step.activations + row * width + number * hidden + j, 1);
            }
            __builtin_prefetch(step.cells + row * hidden + j, 1);
            __builtin_prefetch(step.states + row * hidden + j, 1);
          }
        };
        Panels<C>::multiply_panel(panels.panel(p), hidden, step.h + state, hidden, 1, here, sums, panel_vectors, false, ask);
        step_forward(sums, wide, lanes, step.gates + gate, here, hidden, j, n, step.c + state, step.activations + gate,
                     step.cells + state, step.states + state);
      }
    }
  };
  const auto multiply_as_it_lies = [&](const Step& step, int64_t rows, C* sums) {
    std::copy_n(step.gates, rows * width, sums);
    gemm(Gemm<C>{false, true, rows, width, hidden, 1, step.h, hidden, weight.data(), hidden, 1, sums, width});
    for (int64_t j = 0; j < hidden; j += lanes)
      step_forward<C>(sums + j, width, hidden, nullptr, rows, hidden, j, std::min(lanes, hidden - j), step.c, step.activations,
                      step.cells, step.states);
  };
  // All steps of some rows; compute(step, rows) does one.
  const auto all_steps = [&](int64_t first, int64_t rows, auto&& compute) {
    if constexpr (is_half_v<T>) {
      Scratch<C> pre(rows * width), active(rows * width), cell(rows * hidden), states(2 * rows * hidden);
      C *before = states.data(), *after = before + rows * hidden;
      load(h0 + first * hidden, before, rows * hidden);
      load(c0 + first * hidden, cell.data(), rows * hidden);
      for (int64_t step = 0; step < size.steps; ++step) {
        load(gates + size.at(step, first, width), pre.data(), rows * width);
        compute(Step{pre.data(), before, cell.data(), after, cell.data(), active.data()}, rows);
        store(after, output + size.at(step, first, hidden), rows * hidden);
        store(cell.data(), cells + size.at(step, first, hidden), rows * hidden);
        store(active.data(), activations + size.at(step, first, width), rows * width);
        std::swap(before, after);
      }
    } else {
      for (int64_t step = 0; step < size.steps; ++step) {
        const int64_t state = size.at(step, first, hidden), gate = size.at(step, first, width);
        const C* h = step ? output + size.at(step - 1, first, hidden) : h0 + first * hidden;
        const C* c = step ? cells + size.at(step - 1, first, hidden) : c0 + first * hidden;
        compute(Step{gates + gate, h, c, output + state, cells + state, activations + gate}, rows);
      }
    }
  };
  if (by_tiles<T>(size)) {
    if constexpr (std::is_same_v<T, float>) {
      SplitFactor factor(weight.data(), hidden, 1, width, hidden);
      const int64_t panels_of_gate = hidden / split_columns;
      all_steps(0, batch, [&](const Step& step, int64_t rows) {
        parallel_for(panels_of_gate, grain_for(rows * split_columns * hidden / 4), [&](int64_t begin, int64_t end) {
          SplitRows states(rows, hidden);
          states.take(step.h, hidden, rows);
          Scratch<float> sums(rows * 4 * split_columns);
          for (int64_t p = begin; p < end; ++p) {
            for (int64_t gate = 0; gate < 4; ++gate) {
              // What comes after the product lies far apart, two lines here and there: it is asked for before.
              for (int64_t row = 0; row < rows; ++row) {
                const int64_t at = row * width + gate * hidden + p * split_columns, unit = row * hidden + p * split_columns;
                for (int64_t j = 0; j < split_columns; j += lanes) {
                  __builtin_prefetch(step.gates + at + j);
                  __builtin_prefetch(step.activations + at + j, 1);
                  if (gate == 0) __builtin_prefetch(step.cells + unit + j, 1);
                  if (gate == 1) __builtin_prefetch(step.states + unit + j, 1);
                }
              }
              states.multiply(factor, gate * panels_of_gate + p, sums.data() + gate * split_columns, 4 * split_columns);
            }
            for (int64_t j = 0; j < split_columns; j += lanes)
              step_forward<C>(sums.data() + j, 4 * split_columns, split_columns, step.gates, rows, hidden, p * split_columns + j,
                              lanes, step.c, step.activations, step.cells, step.states);
          }
        });
      });
    }
  } else if (!packed) {
    Scratch<C> sums(batch * width);
    all_steps(0, batch, [&](const Step& step, int64_t rows) { multiply_as_it_lies(step, rows, sums.data()); });
  } else if (width * hidden * static_cast<int64_t>(sizeof(C)) > divided_weight) {
    all_steps(0, batch, [&](const Step& step, int64_t rows) {
      parallel_for(panels_of, grain_for(rows * 4 * lanes * hidden / 8), [&](int64_t begin, int64_t end) {
        Scratch<C> sums(2 * panel_rows * Panels<C>::width);
        multiply_panels(step, rows, begin, end, sums.data());
      });
    });
  } else {
    parallel_for(batch, grain_for(size.steps * width * hidden / 8), [&](int64_t begin, int64_t end) {
      Scratch<C> sums(2 * panel_rows * Panels<C>::width);
      for (int64_t first = begin; first < end; first += block)
        all_steps(first, std::min(block, end - first),
                  [&](const Step& step, int64_t rows) { multiply_panels(step, rows, 0, panels_of, sums.data()); });
    });
  }
}

// The gradient of one row at one step: of the gates before sigmoid and tanh into `d`, of the cell state before into `dc`, from that
// of the output state in `dh` and that of the cell state in `dc`; of_activations may be null.
template <typename C>
void step_back(int64_t hidden, const C* activations, const C* cell, const C* cell_before, const C* of_activations, const C* dh,
               C* dc, C* d) {
  using V = math::Vec<C>;
  const V one(C(1));
  for (int64_t j = 0; j < hidden; j += V::size) {
    const int64_t n = std::min<int64_t>(V::size, hidden - j);
    const auto gate = [&](int number) { return V::load(activations + number * hidden + j, n); };
    const auto added = [&](V value, int number) {
      return of_activations ? value + V::load(of_activations + number * hidden + j, n) : value;
    };
    const V i = gate(0), f = gate(1), g = gate(2), o = gate(3), t = math::tanh(V::load(cell + j, n)), slope = V::load(dh + j, n);
    const V c = V::load(dc + j, n) + slope * o * (one - t * t);
    (added(c * g, 0) * i * (one - i)).store(d + j, n);
    (added(c * V::load(cell_before + j, n), 1) * f * (one - f)).store(d + hidden + j, n);
    (added(c * i, 2) * (one - g * g)).store(d + 2 * hidden + j, n);
    (added(slope * t, 3) * o * (one - o)).store(d + 3 * hidden + j, n);
    (c * f).store(dc + j, n);
  }
}

template <typename C, typename T>
void add_rows(const T* from, C* to, C* buffer, int64_t n) {
  if constexpr (is_half_v<T>) {
    load(from, buffer, n);
    for (int64_t j = 0; j < n; ++j) to[j] += buffer[j];
  } else {
    for (int64_t j = 0; j < n; ++j) to[j] += from[j];
  }
}

// The part of a tensor that begins at `from` in numbers to compute with: itself, or a copy in `buffer`.
template <typename T>
const compute_t<T>* numbers(const T* from, compute_t<T>* buffer, int64_t n) {
  if constexpr (is_half_v<T>) {
    load(from, buffer, n);
    return buffer;
  } else {
    return from;
  }
}

template <typename T>
void backward(Call& call) {
  using C = compute_t<T>;
  constexpr int64_t lanes = math::Vec<C>::size, wide = Panels<C>::width;
  const cb_tensor &out = call.tensor(6), &of_weight = call.output(3);
  const Sizes size{out.sizes[0], out.sizes[1], out.sizes[2], call.boolean(9)};
  const int64_t hidden = size.hidden, width = size.gates(), batch = size.batch;
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
  const bool packed = size.steps * batch >= rows_worth_packing;
  const int64_t panels_of = (hidden + wide - 1) / wide;
  Panels<C> panels(weight.data(), hidden, false, width, packed && !by_tiles<T>(size) ? panels_of : 0, [&](int64_t p, int vector) {
    const int64_t column = p * wide + vector * lanes;
    return std::pair{std::min(column, hidden), std::clamp<int64_t>(hidden - column, 0, lanes)};
  });
  // Gradients of `rows` rows before a step, of the states: d @ weight, in the panels from `begin` to `end`.
  const auto multiply_panels = [&](const C* d, C* dh, int64_t rows, int64_t begin, int64_t end, C* sums) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t j = p * wide, n = std::min(wide, hidden - j);
      const int vectors = n > 2 * lanes ? 4 : n > lanes ? 2 : 1;
      Panels<C>::multiply_panel(panels.panel(p), width, d, width, 1, rows, sums, vectors, false);
      for (int64_t row = 0; row < rows; ++row) std::copy_n(sums + row * wide, n, dh + row * hidden + j);
    }
  };
  // All steps of some rows, back in time; for_rows(rows, work) does work(begin, end) for parts of them, multiply(d, dh, rows) a
  // product.
  const auto all_steps = [&](int64_t first, int64_t rows, auto&& for_rows, auto&& multiply) {
    Scratch<C> dh(rows * hidden), dc(rows * hidden), buffer(rows * width);
    Scratch<C> active(is_half_v<T> ? rows * width : 0), cell(is_half_v<T> ? rows * hidden : 0);
    Scratch<C> before(is_half_v<T> ? rows * hidden : 0), extra(is_half_v<T> ? rows * width : 0);
    std::fill_n(dh.data(), rows * hidden, C(0));
    std::fill_n(dc.data(), rows * hidden, C(0));
    for (int64_t step = size.steps - 1; step >= 0; --step) {
      const int64_t state = size.at(step, first, hidden), gate = size.at(step, first, width);
      C* d;
      if constexpr (is_half_v<T>)
        d = buffer.data();
      else
        d = grad_gates + gate;
      const C* active_now = numbers(activations + gate, active.data(), rows * width);
      const C* cell_now = numbers(cells + state, cell.data(), rows * hidden);
      const C* cell_before =
          numbers(step ? cells + size.at(step - 1, first, hidden) : c0 + first * hidden, before.data(), rows * hidden);
      const C* more = of_activations ? numbers(of_activations + gate, extra.data(), rows * width) : nullptr;
      for_rows(rows, [&](int64_t begin, int64_t end) {
        const int64_t from = begin * hidden, n = (end - begin) * hidden;
        if (of_output) add_rows(of_output + state + from, dh.data() + from, buffer.data() + from, n);
        if (of_cells) add_rows(of_cells + state + from, dc.data() + from, buffer.data() + from, n);
        for (int64_t row = begin; row < end; ++row)
          step_back(hidden, active_now + row * width, cell_now + row * hidden, cell_before + row * hidden,
                    more ? more + row * width : nullptr, dh.data() + row * hidden, dc.data() + row * hidden, d + row * width);
      });
      multiply(d, dh.data(), rows);
      if constexpr (is_half_v<T>) store(d, grad_gates + gate, rows * width);
    }
    store(dh.data(), grad_h0 + first * hidden, rows * hidden);
    store(dc.data(), grad_c0 + first * hidden, rows * hidden);
  };
  const auto here = [](int64_t rows, auto&& work) { work(int64_t{0}, rows); };
  const auto divided = [&](int64_t rows, auto&& work) {
    parallel_for(is_half_v<T> ? 1 : rows, grain_for(width * 4),
                 [&](int64_t begin, int64_t end) { is_half_v<T> ? work(int64_t{0}, rows) : work(begin, end); });
  };
  if (by_tiles<T>(size)) {
    if constexpr (std::is_same_v<T, float>) {
      SplitFactor factor(weight.data(), 1, hidden, hidden, width);
      all_steps(0, batch, divided, [&](const C* d, C* dh, int64_t rows) {
        parallel_for(hidden / split_columns, grain_for(rows * split_columns * width / 16), [&](int64_t begin, int64_t end) {
          SplitRows gates(rows, width);
          gates.take(d, width, rows);
          for (int64_t p = begin; p < end; ++p) gates.multiply(factor, p, dh + p * split_columns, hidden);
        });
      });
    }
  } else if (!packed) {
    all_steps(0, batch, here, [&](const C* d, C* dh, int64_t rows) {
      gemm(Gemm<C>{false, false, rows, hidden, width, 1, d, width, weight.data(), hidden, 0, dh, hidden});
    });
  } else if (width * hidden * static_cast<int64_t>(sizeof(C)) > divided_weight) {
    all_steps(0, batch, divided, [&](const C* d, C* dh, int64_t rows) {
      parallel_for(panels_of, grain_for(rows * wide * width / 8), [&](int64_t begin, int64_t end) {
        Scratch<C> sums(rows * wide);
        multiply_panels(d, dh, rows, begin, end, sums.data());
      });
    });
  } else {
    parallel_for(batch, grain_for(size.steps * width * hidden / 8), [&](int64_t begin, int64_t end) {
      Scratch<C> sums(block * wide);
      for (int64_t first = begin; first < end; first += block)
        all_steps(first, std::min(block, end - first), here,
                  [&](const C* d, C* dh, int64_t rows) { multiply_panels(d, dh, rows, 0, panels_of, sums.data()); });
    });
  }
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
