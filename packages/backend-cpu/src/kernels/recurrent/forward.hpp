// The forward pass of all steps of a recurrent layer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
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

// Null for tensors that are absent or not wanted. Without `gates`, they are computed from the
// input, which has `input_size` elements per row, and its weight.
template <typename T>
struct Forward {
  const T *input, *input_weight, *input_bias;
  int64_t input_size;
  const T *gates, *h0, *c0, *weight, *bias;
  T *output, *cells, *kept, *last_cell;
};

template <typename Cell, typename T>
class ForwardWalk {
 public:
  using C = compute_t<T>;
  using V = math::Vec<C>;
  static constexpr int64_t lanes = V::size;

  ForwardWalk(const Cell& cell, const Sequence& sequence, const Forward<T>& task)
      : cell_(cell),
        sequence_(sequence),
        task_(task),
        hidden_(sequence.hidden),
        width_(Cell::gates * sequence.hidden),
        kept_(Cell::kept * sequence.hidden),
        weight_(task.weight, width_ * hidden_),
        bias_(task.bias, width_),
        input_bias_(task.gates ? nullptr : task.input_bias, width_) {}

  void run() {
    const Matrix matrix{weight_.data(), hidden_, width_, true};
    const Way way = way_of<C>(sequence_, Cell::gates);
    // The input part of the gates can be computed step by step, where it is needed, so that it
    // never goes to memory. This is done with AMX, and on vectors while both weights fit L2.
    const bool both_stay = width_ * (hidden_ + task_.input_size) * static_cast<int64_t>(sizeof(C)) <= divided_weight;
    const bool at_each_step = !task_.gates && std::is_same_v<T, C> && task_.input_size > 0 &&
                              ((way == Way::amx && std::is_same_v<T, float>) || (way == Way::vectors && both_stay));
    Scratch<T> gates(task_.gates || at_each_step ? 0 : sequence_.all_rows() * width_);
    if (!task_.gates && !at_each_step) {
      multiply_input(gates.data());
      task_.gates = gates.data();
    }
    if constexpr (std::is_same_v<C, float> && lanes == tile_columns)
      if (way == Way::amx) {
        TileFactor factor(matrix, panels(), columns());
        if (!at_each_step) return by_panels(factor, static_cast<TileFactor*>(nullptr));
        TileFactor of_input({task_.input_weight, task_.input_size, width_, true}, panels(), columns());
        return by_panels(factor, &of_input);
      }
    if (way == Way::unpacked) return unpacked();
    VectorFactor<C> factor(matrix, panels(), columns());
    if (!at_each_step) return by_panels(factor, static_cast<VectorFactor<C>*>(nullptr));
    VectorFactor<C> of_input({task_.input_weight, task_.input_size, width_, true}, panels(), columns());
    by_panels(factor, &of_input);
  }

 private:
  // Some rows of a step, in the compute type.
  struct Step {
    const C *gates, *input;  // the input part of the gates, or else the input
    const C* h;
    C *after, *c;              // the states after the step; the cells before and after it
    C *output, *cells, *kept;  // further copies of these, and what is saved for the gradient

    Step from(int64_t row, int64_t width, int64_t input_width, int64_t hidden, int64_t kept_width) const {
      const int64_t state = row * hidden;
      return {gates ? gates + row * width : nullptr,
              input ? input + row * input_width : nullptr,
              h + state,
              after + state,
              c + state,
              output ? output + state : nullptr,
              cells ? cells + state : nullptr,
              kept ? kept + row * kept_width : nullptr};
    }
  };

  // A panel has all gates of as many units as fit.
  static constexpr int64_t units = Cell::gates == 1 ? panel_vectors * lanes : lanes;
  static constexpr int vectors_of_panel = Cell::gates == 1 ? panel_vectors : Cell::gates;
  int64_t panels() const { return (hidden_ + units - 1) / units; }
  auto columns() const {
    return [hidden = hidden_](int64_t panel, int vector) {
      if (vector >= vectors_of_panel) return std::pair<int64_t, int64_t>{0, 0};
      const int64_t unit = panel * units + (Cell::gates == 1 ? vector * lanes : 0),
                    gate = Cell::gates == 1 ? 0 : vector;
      return std::pair<int64_t, int64_t>{gate * hidden + std::min(unit, hidden),
                                         std::clamp<int64_t>(hidden - unit, 0, lanes)};
    };
  }

