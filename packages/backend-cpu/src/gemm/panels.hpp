// Products with a common right factor, which is packed once, into panels as wide as a register
// block. For one product, see gemm/panel_gemm.hpp.
//
// Each element of a result is a sum along k in parts of a fixed length. It does not depend on how
// many rows are multiplied at once, so callers may divide rows among threads as they like.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "gemm/register_blocks.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// A panel is four registers wide. With this many rows the sums fill the registers and leave room
// for the factors.
constexpr int panel_vectors = 4;
constexpr int panel_rows = math::Vec<float>::size == 16 ? 6 : 2;
// Rows of a panel that are multiplied per pass: they stay in L1, and shorter sums have smaller
// rounding errors.
constexpr int64_t panel_depth = 128;

// A k × n matrix in panels of `width` columns, padded with zeros.
template <typename C>
class Panels {
 public:
  static constexpr int64_t lanes = math::Vec<C>::size, width = panel_vectors * lanes;

  // first(p, v) returns the first column and the number of columns in register v of panel p.
  // `transposed`: `matrix` is n × k. Rows of `matrix` lie `step` elements apart.
  template <typename First>
  Panels(const C* matrix, int64_t step, bool transposed, int64_t k, int64_t count, First first) : Panels(k, count) {
    parallel_for(count, grain_for(k * width), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        for (int v = 0; v < panel_vectors; ++v) {
          const auto [column, columns] = first(p, v);
          C* to = panel(p) + v * lanes;
          if (columns < lanes)
            for (int64_t i = 0; i < k; ++i) std::fill_n(to + i * width + columns, lanes - columns, C(0));
          pack_columns(matrix, step, transposed, k, column, columns, to, width);
        }
    });
  }

  // Panels that the caller fills. One register of padding between them keeps equal offsets of all
  // panels out of the same cache set.
  Panels(int64_t k, int64_t count) : k_(k), step_(k * width + lanes), memory_(count * (k * width + lanes)) {}

  C* panel(int64_t p) { return memory_.data() + p * step_; }

  // sums += a @ panel p for `rows` rows of sums, which lie `width` elements apart. `vectors`: how
  // many registers of the panel are used.
  void multiply(int64_t p, const C* a, int64_t a_step, int64_t rows, C* sums, int vectors = panel_vectors) {
    multiply_panel(panel(p), k_, a, a_step, 1, rows, sums, vectors);
  }

  // The same for any panel of k rows, and with columns of a `a_next` elements apart. Without `add`,
  // sums are not read.
  static void multiply_panel(const C* panel, int64_t k, const C* a, int64_t a_step, int64_t a_next, int64_t rows,
                             C* sums, int vectors = panel_vectors, bool add = true) {
    multiply_panel(panel, k, a, a_step, a_next, rows, sums, vectors, add, [](int64_t, int64_t) {});
  }

  // before(i, n) is called before pass i of n, so that callers can prefetch.
  template <typename F>
  static void multiply_panel(const C* panel, int64_t k, const C* a, int64_t a_step, int64_t a_next, int64_t rows,
                             C* sums, int vectors, bool add, F&& before) {
    for (int64_t i = 0; i < k; i += panel_depth) {
      before(i / panel_depth, (k + panel_depth - 1) / panel_depth);
      const int64_t depth = std::min(panel_depth, k - i);
      const Part part{a + i * a_next, a_step, a_next, panel + i * width, depth, add || i > 0};
      switch (vectors) {
        case 1:
          multiply_rows<1>(part, rows, sums);
          break;
        case 2:
          multiply_rows<2>(part, rows, sums);
          break;
        default:
          multiply_rows<4>(part, rows, sums);
      }
    }
  }

 private:
  struct Part {
    const C* a;
    int64_t a_step, a_next;
    const C* panel;
    int64_t depth;
    bool add;
  };
  template <int vectors>
  static void multiply_rows(const Part& part, int64_t rows, C* sums) {
    for_row_blocks<panel_rows>(rows, [&](int64_t at, int64_t count) {
      multiply_some<vectors>(std::make_integer_sequence<int, panel_rows>{}, count, part, at, sums + at * width);
    });
  }
  template <int vectors, int... counts>
  static void multiply_some(std::integer_sequence<int, counts...>, int64_t rows, const Part& part, int64_t at,
                            C* sums) {
    (void)((rows == counts + 1 && (multiply_block<counts + 1, vectors>(part, at, sums), true)) || ...);
  }
  template <int rows, int vectors>
  [[gnu::noinline]] static void multiply_block(const Part& part, int64_t at, C* sums) {
    part.add ? multiply_block<rows, vectors, true>(part, at, sums)
             : multiply_block<rows, vectors, false>(part, at, sums);
  }
  template <int rows, int vectors, bool add>
  [[gnu::always_inline]] static void multiply_block(const Part& part, int64_t at, C* sums) {
    using V = math::Vec<C>;
    V sum[rows][vectors];
    sum_products<rows, vectors>(part.a + at * part.a_step, part.a_step, part.a_next, part.panel, width, part.depth, sum,
                                [](const C* from, int) { return V::load(from); });
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        C* to = sums + r * width + v * V::size;
        if constexpr (add)
          (V::load(to) + sum[r][v]).store(to);
        else
          sum[r][v].store(to);
      }
  }

  int64_t k_, step_;
  Scratch<C> memory_;
};

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
