// Helpers of the normalizations: contiguous operands, block-wide sums, sums of columns.
#pragma once

#include <vector>

#include "drivers/elementwise.cuh"
#include "drivers/move.hpp"

namespace candelabra::cuda::normalize {

constexpr int threads = 256;

// The elements of a tensor in row-major order: its memory, or a contiguous copy.
class Contiguous {
 public:
  Contiguous(const Call& call, const cb_tensor* tensor) {
    if (!tensor) return;
    data_ = tensor->data;
    if (is_contiguous(*tensor) || tensor->numel == 0) return;
    copy_ = Workspace(call, static_cast<size_t>(tensor->numel * itemsize(tensor->dtype)));
    std::vector<int64_t> strides(static_cast<size_t>(tensor->ndim));
    int64_t step = 1;
    for (int d = tensor->ndim; d-- > 0; step *= tensor->sizes[d]) strides[static_cast<size_t>(d)] = step;
    cb_tensor target = *tensor;
    target.data = data_ = copy_.data();
    target.strides = strides.data();
    move_elements(call, target, *tensor);
  }
  // Null if there is no tensor.
  template <typename T>
  const memory_t<T>* as() const {
    return static_cast<const memory_t<T>*>(data_);
  }

 private:
  void* data_ = nullptr;
  Workspace copy_;
};

template <typename V>
struct Pair {
  V first, second;
};

// Both sums over the threads of a block of full warps, in a fixed order. Every thread gets them.
template <typename V>
__device__ Pair<V> block_sum(Pair<V> mine) {
  __shared__ Pair<V> of_warps[32];
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    mine.first += __shfl_xor_sync(0xffffffffu, mine.first, mask);
    mine.second += __shfl_xor_sync(0xffffffffu, mine.second, mask);
  }
  __syncthreads();  // the last call's results have been read
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  mine = of_warps[0];
  for (unsigned w = 1; w < blockDim.x / 32; ++w) {
    mine.first += of_warps[w].first;
    mine.second += of_warps[w].second;
  }
  return mine;
}

// Threads per block for rows of n elements.
inline int threads_for(int64_t n) {
  return n <= 512 ? 128 : n <= 4096 ? 256 : n <= 16384 ? 512 : 1024;
}

// ---- sums over rows of a matrix (rows, columns) without gaps, for the gradients of parameters:
//   first[c] = sum of grad[r, c] xhat[r, c], second[c] = sum of grad[r, c], xhat = (input - mean) rstd
// with statistics for each row or for each column.

constexpr int tile_columns = 32, tile_rows = 8;
constexpr int64_t least_rows = 64, most_chunks = 256;

inline int64_t rows_of_chunk(int64_t rows) {
  return std::max(least_rows, divide_up(rows, most_chunks));
}

template <typename T, bool StatisticsOfColumns>
__global__ void __launch_bounds__(tile_columns* tile_rows)
    column_sums(const memory_t<T>* grad, const memory_t<T>* input, const compute_t<T>* mean, const compute_t<T>* rstd,
                int64_t rows, int64_t columns, int64_t chunk, Pair<compute_t<T>>* partial) {
  using V = compute_t<T>;
  __shared__ Pair<V> shared[tile_rows][tile_columns];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * tile_columns + threadIdx.x;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * chunk, end = begin + chunk < rows ? begin + chunk : rows;
  Pair<V> sum{V(0), V(0)};
  if (column < columns) {
    for (int64_t r = begin + threadIdx.y; r < end; r += tile_rows) {
      const int64_t at = StatisticsOfColumns ? column : r;
      const V gradient = loaded<T>(grad[r * columns + column]);
      const V center = mean ? mean[at] : V(0);
      sum.first += gradient * ((loaded<T>(input[r * columns + column]) - center) * rstd[at]);
      sum.second += gradient;
    }
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int k = 1; k < tile_rows; ++k) {
    sum.first += shared[k][threadIdx.x].first;
    sum.second += shared[k][threadIdx.x].second;
  }
  partial[blockIdx.y * columns + column] = sum;
}

// Sums the chunks; either result may be null.
template <typename T>
__global__ void __launch_bounds__(threads) chunk_sums(const Pair<compute_t<T>>* partial, int64_t chunks,
                                                      int64_t columns, memory_t<T>* first, memory_t<T>* second) {
  using V = compute_t<T>;
  const int64_t column = first_index();
  if (column >= columns) return;
  Pair<V> sum{V(0), V(0)};
  for (int64_t c = 0; c < chunks; ++c) {
    sum.first += partial[c * columns + column].first;
    sum.second += partial[c * columns + column].second;
  }
  if (first) first[column] = stored<T>(sum.first);
  if (second) second[column] = stored<T>(sum.second);
}

}  // namespace candelabra::cuda::normalize
