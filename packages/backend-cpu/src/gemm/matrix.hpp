// Strided matrices, and their conversion to the operands that gemm() takes.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "dtypes.hpp"
#include "gemm/epilogue.hpp"
#include "gemm/gemm.hpp"
#include "gemm/integer_gemm.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

template <typename T>
struct Matrix {
  T* data;
  int64_t rows, columns;
  int64_t row_stride, column_stride;

  Matrix transposed() const { return {data, columns, rows, column_stride, row_stride}; }
  // BLAS can use the matrix in place: rows are contiguous and do not overlap. Strides of dimensions
  // of size 1 are ignored.
  bool has_plain_rows() const {
    return (column_stride == 1 || columns == 1) && leading_dimension() >= columns &&
           leading_dimension() <= largest_leading_dimension();
  }
  int64_t leading_dimension() const { return rows == 1 ? (columns > 1 ? columns : 1) : row_stride; }
};

// Both matrices have the same sizes.
template <typename T>
void copy_matrix(const Matrix<const T>& from, const Matrix<T>& to) {
  bool by_columns = from.row_stride < from.column_stride && from.rows > 1 && to.row_stride < to.column_stride;
  Matrix<const T> in = by_columns ? from.transposed() : from;
  Matrix<T> out = by_columns ? to.transposed() : to;
  if (in.column_stride == 1 && out.column_stride == 1) {
    parallel_for(in.rows, grain_for(in.columns), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        std::copy_n(in.data + i * in.row_stride, in.columns, out.data + i * out.row_stride);
    });
    return;
  }
  // Copy in 16 x 16 blocks, so that a transposing copy uses whole cache lines on both sides.
  constexpr int64_t side = 16;
  parallel_for((in.rows + side - 1) / side, grain_for(side * in.columns), [&](int64_t begin, int64_t end) {
    for (int64_t i0 = begin * side; i0 < std::min(end * side, in.rows); i0 += side)
      for (int64_t j0 = 0; j0 < in.columns; j0 += side) {
        int64_t i1 = std::min(i0 + side, in.rows), j1 = std::min(j0 + side, in.columns);
        for (int64_t i = i0; i < i1; ++i)
          for (int64_t j = j0; j < j1; ++j)
            out.data[i * out.row_stride + j * out.column_stride] = in.data[i * in.row_stride + j * in.column_stride];
      }
  });
}

// Applies the activation to n elements, `step` apart.
template <typename T>
void activate(Activation activation, T* numbers, int64_t step, int64_t n) {
  if (activation == Activation::none) return;
  for (int64_t j = 0; j < n; ++j)
    numbers[j * step] = T(apply_activation_number(activation, static_cast<compute_t<T>>(numbers[j * step])));
}

// Returns sum + factor * added. The FMAs are explicit: if the compiler chose them, loops over
// different strides could round differently.
template <typename T>
[[gnu::always_inline]] inline T plus_multiple(T sum, T factor, T added) {
  if constexpr (is_integer_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(factor) * static_cast<uint64_t>(added));
  } else if constexpr (is_complex_v<T>) {
    // A real factor skips the complex product, in which 0 times an infinite part would give NaN.
    if (factor.imag() == 0)
      return T(std::fma(factor.real(), added.real(), sum.real()), std::fma(factor.real(), added.imag(), sum.imag()));
    return T(std::fma(factor.real(), added.real(), std::fma(-factor.imag(), added.imag(), sum.real())),
             std::fma(factor.real(), added.imag(), std::fma(factor.imag(), added.real(), sum.imag())));
  } else {
    return std::fma(factor, added, sum);
  }
}

// to = activation(to + factor * from). A row stride of 0 broadcasts one row of `from`.
template <typename T>
void add_matrix(T factor, const Matrix<const T>& from, const Matrix<T>& to, Activation activation = Activation::none) {
  parallel_for(to.rows, grain_for(to.columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* in = from.data + i * from.row_stride;
      T* out = to.data + i * to.row_stride;
      auto add = [&](int64_t in_step, int64_t out_step) {
        for (int64_t j = 0; j < to.columns; ++j)
          out[j * out_step] = plus_multiple<T>(out[j * out_step], factor, in[j * in_step]);
      };
      const bool side_by_side = from.column_stride == 1 && to.column_stride == 1;
      if constexpr (is_complex_v<T>)
        if (side_by_side && factor.imag() == 0) {
          // With a real factor, treat the row as twice as many real numbers, which vectorizes.
          const auto* parts = reinterpret_cast<const real_t<T>*>(in);
          auto* sums = reinterpret_cast<real_t<T>*>(out);
          const real_t<T> by = factor.real();
          for (int64_t j = 0; j < 2 * to.columns; ++j) sums[j] = std::fma(by, parts[j], sums[j]);
          continue;
        }
      if (side_by_side)
        add(1, 1);
      else
        add(from.column_stride, to.column_stride);
      activate(activation, out, to.column_stride, to.columns);
    }
  });
}

