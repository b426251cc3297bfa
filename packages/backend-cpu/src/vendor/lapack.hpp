// S/D/C/Z dispatch for LAPACK, and conversion of strided matrices to column-major order.
//
// Sizes are 32-bit integers. lapack_int() rejects larger ones.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "candelabra/float_index.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "memory/allocator.hpp"
#include "memory/transpose.hpp"
#include "threads/deterministic.hpp"
#include "threads/interruption.hpp"
#include "threads/parallel.hpp"
#include "vendor/blas.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

using LapackTypes = Types<float, double, complex64, complex128>;

// Aligns to a cache line. The library's order of summation depends on the alignment of its
// operands, and malloc guarantees only 16 bytes.
template <typename T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t line{64};
  LineAllocator() = default;
  template <typename U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), line)); }
  void deallocate(T* memory, size_t) { ::operator delete(memory, line); }
  friend bool operator==(const LineAllocator&, const LineAllocator&) { return true; }
};
template <typename T>
using Line = std::vector<T, LineAllocator<T>>;

// ---- a batch of matrices

// Rows and columns are the last two dimensions. The leading dimensions are the batch.
inline int64_t rows_of(const cb_tensor& t) {
  return t.sizes[t.ndim - 2];
}
inline int64_t columns_of(const cb_tensor& t) {
  return t.sizes[t.ndim - 1];
}
// The number of batch items, each of which spans the last `inner` dimensions.
inline int64_t batch_count(const cb_tensor& t, int inner) {
  int64_t count = 1;
  for (int d = 0; d < t.ndim - inner; ++d) count *= t.sizes[d];
  return count;
}
template <typename T>
inline T* batch_item(const cb_tensor& t, int64_t index, int inner) {
  int64_t offset = 0;
  int d = t.ndim - inner - 1;
  for (; d > 0; --d) {
    offset += index % t.sizes[d] * t.strides[d];
    index /= t.sizes[d];
  }
  if (d == 0) offset += index * t.strides[0];
  return static_cast<T*>(t.data) + offset;
}

inline int lapack_int(int64_t size) {
  if (size > std::numeric_limits<int32_t>::max())
    throw failure(CB_RUNTIME_ERROR, "matrices with a side of %lld are larger than LAPACK's 32-bit sizes",
                  static_cast<long long>(size));
  return static_cast<int>(size);
}

// Tiled transpose: out[i + j * out_step] = in[i * in_step + j] for i < rows and j < columns. Large
// matrices are shared among threads.
template <typename T>
void transpose_into(T* out, int64_t out_step, const T* in, int64_t in_step, int64_t rows, int64_t columns) {
  constexpr int64_t tile = 16;
  const int64_t tiles = (columns + tile - 1) / tile;
  parallel_for(tiles, std::max<int64_t>(1, light_grain / (tile * std::max<int64_t>(1, rows))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t j = begin * tile; j < std::min(end * tile, columns); j += tile)
                   for (int64_t i = 0; i < rows; i += tile) {
                     transpose_tile(out + i + j * out_step, out_step, in + i * in_step + j, in_step,
                                    std::min(tile, rows - i), std::min(tile, columns - j));
                   }
               });
}

// Copies `lines` contiguous runs of `length` elements each.
template <typename T>
void copy_lines(T* out, int64_t out_step, const T* in, int64_t in_step, int64_t lines, int64_t length) {
  parallel_for(lines, std::max<int64_t>(1, light_grain / std::max<int64_t>(1, length)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t j = begin; j < end; ++j) std::copy_n(in + j * in_step, length, out + j * out_step);
               });
}

// Uninitialized scratch memory: on the stack for up to `few` elements, else from the allocator.
template <typename T>
class LocalScratch {
 public:
  static constexpr int64_t few = 64;
  explicit LocalScratch(int64_t count) : data_(local_) {
    if (count > few) data_ = larger_.emplace(count).data();
  }
  LocalScratch(const LocalScratch&) = delete;
  T* data() { return data_; }
  T& operator[](int64_t i) { return data_[i]; }

 private:
  union {  // leaves the array uninitialized
    alignas(64) T local_[few];
  };
  std::optional<Scratch<T>> larger_;
  T* data_;
};

// A column-major copy. The leading dimension is at least 1, which LAPACK requires even for empty
// matrices.
template <typename T>
class ColumnMajor {
 public:
  int rows, columns, leading;

