// distances and distances_backward: p-norms of the differences of all pairs of rows. 64 rows of the second matrix are transposed,
// so that the distances of a row to all of them are summed side by side. They are sums of differences, not differences of products,
// which are near zero where rows are close to each other and lose their digits there.
#include <cmath>
#include <limits>

#include "../allocator.hpp"
#include "../dtypes.hpp"
#include "../kernels.hpp"
#include "../parallel.hpp"
#include "candelabra/math.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

constexpr int64_t tile = 64;
constexpr int64_t rows_together = 64;
constexpr int64_t terms_together = 128;  // summed before they are added to the total, which keeps rounding errors small

// What one difference adds, how sums are combined, and what the norm is of the sum.
template <typename C>
struct Euclidean {
  C operator()(C d) const { return d * d; }
  C combine(C a, C b) const { return a + b; }
  C finish(C s) const { return std::sqrt(s); }
};
template <typename C>
struct Manhattan {
  C operator()(C d) const { return std::abs(d); }
  C combine(C a, C b) const { return a + b; }
  C finish(C s) const { return s; }
};
template <typename C>
struct Largest {
  C operator()(C d) const { return std::abs(d); }
  C combine(C a, C b) const { return (a > b) | (a != a) ? a : b; }
  C finish(C s) const { return s; }
};
template <typename C>
struct Unequal {
  C operator()(C d) const { return d != 0 ? C(1) : C(0); }
  C combine(C a, C b) const { return a + b; }
  C finish(C s) const { return s; }
};
template <typename C>
struct General {
  C p;
  C operator()(C d) const { return math::pow(std::abs(d), p); }
  C combine(C a, C b) const { return a + b; }
  C finish(C s) const { return math::pow(s, C(1) / p); }
};

template <typename C, typename Norm>
void row_of_distances(const C* row, const C* columns, int64_t terms, const Norm norm, C* out) {
  C total[tile] = {};
  for (int64_t first = 0; first < terms; first += terms_together) {
    C sums[tile] = {};
    const int64_t last = std::min(terms, first + terms_together);
    for (int64_t m = first; m < last; ++m) {
      const C value = row[m];
      const C* others = columns + m * tile;
#pragma omp simd
      for (int64_t j = 0; j < tile; ++j) sums[j] = norm.combine(norm(value - others[j]), sums[j]);
    }
#pragma omp simd
    for (int64_t j = 0; j < tile; ++j) total[j] = norm.combine(total[j], sums[j]);
  }
#pragma omp simd
  for (int64_t j = 0; j < tile; ++j) out[j] = norm.finish(total[j]);
}

template <typename T, typename Norm>
void all_pairs(Call& call, const Norm& norm) {
  using C = compute_t<T>;
  const cb_tensor &x1 = call.tensor(0), &x2 = call.tensor(1), &out = call.output();
  const int64_t rows = x1.sizes[x1.ndim - 2], terms = x1.sizes[x1.ndim - 1], others = x2.sizes[x2.ndim - 2];
  const int64_t batch = out.numel / (rows * others);
  const int64_t across = (others + tile - 1) / tile, down = (rows + rows_together - 1) / rows_together;
  parallel_for(batch * across * down, grain_for(rows_together * tile * std::max<int64_t>(terms, 1) / 4),
               [&](int64_t begin, int64_t end) {
                 Scratch<C> columns(terms * tile), wide(terms);
                 C distances[tile];
                 for (int64_t item = begin; item < end; ++item) {
                   const int64_t b = item / (across * down), j0 = item / down % across * tile, i0 = item % down * rows_together;
                   const int64_t width = std::min(tile, others - j0), last = std::min(rows, i0 + rows_together);
                   const T* second = data<T>(x2) + (b * others + j0) * terms;
                   for (int64_t m = 0; m < terms; ++m)
                     for (int64_t j = 0; j < tile; ++j)
                       columns[m * tile + j] = j < width ? static_cast<C>(second[j * terms + m]) : C(0);
                   for (int64_t i = i0; i < last; ++i) {
                     const T* first = data<T>(x1) + (b * rows + i) * terms;
                     for (int64_t m = 0; m < terms; ++m) wide[m] = static_cast<C>(first[m]);
                     row_of_distances(wide.data(), columns.data(), terms, norm, distances);
                     T* to = mutable_data<T>(out) + (b * rows + i) * others + j0;
                     for (int64_t j = 0; j < width; ++j) to[j] = static_cast<T>(distances[j]);
                   }
                 }
               });
}