  // Values of the gates. Rows lie `row_step` elements apart and gates `gate_step`.
  struct Gates {
    const C* data;
    int64_t row_step, gate_step;
    V load(int64_t row, int gate, int64_t n) const { return V::load(data + row * row_step + gate * gate_step, n); }
  };

  // Computes states from the recurrent and input parts of the gates, for rows [begin, end) and the
  // `n` units from j on. Both parts begin at unit j. `bias` is that of the input.
  void update_states(const Step& step, const Gates& sums, const Gates& given, const C* bias, int64_t begin, int64_t end,
                     int64_t j, int64_t n) const {
    StepForward<C, Cell::gates> s;
    V input_bias[Cell::gates];
#pragma GCC unroll 4
    for (int gate = 0; gate < Cell::gates; ++gate) {
      input_bias[gate] = bias ? V::load(bias + gate * hidden_ + j, n) : V(C(0));
      if constexpr (Cell::has_bias)
        s.bias[gate] = bias_.data() ? V::load(bias_.data() + gate * hidden_ + j, n) : V(C(0));
    }
    for (int64_t row = begin; row < end; ++row) {
#pragma GCC unroll 4
      for (int gate = 0; gate < Cell::gates; ++gate) {
        s.sums[gate] = sums.load(row, gate, n);
        s.given[gate] = given.load(row, gate, n) + input_bias[gate];
      }
      const int64_t at = row * hidden_ + j;
      if constexpr (Cell::sees_state_before) s.h = V::load(step.h + at, n);
      if constexpr (Cell::has_cell) s.c = V::load(step.c + at, n);
      cell_.template forward<C>(s);
      s.h.store(step.after + at, n);
      if (step.output) s.h.store(step.output + at, n);
      if constexpr (Cell::has_cell) {
        s.c.store(step.c + at, n);
        if (step.cells) s.c.store(step.cells + at, n);
      }
      if constexpr (Cell::kept > 0)
        if (step.kept)
#pragma GCC unroll 4
          for (int i = 0; i < Cell::kept; ++i) s.kept[i].store(step.kept + row * kept_ + i * hidden_ + j, n);
    }
  }
  Gates in_memory(const C* gates, int64_t j) const { return {gates + j, width_, hidden_}; }
  static Gates of_panel(const C* sums, int64_t j) { return {sums + j, VectorFactor<C>::width, lanes}; }

  // Prefetches what is needed after a product: it lies in scattered cache lines.
  void prefetch(const Step& step, int64_t row, int64_t j) const {
    if (step.gates)
      for (int gate = 0; gate < Cell::gates; ++gate) __builtin_prefetch(step.gates + row * width_ + gate * hidden_ + j);
    if (step.kept)
      for (int i = 0; i < Cell::kept; ++i) __builtin_prefetch(step.kept + row * kept_ + i * hidden_ + j, 1);
    if (step.cells) __builtin_prefetch(step.cells + row * hidden_ + j, 1);
    if (step.output) __builtin_prefetch(step.output + row * hidden_ + j, 1);
  }

  int vectors_of(int64_t here) const {
    return Cell::gates == 1 ? static_cast<int>((here + lanes - 1) / lanes) : Cell::gates;
  }

  static int64_t rows_per_step(int64_t rows) { return std::min<int64_t>(rows, 2 * panel_rows); }

  // A thread's workers and the memory for their products. With interleaved work it holds two
  // panels, of the recurrent and the input part.
  template <typename Factor>
  class ThreadState {
   public:
    using Worker = typename Factor::Worker;
    static constexpr int64_t wide = VectorFactor<C>::width;
    ThreadState(Factor& factor, Factor* of_input, int64_t rows)
        : state(factor, rows),
          rows_(Worker::interleaves ? rows : rows_per_step(rows)),
          sums_(wide * rows_ * (Worker::interleaves ? 4 : 2)) {
      if (of_input) input = std::make_unique<Worker>(*of_input, rows);
    }
    C* sums(int64_t panel = 0) { return sums_.data() + panel % 2 * 2 * rows_ * wide; }
    C* given(int64_t panel = 0) { return sums(panel) + rows_ * wide; }
    Worker state;
    std::unique_ptr<Worker> input;

   private:
    int64_t rows_;
    Scratch<C> sums_;
  };

