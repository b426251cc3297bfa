// Factorization and solution of symmetric and Hermitian indefinite matrices.
#include "drivers/matrices/matrix_numbers.cuh"

namespace candelabra::cuda {
namespace {

using namespace on_matrices;

constexpr int ldl_threads = 256;

template <typename R>
struct Largest {
  R value;
  int64_t at;
};
// The block-wide maximum and its first index. NaN is larger than all numbers, so that it is found.
template <typename R>
__device__ Largest<R> largest_of_block(Largest<R> mine) {
  __shared__ R values[ldl_threads];
  __shared__ int64_t places[ldl_threads];
  __syncthreads();  // the last reduction's results have been read
  values[threadIdx.x] = mine.value;
  places[threadIdx.x] = mine.at;
  __syncthreads();
  for (int left = ldl_threads / 2; left > 0; left /= 2) {
    if (static_cast<int>(threadIdx.x) < left) {
      const R a = values[threadIdx.x], b = values[threadIdx.x + left];
      const int64_t pa = places[threadIdx.x], pb = places[threadIdx.x + left];
      if (pb >= 0 && (pa < 0 || b > a || (b != b && a == a) || (b == a && pb < pa))) {
        values[threadIdx.x] = b;
        places[threadIdx.x] = pb;
      }
    }
    __syncthreads();
  }
  return {values[0], places[0]};
}

template <typename T>
__device__ void exchange(T& a, T& b) {
  const T held = a;
  a = b;
  b = held;
}

// The pivot of a step: `width` (1 or 2) rows and columns, the last of them swapped with `row`.
struct Pivot {
  int64_t row, width;
  bool is_zero;  // the column is zero or NaN: nothing to eliminate
};

// The trailing submatrix of one matrix (Bunch and Kaufman, 1977: Some stable methods for
// calculating inertia and solving symmetric linear systems; diagonal pivoting that examines at most
// two columns). The threads of a block share its elements, and call each function together.
template <typename T>
struct LdlMatrix {
  using R = real_t<T>;
  T* data;
  int64_t n;
  bool hermitian;
  T *first, *second;  // n elements each: the multipliers of a step

  __device__ T& at(int64_t i, int64_t j) const { return data[i + j * n]; }
  __device__ T conjugated(T x) const { return hermitian ? conjugate_of(x) : x; }
  __device__ R size_on_diagonal(int64_t i) const {
    return hermitian ? ::cuda::std::fabs(real_of(at(i, i))) : magnitude(at(i, i));
  }

  __device__ static void keep_larger(Largest<R>& largest, R size, int64_t place) {
    if (largest.at < 0 || size > largest.value || (size != size && largest.value == largest.value))
      largest = {size, place};
  }

  __device__ Largest<R> largest_below_diagonal(int64_t k) const {
    Largest<R> largest{R(0), -1};
    for (int64_t i = k + 1 + threadIdx.x; i < n; i += ldl_threads) keep_larger(largest, magnitude(at(i, k)), i);
    return largest_of_block(largest);
  }

  // The largest of the other elements of the row and column `row`.
  __device__ Largest<R> largest_beside_diagonal(int64_t k, int64_t row) const {
    Largest<R> largest{R(0), -1};
    for (int64_t j = k + threadIdx.x; j < n; j += ldl_threads)
      if (j != row) keep_larger(largest, magnitude(j < row ? at(row, j) : at(j, row)), j);
    return largest_of_block(largest);
  }

  __device__ Pivot choose_pivot(int64_t k) const {
    const R alpha = static_cast<R>(0.6403882032022076);  // (1 + sqrt(17)) / 8
    const Largest<R> below = largest_below_diagonal(k);
    const R diagonal = size_on_diagonal(k), column_size = below.at < 0 ? R(0) : below.value;
    if ((diagonal == 0 && column_size == 0) || diagonal != diagonal) return {k, 1, true};
    if (!(diagonal < alpha * column_size)) return {k, 1, false};
    const R row_size = largest_beside_diagonal(k, below.at).value;
    if (diagonal >= alpha * column_size * (column_size / row_size)) return {k, 1, false};
    return {below.at, size_on_diagonal(below.at) >= alpha * row_size ? 1 : 2, false};
  }

