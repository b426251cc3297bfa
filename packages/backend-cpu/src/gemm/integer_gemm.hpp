// Products of integer matrices. Results wrap around.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "dtypes.hpp"
#include "gemm/register_blocks.hpp"
#include "memory/allocator.hpp"
#include "simd/intrinsics.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Products of 64-bit integers of which each fits in 32 bits. Both instruction sets multiply such
// lanes in one instruction. AVX2 takes several for 64 bits, and AVX-512 on many processors too.
namespace narrow {

#ifdef __AVX512F__
using Lanes = __m512i;
[[gnu::always_inline]] inline Lanes product(Lanes a, Lanes b) {
  return _mm512_maskz_mul_epi32(0xff, a, b);
}
#elif defined(__AVX2__)
using Lanes = __m256i;
[[gnu::always_inline]] inline Lanes product(Lanes a, Lanes b) {
  return _mm256_mul_epi32(a, b);
}
#else
using Lanes = __m128i;
[[gnu::always_inline]] inline Lanes product(Lanes a, Lanes b) {
  return _mm_mul_epi32(a, b);
}
#endif
// Sums wrap: unsigned lanes, of any alignment in memory.
using Sums [[gnu::vector_size(sizeof(Lanes)), gnu::aligned(8), gnu::may_alias]] = uint64_t;
constexpr int64_t lanes = sizeof(Lanes) / 8;
constexpr int most_rows = 6, vectors = 2;
constexpr int64_t panel_columns = vectors * lanes;

inline bool fits(const uint64_t* values, int64_t stride, int64_t n) {
  uint64_t outside = 0;
#pragma omp simd reduction(| : outside)
  for (int64_t i = 0; i < n; ++i) outside |= (values[i * stride] + (uint64_t{1} << 31)) >> 32;
  return outside == 0;
}
inline bool fits(const uint64_t* matrix, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t columns) {
  if (row_stride < column_stride) std::swap(row_stride, column_stride), std::swap(rows, columns);
  for (int64_t i = 0; i < rows; ++i)
    if (!fits(matrix + i * row_stride, column_stride, columns)) return false;
  return true;
}

// to = a @ panel for a block of rows and panel_columns columns.
template <int rows>
void multiply_block(const uint64_t* a, int64_t a_row, int64_t a_column, const uint64_t* panel, int64_t k,
                    uint64_t* to) {
  Sums sum[rows][vectors] = {};
  for (int64_t p = 0; p < k; ++p, panel += panel_columns)
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const Sums factor = Sums{} + a[r * a_row + p * a_column];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        const Sums b = *reinterpret_cast<const Sums*>(panel + v * lanes);
        sum[r][v] += reinterpret_cast<Sums>(product(reinterpret_cast<Lanes>(factor), reinterpret_cast<Lanes>(b)));
      }
    }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) *reinterpret_cast<Sums*>(to + r * panel_columns + v * lanes) = sum[r][v];
}
using BlockProduct = void (*)(const uint64_t*, int64_t, int64_t, const uint64_t*, int64_t, uint64_t*);
template <int... rows>
constexpr std::array<BlockProduct, sizeof...(rows)> block_products(std::integer_sequence<int, rows...>) {
  return {multiply_block<rows + 1>...};
}