  // Multiplies by some panels and computes the states, on one thread.
  template <typename Factor>
  void multiply(ThreadState<Factor>& thread, const Step& step, int64_t rows, int64_t begin, int64_t end) const {
    if constexpr (Factor::Worker::interleaves) {
      thread.state.set_rows(step.h, hidden_, rows);
      if (thread.input) thread.input->set_rows(step.input, task_.input_size, rows);
      // Sums of a panel are finished while the next panel is multiplied.
      const auto update_panel = [&](int64_t panel, int64_t from, int64_t to) {
        const int64_t unit = panel * units, here = std::min(units, hidden_ - unit);
        for (int64_t j = 0; j < here; j += lanes)
          update_states(step, of_panel(thread.sums(panel), j),
                        thread.input ? of_panel(thread.given(panel), j) : in_memory(step.gates, unit + j),
                        thread.input ? input_bias_.data() : nullptr, from, to, unit + j, std::min(lanes, here - j));
      };
      const int64_t middle = thread.input ? rows * task_.input_size / (task_.input_size + hidden_) : 0;
      for (int64_t panel = begin; panel < end; ++panel) {
        const int vectors = vectors_of(std::min(units, hidden_ - panel * units));
        const auto between = [&](int64_t first, int64_t last) {
          return [&, first, last](int64_t part, int64_t parts) {
            const int64_t from = first + part * (last - first) / parts,
                          to = first + (part + 1) * (last - first) / parts;
            if (panel > begin && from < to) update_panel(panel - 1, from, to);
          };
        };
        if (thread.input) thread.input->multiply(panel, thread.given(panel), vectors, between(0, middle));
        thread.state.multiply(panel, thread.sums(panel), vectors, between(middle, rows));
      }
      if (begin < end) update_panel(end - 1, 0, rows);
    } else {
      for (int64_t panel = begin; panel < end; ++panel) {
        const int64_t unit = panel * units, here = std::min(units, hidden_ - unit), each = rows_per_step(rows);
        for (int64_t first = 0; first < rows; first += each) {
          const int64_t count = std::min(each, rows - first);
          const Step part = step.from(first, width_, task_.input_size, hidden_, kept_);
          if (thread.input) {
            thread.input->set_rows(part.input, task_.input_size, count);
            thread.input->multiply(panel, thread.given(), vectors_of(here), [](int64_t, int64_t) {});
          }
          thread.state.set_rows(part.h, hidden_, count);
          thread.state.multiply(panel, thread.sums(), vectors_of(here), [&](int64_t i, int64_t of) {
            for (int64_t row = i * count / of; row < (i + 1) * count / of; ++row)
              for (int64_t j = unit; j < unit + here; j += lanes) prefetch(part, row, j);
          });
          for (int64_t j = 0; j < here; j += lanes)
            update_states(part, of_panel(thread.sums(), j),
                          thread.input ? of_panel(thread.given(), j) : in_memory(part.gates, unit + j),
                          thread.input ? input_bias_.data() : nullptr, 0, count, unit + j, std::min(lanes, here - j));
        }
      }
    }
  }

  // All steps of some rows. compute(step, rows) does one step.
  template <typename Compute>
  void all_steps(int64_t first, int64_t all, Compute&& compute) const {
    constexpr bool half = is_half_v<T>;
    Scratch<C> states(2 * all * hidden_), cells(Cell::has_cell ? all * hidden_ : 0);
    Scratch<C> pre(half ? all * width_ : 0), active(half && task_.kept ? all * kept_ : 0);
    C *before = states.data(), *after = before + all * hidden_;
    // Both buffers start with h0: sequences that begin later keep it until then.
    for (C* to : {before, after}) load_contiguous(task_.h0 + first * hidden_, all * hidden_, to);
    if constexpr (Cell::has_cell) load_contiguous(task_.c0 + first * hidden_, all * hidden_, cells.data());
    for (int64_t number = 0; number < sequence_.steps; ++number) {
      const int64_t rows = std::min(all, sequence_.rows(number) - first), at = sequence_.at(number, first);
      if (rows <= 0) continue;
      if constexpr (half) {
        load_contiguous(task_.gates + at * width_, rows * width_, pre.data());
        compute(Step{pre.data(), nullptr, before, after, cells.data(), nullptr, nullptr,
                     task_.kept ? active.data() : nullptr},
                rows);
        store_contiguous(after, rows * hidden_, task_.output + at * hidden_);
        if (task_.cells) store_contiguous(cells.data(), rows * hidden_, task_.cells + at * hidden_);
        if (task_.kept) store_contiguous(active.data(), rows * kept_, task_.kept + at * kept_);
      } else {
        compute(Step{task_.gates ? task_.gates + at * width_ : nullptr,
                     task_.gates ? nullptr : task_.input + at * task_.input_size, before, after, cells.data(),
                     task_.output + at * hidden_, task_.cells ? task_.cells + at * hidden_ : nullptr,
                     task_.kept ? task_.kept + at * kept_ : nullptr},
                rows);
      }
      std::swap(before, after);
      // A row that has ended is not read again. One that has not begun has its initial state in
      // both buffers.
    }
    if (Cell::has_cell && task_.last_cell)
      store_contiguous(cells.data(), all * hidden_, task_.last_cell + first * hidden_);
  }

