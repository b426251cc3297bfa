// distances: p-norms of the differences of all pairs of rows. 64 rows of the second matrix are transposed, so that the distances of
// a row to all of them are summed side by side. They are sums of differences, not differences of products, which are near zero
// where rows are close to each other and lose their digits there.
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

}  // namespace

void register_linalg_distances(KernelTable& table) {
  table.add<distances>("distances");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
