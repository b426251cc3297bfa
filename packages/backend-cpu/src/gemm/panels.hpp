// Products with a common factor, which is packed once, into panels as wide as a register block.
//
// Each element of a result is a sum along k in parts of a fixed length. It does not depend on how
// many rows are multiplied at once, so callers may divide rows among threads as they like.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "memory/allocator.hpp"
#include "memory/transpose.hpp"
#include "simd/vec.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// End of share i of `count`. The single share of tiny products avoids a division, which would be
// most of the work.
inline int64_t end_of_share(int64_t size, int64_t i, int64_t count) {
  return count == 1 ? size : size * (i + 1) / count;
}

// Calls f(first row, rows) for blocks of at most `most` rows. They have nearly the same number of
// rows: a block of six and one of one would leave registers unused.
template <int64_t most, typename F>
[[gnu::always_inline]] inline void for_row_blocks(int64_t rows, F&& f) {
  const int64_t blocks = (rows + most - 1) / most;
  for (int64_t i = 0, at = 0; i < blocks; ++i) {
    const int64_t end = end_of_share(rows, i, blocks);
    f(at, end - at);
    at = end;
  }
}

// A panel is four registers wide. With this many rows the sums fill the registers and leave room
// for the factors.
constexpr int panel_vectors = 4;
constexpr int panel_rows = math::Vec<float>::size == 16 ? 6 : 2;
// Rows of a panel that are multiplied per pass: they stay in L1, and shorter sums have smaller
// rounding errors.
constexpr int64_t panel_depth = 128;

// sum = a @ panel for `rows` rows, in registers. a has k columns that lie `a_next` elements apart.
// The panel has k rows of `vectors` registers that lie `width` elements apart. load(from, v) loads
// register v of such a row.
template <int rows, int vectors, typename C, typename Load>
[[gnu::always_inline]] inline void sum_products(const C* a, int64_t a_step, int64_t a_next, const C* panel,
                                                int64_t width, int64_t k, math::Vec<C> (&sum)[rows][vectors],
                                                Load&& load) {
  using V = math::Vec<C>;
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sum[r][v] = V(C(0));
  for (int64_t p = 0; p < k; ++p) {
    V factor[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) factor[v] = load(panel + p * width + v * V::size, v);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const V one(a[r * a_step]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] = math::fma(one, factor[v], sum[r][v]);
    }
    a += a_next;
  }
}

// The same in memory: sums += a @ panel, or without `add` sums = a @ panel.
template <int rows, int vectors, bool add, typename C>
[[gnu::always_inline]] inline void multiply_block(const C* a, int64_t a_step, int64_t a_next, const C* panel,
                                                  int64_t width, int64_t k, C* sums, int64_t sums_step) {
  using V = math::Vec<C>;
  V sum[rows][vectors];
  sum_products<rows, vectors>(a, a_step, a_next, panel, width, k, sum,
                              [](const C* from, int) { return V::load(from); });
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      C* to = sums + r * sums_step + v * V::size;
      if constexpr (add)
        (V::load(to) + sum[r][v]).store(to);
      else
        sum[r][v].store(to);
    }
}

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
          if (transposed) {
            using Bits = std::conditional_t<sizeof(C) == 4, uint32_t, uint64_t>;
            for (int64_t i = 0; i < k; i += 16)
              transpose_bits(reinterpret_cast<Bits*>(to + i * width), width,
                             reinterpret_cast<const Bits*>(matrix + column * step + i), step, columns,
                             std::min<int64_t>(16, k - i));
          } else {
            for (int64_t i = 0; i < k; ++i) std::copy_n(matrix + i * step + column, columns, to + i * width);
          }
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
          rows_of<1>(part, rows, sums);
          break;
        case 2:
          rows_of<2>(part, rows, sums);
          break;
        default:
          rows_of<4>(part, rows, sums);
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
  static void rows_of(const Part& part, int64_t rows, C* sums) {
    for_row_blocks<panel_rows>(rows, [&](int64_t at, int64_t count) {
      one_block<vectors>(std::make_integer_sequence<int, panel_rows>{}, count, part, at, sums + at * width);
    });
  }
  template <int vectors, int... counts>
  static void one_block(std::integer_sequence<int, counts...>, int64_t rows, const Part& part, int64_t at, C* sums) {
    (void)((rows == counts + 1 && (block<counts + 1, vectors>(part, at, sums), true)) || ...);
  }
  template <int rows, int vectors>
  [[gnu::noinline]] static void block(const Part& part, int64_t at, C* sums) {
    const auto run = [&]<bool add>(std::bool_constant<add>) {
      multiply_block<rows, vectors, add, C>(part.a + at * part.a_step, part.a_step, part.a_next, part.panel, width,
                                            part.depth, sums, width);
    };
    part.add ? run(std::true_type{}) : run(std::false_type{});
  }

  int64_t k_, step_;
  Scratch<C> memory_;
};

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
