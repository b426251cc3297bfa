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

template <typename Acc, typename T>
[[gnu::always_inline]] inline Acc sum_of(const T* values, int64_t n) {
  Acc a{}, b{}, c{}, d{};
  int64_t quarter = n / 4;
  const T *second = values + quarter, *third = second + quarter, *fourth = third + quarter;
  if (quarter >= 8) {
#pragma omp simd reduction(+ : a, b, c, d)
    for (int64_t i = 0; i < quarter; ++i) {
      a += static_cast<Acc>(values[i]);
      b += static_cast<Acc>(second[i]);
      c += static_cast<Acc>(third[i]);
      d += static_cast<Acc>(fourth[i]);
    }
  } else {
    for (int64_t i = 0; i < quarter; ++i) {
      a += static_cast<Acc>(values[i]);
      b += static_cast<Acc>(second[i]);
      c += static_cast<Acc>(third[i]);
      d += static_cast<Acc>(fourth[i]);
    }
  }
  for (int64_t i = 4 * quarter; i < n; ++i) a += static_cast<Acc>(values[i]);
  return (a + b) + (c + d);
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
