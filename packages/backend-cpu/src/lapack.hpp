// LAPACK's routines under one name for all four types, and matrices of any strides brought into its column-major order.
//
// MKL's lp64 interface: sizes are 32-bit integers, and column_major() refuses larger ones.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#define MKL_Complex8 std::complex<float>
#define MKL_Complex16 std::complex<double>
#include <mkl_blas.h>
#include <mkl_lapack.h>

#include "dtypes.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

using LapackTypes = Types<float, double, complex64, complex128>;

// ---- a batch of matrices

// Rows and columns are the last two dimensions; everything before is the batch.
inline int64_t rows_of(const cb_tensor& t) {
  return t.sizes[t.ndim - 2];
}
inline int64_t columns_of(const cb_tensor& t) {
  return t.sizes[t.ndim - 1];
}
// How many items of the last `inner` dimensions there are.
inline int64_t batch_count(const cb_tensor& t, int inner) {
  int64_t count = 1;
  for (int d = 0; d < t.ndim - inner; ++d) count *= t.sizes[d];
  return count;
}
template <typename T>
inline T* batch_item(const cb_tensor& t, int64_t index, int inner) {
  int64_t offset = 0;
  for (int d = t.ndim - inner - 1; d >= 0; --d) {
    offset += index % t.sizes[d] * t.strides[d];
    index /= t.sizes[d];
  }
  return static_cast<T*>(t.data) + offset;
}

inline int lapack_int(int64_t size) {
  if (size > std::numeric_limits<int32_t>::max())
    throw failure(CB_RUNTIME_ERROR, "matrices with a side of %lld are larger than LAPACK's 32-bit sizes",
                  static_cast<long long>(size));
  return static_cast<int>(size);
}

// A column-major copy; the leading dimension is at least 1, as LAPACK wants it even of empty matrices.
template <typename T>
struct ColumnMajor {
  int rows, columns, leading;
  std::vector<T> values;

  ColumnMajor(int64_t rows, int64_t columns)
      : rows(lapack_int(rows)),
        columns(lapack_int(columns)),
        leading(std::max(1, this->rows)),
        values(static_cast<size_t>(std::max<int64_t>(1, static_cast<int64_t>(leading) * columns))) {}
  T* data() { return values.data(); }
  T& at(int64_t i, int64_t j) { return values[static_cast<size_t>(i + j * leading)]; }

  // From the matrix `index` of a batch; what has fewer rows or columns than this fills its upper left part.
  void load(const cb_tensor& t, int64_t index) {
    const T* from = batch_item<const T>(t, index, 2);
    const int64_t row = t.strides[t.ndim - 2], column = t.strides[t.ndim - 1];
    const int64_t m = std::min<int64_t>(rows, rows_of(t)), n = std::min<int64_t>(columns, columns_of(t));
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) at(i, j) = from[i * row + j * column];
  }
  void store(cb_tensor& t, int64_t index) const {
    T* to = batch_item<T>(t, index, 2);
    const int64_t row = t.strides[t.ndim - 2], column = t.strides[t.ndim - 1];
    const int64_t m = rows_of(t), n = columns_of(t);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) to[i * row + j * column] = values[static_cast<size_t>(i + j * leading)];
  }
};

template <typename T>
void store_vector(const T* values, cb_tensor& t, int64_t index) {
  T* to = batch_item<T>(t, index, 1);
  const int64_t stride = t.strides[t.ndim - 1];
  for (int64_t i = 0; i < t.sizes[t.ndim - 1]; ++i) to[i * stride] = values[i];
}
template <typename T>
std::vector<T> load_vector(const cb_tensor& t, int64_t index) {
  const T* from = batch_item<const T>(t, index, 1);
  const int64_t stride = t.strides[t.ndim - 1], n = t.sizes[t.ndim - 1];
  std::vector<T> values(static_cast<size_t>(std::max<int64_t>(1, n)));
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = from[i * stride];
  return values;
}
template <typename T>
void store_item(T value, cb_tensor& t, int64_t index) {
  *batch_item<T>(t, index, 0) = value;
}

