#include "drivers/matrices/matrix_numbers.cuh"

namespace candelabra::cuda {
namespace {

using namespace on_matrices;

// ---- addresses

__global__ void __launch_bounds__(threads) write_addresses(void** to, std::byte* first, int64_t step, int64_t count) {
  for (int64_t i = first_index(); i < count; i += index_step()) to[i] = first + i * step;
}

// ---- triangular matrices: one block per column, in a loop

enum class Change { KeepUpper, KeepLower, Identity };

template <typename T>
__global__ void __launch_bounds__(threads)
    change_columns(T* data, int64_t rows, int64_t columns, int64_t all_columns, Change change) {
  for (int64_t c = blockIdx.x; c < all_columns; c += gridDim.x) {
    const int64_t column = c % columns;
    T* at = data + c * rows;
    for (int64_t r = threadIdx.x; r < rows; r += threads) {
      if (change == Change::Identity)
        at[r] = r == column ? T(1) : T(0);
      else if (change == Change::KeepUpper ? r > column : r < column)
        at[r] = T(0);
    }
  }
}

void change(const Call& call, const Matrices& a, Change what) {
  if (a.empty()) return;
  const int64_t all = a.batches * a.columns;
  dispatch<LapackTypes>(a.dtype, [&]<typename T>() {
    launch(call, change_columns<T>, grid_for(call, all, 1, 16), threads, 0, static_cast<T*>(a.data), a.rows, a.columns,
           all, what);
  });
}

template <typename R>
__global__ void __launch_bounds__(threads) negate_imaginary(R* data, int64_t count) {
  for (int64_t i = first_index(); i < count; i += index_step()) data[2 * i + 1] = -data[2 * i + 1];
}

// ---- elements that are not finite

// Complex elements are processed as two real ones.
template <typename R>
__global__ void __launch_bounds__(threads)
    find_not_finite(const R* data, int64_t column_size, int64_t columns, int64_t all_columns, int32_t* flags) {
  for (int64_t c = blockIdx.x; c < all_columns; c += gridDim.x) {
    const R* at = data + c * column_size;
    bool found = false;
    for (int64_t r = threadIdx.x; r < column_size; r += threads) found |= !finite(at[r]);
    if (found) flags[c / columns] = 1;  // all threads write the same value
  }
}
template <typename R>
__global__ void __launch_bounds__(threads)
    clear_flagged(R* data, int64_t column_size, int64_t columns, int64_t all_columns, const int32_t* flags) {
  for (int64_t c = blockIdx.x; c < all_columns; c += gridDim.x) {
    if (!flags[c / columns]) continue;
    for (int64_t r = threadIdx.x; r < column_size; r += threads) data[c * column_size + r] = R(0);
  }
}
__global__ void __launch_bounds__(threads) mark_flagged(const int32_t* flags, int32_t* info, int64_t count) {
  for (int64_t i = first_index(); i < count; i += index_step())
    if (flags[i]) info[i] = -1;
}
__global__ void __launch_bounds__(threads) report_flagged(const int32_t* flags, int64_t count, FaultSink sink) {
  for (int64_t i = first_index(); i < count; i += index_step())
    if (flags[i]) sink.report(FaultKind::Custom, flags[i], 0, count);
}

// ---- pivots

__global__ void __launch_bounds__(threads) narrow(const int64_t* from, int32_t* to, int64_t count) {
  for (int64_t i = first_index(); i < count; i += index_step()) to[i] = static_cast<int32_t>(from[i]);
}
__global__ void __launch_bounds__(threads) count_up(int32_t* pivots, int64_t length, int64_t count) {
  for (int64_t i = first_index(); i < count; i += index_step()) pivots[i] = static_cast<int32_t>(i % length + 1);
}
__global__ void __launch_bounds__(threads) check_pivots_kernel(const int32_t* pivots, int64_t count, int64_t rows,
                                                               int32_t* small, int64_t* wide, FaultSink sink) {
  for (int64_t i = first_index(); i < count; i += index_step()) {
    int32_t pivot = pivots[i];
    if (pivot < 1 || pivot > rows) {
      sink.report(FaultKind::Custom, pivot, 0, rows);
      pivot = 1;
    }
    if (small) small[i] = pivot;
    if (wide) wide[i] = pivot;
  }
}
__global__ void __launch_bounds__(threads) fill_ranks_kernel(int64_t* ranks, int64_t value, int64_t count) {
  for (int64_t i = first_index(); i < count; i += index_step()) ranks[i] = value;
}

// ---- reflections: a warp applies all reflections to one column of x, without synchronization

template <typename T>
struct Reflecting {
  const T *v, *scales;
  T* x;
  int64_t rows, count, columns, all_columns, v_step, scale_step, x_leading;
  bool adjoint, conjugated, from_identity;
};

template <typename T>
__global__ void __launch_bounds__(threads) reflect_columns(const __grid_constant__ Reflecting<T> p) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
  for (int64_t c = first_index() / warp; c < p.all_columns; c += index_step() / warp) {
    const int64_t matrix = c / p.columns, column = c % p.columns;
    const T *v = p.v + matrix * p.v_step, *scales = p.scales + matrix * p.scale_step;
    T* x = p.x + c * p.x_leading;
    int64_t count = p.count;
    if (p.from_identity) {
      for (int64_t r = lane; r < p.rows; r += warp) x[r] = r == column ? T(1) : T(0);
      // Reflections that begin below a column's diagonal leave it unchanged.
      count = count < column + 1 ? count : column + 1;
      __syncwarp();
    }
    for (int64_t s = 0; s < count; ++s) {
      const int64_t i = p.adjoint ? s : count - 1 - s;
      const T* vector = v + i * p.rows;  // its leading dimension is `rows`
      T sum = lane == 0 ? x[i] : T(0);
      for (int64_t r = i + 1 + lane; r < p.rows; r += warp)
        sum += (p.conjugated ? vector[r] : conjugate_of(vector[r])) * x[r];
      const T scale = scales[i];
      sum = warp_sum(sum) * (p.adjoint != p.conjugated ? conjugate_of(scale) : scale);
      if (lane == 0) x[i] -= sum;
      for (int64_t r = i + 1 + lane; r < p.rows; r += warp)
        x[r] -= (p.conjugated ? conjugate_of(vector[r]) : vector[r]) * sum;
      __syncwarp();
    }
  }
}

// ---- eigenvectors

template <typename R>
__global__ void __launch_bounds__(threads)
    pair_columns(const R* parts, const R* values, R* vectors, int64_t n, int64_t all_columns) {
  for (int64_t c = blockIdx.x; c < all_columns; c += gridDim.x) {
    // Of a conjugate pair, the eigenvalue with the positive imaginary part comes first.
    const R imaginary = values[2 * c + 1];
    const int64_t column = c % n;
    const bool leads = imaginary > 0 && column + 1 < n, follows = imaginary < 0 && column > 0;
    const R *real = parts + (follows ? c - 1 : c) * n, *other = parts + (leads ? c + 1 : c) * n;
    for (int64_t r = threadIdx.x; r < n; r += threads) {
      vectors[2 * (c * n + r)] = real[r];
      vectors[2 * (c * n + r) + 1] = leads ? other[r] : follows ? -other[r] : R(0);
    }
  }
}

// ---- least squares

template <typename T>
__global__ void __launch_bounds__(threads)
    divide_rows(T* x, int64_t rows, int64_t columns, int64_t all_columns, const real_t<T>* values, int64_t count,
                real_t<T> rcond, int64_t* ranks) {
  for (int64_t c = blockIdx.x; c < all_columns; c += gridDim.x) {
    const int64_t batch = c / columns;
    const real_t<T>* singular = values + batch * count;
    const real_t<T> threshold = rcond * singular[0];
    for (int64_t r = threadIdx.x; r < rows; r += threads) {
      T& element = x[c * rows + r];
      element = r < count && singular[r] > threshold ? element / singular[r] : T(0);
    }
    if (c % columns == 0 && threadIdx.x == 0) {
      int64_t rank = 0;
      while (rank < count && singular[rank] > threshold) ++rank;  // singular values are in descending order
      ranks[batch] = rank;
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(threads)
    norms_of_columns(const T* rest, int64_t length, T* x, int64_t x_rows, int64_t row, int64_t all_columns) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
  for (int64_t c = first_index() / warp; c < all_columns; c += index_step() / warp) {
    double sum = 0;
    for (int64_t r = lane; r < length; r += warp) {
      const T value = rest[c * length + r];
      const double real = real_of(value);
      sum += real * real;
      if constexpr (is_complex_v<T>) sum += static_cast<double>(value.imag()) * static_cast<double>(value.imag());
    }
    sum = warp_sum(sum);
    for (int64_t r = row + lane; r < x_rows; r += warp)
      x[c * x_rows + r] = r == row ? T(static_cast<real_t<T>>(::cuda::std::sqrt(sum))) : T(0);
  }
}

template <typename T>
__global__ void __launch_bounds__(threads)
    find_zero_on_diagonal(const T* data, int64_t rows, int64_t step, int64_t length, int64_t count, FaultSink sink) {
  for (int64_t i = first_index(); i < count; i += index_step()) {
    const int64_t place = i % length;
    if (data[i / length * step + place + place * rows] == T(0)) sink.report(FaultKind::Custom, place + 1, 0, length);
  }
}

}  // namespace

Workspace addresses(const Call& call, void* first, int64_t step, int64_t count) {
  Workspace table(call, static_cast<size_t>(count) * sizeof(void*));
  launch(call, write_addresses, count ? grid_for(call, count, threads) : 0u, threads, 0, table.as<void*>(),
         static_cast<std::byte*>(first), step, count);
  return table;
}
Workspace addresses(const Call& call, const Matrices& m) {
  return addresses(call, m.data, m.step() * itemsize(m.dtype), m.batches);
}

void keep_triangle(const Call& call, const Matrices& a, bool upper) {
  change(call, a, upper ? Change::KeepUpper : Change::KeepLower);
}
void set_identity(const Call& call, const Matrices& a) {
  change(call, a, Change::Identity);
}

void conjugate(const Call& call, const Matrices& a) {
  const int64_t count = a.batches * a.step();
  if (!is_complex_dtype(a.dtype) || a.empty()) return;
  if (a.dtype == CB_COMPLEX64)
    launch(call, negate_imaginary<float>, grid_for(call, count, threads), threads, 0, static_cast<float*>(a.data),
           count);
  else
    launch(call, negate_imaginary<double>, grid_for(call, count, threads), threads, 0, static_cast<double*>(a.data),
           count);
}

void clear_not_finite(const Call& call, const Matrices& a, int32_t* flags) {
  fill_bytes(call, flags, 0, static_cast<size_t>(a.batches) * sizeof(int32_t));
  if (a.empty()) return;
  const int64_t all = a.batches * a.columns, column_size = a.leading() * (is_complex_dtype(a.dtype) ? 2 : 1);
  const unsigned blocks = grid_for(call, all, 1, 16);
  const auto queue = [&]<typename R>() {
    launch(call, find_not_finite<R>, blocks, threads, 0, static_cast<const R*>(a.data), column_size, a.columns, all,
           flags);
    launch(call, clear_flagged<R>, blocks, threads, 0, static_cast<R*>(a.data), column_size, a.columns, all, flags);
  };
  if (a.dtype == CB_FLOAT32 || a.dtype == CB_COMPLEX64)
    queue.template operator()<float>();
  else
    queue.template operator()<double>();
}
void tell_not_finite(const Call& call, const int32_t* flags, int32_t* info, int64_t count) {
  if (count) launch(call, mark_flagged, grid_for(call, count, threads), threads, 0, flags, info, count);
}
void check_finite(const Call& call, const int32_t* flags, int64_t count, FaultSink sink) {
  if (count) launch(call, report_flagged, grid_for(call, count, threads), threads, 0, flags, count, sink);
}

void narrow_pivots(const Call& call, const int64_t* from, int32_t* to, int64_t count) {
  if (count) launch(call, narrow, grid_for(call, count, threads), threads, 0, from, to, count);
}
void count_pivots(const Call& call, int32_t* pivots, int64_t length, int64_t count) {
  if (count) launch(call, count_up, grid_for(call, count, threads), threads, 0, pivots, length, count);
}
void check_pivots(const Call& call, const int32_t* pivots, int64_t count, int64_t rows, int32_t* small, int64_t* wide,
                  FaultSink sink) {
  if (count)
    launch(call, check_pivots_kernel, grid_for(call, count, threads), threads, 0, pivots, count, rows, small, wide,
           sink);
}
void fill_ranks(const Call& call, int64_t* ranks, int64_t value, int64_t count) {
  if (count) launch(call, fill_ranks_kernel, grid_for(call, count, threads), threads, 0, ranks, value, count);
}

void reflect(const Call& call, const Reflections& r, const Matrices& x) {
  if (x.empty()) return;
  dispatch<LapackTypes>(x.dtype, [&]<typename T>() {
    const Reflecting<T> p{static_cast<const T*>(r.v.data),
                          static_cast<const T*>(r.scales),
                          static_cast<T*>(x.data),
                          x.rows,
                          r.count,
                          x.columns,
                          x.batches * x.columns,
                          r.v.step(),
                          r.scale_step,
                          x.leading(),
                          r.adjoint,
                          r.conjugated,
                          r.from_identity};
    launch(call, reflect_columns<T>, warps_for(call, p.all_columns), threads, 0, p);
  });
}

void pair_vectors(const Call& call, const Matrices& parts, const void* values, const Matrices& vectors) {
  if (parts.empty()) return;
  const int64_t all = parts.batches * parts.columns;
  dispatch<FullFloatTypes>(parts.dtype, [&]<typename R>() {
    launch(call, pair_columns<R>, grid_for(call, all, 1, 16), threads, 0, static_cast<const R*>(parts.data),
           static_cast<const R*>(values), static_cast<R*>(vectors.data), parts.rows, all);
  });
}

void divide_by_singular(const Call& call, const Matrices& x, const void* values, double rcond, int64_t* ranks,
                        int64_t count) {
  if (x.empty()) return;
  const int64_t all = x.batches * x.columns;
  dispatch<LapackTypes>(x.dtype, [&]<typename T>() {
    using R = real_t<T>;
    // As in LAPACK, a negative rcond stands for machine precision.
    const R threshold =
        rcond < 0 ? (sizeof(R) == 4 ? static_cast<R>(0x1p-24) : static_cast<R>(0x1p-53)) : static_cast<R>(rcond);
    launch(call, divide_rows<T>, grid_for(call, all, 1, 16), threads, 0, static_cast<T*>(x.data), x.rows, x.columns,
           all, static_cast<const R*>(values), count, threshold, ranks);
  });
}

void store_norms(const Call& call, const Matrices& rest, const Matrices& x, int64_t row) {
  if (x.empty() || row >= x.rows) return;
  const int64_t all = x.batches * x.columns;
  dispatch<LapackTypes>(x.dtype, [&]<typename T>() {
    launch(call, norms_of_columns<T>, warps_for(call, all), threads, 0, static_cast<const T*>(rest.data), rest.rows,
           static_cast<T*>(x.data), x.rows, row, all);
  });
}

void check_diagonal(const Call& call, const Matrices& r, FaultSink sink) {
  const int64_t length = std::min(r.rows, r.columns), count = length * r.batches;
  if (count == 0) return;
  dispatch<LapackTypes>(r.dtype, [&]<typename T>() {
    launch(call, find_zero_on_diagonal<T>, grid_for(call, count, threads), threads, 0, static_cast<const T*>(r.data),
           r.rows, r.step(), length, count, sink);
  });
}

}  // namespace candelabra::cuda
