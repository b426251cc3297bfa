// The rows of queries, keys and values as matrices, and the products of attention.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dtypes.hpp"
#include "gemm/gemm.hpp"
#include "memory/allocator.hpp"
#include "memory/transpose.hpp"
#include "simd/load_elements.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace attention {

// Rows of a matrix as BLAS takes them: unit stride within a row.
template <typename C>
struct Rows {
  const C* data;
  int64_t pitch;
};

// Rows [first, first + count) of a head of a tensor (N, H, rows, columns).
struct RowBlock {
  int64_t n, head, first, count;
  bool operator==(const RowBlock&) const = default;
};

template <typename T>
const T* first_row(const cb_tensor& tensor, const RowBlock& block) {
  return data<T>(tensor) + block.n * tensor.strides[0] + block.head * tensor.strides[1] +
         block.first * tensor.strides[2];
}

// The rows of a block: the tensor's own memory where BLAS can address it, else packed into
// `buffer`.
template <typename T>
Rows<compute_t<T>> rows_of(const cb_tensor& tensor, const RowBlock& block, compute_t<T>* buffer) {
  const int64_t columns = tensor.sizes[3], step = tensor.strides[3], pitch = tensor.strides[2];
  const T* from = first_row<T>(tensor, block);
  if constexpr (!is_half_v<T>) {
    if (step == 1 && pitch >= std::max<int64_t>(columns, 1) && pitch <= largest_leading_dimension())
      return {from, pitch};
  }
  for (int64_t i = 0; i < block.count; ++i) load_strided(from + i * pitch, step, columns, buffer + i * columns);
  return {buffer, std::max<int64_t>(columns, 1)};
}

// The same without conversion to float32, for half_product.
template <typename T>
Rows<T> half_rows_of(const cb_tensor& tensor, const RowBlock& block, T* buffer) {
  const int64_t columns = tensor.sizes[3], step = tensor.strides[3], pitch = tensor.strides[2];
  const T* from = first_row<T>(tensor, block);
  if (step == 1 && pitch >= std::max<int64_t>(columns, 1) && pitch <= largest_leading_dimension()) return {from, pitch};
  for (int64_t i = 0; i < block.count; ++i)
    for (int64_t j = 0; j < columns; ++j) buffer[i * columns + j] = from[i * pitch + j * step];
  return {buffer, std::max<int64_t>(columns, 1)};
}

// c = op(a) @ op(b) in float32; false where the processor has no instructions for it.
template <typename T>
bool half_product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, Rows<T> a, Rows<T> b, float* c,
                  int64_t pitch) {
  return half_gemm(
      {dtype_v<T>, transpose_a, transpose_b, m, n, k, a.data, a.pitch, b.data, b.pitch, nullptr, c, pitch, true});
}

// For products so small that calling a library costs more than computing them.
template <bool transpose_a, bool transpose_b, typename C>
void small_product(int64_t m, int64_t n, int64_t k, C alpha, Rows<C> a, Rows<C> b, C beta, C* c, int64_t pitch) {
  const int64_t a_row = transpose_a ? 1 : a.pitch, a_column = transpose_a ? a.pitch : 1;
  for (int64_t i = 0; i < m; ++i) {
    C* row = c + i * pitch;
    if (beta == 0) std::fill_n(row, n, C(0));
    if constexpr (transpose_b) {
      for (int64_t j = 0; j < n; ++j) {
        C sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += a.data[i * a_row + p * a_column] * b.data[j * b.pitch + p];
        row[j] += alpha * sum;
      }
    } else {
      for (int64_t p = 0; p < k; ++p) {
        const C factor = alpha * a.data[i * a_row + p * a_column];
        for (int64_t j = 0; j < n; ++j) row[j] += factor * b.data[p * b.pitch + j];
      }
    }
  }
}

// c = alpha * op(a) @ op(b) + beta * c with beta 0 or 1, where any side may be empty.
template <bool transpose_a, bool transpose_b, typename C>
void product(int64_t m, int64_t n, int64_t k, C alpha, Rows<C> a, Rows<C> b, C beta, C* c, int64_t pitch) {
  constexpr int64_t small = 4096;
  if (m * n * k <= small) return small_product<transpose_a, transpose_b>(m, n, k, alpha, a, b, beta, c, pitch);
  gemm(Gemm<C>{transpose_a, transpose_b, m, n, k, alpha, a.data, a.pitch, b.data, b.pitch, beta, c, pitch});
}

// c = alpha * a @ rows^T for several a. A small set of rows is transposed first: MKL is slower with
// a small transposed factor. Forward and backward compute the scores by the same products, so that
// both get the same numbers.
template <typename C>
class ProductWithRows {
 public:
  ProductWithRows(int64_t most_rows, int64_t width, int64_t products)
      : width_(width),
        reused_(products > 1 && width > 0),
        transposed_(reused_ ? std::min(most_numbers, most_rows * width) : 0) {}

  void set(Rows<C> rows, int64_t count) {
    rows_ = rows;
    count_ = count;
    is_transposed_ = reused_ && count * width_ <= most_numbers;
    if (is_transposed_) transpose_tile(transposed_.data(), count, rows.data, rows.pitch, count, width_);
  }
  void multiply(int64_t m, C alpha, Rows<C> a, C* c, int64_t pitch) {
    if (is_transposed_)
      product<false, false, C>(m, count_, width_, alpha, a, {transposed_.data(), count_}, 0, c, pitch);
    else
      product<false, true, C>(m, count_, width_, alpha, a, rows_, 0, c, pitch);
  }

 private:
  static constexpr int64_t most_numbers = 32768;
  int64_t width_, count_ = 0;
  bool reused_, is_transposed_ = false;
  Rows<C> rows_{};
  Scratch<C> transposed_;
};

}  // namespace attention
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
