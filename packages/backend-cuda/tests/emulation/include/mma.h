// Products of small matrices by a warp. The first thread of the warp holds the whole matrix; the
// fragments of the other threads are empty.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <array>

#include "halves.hpp"

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

namespace detail {

inline bool leads() {
  return threadIdx.x % 32 == 0;
}
inline float number(const __half& raw) {
  return static_cast<float>(std::bit_cast<_Float16>(raw));
}
inline float number(const __nv_bfloat16& raw) {
  return std::bit_cast<float>(static_cast<uint32_t>(std::bit_cast<uint16_t>(raw)) << 16);
}
// Checks the alignment that the hardware requires.
inline void check(const void* address, unsigned leading, size_t size) {
  if (reinterpret_cast<uintptr_t>(address) % 32 != 0 || leading * size % 16 != 0) __builtin_trap();
}

}  // namespace detail

// Rows and columns by use: (m, k), (k, n) or (m, n).
template <typename Use, int m, int n, int k, typename T, typename Order = void>
struct fragment {
  static constexpr int rows = std::is_same_v<Use, matrix_b> ? k : m, columns = std::is_same_v<Use, matrix_a> ? k : n;
  std::array<std::array<float, columns>, rows> values;
};

template <typename Fragment>
void fill_fragment(Fragment& to, float value) {
  if (!detail::leads()) return;
  for (auto& row : to.values) row.fill(value);
}

template <typename Use, int m, int n, int k, typename T, typename Order>
void load_matrix_sync(fragment<Use, m, n, k, T, Order>& to, const T* from, unsigned leading) {
  detail::check(from, leading, sizeof(T));
  if (!detail::leads()) return;
  for (int i = 0; i < to.rows; ++i)
    for (int j = 0; j < to.columns; ++j)
      to.values[i][j] =
          detail::number(std::is_same_v<Order, row_major> ? from[i * leading + j] : from[j * leading + i]);
}

template <int m, int n, int k>
void store_matrix_sync(float* to, const fragment<accumulator, m, n, k, float>& from, unsigned leading,
                       layout_t layout) {
  detail::check(to, leading, sizeof(float));
  if (!detail::leads()) return;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) to[layout == mem_row_major ? i * leading + j : j * leading + i] = from.values[i][j];
}

template <int m, int n, int k, typename T, typename A, typename B>
void mma_sync(fragment<accumulator, m, n, k, float>& to, const fragment<matrix_a, m, n, k, T, A>& a,
              const fragment<matrix_b, m, n, k, T, B>& b, const fragment<accumulator, m, n, k, float>& added) {
  if (!detail::leads()) return;
  for (int i = 0; i < m; ++i) {
    std::array<float, n> sums = added.values[i];
    for (int p = 0; p < k; ++p)
      for (int j = 0; j < n; ++j) sums[j] += a.values[i][p] * b.values[p][j];
    to.values[i] = sums;
  }
}

}  // namespace nvcuda::wmma
