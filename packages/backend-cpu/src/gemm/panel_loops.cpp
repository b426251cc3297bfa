#include "gemm/panel_loops.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "gemm/register_blocks.hpp"
#include "memory/allocator.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace {

// Limits of a register block: the sums fill the registers and leave room for the factors.
constexpr bool many_registers = math::Vec<float>::size == 16;
constexpr int most_vectors = many_registers ? 4 : 2;
constexpr int most_rows(int vectors) {
  return vectors == most_vectors ? 6 : 8;
}
// Rows of the right factor that are multiplied per pass.
constexpr int64_t depth = 256;

// A register block of a result: a few rows, a few registers wide.
template <typename T>
struct Block {
  const T* a;
  int64_t a_step, a_next;  // between rows, and between columns
  const T* b;
  int64_t b_step, k;
  T alpha, beta;
  T* c;
  int64_t c_step;
  int64_t last;  // columns in the last register
};

template <int rows, int vectors, bool whole, typename T>
[[gnu::noinline]] void make_block(const Block<T>& block) {
  using V = math::Vec<T>;
  // A local copy, because the compiler must assume that stores to c modify `block`.
  const Block<T> here = block;
  const auto load = [last = here.last](const T* from, int v) {
    return whole || v + 1 < vectors ? V::load(from) : V::load(from, last);
  };
  V sums[rows][vectors];
  sum_products<rows, vectors>(here.a, here.a_step, here.a_next, here.b, here.b_step, here.k, sums, load);
  const auto store = [&](auto&& result) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        T* to = here.c + r * here.c_step + v * V::size;
        const V value = result(sums[r][v] * V(here.alpha), to, v);
        if (whole || v + 1 < vectors)
          value.store(to);
        else
          value.store(to, here.last);
      }
  };
  if (here.beta == 0)
    store([](V product, const T*, int) { return product; });
  else
    store([&](V product, const T* to, int v) { return math::fma(V(here.beta), load(to, v), product); });
}

template <typename T>
using BlockLoop = void (*)(const Block<T>&);
// For one row, two rows and so on.
template <typename T, int vectors, bool whole, int... rows>
constexpr std::array<BlockLoop<T>, sizeof...(rows)> loops_for(std::integer_sequence<int, rows...>) {
  return {make_block<rows + 1, vectors, whole, T>...};
}
template <typename T, int vectors, bool whole>
constexpr auto loops = loops_for<T, vectors, whole>(std::make_integer_sequence<int, most_rows(vectors)>{});

template <int vectors, bool whole, typename T>
void multiply_rows(Block<T> block, int64_t rows) {
  const T* const a = block.a;
  T* const c = block.c;
  for_row_blocks<most_rows(vectors)>(rows, [&](int64_t at, int64_t count) {
    block.a = a + at * block.a_step;
    block.c = c + at * block.c_step;
    loops<T, vectors, whole>[count - 1](block);
  });
}

template <typename T, int... counts>
void multiply_panel(const Block<T>& block, int64_t rows, int64_t vectors, std::integer_sequence<int, counts...>) {
  const bool whole = block.last == math::Vec<T>::size;
  (void)((vectors == counts + 1 &&
          (whole ? multiply_rows<counts + 1, true>(block, rows) : multiply_rows<counts + 1, false>(block, rows),
           true)) ||
         ...);
}

}  // namespace

template <typename T>
void panel_gemm_loop(const Gemm<T>& p) {
  constexpr int64_t lanes = math::Vec<T>::size;
  // Rows that are read often are packed, so that those of a panel are contiguous.
  constexpr int64_t many_columns = 64, many_rows = 128, deep = 128;
  const bool packs = p.transpose_b || (p.n > many_columns ? p.m >= many_rows : p.m >= 2 * many_rows && p.k >= deep);
  const int64_t vectors = (p.n + lanes - 1) / lanes, panels = (vectors + most_vectors - 1) / most_vectors;
  std::optional<Scratch<T>> packed;
  if (packs) packed.emplace(std::min(depth, p.k) * std::min<int64_t>(vectors, most_vectors) * lanes);
  for (int64_t row = 0; row < p.k; row += depth) {
    const int64_t k = std::min(depth, p.k - row);
    for (int64_t panel = 0, first = 0; panel < panels; ++panel) {
      const int64_t end = end_of_share(vectors, panel, panels), wanted = end - first;
      const int64_t column = first * lanes, columns = std::min(wanted * lanes, p.n - column);
      first = end;
      Block<T> block{p.a + row * (p.transpose_a ? p.lda : 1),
                     p.transpose_a ? 1 : p.lda,
                     p.transpose_a ? p.lda : 1,
                     p.b + row * p.ldb + column,
                     p.ldb,
                     k,
                     p.alpha,
                     row == 0 ? p.beta : T(1),
                     p.c + column,
                     p.ldc,
                     columns - (wanted - 1) * lanes};
      if (packs) {
        block.b = packed->data();
        block.b_step = wanted * lanes;
        pack_columns(p.b + row * (p.transpose_b ? 1 : p.ldb), p.ldb, p.transpose_b, k, column, columns, packed->data(),
                     block.b_step);
      }
      multiply_panel(block, p.m, wanted, std::make_integer_sequence<int, most_vectors>{});
    }
  }
}
template void panel_gemm_loop(const Gemm<float>&);
template void panel_gemm_loop(const Gemm<double>&);

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