// An operand of a product in a layout that BLAS accepts. Other layouts are packed first.
template <typename T>
class Factor {
 public:
  explicit Factor(const Matrix<const T>& matrix) {
    if (matrix.has_plain_rows()) {
      set(matrix.data, matrix.leading_dimension(), false);
    } else if (auto turned = matrix.transposed(); turned.has_plain_rows()) {
      set(matrix.data, turned.leading_dimension(), true);
    } else {
      packed_ = std::make_unique<Scratch<T>>(matrix.rows * matrix.columns);
      bool turn = matrix.row_stride != 0 && matrix.row_stride < matrix.column_stride;
      Matrix<const T> source = turn ? matrix.transposed() : matrix;
      copy_matrix<T>(source, {packed_->data(), source.rows, source.columns, source.columns, 1});
      set(packed_->data(), source.columns, turn);
    }
  }
  const T* data() const { return data_; }
  int64_t leading_dimension() const { return leading_dimension_; }
  bool transposed() const { return transposed_; }

 private:
  void set(const T* data, int64_t leading_dimension, bool transposed) {
    data_ = data;
    leading_dimension_ = leading_dimension;
    transposed_ = transposed;
  }
  const T* data_;
  int64_t leading_dimension_;
  bool transposed_;
  std::unique_ptr<Scratch<T>> packed_;
};

// c = activation(alpha * a @ b + beta * self + bias) for float16 and bfloat16, rounded once at the
// end. c has plain rows. Rows of self are `self_step` elements apart. self may be c.
template <typename T>
void multiply_half(const Matrix<const T>& a, const Matrix<const T>& b, float alpha, float beta, const T* self,
                   int64_t self_step, const T* bias, const Matrix<T>& c, Activation activation) {
  int64_t m = c.rows, n = c.columns, k = a.columns, ldc = c.leading_dimension();
  Factor<T> left(a), right(b);
  HalfGemm problem{dtype_v<T>,
                   left.transposed(),
                   right.transposed(),
                   m,
                   n,
                   k,
                   left.data(),
                   left.leading_dimension(),
                   right.data(),
                   right.leading_dimension(),
                   bias,
                   c.data,
                   ldc,
                   false};
  problem.activation = activation;
  if (alpha == 1 && beta == 0 && half_gemm(problem)) return;
  problem.activation = Activation::none;
  Scratch<float> product(m * n);
  problem.c = product.data();
  problem.ldc = n;
  problem.bias = nullptr;
  problem.float_result = true;
  if (!half_gemm(problem)) {
    // The processor has no instructions for this dtype: compute in float32.
    auto widen = [](const Factor<T>& factor, int64_t rows, int64_t columns, float* out) {
      parallel_for(rows, grain_for(columns), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          to_float(factor.data() + i * factor.leading_dimension(), out + i * columns, columns);
      });
    };
    Scratch<float> wide_a(m * k), wide_b(n * k);
    int64_t columns_a = left.transposed() ? m : k, columns_b = right.transposed() ? k : n;
    widen(left, left.transposed() ? k : m, columns_a, wide_a.data());
    widen(right, right.transposed() ? n : k, columns_b, wide_b.data());
    gemm(Gemm<float>{left.transposed(), right.transposed(), m, n, k, 1, wide_a.data(), columns_a, wide_b.data(),
                     columns_b, 0, product.data(), n});
  }
  parallel_for(m, grain_for(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* row = c.data + i * ldc;
      const T* added = self + i * self_step;
      float* sums = product.data() + i * n;
      for (int64_t j = 0; j < n; ++j) {
        sums[j] *= alpha;
        if (beta != 0) sums[j] += beta * static_cast<float>(added[j]);
        if (bias) sums[j] += static_cast<float>(bias[j]);
      }
      if (activation != Activation::none) apply_epilogue_row<float>(activation, nullptr, 0, sums, n);
      from_float(sums, row, n);
    }
  });
}

