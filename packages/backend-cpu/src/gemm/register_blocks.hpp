// Register blocks: a few rows of a product, a few registers wide, whose sums stay in registers.
// They make up both kinds of our own products: panel_gemm (gemm/panel_loops.cpp) packs its right
// factor anew in each call, and Panels (gemm/panels.hpp) is a factor packed once for many calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "memory/transpose.hpp"
#include "simd/vec.hpp"

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

// Packs `columns` columns of a k × n matrix, from `column` on, into rows that lie `pitch` elements
// apart. `transposed`: `matrix` is n × k. Rows of `matrix` lie `step` elements apart.
template <typename C>
void pack_columns(const C* matrix, int64_t step, bool transposed, int64_t k, int64_t column, int64_t columns, C* to,
                  int64_t pitch) {
  if (!transposed) {
    for (int64_t i = 0; i < k; ++i) std::copy_n(matrix + i * step + column, columns, to + i * pitch);
    return;
  }
  using Bits = std::conditional_t<sizeof(C) == 4, uint32_t, uint64_t>;
  for (int64_t i = 0; i < k; i += 16)
    transpose_bits(reinterpret_cast<Bits*>(to + i * pitch), pitch,
                   reinterpret_cast<const Bits*>(matrix + column * step + i), step, columns,
                   std::min<int64_t>(16, k - i));
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
