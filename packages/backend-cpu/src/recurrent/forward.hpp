// All steps of a recurrent layer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "../matmul/gemm.hpp"
#include "cells.hpp"
#include "factor.hpp"
#include "sequence.hpp"
#include "walk.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace recurrent {

// What is null is not there, or not wanted.
template <typename T>
struct Forward {
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
        bias_(task.bias, width_) {}

  void run() {
    const Matrix matrix{weight_.data(), hidden_, width_, true};
    switch (way_of<C>(sequence_, Cell::gates)) {
      case Way::as_it_lies:
        return as_it_lies();
      case Way::tiles:
        if constexpr (std::is_same_v<C, float> && lanes == tile_columns) {
          TileFactor factor(matrix, panels(), columns());
          return by_panels(factor);
        }
        break;
      case Way::vectors: {
        VectorFactor<C> factor(matrix, panels(), columns());
        return by_panels(factor);
      }
    }
  }

 private:
  // Some rows at a step, in numbers to compute with.
  struct Step {
    const C *gates, *h;
    C *after, *c;              // the states after it; the cells before and after
    C *output, *cells, *kept;  // further places for them, and for what is kept

    Step from(int64_t row, int64_t width, int64_t hidden, int64_t kept_width) const {
      const int64_t state = row * hidden;
      return {gates + row * width,
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
      const int64_t unit = panel * units + (Cell::gates == 1 ? vector * lanes : 0), gate = Cell::gates == 1 ? 0 : vector;
      return std::pair<int64_t, int64_t>{gate * hidden + std::min(unit, hidden), std::clamp<int64_t>(hidden - unit, 0, lanes)};
    };
  }

