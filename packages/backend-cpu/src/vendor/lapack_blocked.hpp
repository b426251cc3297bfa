// Cholesky and LU of one large matrix, and the solves that use them. Threads share parts whose
// bounds depend only on the sizes.
//
// LAPACK splits its work by the number of threads, and its rounding depends on the split. Here each
// part is one call of the library on one thread, so results do not depend on the thread count.
// Small matrices are one part. Large ones are split only in deterministic mode: the library's own
// threads are faster, because they do not synchronize after every block.
#pragma once

#include <algorithm>
#include <vector>

#include "vendor/lapack.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Calls f(begin, end) for parts of [0, size) of `width` elements. Library calls inside f use one
// thread.
template <typename F>
void over_parts(int64_t size, int64_t width, F&& f) {
  parallel_for((size + width - 1) / width, 1, [&](int64_t begin, int64_t end) {
    const LibraryThreads one_thread(1);
    for (int64_t i = begin; i < end; ++i)
      f(static_cast<int>(i * width), static_cast<int>(std::min(size, (i + 1) * width)));
  });
}

// Columns (right-hand sides) per part, where each column costs `work` multiplications. A part has a
// quarter of the columns, but enough to pay for a thread and for packing the triangle.
inline int64_t part_of_columns(int64_t columns, int64_t work) {
  constexpr int64_t min_work = int64_t{1} << 18, narrowest = 64, widest = 256;
  const int64_t narrow = std::clamp<int64_t>(min_work / std::max<int64_t>(1, work), narrowest, int64_t{1} << 30);
  return std::max(narrow, std::min((columns + 3) / 4, widest));
}

template <typename T>
constexpr const char* adjoint_of = is_complex_v<T> ? "C" : "T";

// ---- Cholesky

// Like LAPACK's potrf of the lower (or upper) triangle, with its `info`.
template <typename T>
int factor_cholesky(bool upper, int n, T* a, int leading) {
  using R = real_t<T>;
  constexpr int one_part = 512, block = 128, part = 256;
  int info = 0;
  const LibraryThreads threads(n <= one_part ? 1 : INT32_MAX);
  if (n <= one_part || !is_deterministic()) {
    Lapack<T>::potrf(upper ? "U" : "L", &n, a, &leading, &info);
    return info;
  }
  // element (i, j) of the lower triangle
  const auto at = [&](int64_t i, int64_t j) { return upper ? a + j + i * leading : a + i + j * leading; };
  const T one(1), minus(-1);
  const R real_one(1), real_minus(-1);
  for (int j = 0; j < n; j += block) {
    const int width = std::min(block, n - j), next = j + width, rest = n - next;
    const LibraryThreads one_thread(1);
    Lapack<T>::potrf(upper ? "U" : "L", &width, at(j, j), &leading, &info);
    if (info != 0) return info + j;
    over_parts(rest, part, [&](int begin, int end) {
      const int here = end - begin;
      if (upper)
        Lapack<T>::trsm("L", "U", adjoint_of<T>, "N", &width, &here, &one, at(j, j), &leading, at(next + begin, j),
                        &leading);
      else
        Lapack<T>::trsm("R", "L", adjoint_of<T>, "N", &here, &width, &one, at(j, j), &leading, at(next + begin, j),
                        &leading);
    });
    // Update the trailing matrix in square parts. Parts on the diagonal update one triangle only.
    const int side = (rest + part - 1) / part;
    over_parts(int64_t{side} * (side + 1) / 2, 1, [&](int index, int) {
      int row = 0;
      while (index > row) index -= ++row;
      const int from = next + row * part, to = next + index * part, rows = std::min(part, n - from),
                columns = std::min(part, n - to);
      if (from == to)
        Lapack<T>::herk(upper ? "U" : "L", upper ? adjoint_of<T> : "N", &rows, &width, &real_minus, at(from, j),
                        &leading, &real_one, at(from, from), &leading);
      else if (upper)
        Lapack<T>::gemm(adjoint_of<T>, "N", &columns, &rows, &width, &minus, at(to, j), &leading, at(from, j), &leading,
                        &one, at(from, to), &leading);
      else
        Lapack<T>::gemm("N", adjoint_of<T>, &rows, &columns, &width, &minus, at(from, j), &leading, at(to, j), &leading,
                        &one, at(from, to), &leading);
    });
  }
  return 0;
}

// ---- LU

// Like getrf, for matrices too small for the library's blocking and checks. Side is the
// compile-time size of a contiguous square matrix, else 0. The pivot search is branchless, because
// its branch is unpredictable.
template <int Side, typename T>
int factor_tiny_lu(int rows, int columns, T* a, int apart, int* pivots) {
  using R = real_t<T>;
  const int m = Side ? Side : rows, n = Side ? Side : columns, leading = Side ? Side : apart;
  const auto size_of = [](T value) {  // LAPACK's |re| + |im|, which needs no square root
    if constexpr (is_complex_v<T>)
      return std::abs(value.real()) + std::abs(value.imag());
    else
      return std::abs(value);
  };
  int info = 0;
  for (int k = 0; k < std::min(m, n); ++k) {
    T* column = a + k * leading;
    int best = k;
    R largest = size_of(column[k]);
    for (int i = k + 1; i < m; ++i) {
      const R size = size_of(column[i]);
      const bool larger = size > largest;
      largest = larger ? size : largest;
      best = larger ? i : best;
    }
    pivots[k] = best + 1;
    const T pivot = column[best];
    if (pivot == T(0)) {
      if (info == 0) info = k + 1;
    } else {
      for (int j = 0; j < n; ++j) std::swap(a[k + j * leading], a[best + j * leading]);
      if (std::abs(pivot) >= std::numeric_limits<R>::min()) {
        const T inverse = T(1) / pivot;
        for (int i = k + 1; i < m; ++i) column[i] *= inverse;
      } else {
        for (int i = k + 1; i < m; ++i) column[i] /= pivot;
      }
    }
    for (int j = k + 1; j < n; ++j) {
      T* other = a + j * leading;
      const T factor = other[k];
      for (int i = k + 1; i < m; ++i) other[i] -= column[i] * factor;
    }
  }
  return info;
}
template <typename T>
int factor_tiny_lu(int m, int n, T* a, int leading, int* pivots) {
  if (m == n && leading == n) {
    if (n == 2) return factor_tiny_lu<2>(m, n, a, leading, pivots);
    if (n == 3) return factor_tiny_lu<3>(m, n, a, leading, pivots);
    if (n == 4) return factor_tiny_lu<4>(m, n, a, leading, pivots);
  }
  return factor_tiny_lu<0>(m, n, a, leading, pivots);
}

