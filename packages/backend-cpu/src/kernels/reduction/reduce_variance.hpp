// The mean and the sum of squared deviations, in one pass over memory.
#pragma once

#include "kernels/reduction/reduce_sum.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace reduce {

struct Moments {
  double count = 0, mean = 0, squares = 0;  // squares: the sum of squared deviations

  // Chan, Golub, LeVeque, Updating formulae and a pairwise algorithm for computing sample variances
  // (1979).
  [[gnu::always_inline]] void add(double other_count, double other_mean, double other_squares) {
    double total = count + other_count;
    double delta = other_mean - mean;
    double share = other_count / total;
    mean += delta * share;
    squares += other_squares + delta * delta * (count * share);
    count = total;
  }
};

template <typename T>
struct Variance {
  using Value = T;
  using Acc = Moments;
  static constexpr bool ordered = false;

  static Acc identity() { return {}; }

  // Two passes over a block: the second finds the values in the L1 cache.
  static void block(Acc& acc, const T* values, int64_t n, int64_t) {
    if (n == 0) return;
    double mean = sum_of<double>(values, n) / static_cast<double>(n);
    double a = 0, b = 0;
    int64_t half = n / 2;
    const T* second = values + half;
#pragma omp simd reduction(+ : a, b)
    for (int64_t i = 0; i < half; ++i) {
      double da = static_cast<double>(values[i]) - mean, db = static_cast<double>(second[i]) - mean;
      a += da * da;
      b += db * db;
    }
    if (n % 2) {
      double last = static_cast<double>(values[n - 1]) - mean;
      a += last * last;
    }
    acc.add(static_cast<double>(n), mean, a + b);
  }

  static void rows(Acc* acc, const T* values, int64_t stride, int64_t rows, int64_t columns, int64_t) {
    constexpr int64_t group = 16;
    double mean[tile_columns], squares[tile_columns];
    for (int64_t r = 0; r < rows; r += group) {
      int64_t count = std::min(group, rows - r);
      const T* top = values + r * stride;
      for (int64_t j = 0; j < columns; ++j) mean[j] = squares[j] = 0;
      for (int64_t i = 0; i < count; ++i) {
        const T* row = top + i * stride;
#pragma omp simd
        for (int64_t j = 0; j < columns; ++j) mean[j] += static_cast<double>(row[j]);
      }
      double share = 1.0 / static_cast<double>(count);
      for (int64_t j = 0; j < columns; ++j) mean[j] *= share;
      for (int64_t i = 0; i < count; ++i) {
        const T* row = top + i * stride;
#pragma omp simd
        for (int64_t j = 0; j < columns; ++j) {
          double deviation = static_cast<double>(row[j]) - mean[j];
          squares[j] += deviation * deviation;
        }
      }
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) acc[j].add(static_cast<double>(count), mean[j], squares[j]);
    }
  }

  static void merge(Acc& acc, const Acc& later) {
    if (later.count > 0) acc.add(later.count, later.mean, later.squares);
  }
};

// Complex numbers: the squared deviation is the sum of those of the real and imaginary parts.
template <typename R>
struct ComplexVariance {
  using Value = std::complex<R>;
  struct Acc {
    double count = 0, mean[2] = {0, 0}, squares = 0;

    [[gnu::always_inline]] void add(double other_count, double other_real, double other_imag, double other_squares) {
      const double total = count + other_count, share = other_count / total;
      const double delta[2] = {other_real - mean[0], other_imag - mean[1]};
      mean[0] += delta[0] * share;
      mean[1] += delta[1] * share;
      squares += other_squares + (delta[0] * delta[0] + delta[1] * delta[1]) * (count * share);
      count = total;
    }
  };
  static constexpr bool ordered = false;

  static Acc identity() { return {}; }

  static void block(Acc& acc, const Value* values, int64_t n, int64_t) {
    if (n == 0) return;
    constexpr int64_t lanes = 16;  // real and imaginary parts alternate
    const R* numbers = reinterpret_cast<const R*>(values);
    alignas(64) double mean[lanes] = {}, squares[lanes] = {};
    const auto over_lanes = [&](auto&& accumulate) {
      int64_t i = 0;
      for (; i + lanes <= 2 * n; i += lanes)
#pragma omp simd
        for (int64_t k = 0; k < lanes; ++k) accumulate(k, static_cast<double>(numbers[i + k]));
      for (int64_t k = 0; i + k < 2 * n; ++k) accumulate(k, static_cast<double>(numbers[i + k]));
    };
    over_lanes([&](int64_t k, double value) { mean[k] += value; });
    for (int64_t half = lanes / 2; half > 1; half /= 2)
      for (int64_t k = 0; k < half; ++k) mean[k] += mean[k + half];
    for (int64_t k = lanes; k-- > 0;) mean[k] = mean[k % 2] / static_cast<double>(n);
    over_lanes([&](int64_t k, double value) { squares[k] += (value - mean[k]) * (value - mean[k]); });
    for (int64_t half = lanes / 2; half > 0; half /= 2)
      for (int64_t k = 0; k < half; ++k) squares[k] += squares[k + half];
    acc.add(static_cast<double>(n), mean[0], mean[1], squares[0]);
  }

  static void rows(Acc* acc, const Value* values, int64_t stride, int64_t rows, int64_t columns, int64_t) {
    constexpr int64_t group = 16;
    double mean[2 * tile_columns], squares[2 * tile_columns];
    for (int64_t r = 0; r < rows; r += group) {
      const int64_t count = std::min(group, rows - r);
      const R* top = reinterpret_cast<const R*>(values + r * stride);
      std::fill_n(mean, 2 * columns, 0.0);
      std::fill_n(squares, 2 * columns, 0.0);
      for (int64_t i = 0; i < count; ++i) {
        const R* row = top + 2 * i * stride;
#pragma omp simd
        for (int64_t j = 0; j < 2 * columns; ++j) mean[j] += static_cast<double>(row[j]);
      }
      const double share = 1.0 / static_cast<double>(count);
      for (int64_t j = 0; j < 2 * columns; ++j) mean[j] *= share;
      for (int64_t i = 0; i < count; ++i) {
        const R* row = top + 2 * i * stride;
#pragma omp simd
        for (int64_t j = 0; j < 2 * columns; ++j) {
          const double deviation = static_cast<double>(row[j]) - mean[j];
          squares[j] += deviation * deviation;
        }
      }
      for (int64_t j = 0; j < columns; ++j)
        acc[j].add(static_cast<double>(count), mean[2 * j], mean[2 * j + 1], squares[2 * j] + squares[2 * j + 1]);
    }
  }

  static void merge(Acc& acc, const Acc& later) {
    if (later.count > 0) acc.add(later.count, later.mean[0], later.mean[1], later.squares);
  }
};

}  // namespace reduce
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