  // The elements are uninitialized.
  ColumnMajor(int64_t rows, int64_t columns)
      : rows(lapack_int(rows)),
        columns(lapack_int(columns)),
        leading(std::max(1, this->rows)),
        memory_(static_cast<int64_t>(leading) * columns) {}
  T* data() { return memory_.data(); }
  T& at(int64_t i, int64_t j) { return memory_.data()[i + j * leading]; }
  std::span<const T> values() { return {memory_.data(), static_cast<size_t>(rows) * static_cast<size_t>(columns)}; }
  void clear() { std::fill_n(data(), static_cast<int64_t>(leading) * columns, T(0)); }

  // Copies matrix `index` of a batch. A smaller matrix fills the upper left part, and the rest
  // becomes zero.
  void load(const cb_tensor& t, int64_t index) {
    const T* from = batch_item<const T>(t, index, 2);
    const int64_t row = t.strides[t.ndim - 2], column = t.strides[t.ndim - 1];
    const int64_t m = std::min<int64_t>(rows, rows_of(t)), n = std::min<int64_t>(columns, columns_of(t));
    if (m < rows || n < columns) clear();
    if (column == 1 && m > 1 && !is_small())
      transpose_into(data(), leading, from, row, m, n);
    else if (row == 1 && !is_small())
      copy_lines(data(), leading, from, column, n, m);
    else
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i) at(i, j) = from[i * row + j * column];
  }
  // Copies the transpose of matrix `index`. Contiguous rows are copied without a transposition.
  void load_transposed(const cb_tensor& t, int64_t index) {
    const T* from = batch_item<const T>(t, index, 2);
    const int64_t row = t.strides[t.ndim - 2], column = t.strides[t.ndim - 1];
    if (column == 1 && !is_small())
      copy_lines(data(), leading, from, row, columns, rows);
    else
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = 0; i < rows; ++i) at(i, j) = from[j * row + i * column];
  }
  void store(cb_tensor& t, int64_t index) {
    T* to = batch_item<T>(t, index, 2);
    const int64_t row = t.strides[t.ndim - 2], column = t.strides[t.ndim - 1];
    const int64_t m = rows_of(t), n = columns_of(t);
    if (column == 1 && n > 1 && !is_small())
      transpose_into(to, row, data(), leading, n, m);
    else if (row == 1 && !is_small())
      copy_lines(to, column, data(), leading, n, m);
    else
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) to[i * row + j * column] = at(i, j);
  }

 private:
  // For a few elements, a plain loop is faster than the setup of a tiled copy.
  bool is_small() const { return int64_t{rows} * columns <= LocalScratch<T>::few; }

  LocalScratch<T> memory_;
};

// Copies a strided matrix to contiguous row-major memory.
template <typename T>
void load_rows(const cb_tensor& t, int64_t index, T* to) {
  const T* from = batch_item<const T>(t, index, 2);
  const int64_t row = t.strides[t.ndim - 2], column = t.strides[t.ndim - 1], m = rows_of(t), n = columns_of(t);
  if (column == 1)
    copy_lines(to, n, from, row, m, n);
  else if (row == 1)
    transpose_into(to, n, from, column, n, m);
  else
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) to[i * n + j] = from[i * row + j * column];
}

// Whether BLAS can read each matrix in place: contiguous rows, `leading_of` elements apart.
inline bool has_rows(const cb_tensor& t) {
  const int64_t row = t.strides[t.ndim - 2], n = columns_of(t);
  return (n <= 1 || t.strides[t.ndim - 1] == 1) &&
         (rows_of(t) <= 1 || (row >= std::max<int64_t>(1, n) && row <= INT32_MAX));
}
inline int leading_of(const cb_tensor& t) {
  return lapack_int(std::max<int64_t>({1, columns_of(t), rows_of(t) > 1 ? t.strides[t.ndim - 2] : 1}));
}

template <typename T>
void store_vector(const T* values, cb_tensor& t, int64_t index) {
  T* to = batch_item<T>(t, index, 1);
  const int64_t stride = t.strides[t.ndim - 1];
  for (int64_t i = 0; i < t.sizes[t.ndim - 1]; ++i) to[i * stride] = values[i];
}
template <typename T>
Line<T> load_vector(const cb_tensor& t, int64_t index) {
  const T* from = batch_item<const T>(t, index, 1);
  const int64_t stride = t.strides[t.ndim - 1], n = t.sizes[t.ndim - 1];
  Line<T> values(static_cast<size_t>(std::max<int64_t>(1, n)));
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = from[i * stride];
  return values;
}
template <typename T>
void store_item(T value, cb_tensor& t, int64_t index) {
  *batch_item<T>(t, index, 0) = value;
}