// c = finish(alpha * a @ b + beta * c). c has plain rows and no empty side. Integer types apply
// only the epilogue's activation, and complex types ignore the epilogue. The half precisions add
// either the epilogue's matrix or beta * c.
template <typename T>
void multiply_into_rows(const Matrix<const T>& a, const Matrix<const T>& b, T alpha, T beta, const Matrix<T>& c,
                        const Epilogue<T>& finish) {
  if constexpr (is_half_v<T>) {
    const bool adds = finish.added != nullptr;
    multiply_half<T>(a, b, alpha, adds ? finish.factor : beta, adds ? finish.added : c.data,
                     adds ? finish.added_step : c.leading_dimension(), nullptr, c, finish.activation);
  } else if constexpr (is_integer_v<T>) {
    std::unique_ptr<Scratch<T>> packed;
    Matrix<const T> right = b;
    if (!b.has_plain_rows()) {
      packed = std::make_unique<Scratch<T>>(b.rows * b.columns);
      copy_matrix<T>(b, {packed->data(), b.rows, b.columns, b.columns, 1});
      right = {packed->data(), b.rows, b.columns, b.columns, 1};
    }
    integer_gemm<T>(c.rows, c.columns, a.columns, alpha, a.data, a.row_stride, a.column_stride, right.data,
                    right.leading_dimension(), beta, c.data, c.leading_dimension());
    if (finish.activation != Activation::none)
      parallel_for(c.rows, grain_for(c.columns), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) activate(finish.activation, c.data + i * c.row_stride, 1, c.columns);
      });
  } else {
    Factor<T> left(a), right(b);
    const Gemm<T> problem{left.transposed(),
                          right.transposed(),
                          c.rows,
                          c.columns,
                          a.columns,
                          alpha,
                          left.data(),
                          left.leading_dimension(),
                          right.data(),
                          right.leading_dimension(),
                          beta,
                          c.data,
                          c.leading_dimension()};
    if constexpr (is_complex_v<T>) {
      gemm(problem);
    } else {
      if (!finish.added && finish.activation == Activation::none) return gemm(problem);
      gemm(problem, finish, [](const Epilogue<T>& block, T* to, int64_t ldc, int64_t rows, int64_t columns) {
        apply_epilogue_rows(block, to, ldc, rows, columns);
      });
    }
  }
}

// c = activation(alpha * a @ b + beta * c) for any sizes and strides. With beta == 0, c is not
// read.
template <typename T>
void multiply(const Matrix<const T>& a, const Matrix<const T>& b, T alpha, T beta, const Matrix<T>& c,
              Activation activation = Activation::none) {
  if (c.rows == 0 || c.columns == 0) return;
  using C = compute_t<T>;
  const C zero{0}, one{1};
  if (a.columns == 0) {
    if (static_cast<C>(beta) == one && activation == Activation::none) return;
    for (int64_t i = 0; i < c.rows; ++i) {
      T* row = c.data + i * c.row_stride;
      for (int64_t j = 0; j < c.columns; ++j) {
        T& element = row[j * c.column_stride];
        if constexpr (is_integer_v<T>)
          element = static_cast<T>(static_cast<uint64_t>(element) * static_cast<uint64_t>(beta));
        else
          element = static_cast<C>(beta) == zero ? T(zero) : T(static_cast<C>(element) * static_cast<C>(beta));
      }
      activate(activation, row, c.column_stride, c.columns);
    }
    return;
  }
  const Epilogue<T> finish{nullptr, 0, T(0), activation};
  if (c.has_plain_rows()) return multiply_into_rows<T>(a, b, alpha, beta, c, finish);
  if (c.transposed().has_plain_rows())
    return multiply_into_rows<T>(b.transposed(), a.transposed(), alpha, beta, c.transposed(), finish);
  Scratch<T> result(c.rows * c.columns);
  Matrix<T> plain{result.data(), c.rows, c.columns, c.columns, 1};
  if (static_cast<C>(beta) != zero) copy_matrix<T>({c.data, c.rows, c.columns, c.row_stride, c.column_stride}, plain);
  multiply_into_rows<T>(a, b, alpha, beta, plain, finish);
  copy_matrix<T>({result.data(), c.rows, c.columns, c.columns, 1}, c);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