  // Swaps the rows and columns of the pivot with the last ones of the step.
  __device__ void exchange_pivot(int64_t k, const Pivot& pivot) const {
    const int64_t inner = k + pivot.width - 1, row = pivot.row;
    if (row != inner) {
      for (int64_t i = row + 1 + threadIdx.x; i < n; i += ldl_threads) exchange(at(i, inner), at(i, row));
      for (int64_t j = inner + 1 + threadIdx.x; j < row; j += ldl_threads) {
        const T held = conjugated(at(j, inner));
        at(j, inner) = conjugated(at(row, j));
        at(row, j) = held;
      }
      if (threadIdx.x == 0) {
        at(row, inner) = conjugated(at(row, inner));
        exchange(at(inner, inner), at(row, row));
        if (pivot.width == 2) exchange(at(k + 1, k), at(row, k));
      }
    }
    if (hermitian && threadIdx.x == 0) {
      at(k, k) = T(real_of(at(k, k)));
      if (pivot.width == 2) at(k + 1, k + 1) = T(real_of(at(k + 1, k + 1)));
    }
  }

  // The columns of L are stored after the trailing submatrix has been updated with the old ones.
  __device__ void compute_columns(int64_t k, int64_t width) const {
    const int64_t next = k + width;
    if (width == 1) {
      const T scale = T(1) / at(k, k);
      for (int64_t i = next + threadIdx.x; i < n; i += ldl_threads) first[i] = at(i, k) * scale;
      return;
    }
    const T corner = at(k + 1, k), beyond = conjugated(corner);
    const T d1 = at(k, k), d2 = at(k + 1, k + 1);
    // The inverse of the block [d1, beyond; corner, d2], scaled by the corner against overflow.
    const T e1 = d1 / beyond, e2 = d2 / corner, scale = T(1) / (e1 * e2 - T(1));
    for (int64_t i = next + threadIdx.x; i < n; i += ldl_threads) {
      const T x = at(i, k), y = at(i, k + 1);
      first[i] = (e2 * x - y) / beyond * scale;
      second[i] = (e1 * y - x) / corner * scale;
    }
  }

