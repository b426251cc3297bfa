// The gradient of all steps of a recurrent layer: backpropagation through time (Werbos 1990), then
// the weight's gradient as one product over all steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "gemm/gemm.hpp"
#include "kernels/recurrent/cells.hpp"
#include "kernels/recurrent/factor.hpp"
#include "kernels/recurrent/sequence.hpp"
#include "kernels/recurrent/threads.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace recurrent {

// Null for absent tensors.
template <typename T>
struct Backward {
  const T *of_output, *of_cells, *of_kept, *h0, *c0, *weight, *output, *cells, *kept;
  T *grad_gates, *grad_h0, *grad_c0, *grad_weight, *grad_bias;
};

template <typename Cell, typename T>
class BackwardWalk {
 public:
  using C = compute_t<T>;
  using V = math::Vec<C>;
  static constexpr int64_t lanes = V::size;
  // Whether the gradient of the recurrent part of the gates differs from that of the input part, or
  // the latter is rounded.
  static constexpr bool separate_state = Cell::passes_state || is_half_v<T>;

  BackwardWalk(const Cell& cell, const Sequence& sequence, const Backward<T>& task)
      : cell_(cell),
        sequence_(sequence),
        task_(task),
        hidden_(sequence.hidden),
        width_(Cell::gates * sequence.hidden),
        kept_width_(Cell::kept * sequence.hidden),
        of_output_(task.of_output, states()),
        of_cells_(Cell::has_cell ? task.of_cells : nullptr, states()),
        of_kept_(Cell::kept ? task.of_kept : nullptr, sequence.all_rows() * kept_width_),
        h0_(task.h0, sequence.batch * hidden_),
        c0_(Cell::has_cell ? task.c0 : nullptr, sequence.batch * hidden_),
        weight_(task.weight, width_ * hidden_),
        output_(task.output, states()),
        cells_(Cell::has_cell ? task.cells : nullptr, states()),
        kept_(Cell::kept ? task.kept : nullptr, sequence.all_rows() * kept_width_),
        of_state_(separate_state ? sequence.all_rows() * width_ : 0) {}

  void run() {
    const Matrix matrix{weight_.data(), width_, hidden_, false};
    switch (way_of<C>(sequence_, Cell::gates)) {
      case Way::unpacked:
        unpacked();
        break;
      case Way::amx:
        if constexpr (std::is_same_v<C, float> && lanes == tile_columns) {
          TileFactor factor(matrix, panels(), columns());
          by_panels(factor);
        }
        break;
      case Way::vectors: {
        VectorFactor<C> factor(matrix, panels(), columns());
        by_panels(factor);
      }
    }
    of_weight();
    if constexpr (Cell::has_bias) of_bias();
  }

 private:
  static constexpr int64_t wide = VectorFactor<C>::width;
  int64_t states() const { return sequence_.all_rows() * hidden_; }
  int64_t panels() const { return (hidden_ + wide - 1) / wide; }
  auto columns() const {
    return [hidden = hidden_](int64_t panel, int vector) {
      const int64_t column = panel * wide + vector * lanes;
      return std::pair<int64_t, int64_t>{std::min(column, hidden), std::clamp<int64_t>(hidden - column, 0, lanes)};
    };
  }
  // The gradient of the recurrent part of the gates, which propagates through the weight.
  C* of_state() {
    if constexpr (separate_state)
      return of_state_.data();
    else
      return task_.grad_gates;
  }
  // The state of a batch row before a step: from `all`, which has all times, or from the initial
  // states `first`.
  const C* before(const C* all, const C* first, int64_t number, int64_t row) const {
    if (number == 0 || row >= sequence_.rows(number - 1)) return first + row * hidden_;
    return all + sequence_.at(number - 1, row) * hidden_;
  }