// Calls f(index) for each matrix of a batch. Several matrices are shared among threads. For a
// single one, f splits the work itself (lapack_blocked.hpp) or uses up to `library_threads` of the
// library's threads.
template <typename F>
void for_each_matrix(int64_t count, int64_t work, int32_t library_threads, F&& f) {
  if (count == 1) {
    const LibraryThreads threads(library_threads);
    f(int64_t{0});
    return;
  }
  parallel_for(count, grain_for(work), [&](int64_t begin, int64_t end) {
    const LibraryThreads one(1);
    for (int64_t i = begin; i < end; ++i) {
      poll_interruption();
      f(i);
    }
  });
}
// The thread limit for routines that only the library can split. Their results depend on the thread
// count, so deterministic mode uses one thread. Work up to `small`, a product of 256 x 256
// matrices, does not gain from more.
inline int32_t threads_of_library(int64_t multiplications) {
  constexpr int64_t small = int64_t{1} << 24;
  return multiplications <= small || is_deterministic() ? 1 : INT32_MAX;
}

// For the other factorizations, several threads pay only from about 1000 rows.
template <typename F>
void for_each_matrix(int64_t count, int64_t work, F&& f) {
  constexpr int64_t larger = 64;
  for_each_matrix(count, work, threads_of_library(work / larger), std::forward<F>(f));
}

// A non-finite value times zero is NaN, and NaN propagates through the sum.
template <typename T>
bool all_finite(std::span<const T> values) {
  const auto* parts = reinterpret_cast<const real_t<T>*>(values.data());
  const size_t count = values.size() * (sizeof(T) / sizeof(real_t<T>));
  real_t<T> sum = 0;
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < count; ++i) sum += parts[i] * 0;
  return sum == 0;
}

// ---- S/D/C/Z dispatch

#if CANDELABRA_OPENBLAS
// OpenBLAS does not tell of its progress.
template <const auto& routine>
constexpr auto interruptible = routine;
#else
// A routine of LAPACK, which the callback of vendor/blas.cpp may end with half a
// result. Throws then, before the caller reads it.
template <auto Routine>
struct InterruptibleRoutine;
template <typename... Arguments, bool is_noexcept, void (*Routine)(Arguments...) noexcept(is_noexcept)>
struct InterruptibleRoutine<Routine> {
  static void run(Arguments... arguments) {
    Routine(arguments...);
    throw_if_cancelled();
  }
};
template <auto Routine>
constexpr auto interruptible = InterruptibleRoutine<Routine>::run;
#endif

template <typename T>
struct Lapack;

