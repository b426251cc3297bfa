// Shared by the losses of classes: the sum or the mean of losses, weighted by class.
#pragma once

#include "drivers/normalize.cuh"

namespace candelabra::cuda::weighted_mean {

using normalize::block_sum;
using normalize::Pair;

// The shape rule replaces the name of the reduction by this number.
enum Reduction : int64_t { None = 0, Mean = 1, Sum = 2 };

constexpr int threads = 256;

// One block adds the pairs of losses and weights that the blocks of a kernel have summed.
template <typename T>
__global__ void __launch_bounds__(threads)
    total_kernel(const Pair<double>* partial, int64_t count, bool mean, memory_t<T>* out, memory_t<T>* total) {
  Pair<double> sums{0, 0};
  for (int64_t i = threadIdx.x; i < count; i += threads) {
    sums.first += partial[i].first;
    sums.second += partial[i].second;
  }
  sums = block_sum(sums);
  if (threadIdx.x != 0) return;
  if (out) *out = stored<T>(static_cast<compute_t<T>>(mean ? sums.first / sums.second : sums.first));
  *total = stored<T>(static_cast<compute_t<T>>(sums.second));
}

}  // namespace candelabra::cuda::weighted_mean