  // One row of one step, before the product. dh and dc belong to the row. `rounded` holds the
  // gates' gradient of half precisions.
  void step_back(int64_t number, int64_t row, C* dh, C* dc, C* rounded) {
    const int64_t at = sequence_.at(number, row);
    const C* kept = Cell::kept ? kept_.data() + at * kept_width_ : nullptr;
    const C* more = of_kept_.data() ? of_kept_.data() + at * kept_width_ : nullptr;
    const C* of_output = of_output_.data() ? of_output_.data() + at * hidden_ : nullptr;
    const C* of_cells = of_cells_.data() ? of_cells_.data() + at * hidden_ : nullptr;
    const C *h_before = nullptr, *c_before = nullptr, *c = nullptr, *h = output_.data() + at * hidden_;
    if constexpr (Cell::sees_state_before) h_before = before(output_.data(), h0_.data(), number, row);
    if constexpr (Cell::has_cell) {
      c_before = before(cells_.data(), c0_.data(), number, row);
      c = cells_.data() + at * hidden_;
    }
    C* input;
    if constexpr (is_half_v<T>)
      input = rounded;
    else
      input = task_.grad_gates + at * width_;
    C* state = separate_state ? of_state() + at * width_ : input;
    for (int64_t j = 0; j < hidden_; j += lanes) {
      const int64_t n = std::min(lanes, hidden_ - j);
      StepBack<C, Cell::gates> s;
#pragma GCC unroll 4
      for (int i = 0; i < Cell::kept; ++i) {
        s.kept[i] = V::load(kept + i * hidden_ + j, n);
        s.more[i] = more ? V::load(more + i * hidden_ + j, n) : V(C(0));
      }
      s.dh = V::load(dh + j, n);
      if (of_output) s.dh = s.dh + V::load(of_output + j, n);
      if constexpr (Cell::has_cell) {
        s.dc = V::load(dc + j, n);
        if (of_cells) s.dc = s.dc + V::load(of_cells + j, n);
        s.c_before = V::load(c_before + j, n);
        s.c = V::load(c + j, n);
      }
      if constexpr (Cell::sees_state_before) s.h_before = V::load(h_before + j, n);
      if constexpr (Cell::kept == 0) s.h = V::load(h + j, n);
      cell_.template backward<C>(s);
#pragma GCC unroll 4
      for (int gate = 0; gate < Cell::gates; ++gate) {
        s.of_input[gate].store(input + gate * hidden_ + j, n);
        if constexpr (separate_state) s.of_state[gate].store(state + gate * hidden_ + j, n);
      }
      if constexpr (Cell::passes_state) s.dh.store(dh + j, n);
      if constexpr (Cell::has_cell) s.dc.store(dc + j, n);
    }
    if constexpr (is_half_v<T>) store_contiguous(input, width_, task_.grad_gates + at * width_);
  }

  // All steps of some rows, backward in time. for_rows(rows, work) calls work(begin, end) for parts
  // of them. multiply(d, dh, rows) computes dh, the gradient of the earlier states, from d, that of
  // the gates.
  template <typename ForRows, typename Multiply>
  void all_steps(int64_t first, int64_t all, ForRows&& for_rows, Multiply&& multiply) {
    Scratch<C> dh(all * hidden_), dc(Cell::has_cell ? all * hidden_ : 0);
    std::fill_n(dh.data(), all * hidden_, C(0));
    if constexpr (Cell::has_cell) std::fill_n(dc.data(), all * hidden_, C(0));
    for (int64_t number = sequence_.steps - 1; number >= 0; --number) {
      const int64_t rows = std::min(all, sequence_.rows(number) - first);
      if (rows <= 0) continue;
      for_rows(rows, [&](int64_t begin, int64_t end) {
        Scratch<C> rounded(is_half_v<T> ? width_ : 0);
        for (int64_t row = begin; row < end; ++row)
          step_back(number, first + row, dh.data() + row * hidden_, dc.data() + row * hidden_, rounded.data());
      });
      multiply(of_state() + sequence_.at(number, first) * width_, dh.data(), rows);
    }
    store_contiguous(dh.data(), all * hidden_, task_.grad_h0 + first * hidden_);
    if constexpr (Cell::has_cell) store_contiguous(dc.data(), all * hidden_, task_.grad_c0 + first * hidden_);
  }