template <>
struct Lapack<float> {
  static constexpr auto potrf = interruptible<spotrf_>;
  static constexpr auto getrf = interruptible<sgetrf_>;
  static constexpr auto getrs = interruptible<sgetrs_>;
  static constexpr auto getri = interruptible<sgetri_>;
  static constexpr auto gesv = interruptible<sgesv_>;
  static constexpr auto geqrf = interruptible<sgeqrf_>;
  static constexpr auto orgqr = interruptible<sorgqr_>;
  static constexpr auto ormqr = interruptible<sormqr_>;
  static constexpr auto trsm = strsm;
  static constexpr auto gemm = sgemm;
  static constexpr auto herk = ssyrk;
  static constexpr auto laswp = interruptible<slaswp_>;
  static constexpr auto sytrf = interruptible<ssytrf_>;
  static constexpr auto hetrf = interruptible<ssytrf_>;
  static constexpr auto sytrs = interruptible<ssytrs_>;
  static constexpr auto hetrs = interruptible<ssytrs_>;
  static constexpr auto syevd = interruptible<ssyevd_>;
  static constexpr auto geev = interruptible<sgeev_>;
  static constexpr auto gesdd = interruptible<sgesdd_>;
  static constexpr auto gels = interruptible<sgels_>;
  static constexpr auto gelsy = interruptible<sgelsy_>;
  static constexpr auto gelsd = interruptible<sgelsd_>;
  static constexpr auto gelss = interruptible<sgelss_>;
};
template <>
struct Lapack<double> {
  static constexpr auto potrf = interruptible<dpotrf_>;
  static constexpr auto getrf = interruptible<dgetrf_>;
  static constexpr auto getrs = interruptible<dgetrs_>;
  static constexpr auto getri = interruptible<dgetri_>;
  static constexpr auto gesv = interruptible<dgesv_>;
  static constexpr auto geqrf = interruptible<dgeqrf_>;
  static constexpr auto orgqr = interruptible<dorgqr_>;
  static constexpr auto ormqr = interruptible<dormqr_>;
  static constexpr auto trsm = dtrsm;
  static constexpr auto gemm = dgemm;
  static constexpr auto herk = dsyrk;
  static constexpr auto laswp = interruptible<dlaswp_>;
  static constexpr auto sytrf = interruptible<dsytrf_>;
  static constexpr auto hetrf = interruptible<dsytrf_>;
  static constexpr auto sytrs = interruptible<dsytrs_>;
  static constexpr auto hetrs = interruptible<dsytrs_>;
  static constexpr auto syevd = interruptible<dsyevd_>;
  static constexpr auto geev = interruptible<dgeev_>;
  static constexpr auto gesdd = interruptible<dgesdd_>;
  static constexpr auto gels = interruptible<dgels_>;
  static constexpr auto gelsy = interruptible<dgelsy_>;
  static constexpr auto gelsd = interruptible<dgelsd_>;
  static constexpr auto gelss = interruptible<dgelss_>;
};
template <>
struct Lapack<complex64> {
  static constexpr auto potrf = interruptible<cpotrf_>;
  static constexpr auto getrf = interruptible<cgetrf_>;
  static constexpr auto getrs = interruptible<cgetrs_>;
  static constexpr auto getri = interruptible<cgetri_>;
  static constexpr auto gesv = interruptible<cgesv_>;
  static constexpr auto geqrf = interruptible<cgeqrf_>;
  static constexpr auto orgqr = interruptible<cungqr_>;
  static constexpr auto ormqr = interruptible<cunmqr_>;
  static constexpr auto trsm = ctrsm;
  static constexpr auto gemm = cgemm;
  static constexpr auto herk = cherk;
  static constexpr auto laswp = interruptible<claswp_>;
  static constexpr auto sytrf = interruptible<csytrf_>;
  static constexpr auto hetrf = interruptible<chetrf_>;
  static constexpr auto sytrs = interruptible<csytrs_>;
  static constexpr auto hetrs = interruptible<chetrs_>;
  static constexpr auto syevd = interruptible<cheevd_>;
  static constexpr auto geev = interruptible<cgeev_>;
  static constexpr auto gesdd = interruptible<cgesdd_>;
  static constexpr auto gels = interruptible<cgels_>;
  static constexpr auto gelsy = interruptible<cgelsy_>;
  static constexpr auto gelsd = interruptible<cgelsd_>;
  static constexpr auto gelss = interruptible<cgelss_>;
};
template <>
struct Lapack<complex128> {
  static constexpr auto potrf = interruptible<zpotrf_>;
  static constexpr auto getrf = interruptible<zgetrf_>;
  static constexpr auto getrs = interruptible<zgetrs_>;
  static constexpr auto getri = interruptible<zgetri_>;
  static constexpr auto gesv = interruptible<zgesv_>;
  static constexpr auto geqrf = interruptible<zgeqrf_>;
  static constexpr auto orgqr = interruptible<zungqr_>;
  static constexpr auto ormqr = interruptible<zunmqr_>;
  static constexpr auto trsm = ztrsm;
  static constexpr auto gemm = zgemm;
  static constexpr auto herk = zherk;
  static constexpr auto laswp = interruptible<zlaswp_>;
  static constexpr auto sytrf = interruptible<zsytrf_>;
  static constexpr auto hetrf = interruptible<zhetrf_>;
  static constexpr auto sytrs = interruptible<zsytrs_>;
  static constexpr auto hetrs = interruptible<zhetrs_>;
  static constexpr auto syevd = interruptible<zheevd_>;
  static constexpr auto geev = interruptible<zgeev_>;
  static constexpr auto gesdd = interruptible<zgesdd_>;
  static constexpr auto gels = interruptible<zgels_>;
  static constexpr auto gelsy = interruptible<zgelsy_>;
  static constexpr auto gelsd = interruptible<zgelsd_>;
  static constexpr auto gelss = interruptible<zgelss_>;
};

// Converts a workspace size, which LAPACK returns as a floating-point number.
template <typename R>
int work_size(R wanted) {
  return index_from_float(wanted, 1, std::numeric_limits<int>::max());
}

// Runs a routine that takes a workspace. The first call(work, size) passes -1 and queries the size.
// The second does the work.
template <typename T, typename F>
void with_work(F&& call) {
  T wanted{};
  int query = -1;
  call(&wanted, &query);
  int size;
  if constexpr (is_complex_v<T>)
    size = work_size(wanted.real());
  else
    size = work_size(wanted);
  Scratch<T> work(size);
  call(work.data(), &size);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
