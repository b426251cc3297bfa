// Shared by layer and group normalization: statistics of rows, and the check that input is
// contiguous.
#pragma once

#include <cmath>

#include "kernels/normalization/normalize.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

using reduce::Moments;

// Adds the moments of at most 2048 values, computed in their own precision. Deviations are taken
// from an estimate of the mean and corrected by their own mean, so that a large mean costs no
// accuracy.
template <typename V>
void add_block(Moments& moments, const V* values, int64_t n) {
  const int64_t half = n / 2;
  const V* second = values + half;
  V first_sum = 0, second_sum = 0;
#pragma omp simd reduction(+ : first_sum, second_sum)
  for (int64_t i = 0; i < half; ++i) {
    first_sum += values[i];
    second_sum += second[i];
  }
  if (n % 2) first_sum += values[n - 1];
  V estimate = (first_sum + second_sum) / static_cast<V>(n);
  // The sum overflowed: it is repeated in double.
  if (!std::isfinite(estimate)) estimate = static_cast<V>(reduce::sum_of<double>(values, n) / static_cast<double>(n));
  V a = 0, b = 0, c = 0, d = 0;
#pragma omp simd reduction(+ : a, b, c, d)
  for (int64_t i = 0; i < half; ++i) {
    V da = values[i] - estimate, db = second[i] - estimate;
    a += da * da;
    b += db * db;
    c += da;
    d += db;
  }
  if (n % 2) {
    V last = values[n - 1] - estimate;
    a += last * last;
    c += last;
  }
  const double count = static_cast<double>(n), shift = static_cast<double>(c + d) / count;
  moments.add(count, static_cast<double>(estimate) + shift,
              std::max(static_cast<double>(a + b) - count * shift * shift, std::isnan(a + b) ? NAN : 0.0));
}

template <typename T>
Moments moments_of(const T* row, int64_t n) {
  Moments result;
  for (int64_t i = 0; i < n; i += reduce::block_length) {
    int64_t count = std::min(reduce::block_length, n - i);
    if constexpr (is_half_v<T>) {
      alignas(64) float buffer[reduce::block_length];
      to_float(row + i, buffer, count);
      add_block(result, buffer, count);
    } else {
      add_block(result, row + i, count);
    }
  }
  return result;
}

template <typename T>
void write_moments(const Moments& moments, int64_t n, double eps, int64_t row, cb_tensor& mean, cb_tensor& rstd) {
  using V = compute_t<T>;  // half precision has float32 statistics
  data<V>(mean)[row] = static_cast<V>(moments.mean);
  data<V>(rstd)[row] = static_cast<V>(1 / std::sqrt(moments.squares / static_cast<double>(n) + eps));
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
