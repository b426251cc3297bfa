// Products of matrices so small that a library call costs more than the product. Sums of a row stay
// in registers.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "dtypes.hpp"
#include "gemm/matrix.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

namespace tiny {

// The accumulator of products of T; integers wrap.
template <typename T>
using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <typename T>
using Sum =
    typename std::conditional_t<is_integer_v<T>, std::type_identity<Wide<T>>, std::type_identity<compute_t<T>>>::type;

// Columns computed at once.
template <typename T>
constexpr int widest = is_complex_v<T> ? 4 : 8;

// Computes columns [first, first + N). The columns of b and c are contiguous.
template <typename T, int N>
void columns(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c, int64_t first) {
  for (int64_t i = 0; i < c.rows; ++i) {
    const T *left = a.data + i * a.row_stride, *right = b.data + first;
    T* to = c.data + i * c.row_stride + first;
    if constexpr (is_complex_v<T>) {
      // Separate sums for the real and imaginary parts of a. They are combined once, at the end.
      using R = real_t<T>;
      R by_real[2 * N] = {}, by_imaginary[2 * N] = {};
      for (int64_t p = 0; p < a.columns; ++p, left += a.column_stride, right += b.row_stride) {
        const R real = left->real(), imaginary = left->imag(), *row = reinterpret_cast<const R*>(right);
        for (int j = 0; j < 2 * N; ++j) by_real[j] += real * row[j], by_imaginary[j] += imaginary * row[j];
      }
      for (int j = 0; j < N; ++j)
        to[j] = T(by_real[2 * j] - by_imaginary[2 * j + 1], by_real[2 * j + 1] + by_imaginary[2 * j]);
    } else {
      Sum<T> sums[N] = {};
      for (int64_t p = 0; p < a.columns; ++p, left += a.column_stride, right += b.row_stride) {
        const auto value = static_cast<Sum<T>>(*left);
        for (int j = 0; j < N; ++j) sums[j] += value * static_cast<Sum<T>>(right[j]);
      }
      for (int j = 0; j < N; ++j) to[j] = static_cast<T>(sums[j]);
    }
  }
}

// columns() for `count` columns, at most N, known at run time only.
template <typename T, int N = widest<T>>
void few_columns(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c, int64_t first, int64_t count) {
  if constexpr (N > 1)
    if (count < N) return few_columns<T, N - 1>(a, b, c, first, count);
  columns<T, N>(a, b, c, first);
}

}  // namespace tiny

template <typename T>
void multiply_tiny(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c) {
  if (b.column_stride == 1 && c.column_stride == 1) {
    for (int64_t first = 0; first < c.columns; first += tiny::widest<T>)
      tiny::few_columns<T>(a, b, c, first, std::min<int64_t>(tiny::widest<T>, c.columns - first));
    return;
  }
  using Sum = tiny::Sum<T>;
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.columns; ++j) {
      const T *left = a.data + i * a.row_stride, *right = b.data + j * b.column_stride;
      Sum sum{0};
      for (int64_t p = 0; p < a.columns; ++p)
        sum += static_cast<Sum>(left[p * a.column_stride]) * static_cast<Sum>(right[p * b.row_stride]);
      c.data[i * c.row_stride + j * c.column_stride] = static_cast<T>(sum);
    }
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