  // Sums of gates become states: of the rows from `begin` to `end` and the `n` units from j on, of which `sums` has the gates
  // `gate_step` elements apart, rows `sums_step` apart.
  void finish(const Step& step, const C* sums, int64_t sums_step, int64_t gate_step, int64_t begin, int64_t end, int64_t j,
              int64_t n) const {
    StepForward<C, Cell::gates> s;
    if constexpr (Cell::has_bias)
      for (int gate = 0; gate < Cell::gates; ++gate)
        s.bias[gate] = bias_.data() ? V::load(bias_.data() + gate * hidden_ + j, n) : V(C(0));
    for (int64_t row = begin; row < end; ++row) {
      const C* given = step.gates + row * width_ + j;
#pragma GCC unroll 4
      for (int gate = 0; gate < Cell::gates; ++gate) {
        s.sums[gate] = V::load(sums + row * sums_step + gate * gate_step, n);
        s.given[gate] = V::load(given + gate * hidden_, n);
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

  // What comes after a product lies far apart, a line here and there: it is asked for before.
  void ask(const Step& step, int64_t row, int64_t j) const {
    for (int gate = 0; gate < Cell::gates; ++gate) __builtin_prefetch(step.gates + row * width_ + gate * hidden_ + j);
    if (step.kept)
      for (int i = 0; i < Cell::kept; ++i) __builtin_prefetch(step.kept + row * kept_ + i * hidden_ + j, 1);
    if (step.cells) __builtin_prefetch(step.cells + row * hidden_ + j, 1);
    if (step.output) __builtin_prefetch(step.output + row * hidden_ + j, 1);
  }

  int vectors_of(int64_t here) const { return Cell::gates == 1 ? static_cast<int>((here + lanes - 1) / lanes) : Cell::gates; }

  // The product with some panels, and what is made of it, on one thread. `sums` has `room` for it.
  template <typename Worker>
  static int64_t room(int64_t rows) {
    return VectorFactor<C>::width * (Worker::interleaves ? 2 * rows : together(rows));
  }
  static int64_t together(int64_t rows) { return std::min<int64_t>(rows, 2 * panel_rows); }

  template <typename Worker>
  void multiply(Worker& worker, const Step& step, int64_t rows, int64_t begin, int64_t end, C* sums) const {
    constexpr int64_t wide = VectorFactor<C>::width;
    if constexpr (Worker::interleaves) {
      worker.take(step.h, hidden_, rows);
      // Sums of a panel are finished while the next one is multiplied.
      const auto finish_panel = [&](int64_t panel, int64_t from, int64_t to) {
        const int64_t unit = panel * units, here = std::min(units, hidden_ - unit);
        const C* of_panel = sums + panel % 2 * rows * wide;
        for (int64_t j = 0; j < here; j += lanes)
          finish(step, of_panel + j, wide, lanes, from, to, unit + j, std::min(lanes, here - j));
      };
      for (int64_t panel = begin; panel < end; ++panel)
        worker.multiply(panel, sums + panel % 2 * rows * wide, vectors_of(std::min(units, hidden_ - panel * units)),
                        [&](int64_t part, int64_t parts) {
                          const int64_t from = part * rows / parts, to = (part + 1) * rows / parts;
                          if (panel > begin && from < to) finish_panel(panel - 1, from, to);
                        });
      if (begin < end) finish_panel(end - 1, 0, rows);
    } else {
      for (int64_t panel = begin; panel < end; ++panel) {
        const int64_t unit = panel * units, here = std::min(units, hidden_ - unit), each = together(rows);
        for (int64_t first = 0; first < rows; first += each) {
          const int64_t count = std::min(each, rows - first);
          const Step part = step.from(first, width_, hidden_, kept_);
          worker.take(part.h, hidden_, count);
          worker.multiply(panel, sums, vectors_of(here), [&](int64_t i, int64_t of) {
            for (int64_t row = i * count / of; row < (i + 1) * count / of; ++row)
              for (int64_t j = unit; j < unit + here; j += lanes) ask(part, row, j);
          });
          for (int64_t j = 0; j < here; j += lanes)
            finish(part, sums + j, wide, lanes, 0, count, unit + j, std::min(lanes, here - j));
        }
      }
    }
  }

  // All steps of some rows; compute(step, rows) does one.
  template <typename Compute>
  void all_steps(int64_t first, int64_t all, Compute&& compute) const {
    constexpr bool half = is_half_v<T>;
    Scratch<C> states(2 * all * hidden_), cells(Cell::has_cell ? all * hidden_ : 0);
    Scratch<C> pre(half ? all * width_ : 0), active(half && task_.kept ? all * kept_ : 0);
    C *before = states.data(), *after = before + all * hidden_;
    // Where sequences begin later than others, states stay as they are until then.
    for (C* to : {before, after}) load(task_.h0 + first * hidden_, to, all * hidden_);
    if constexpr (Cell::has_cell) load(task_.c0 + first * hidden_, cells.data(), all * hidden_);
    for (int64_t number = 0; number < sequence_.steps; ++number) {
      const int64_t rows = std::min(all, sequence_.rows(number) - first), at = sequence_.at(number, first);
      if (rows <= 0) continue;
      if constexpr (half) {
        load(task_.gates + at * width_, pre.data(), rows * width_);
        compute(Step{pre.data(), before, after, cells.data(), nullptr, nullptr, task_.kept ? active.data() : nullptr}, rows);
        store(after, task_.output + at * hidden_, rows * hidden_);
        if (task_.cells) store(cells.data(), task_.cells + at * hidden_, rows * hidden_);
        if (task_.kept) store(active.data(), task_.kept + at * kept_, rows * kept_);
      } else {
        compute(Step{task_.gates + at * width_, before, after, cells.data(), task_.output + at * hidden_,
                     task_.cells ? task_.cells + at * hidden_ : nullptr, task_.kept ? task_.kept + at * kept_ : nullptr},
                rows);
      }
      std::swap(before, after);
      // A row that has ended is not read again; one that has not begun has its first state in both places.
    }
    if (Cell::has_cell && task_.last_cell) store(cells.data(), task_.last_cell + first * hidden_, all * hidden_);
  }

  template <typename Factor>
  void by_panels(Factor& factor) {
    using Worker = typename Factor::Worker;
    const int64_t work = width_ * hidden_ / 8;
    if (width_ * hidden_ * static_cast<int64_t>(sizeof(C)) > divided_weight) {
      all_steps(0, sequence_.batch, [&](const Step& step, int64_t rows) {
        parallel_for(panels(), grain_for(rows * units * Cell::gates * hidden_ / 8), [&](int64_t begin, int64_t end) {
          Worker worker(factor, rows);
          Scratch<C> sums(room<Worker>(rows));
          multiply(worker, step, rows, begin, end, sums.data());
        });
      });
    } else {
      for_blocks_of_rows(sequence_, work, [&](int64_t begin, int64_t end) {
        const int64_t most = std::min(block, end - begin);
        Worker worker(factor, most);
        Scratch<C> sums(room<Worker>(most));
        for (int64_t first = begin; first < end; first += block)
          all_steps(first, std::min(block, end - first),
                    [&](const Step& step, int64_t rows) { multiply(worker, step, rows, 0, panels(), sums.data()); });
      });
    }
  }

  void as_it_lies() {
    Scratch<C> sums(sequence_.batch * width_);
    all_steps(0, sequence_.batch, [&](const Step& step, int64_t rows) {
      gemm(Gemm<C>{false, true, rows, width_, hidden_, 1, step.h, hidden_, weight_.data(), hidden_, 0, sums.data(), width_});
      for (int64_t j = 0; j < hidden_; j += lanes)
        finish(step, sums.data() + j, width_, hidden_, 0, rows, j, std::min(lanes, hidden_ - j));
    });
  }

  const Cell& cell_;
  const Sequence& sequence_;
  const Forward<T>& task_;
  int64_t hidden_, width_, kept_;
  Numbers<T> weight_, bias_;
};

template <typename Cell, typename T>
void run_forward(const Cell& cell, const Sequence& sequence, const Forward<T>& task) {
  if (!sequence.empty()) return ForwardWalk<Cell, T>(cell, sequence, task).run();
  if (Cell::has_cell && task.last_cell) std::copy_n(task.c0, sequence.batch * sequence.hidden, task.last_cell);
}

}  // namespace recurrent
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
