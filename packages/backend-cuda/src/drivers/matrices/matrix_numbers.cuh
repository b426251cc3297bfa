// Arithmetic of kernels on matrices: real and complex numbers, sums over a warp.
#pragma once

#include "drivers/matrices/matrix_kernels.hpp"

namespace candelabra::cuda::on_matrices {

constexpr int threads = 256, warp = 32;

template <typename T>
__device__ T conjugate_of(T x) {
  if constexpr (is_complex_v<T>)
    return T(x.real(), -x.imag());
  else
    return x;
}
template <typename T>
__device__ real_t<T> real_of(T x) {
  if constexpr (is_complex_v<T>)
    return x.real();
  else
    return x;
}
// A magnitude that is cheap to compute: the sum of the parts' magnitudes (LAPACK's cabs1).
template <typename T>
__device__ real_t<T> magnitude(T x) {
  if constexpr (is_complex_v<T>)
    return ::cuda::std::fabs(x.real()) + ::cuda::std::fabs(x.imag());
  else
    return ::cuda::std::fabs(x);
}
template <typename T>
__device__ bool finite(T x) {
  if constexpr (is_complex_v<T>)
    return ::cuda::std::isfinite(x.real()) && ::cuda::std::isfinite(x.imag());
  else
    return ::cuda::std::isfinite(x);
}

// The sum over the lanes of a warp, in every lane.
template <typename T>
__device__ T warp_sum(T value) {
  for (int step = warp / 2; step > 0; step /= 2) {
    if constexpr (is_complex_v<T>)
      value =
          value + T(__shfl_xor_sync(0xffffffffu, value.real(), step), __shfl_xor_sync(0xffffffffu, value.imag(), step));
    else
      value += __shfl_xor_sync(0xffffffffu, value, step);
  }
  return value;
}

// The number of blocks for one warp per column.
inline unsigned warps_for(const Call& call, int64_t columns) {
  return grid_for(call, columns * warp, threads, 16);
}

}  // namespace candelabra::cuda::on_matrices