  template <typename Factor>
  void by_panels(Factor& factor, Factor* of_input) {
    if (width_ * hidden_ * static_cast<int64_t>(sizeof(C)) > divided_weight) {
      all_steps(0, sequence_.batch, [&](const Step& step, int64_t rows) {
        parallel_for(panels(), grain_for(rows * units * Cell::gates * hidden_ / 8), [&](int64_t begin, int64_t end) {
          ThreadState<Factor> thread(factor, of_input, rows);
          multiply(thread, step, rows, begin, end);
        });
      });
    } else {
      for_blocks_of_rows(sequence_, width_ * hidden_ / 8, [&](int64_t begin, int64_t end) {
        ThreadState<Factor> thread(factor, of_input, std::min(block, end - begin));
        for (int64_t first = begin; first < end; first += block)
          all_steps(first, std::min(block, end - first),
                    [&](const Step& step, int64_t rows) { multiply(thread, step, rows, 0, panels()); });
      });
    }
  }

  void unpacked() {
    Scratch<C> sums(sequence_.batch * width_);
    all_steps(0, sequence_.batch, [&](const Step& step, int64_t rows) {
      gemm(Gemm<C>{false, true, rows, width_, hidden_, 1, step.h, hidden_, weight_.data(), hidden_, 0, sums.data(),
                   width_});
      for (int64_t j = 0; j < hidden_; j += lanes)
        update_states(step, in_memory(sums.data(), j), in_memory(step.gates, j), nullptr, 0, rows, j,
                      std::min(lanes, hidden_ - j));
    });
  }

  // Computes the input part of the gates for all steps.
  void multiply_input(T* gates) const {
    const int64_t rows = sequence_.all_rows(), size = task_.input_size;
    if constexpr (is_half_v<T>) {
      if (size > 0 && half_gemm({.dtype = dtype_v<T>,
                                 .transpose_a = false,
                                 .transpose_b = true,
                                 .m = rows,
                                 .n = width_,
                                 .k = size,
                                 .a = task_.input,
                                 .lda = size,
                                 .b = task_.input_weight,
                                 .ldb = size,
                                 .bias = task_.input_bias,
                                 .c = gates,
                                 .ldc = width_,
                                 .float_result = false}))
        return;
    }
    const Numbers<T> input(task_.input, rows * size), weight(task_.input_weight, width_ * size);
    Scratch<C> copy(is_half_v<T> ? rows * width_ : 0);
    C* sums;
    if constexpr (is_half_v<T>)
      sums = copy.data();
    else
      sums = gates;
    const C* bias = input_bias_.data();
    if (bias || size == 0)
      parallel_for(rows, grain_for(width_), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          bias ? void(std::copy_n(bias, width_, sums + row * width_))
               : void(std::fill_n(sums + row * width_, width_, C(0)));
      });
    if (size > 0)
      gemm(Gemm<C>{false, true, rows, width_, size, 1, input.data(), size, weight.data(), size, bias ? C(1) : C(0),
                   sums, width_});
    if constexpr (is_half_v<T>) store_contiguous(sums, rows * width_, gates);
  }

  const Cell& cell_;
  const Sequence& sequence_;
  Forward<T> task_;
  int64_t hidden_, width_, kept_;
  Numbers<T> weight_, bias_, input_bias_;
};

template <typename Cell, typename T>
void run_forward(const Cell& cell, const Sequence& sequence, const Forward<T>& task) {
  if (!sequence.empty()) return ForwardWalk<Cell, T>(cell, sequence, task).run();
  if (Cell::has_cell && task.last_cell) std::copy_n(task.c0, sequence.batch * sequence.hidden, task.last_cell);
}

}  // namespace recurrent
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
