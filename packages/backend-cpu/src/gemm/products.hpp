// Matrix products for operators. A product is bitwise the same in place, with `out=` and in new
// memory.
//
// The libraries do not guarantee this. MKL and oneDNN round differently with a beta. In oneDNN, the
// leading dimension of c changes how long sums are split. A transposed c exchanges the operands.
// MKL guarantees equal results only for equal alignment. So every product is computed as for a new
// result: without a beta, in contiguous rows, at the same offset from a 64-byte boundary. If c has
// another layout or overlaps `self`, the product is computed in scratch memory and copied.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "gemm/matrix.hpp"
#include "memory/allocator.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// The offset in bytes of matrix `index` from an alignment boundary, in a newly allocated batch of
// matrices of `size` elements.
template <typename T>
int64_t position_in_batch(int64_t index, int64_t size) {
  constexpr auto boundary = static_cast<int64_t>(memory_alignment);
  return index % boundary * (size % boundary) * static_cast<int64_t>(sizeof(T)) % boundary;
}

// Whether c has the layout of a new result that begins `position` bytes after a boundary.
template <typename T>
bool lies_as_new(const Matrix<T>& c, int64_t position = 0) {
  return (c.column_stride == 1 || c.columns == 1) && c.leading_dimension() == c.columns &&
         static_cast<int64_t>(reinterpret_cast<uintptr_t>(c.data) % memory_alignment) == position;
}

template <typename T>
bool overlap(const Matrix<const T>& a, const Matrix<T>& b) {
  const auto bounds = [](const auto& matrix) {
    int64_t low = 0, high = 1;
    (matrix.row_stride < 0 ? low : high) += (matrix.rows - 1) * matrix.row_stride;
    (matrix.column_stride < 0 ? low : high) += (matrix.columns - 1) * matrix.column_stride;
    const auto at = static_cast<int64_t>(reinterpret_cast<uintptr_t>(matrix.data)),
               size = static_cast<int64_t>(sizeof(T));
    return std::pair(at + low * size, at + high * size);
  };
  const auto [a_begin, a_end] = bounds(a);
  const auto [b_begin, b_end] = bounds(b);
  return a_begin < b_end && b_begin < a_end;
}

// c = activation(alpha * a @ b + beta * self). Requires lies_as_new(c), no overlap of c and self,
// no empty side, and beta != 0. Adding `self` afterwards is faster than a BLAS call with a beta.
// The half precisions are rounded once.
template <typename T>
void multiply_and_add_as_new(const Matrix<const T>& a, const Matrix<const T>& b, T alpha, T beta,
                             const Matrix<const T>& self, const Matrix<T>& c, Activation activation) {
  if (a.columns == 0) {
    copy_matrix<T>(self, c);
    return multiply<T>(a, b, alpha, beta, c, activation);
  }
  if constexpr (is_integer_v<T> || is_complex_v<T>) {
    multiply<T>(a, b, alpha, T{0}, c);
    add_matrix<T>(beta, self, c, activation);
  } else {
    using C = compute_t<T>;
    const bool one_row = self.row_stride == 0 || c.rows == 1;
    if constexpr (is_half_v<T>)
      if (one_row && static_cast<C>(alpha) == C{1} && static_cast<C>(beta) == C{1}) {
        Scratch<T> row(c.columns);
        for (int64_t j = 0; j < c.columns; ++j) row[j] = self.data[j * self.column_stride];
        return multiply_half<T>(a, b, 1, 0, nullptr, 0, row.data(), c, activation);
      }
    Epilogue<T> finish{self.data, self.row_stride, beta, activation};
    std::unique_ptr<Scratch<T>> packed;
    if (self.column_stride != 1 && c.columns != 1) {
      const int64_t rows = one_row ? 1 : c.rows;
      packed = std::make_unique<Scratch<T>>(rows * c.columns);
      copy_matrix<T>({self.data, rows, c.columns, self.row_stride, self.column_stride},
                     {packed->data(), rows, c.columns, c.columns, 1});
      finish.added = packed->data();
      finish.added_step = one_row ? 0 : c.columns;
    }
    multiply_into_rows<T>(a, b, alpha, T(0), c, finish);
  }
}

// c = activation(alpha * a @ b + beta * self) for any sizes and strides. self may be c. With
// beta == 0, self is not read. `position` is the offset in bytes from a 64-byte boundary that a new
// c would have.
template <typename T>
void multiply_and_add(const Matrix<const T>& a, const Matrix<const T>& b, T alpha, T beta, const Matrix<const T>& self,
                      const Matrix<T>& c, Activation activation = Activation::none, int64_t position = 0) {
  if (c.rows == 0 || c.columns == 0) return;
  using C = compute_t<T>;
  const bool adds = static_cast<C>(beta) != C{0};
  const auto make = [&](const Matrix<T>& result) {
    if (adds) return multiply_and_add_as_new<T>(a, b, alpha, beta, self, result, activation);
    multiply<T>(a, b, alpha, T{0}, result, activation);
  };
  if (lies_as_new(c, position) && !(adds && overlap<T>(self, c))) return make(c);
  const int64_t skipped = position / static_cast<int64_t>(sizeof(T));
  Scratch<T> memory(skipped + c.rows * c.columns);
  const Matrix<T> result{memory.data() + skipped, c.rows, c.columns, c.columns, 1};
  make(result);
  copy_matrix<T>({result.data, c.rows, c.columns, c.columns, 1}, c);
}

// c = a @ b, for any sizes and strides.
template <typename T>
void multiply_to(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c) {
  multiply_and_add<T>(a, b, T(1), T(0), {}, c);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