void distances(Call& call) {
  if (call.output().numel == 0) return;
  const double p = call.real(2);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    if (p == 2) return all_pairs<T>(call, Euclidean<C>{});
    if (p == 1) return all_pairs<T>(call, Manhattan<C>{});
    if (p == 0) return all_pairs<T>(call, Unequal<C>{});
    if (p == std::numeric_limits<double>::infinity()) return all_pairs<T>(call, Largest<C>{});
    all_pairs<T>(call, General<C>{static_cast<C>(p)});
  });
}

// How a distance changes with a difference: what the difference is multiplied with, or the change itself.
template <typename C>
struct Change {
  double p;
  C slope, distance, scale;

  Change(double order, C grad, C result) : p(order), slope(grad), distance(result), scale(0) {
    if (p == 2) scale = result == 0 ? C(0) : grad / result;
    if (p != 0 && p != 1 && p != 2 && p != std::numeric_limits<double>::infinity())
      scale = result == 0 ? C(0) : grad / math::pow(result, static_cast<C>(p - 1));
  }
  template <typename T>
  void add(const C* row, const T* other, int64_t terms, C* sums) const {
    const auto sign = [](C d) { return static_cast<C>((d > 0) - (d < 0)); };
    if (p == 2) {
#pragma omp simd
      for (int64_t m = 0; m < terms; ++m) sums[m] += scale * (row[m] - static_cast<C>(other[m]));
    } else if (p == 1) {
#pragma omp simd
      for (int64_t m = 0; m < terms; ++m) sums[m] += slope * sign(row[m] - static_cast<C>(other[m]));
    } else if (p == std::numeric_limits<double>::infinity()) {
#pragma omp simd
      for (int64_t m = 0; m < terms; ++m) {
        const C d = row[m] - static_cast<C>(other[m]);
        sums[m] += std::abs(d) == distance ? slope * sign(d) : C(0);
      }
    } else {
      const C power = static_cast<C>(p - 1);
#pragma omp simd
      for (int64_t m = 0; m < terms; ++m) {
        const C d = row[m] - static_cast<C>(other[m]);
        sums[m] += d == 0 ? C(0) : scale * sign(d) * math::pow(std::abs(d), power);
      }
    }
  }
};

void distances_backward(Call& call) {
  const cb_tensor &x1 = call.tensor(1), &x2 = call.tensor(2), &out = call.output();
  if (out.numel == 0) return;
  const double p = call.real(4);
  const int64_t rows = x1.sizes[x1.ndim - 2], terms = x1.sizes[x1.ndim - 1], others = x2.sizes[x2.ndim - 2];
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() {
    using C = compute_t<T>;
    parallel_for(out.numel / terms, grain_for(2 * terms * std::max<int64_t>(others, 1)), [&](int64_t begin, int64_t end) {
      Scratch<C> sums(terms), wide(terms);
      for (int64_t item = begin; item < end; ++item) {
        const T *row = data<T>(x1) + item * terms, *second = data<T>(x2) + item / rows * others * terms;
        for (int64_t m = 0; m < terms; ++m) wide[m] = static_cast<C>(row[m]);
        std::fill_n(sums.data(), terms, C(0));
        // Distances that are the number of unequal elements do not change with them.
        for (int64_t j = 0; j < others && p != 0; ++j) {
          const int64_t at = item * others + j;
          const Change<C> change(p, static_cast<C>(data<T>(call.tensor(0))[at]), static_cast<C>(data<T>(call.tensor(3))[at]));
          change.add(wide.data(), second + j * terms, terms, sums.data());
        }
        T* to = mutable_data<T>(out) + item * terms;
        for (int64_t m = 0; m < terms; ++m) to[m] = static_cast<T>(sums[m]);
      }
    });
  });
}

}  // namespace

void register_linalg_distances(KernelTable& table) {
  table.add<distances>("distances");
  table.add<distances_backward>("distances_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