  template <typename Worker>
  void multiply(Worker& worker, const C* d, C* dh, int64_t rows, int64_t begin, int64_t end, C* sums) const {
    worker.set_rows(d, width_, rows);
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t j = panel * wide, n = std::min(wide, hidden_ - j);
      // Panels are multiplied by one, two or four registers.
      const int vectors = n > 2 * lanes ? 4 : n > lanes ? 2 : 1;
      worker.multiply(panel, sums, vectors, [](int64_t, int64_t) {});
      for (int64_t row = 0; row < rows; ++row) {
        const C* from = sums + row * wide;
        C* to = dh + row * hidden_ + j;
        if constexpr (Cell::passes_state)
          for (int64_t i = 0; i < n; ++i) to[i] += from[i];
        else
          std::copy_n(from, n, to);
      }
    }
  }

  template <typename Factor>
  void by_panels(Factor& factor) {
    using Worker = typename Factor::Worker;
    if (width_ * hidden_ * static_cast<int64_t>(sizeof(C)) > divided_weight) {
      const auto divided = [&](int64_t rows, auto&& work) { parallel_for(rows, grain_for(width_ * 4), work); };
      all_steps(0, sequence_.batch, divided, [&](const C* d, C* dh, int64_t rows) {
        parallel_for(panels(), grain_for(rows * wide * width_ / 8), [&](int64_t begin, int64_t end) {
          Worker worker(factor, rows);
          Scratch<C> sums(rows * wide);
          multiply(worker, d, dh, rows, begin, end, sums.data());
        });
      });
    } else {
      for_blocks_of_rows(sequence_, width_ * hidden_ / 8, [&](int64_t begin, int64_t end) {
        const int64_t most = std::min(block, end - begin);
        Worker worker(factor, most);
        Scratch<C> sums(most * wide);
        const auto here = [](int64_t rows, auto&& work) { work(int64_t{0}, rows); };
        for (int64_t first = begin; first < end; first += block)
          all_steps(first, std::min(block, end - first), here,
                    [&](const C* d, C* dh, int64_t rows) { multiply(worker, d, dh, rows, 0, panels(), sums.data()); });
      });
    }
  }

  void unpacked() {
    const auto here = [](int64_t rows, auto&& work) { work(int64_t{0}, rows); };
    all_steps(0, sequence_.batch, here, [&](const C* d, C* dh, int64_t rows) {
      gemm(Gemm<C>{false, false, rows, hidden_, width_, 1, d, width_, weight_.data(), hidden_,
                   Cell::passes_state ? C(1) : C(0), dh, hidden_});
    });
  }

  // One product over all steps: the gates' gradient with the states before, which are the outputs
  // of the previous step.
  void of_weight() {
    const int64_t batch = sequence_.batch, rows = sequence_.all_rows();
    Scratch<C> sum(is_half_v<T> ? width_ * hidden_ : 0);
    C* result;
    if constexpr (is_half_v<T>)
      result = sum.data();
    else
      result = task_.grad_weight;
    Scratch<C> states_before(rows * hidden_);
    parallel_for(sequence_.steps, grain_for(batch * hidden_), [&](int64_t begin, int64_t end) {
      for (int64_t number = begin; number < end; ++number)
        for (int64_t row = 0; row < sequence_.rows(number); ++row)
          std::copy_n(before(output_.data(), h0_.data(), number, row), hidden_,
                      states_before.data() + sequence_.at(number, row) * hidden_);
    });
    gemm(Gemm<C>{true, false, width_, hidden_, rows, 1, of_state(), width_, states_before.data(), hidden_, 0, result,
                 hidden_});
    if constexpr (is_half_v<T>) store_contiguous(result, width_ * hidden_, task_.grad_weight);
  }

  void of_bias() {
    parallel_for(width_, std::max<int64_t>(4 * lanes, grain_for(sequence_.all_rows())),
                 [&](int64_t begin, int64_t end) {
                   Scratch<C> sums(end - begin);
                   std::fill_n(sums.data(), end - begin, C(0));
                   for (int64_t row = 0; row < sequence_.all_rows(); ++row) {
                     const C* from = of_state() + row * width_ + begin;
                     for (int64_t j = 0; j < end - begin; ++j) sums[j] += from[j];
                   }
                   store_contiguous(sums.data(), end - begin, task_.grad_bias + begin);
                 });
  }

  const Cell& cell_;
  const Sequence& sequence_;
  const Backward<T>& task_;
  int64_t hidden_, width_, kept_width_;
  Numbers<T> of_output_, of_cells_, of_kept_, h0_, c0_, weight_, output_, cells_, kept_;
  Scratch<C> of_state_;
};

template <typename Cell, typename T>
void run_backward(const Cell& cell, const Sequence& sequence, const Backward<T>& task) {
  if (!sequence.empty()) return BackwardWalk<Cell, T>(cell, sequence, task).run();
  // Without steps the initial states have no effect.
  const int64_t hidden = sequence.hidden, width = Cell::gates * hidden;
  std::fill_n(task.grad_h0, sequence.batch * hidden, T(0));
  if (Cell::has_cell) std::fill_n(task.grad_c0, sequence.batch * hidden, T(0));
  std::fill_n(task.grad_weight, width * hidden, T(0));
  if (Cell::has_bias) std::fill_n(task.grad_bias, width, T(0));
}

}  // namespace recurrent
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
