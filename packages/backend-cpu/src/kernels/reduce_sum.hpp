// Sums. float32 is added in float64; float64 in blocks whose sums are added with their rounding errors kept; integers wrap.
#pragma once

#include <cmath>

#include "reduce.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace reduce {

// A sum and what rounding has lost of it.
struct Twofold {
  double sum = 0, lost = 0;
  [[gnu::always_inline]] void add(double value) {
    double total = sum + value;
    double back = total - sum;
    lost += (sum - (total - back)) + (value - back);
    sum = total;
  }
  double value() const {
    double exact = sum + lost;
    return std::isfinite(exact) ? exact : sum;  // of infinities the lost part is NaN
  }
};

// Reads in order, as the processor fetches ahead; 32 sums at once, so that none waits for another.
template <typename Acc, typename T>
[[gnu::always_inline]] inline Acc sum_of(const T* values, int64_t n) {
  constexpr int64_t lanes = 32;
  Acc sum{};
  int64_t i = 0;
  if (n >= 2 * lanes) {
    alignas(64) Acc sums[lanes] = {};
    if constexpr (std::is_same_v<T, float> && std::is_same_v<Acc, double>) {
      __m256d parts[lanes / 4];
      for (auto& part : parts) part = _mm256_setzero_pd();
      for (; i + lanes <= n; i += lanes)
        for (int64_t k = 0; k < lanes / 4; ++k)
          parts[k] = _mm256_add_pd(parts[k], _mm256_cvtps_pd(_mm_loadu_ps(values + i + 4 * k)));
      for (int64_t k = 0; k < lanes / 4; ++k) _mm256_store_pd(sums + 4 * k, parts[k]);
    } else {
      for (; i + lanes <= n; i += lanes)
#pragma omp simd
        for (int64_t k = 0; k < lanes; ++k) sums[k] += static_cast<Acc>(values[i + k]);
    }
    for (int64_t half = lanes / 2; half > 0; half /= 2)
      for (int64_t k = 0; k < half; ++k) sums[k] += sums[k + half];
    sum = sums[0];
  }
  for (; i < n; ++i) sum += static_cast<Acc>(values[i]);
  return sum;
}

template <typename T>
struct Sum {
  using Value = T;
  using Plain = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  static constexpr bool twofold = std::is_same_v<T, double>;
  using Acc = std::conditional_t<twofold, Twofold, Plain>;
  static constexpr bool ordered = false;

  static Acc identity() { return Acc{}; }
  [[gnu::always_inline]] static void add(Acc& acc, Plain value) {
    if constexpr (twofold)
      acc.add(value);
    else
      acc += value;
  }
  static void block(Acc& acc, const T* values, int64_t n, int64_t) { add(acc, sum_of<Plain>(values, n)); }

  static void rows(Acc* acc, const T* values, int64_t stride, int64_t rows, int64_t columns, int64_t) {
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8) {
      const T* row = values + r * stride;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) {
        auto at = [&](int64_t i) { return static_cast<Plain>(row[i * stride + j]); };
        add(acc[j], ((at(0) + at(1)) + (at(2) + at(3))) + ((at(4) + at(5)) + (at(6) + at(7))));
      }
    }
    for (; r < rows; ++r) {
      const T* row = values + r * stride;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) add(acc[j], static_cast<Plain>(row[j]));
    }
  }

  static void merge(Acc& acc, const Acc& later) {
    if constexpr (twofold) {
      acc.add(later.sum);
      acc.lost += later.lost;
    } else {
      acc += later;
    }
  }
  static Plain value(const Acc& acc) {
    if constexpr (twofold)
      return acc.value();
    else
      return acc;
  }
};

}  // namespace reduce
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