  __device__ void eliminate(int64_t k, int64_t width) const {
    const int64_t next = k + width, left = n - next;
    compute_columns(k, width);
    __syncthreads();
    for (int64_t e = threadIdx.x; e < left * left; e += ldl_threads) {
      const int64_t i = next + e % left, j = next + e / left;
      if (i < j) continue;
      T value = at(i, j) - at(i, k) * conjugated(first[j]);
      if (width == 2) value -= at(i, k + 1) * conjugated(second[j]);
      at(i, j) = hermitian && i == j ? T(real_of(value)) : value;
    }
    __syncthreads();
    for (int64_t i = next + threadIdx.x; i < n; i += ldl_threads) {
      at(i, k) = first[i];
      if (width == 2) at(i, k + 1) = second[i];
    }
  }
};

// `all_held` has 2 n elements for each matrix.
template <typename T>
__global__ void __launch_bounds__(ldl_threads) factor_ldl_kernel(T* data, int64_t n, int64_t batches, bool hermitian,
                                                                 int32_t* all_pivots, int32_t* all_info, T* all_held) {
  for (int64_t batch = blockIdx.x; batch < batches; batch += gridDim.x) {
    T* held = all_held + batch * 2 * n;
    const LdlMatrix<T> a{data + batch * n * n, n, hermitian, held, held + n};
    int32_t* pivots = all_pivots + batch * n;
    int32_t info = 0;
    for (int64_t k = 0; k < n;) {
      __syncthreads();
      const Pivot pivot = a.choose_pivot(k);
      if (pivot.is_zero && info == 0) info = static_cast<int32_t>(k + 1);
      __syncthreads();
      a.exchange_pivot(k, pivot);
      __syncthreads();
      if (!pivot.is_zero && k + pivot.width < n) a.eliminate(k, pivot.width);
      if (threadIdx.x == 0) {
        const auto number = static_cast<int32_t>(pivot.row + 1);
        pivots[k] = pivot.width == 1 ? number : -number;
        if (pivot.width == 2) pivots[k + 1] = -number;
      }
      k += pivot.width;
    }
    if (threadIdx.x == 0) all_info[batch] = info;
    __syncthreads();
  }
}

// Solves L D L^T x = b: one warp per column of x.
template <typename T>
__global__ void __launch_bounds__(threads)
    solve_ldl_kernel(const T* factors, const int32_t* all_pivots, T* right, int64_t n, int64_t columns,
                     int64_t all_columns, bool hermitian, FaultSink sink) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const auto conjugated = [hermitian](T x) { return hermitian ? conjugate_of(x) : x; };
  for (int64_t c = first_index() / warp; c < all_columns; c += index_step() / warp) {
    const T* a = factors + c / columns * n * n;
    const int32_t* pivots = all_pivots + c / columns * n;
    T* x = right + c * n;
    const auto pivot_of = [&](int64_t k) -> int64_t {
      const int64_t row = pivots[k] < 0 ? -static_cast<int64_t>(pivots[k]) : pivots[k];
      if (row >= 1 && row <= n) return row - 1;
      sink.report(FaultKind::Custom, pivots[k], 0, n);
      return k;
    };
    const auto swap_rows = [&](int64_t i, int64_t j) {
      if (lane == 0 && i != j) exchange(x[i], x[j]);
      __syncwarp();
    };
    int64_t k = 0;
    while (k < n) {
      const bool pair = pivots[k] < 0 && k + 1 < n;
      if (!pair) {
        swap_rows(k, pivot_of(k));
        const T value = x[k];
        for (int64_t i = k + 1 + lane; i < n; i += warp) x[i] -= a[i + k * n] * value;
        __syncwarp();
        if (lane == 0) x[k] = value / a[k + k * n];
        ++k;
      } else {
        swap_rows(k + 1, pivot_of(k));
        const T u = x[k], w = x[k + 1];
        for (int64_t i = k + 2 + lane; i < n; i += warp) x[i] -= a[i + k * n] * u + a[i + (k + 1) * n] * w;
        __syncwarp();
        if (lane == 0) {
          const T corner = a[k + 1 + k * n], beyond = conjugated(corner);
          const T e1 = a[k + k * n] / beyond, e2 = a[k + 1 + (k + 1) * n] / corner, f1 = u / beyond, f2 = w / corner;
          const T scale = T(1) / (e1 * e2 - T(1));
          x[k] = (e2 * f1 - f2) * scale;
          x[k + 1] = (e1 * f2 - f1) * scale;
        }
        k += 2;
      }
      __syncwarp();
    }
    k = n - 1;
    while (k >= 0) {
      const bool pair = pivots[k] < 0 && k > 0;
      T sum(0), other(0);
      for (int64_t i = k + 1 + lane; i < n; i += warp) {
        sum += conjugated(a[i + k * n]) * x[i];
        if (pair) other += conjugated(a[i + (k - 1) * n]) * x[i];
      }
      sum = warp_sum(sum);
      other = warp_sum(other);
      __syncwarp();
      if (lane == 0) {
        x[k] -= sum;
        if (pair) x[k - 1] -= other;
      }
      __syncwarp();
      swap_rows(k, pivot_of(k));
      k -= pair ? 2 : 1;
    }
  }
}

}  // namespace

void factor_ldl(const Call& call, const Matrices& a, bool hermitian, int32_t* pivots, int32_t* info) {
  if (a.empty()) return;
  const Workspace held(call, static_cast<size_t>(2 * a.batches * a.rows * itemsize(a.dtype)));
  dispatch<LapackTypes>(a.dtype, [&]<typename T>() {
    launch(call, factor_ldl_kernel<T>, grid_for(call, a.batches, 1, 8), ldl_threads, 0, static_cast<T*>(a.data), a.rows,
           a.batches, hermitian, pivots, info, held.as<T>());
  });
}

void solve_ldl(const Call& call, const Matrices& ld, const int32_t* pivots, bool hermitian, const Matrices& x,
               FaultSink sink) {
  if (x.empty()) return;
  dispatch<LapackTypes>(x.dtype, [&]<typename T>() {
    const int64_t all = x.batches * x.columns;
    launch(call, solve_ldl_kernel<T>, warps_for(call, all), threads, 0, static_cast<const T*>(ld.data), pivots,
           static_cast<T*>(x.data), x.rows, x.columns, all, hermitian, sink);
  });
}

}  // namespace candelabra::cuda
