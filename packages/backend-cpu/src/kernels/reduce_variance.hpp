// Mean and sum of squared distances from it, in one pass over memory.
#pragma once

#include "reduce_sum.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace reduce {

struct Moments {
  double count = 0, mean = 0, squares = 0;  // squares: the sum of squared distances from the mean

  // Chan, Golub, LeVeque, Updating formulae and a pairwise algorithm for computing sample variances (1979).
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

  // The mean of the block, then distances from it: the second pass finds the values in the first cache level.
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
          double distance = static_cast<double>(row[j]) - mean[j];
          squares[j] += distance * distance;
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

}  // namespace reduce
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