// f(index) for each matrix of a batch: matrices on several threads where there are many, else the library's threads in each.
template <typename F>
void for_each_matrix(int64_t count, int64_t work, F&& f) {
  if (count == 1) {
    use_library_threads(work < light_grain ? 1 : INT32_MAX);
    f(int64_t{0});
    return;
  }
  parallel_for(count, grain_for(work), [&](int64_t begin, int64_t end) {
    use_library_threads(1);
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

template <typename T>
bool all_finite(const std::vector<T>& values) {
  return std::all_of(values.begin(), values.end(), [](T value) {
    if constexpr (is_complex_v<T>)
      return std::isfinite(value.real()) && std::isfinite(value.imag());
    else
      return std::isfinite(value);
  });
}

// ---- the routines, by type

template <typename T>
struct Lapack;

template <>
struct Lapack<float> {
  static constexpr auto potrf = spotrf_;
  static constexpr auto getrf = sgetrf_;
  static constexpr auto getrs = sgetrs_;
  static constexpr auto getri = sgetri_;
  static constexpr auto gesv = sgesv_;
  static constexpr auto geqrf = sgeqrf_;
  static constexpr auto orgqr = sorgqr_;
  static constexpr auto trsm = strsm;
  static constexpr auto sytrf = ssytrf_;
  static constexpr auto hetrf = ssytrf_;
  static constexpr auto sytrs = ssytrs_;
  static constexpr auto hetrs = ssytrs_;
  static constexpr auto syevd = ssyevd_;
  static constexpr auto geev = sgeev_;
  static constexpr auto gesdd = sgesdd_;
  static constexpr auto gels = sgels_;
  static constexpr auto gelsy = sgelsy_;
  static constexpr auto gelsd = sgelsd_;
  static constexpr auto gelss = sgelss_;
};
template <>
struct Lapack<double> {
  static constexpr auto potrf = dpotrf_;
  static constexpr auto getrf = dgetrf_;
  static constexpr auto getrs = dgetrs_;
  static constexpr auto getri = dgetri_;
  static constexpr auto gesv = dgesv_;
  static constexpr auto geqrf = dgeqrf_;
  static constexpr auto orgqr = dorgqr_;
  static constexpr auto trsm = dtrsm;
  static constexpr auto sytrf = dsytrf_;
  static constexpr auto hetrf = dsytrf_;
  static constexpr auto sytrs = dsytrs_;
  static constexpr auto hetrs = dsytrs_;
  static constexpr auto syevd = dsyevd_;
  static constexpr auto geev = dgeev_;
  static constexpr auto gesdd = dgesdd_;
  static constexpr auto gels = dgels_;
  static constexpr auto gelsy = dgelsy_;
  static constexpr auto gelsd = dgelsd_;
  static constexpr auto gelss = dgelss_;
};
template <>
struct Lapack<complex64> {
  static constexpr auto potrf = cpotrf_;
  static constexpr auto getrf = cgetrf_;
  static constexpr auto getrs = cgetrs_;
  static constexpr auto getri = cgetri_;
  static constexpr auto gesv = cgesv_;
  static constexpr auto geqrf = cgeqrf_;
  static constexpr auto orgqr = cungqr_;
  static constexpr auto trsm = ctrsm;
  static constexpr auto sytrf = csytrf_;
  static constexpr auto hetrf = chetrf_;
  static constexpr auto sytrs = csytrs_;
  static constexpr auto hetrs = chetrs_;
  static constexpr auto syevd = cheevd_;
  static constexpr auto geev = cgeev_;
  static constexpr auto gesdd = cgesdd_;
  static constexpr auto gels = cgels_;
  static constexpr auto gelsy = cgelsy_;
  static constexpr auto gelsd = cgelsd_;
  static constexpr auto gelss = cgelss_;
};
template <>
struct Lapack<complex128> {
  static constexpr auto potrf = zpotrf_;
  static constexpr auto getrf = zgetrf_;
  static constexpr auto getrs = zgetrs_;
  static constexpr auto getri = zgetri_;
  static constexpr auto gesv = zgesv_;
  static constexpr auto geqrf = zgeqrf_;
  static constexpr auto orgqr = zungqr_;
  static constexpr auto trsm = ztrsm;
  static constexpr auto sytrf = zsytrf_;
  static constexpr auto hetrf = zhetrf_;
  static constexpr auto sytrs = zsytrs_;
  static constexpr auto hetrs = zhetrs_;
  static constexpr auto syevd = zheevd_;
  static constexpr auto geev = zgeev_;
  static constexpr auto gesdd = zgesdd_;
  static constexpr auto gels = zgels_;
  static constexpr auto gelsy = zgelsy_;
  static constexpr auto gelsd = zgelsd_;
  static constexpr auto gelss = zgelss_;
};

// Routines that take work space: call(work, size) is asked for the size first (-1), then does the work.
template <typename T, typename F>
void with_work(F&& call) {
  T wanted{};
  int query = -1;
  call(&wanted, &query);
  int size;
  if constexpr (is_complex_v<T>)
    size = std::max(1, static_cast<int>(wanted.real()));
  else
    size = std::max(1, static_cast<int>(wanted));
  std::vector<T> work(static_cast<size_t>(size));
  call(work.data(), &size);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