// As integer_gemm(). b is packed once, into panels of panel_columns columns.
inline void gemm(int64_t m, int64_t n, int64_t k, uint64_t alpha, const uint64_t* a, int64_t a_row, int64_t a_column,
                 const uint64_t* b, int64_t ldb, uint64_t beta, uint64_t* c, int64_t ldc) {
  static constexpr auto products = block_products(std::make_integer_sequence<int, most_rows>{});
  const int64_t panels = (n + panel_columns - 1) / panel_columns;
  Scratch<uint64_t> packed(panels * k * panel_columns);
  parallel_for(panels, grain_for(k * panel_columns), [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * panel_columns, columns = std::min(panel_columns, n - first);
      uint64_t* to = packed.data() + panel * k * panel_columns;
      for (int64_t p = 0; p < k; ++p, to += panel_columns)
        std::fill(std::copy_n(b + p * ldb + first, columns, to), to + panel_columns, 0);
    }
  });
  parallel_for(m, grain_for(n * k), [&](int64_t begin, int64_t end) {
    alignas(64) uint64_t result[most_rows * panel_columns];
    for (int64_t panel = 0; panel < panels; ++panel) {
      const int64_t first = panel * panel_columns, columns = std::min(panel_columns, n - first);
      for_row_blocks<most_rows>(end - begin, [&](int64_t at, int64_t rows) {
        products[rows - 1](a + (begin + at) * a_row, a_row, a_column, packed.data() + first * k, k, result);
        for (int64_t r = 0; r < rows; ++r) {
          const uint64_t* from = result + r * panel_columns;
          uint64_t* to = c + (begin + at + r) * ldc + first;
          for (int64_t x = 0; x < columns; ++x) to[x] = alpha * from[x] + (beta == 0 ? 0 : beta * to[x]);
        }
      });
    }
  });
}

}  // namespace narrow

// c = alpha * a @ b + beta * c. a has any strides; rows of b and c are contiguous. With beta == 0,
// c is not read.
template <typename T>
void integer_gemm(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t a_row, int64_t a_column, const T* b,
                  int64_t ldb, T beta, T* c, int64_t ldc) {
  // Unsigned, and at least 32 bits: signed overflow is undefined, and small types would be promoted
  // to a signed int.
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  if constexpr (sizeof(T) == 8) {
    constexpr int64_t few = 8;  // rows or columns for which the checks take too long
    const auto words = [](const T* values) { return reinterpret_cast<const uint64_t*>(values); };
    if (m >= few && n >= few && narrow::fits(words(a), a_row, a_column, m, k) && narrow::fits(words(b), ldb, 1, k, n))
      return narrow::gemm(m, n, k, static_cast<U>(alpha), words(a), a_row, a_column, words(b), ldb,
                          static_cast<U>(beta), reinterpret_cast<uint64_t*>(c), ldc);
  }
  constexpr int64_t column_block = 16384 / sizeof(T);  // a row of c and some of b stay in L1
  parallel_for(m, grain_for(n * k), [&](int64_t begin, int64_t end) {
    for (int64_t j = 0; j < n; j += column_block) {
      int64_t width = std::min(column_block, n - j);
      for (int64_t i = begin; i < end; ++i) {
        T* row = c + i * ldc + j;
        if (beta == 0)
          std::fill_n(row, width, T{0});
        else if (beta != 1)
          for (int64_t x = 0; x < width; ++x) row[x] = static_cast<T>(static_cast<U>(row[x]) * static_cast<U>(beta));
        auto factor = [&](int64_t p) { return static_cast<U>(a[i * a_row + p * a_column]) * static_cast<U>(alpha); };
        int64_t p = 0;
        for (; p + 4 <= k; p += 4) {
          U f0 = factor(p), f1 = factor(p + 1), f2 = factor(p + 2), f3 = factor(p + 3);
          const T *b0 = b + p * ldb + j, *b1 = b0 + ldb, *b2 = b1 + ldb, *b3 = b2 + ldb;
#pragma omp simd
          for (int64_t x = 0; x < width; ++x)
            row[x] = static_cast<T>(static_cast<U>(row[x]) + f0 * static_cast<U>(b0[x]) + f1 * static_cast<U>(b1[x]) +
                                    f2 * static_cast<U>(b2[x]) + f3 * static_cast<U>(b3[x]));
        }
        for (; p < k; ++p) {
          U f = factor(p);
          const T* b0 = b + p * ldb + j;
#pragma omp simd
          for (int64_t x = 0; x < width; ++x)
            row[x] = static_cast<T>(static_cast<U>(row[x]) + f * static_cast<U>(b0[x]));
        }
      }
    }
  });
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