// Like getrf.
template <typename T>
int factor_lu(int m, int n, T* a, int leading, int* pivots) {
  constexpr int one_part = 192, block = 64, tiny = 8;
  if (std::max(m, n) <= tiny) return factor_tiny_lu(m, n, a, leading, pivots);
  int info = 0;
  const LibraryThreads threads(std::min(m, n) <= one_part ? 1 : INT32_MAX);
  if (std::min(m, n) <= one_part || !is_deterministic()) {
    Lapack<T>::getrf(&m, &n, a, &leading, pivots, &info);
    return info;
  }
  const auto at = [&](int64_t i, int64_t j) { return a + i + j * leading; };
  const T one(1), minus(-1);
  const int increment = 1, sides = std::min(m, n);
  for (int j = 0; j < sides; j += block) {
    const int width = std::min(block, sides - j), next = j + width, rows = m - j, below = m - next, right = n - next;
    int failed = 0;
    const LibraryThreads one_thread(1);
    Lapack<T>::getrf(&rows, &width, at(j, j), &leading, pivots + j, &failed);
    if (info == 0 && failed > 0) info = failed + j;
    const int first = 1;
    over_parts(right, part_of_columns(right, int64_t{rows} * width), [&](int begin, int end) {
      const int here = end - begin;
      T* part = at(j, next + begin);
      Lapack<T>::laswp(&here, part, &leading, &first, &width, pivots + j, &increment);
      Lapack<T>::trsm("L", "L", "N", "U", &width, &here, &one, at(j, j), &leading, part, &leading);
      if (below > 0)
        Lapack<T>::gemm("N", "N", &below, &here, &width, &minus, at(next, j), &leading, part, &leading, &one,
                        part + width, &leading);
    });
    for (int i = j; i < next; ++i) pivots[i] += j;
  }
  // Apply each block's row exchanges to the columns of earlier blocks.
  over_parts(sides, block, [&](int begin, int end) {
    const int width = end - begin, first = end + 1;
    if (end < sides) Lapack<T>::laswp(&width, at(0, begin), &leading, &first, &sides, pivots, &increment);
  });
  return info;
}

// Like getrs.
template <typename T>
void solve_lu(const char* transpose, int n, int columns, const T* a, int leading, const int* pivots, T* x,
              int x_leading) {
  over_parts(columns, part_of_columns(columns, int64_t{n} * n), [&](int begin, int end) {
    const int here = end - begin;
    int info = 0;
    Lapack<T>::getrs(transpose, &n, &here, a, &leading, pivots, x + int64_t{begin} * x_leading, &x_leading, &info);
  });
}

// Like getri, for factors without a zero on the diagonal.
template <typename T>
void invert_lu(int n, T* a, int leading, const int* pivots) {
  constexpr int one_part = 400, part = 64;
  if (n <= one_part || !is_deterministic()) {
    const LibraryThreads threads(n <= one_part ? 1 : INT32_MAX);
    int info = 0;
    with_work<T>([&](T* work, int* size) { Lapack<T>::getri(&n, a, &leading, pivots, work, size, &info); });
    return;
  }
  // inverse(U) inverse(L), by columns. inverse(L) is zero above the diagonal.
  const T one(1);
  Scratch<T> inverse(int64_t{n} * n);
  over_parts(n, part, [&](int begin, int end) {
    const int here = end - begin, below = n - begin;
    T* to = inverse.data() + int64_t{begin} * n;
    std::fill_n(to, int64_t{here} * n, T(0));
    for (int j = 0; j < here; ++j) to[begin + j + int64_t{j} * n] = one;
    Lapack<T>::trsm("L", "L", "N", "U", &below, &here, &one, a + begin + int64_t{begin} * leading, &leading, to + begin,
                    &n);
  });
  over_parts(n, part_of_columns(n, int64_t{n} * n), [&](int begin, int end) {
    const int here = end - begin;
    Lapack<T>::trsm("L", "U", "N", "N", &n, &here, &one, a, &leading, inverse.data() + int64_t{begin} * n, &n);
  });
  std::vector<int> destination(static_cast<size_t>(n));  // column j of `inverse` goes here in `a`
  for (int j = 0; j < n; ++j) destination[static_cast<size_t>(j)] = j;
  for (int j = 0; j < n; ++j)
    std::swap(destination[static_cast<size_t>(j)], destination[static_cast<size_t>(pivots[j] - 1)]);
  over_parts(n, part, [&](int begin, int end) {
    for (int j = begin; j < end; ++j)
      std::copy_n(inverse.data() + int64_t{j} * n, n, a + int64_t{destination[static_cast<size_t>(j)]} * leading);
  });
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
