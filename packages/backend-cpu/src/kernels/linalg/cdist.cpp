// _cdist_forward, _cdist_backward and _pdist_forward: p-norms of the differences of pairs of rows.
//
// 64 rows of the second matrix are transposed into a tile, so that the distances of one row to all
// of them are vectorized across the tile. Euclidean distances take half the work by
//
//   |x - y|^2 = |x|^2 + |y|^2 - 2 x.y
//
// but this cancels where rows are close to each other for their length. There squared differences
// are summed instead.
#include <cmath>
#include <limits>
#include <utility>

#include "candelabra/arguments/linalg.hpp"
#include "candelabra/math.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/reduction/reduce_aminmax.hpp"
#include "memory/allocator.hpp"
#include "simd/vec_power.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

constexpr int64_t tile = 64;
constexpr int64_t rows_per_block = 64;
constexpr int64_t terms_per_sum = 128;  // two-level summation keeps the rounding error small

// A norm: the term that one difference adds, how terms are combined, and the norm of the combined
// terms.
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
};

// Width: `tile`, or 0 where the width is known at run time only (`width`).
template <int64_t Width, typename C, typename Norm>
void distances_of_width(const C* row, const C* columns, int64_t terms, const Norm norm, C* out, int64_t width) {
  const int64_t count = Width ? Width : width;
  C total[tile] = {};
  for (int64_t first = 0; first < terms; first += terms_per_sum) {
    C sums[tile] = {};
    const int64_t last = std::min(terms, first + terms_per_sum);
    for (int64_t m = first; m < last; ++m) {
      const C value = row[m];
      const C* others = columns + m * tile;
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) sums[j] = norm.combine(norm(value - others[j]), sums[j]);
    }
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) total[j] = norm.combine(total[j], sums[j]);
  }
#pragma omp simd
  for (int64_t j = 0; j < count; ++j) out[j] = norm.finish(total[j]);
}

// The general norm, in whole registers. Columns of the tile from `width` on are zero.
template <int64_t Width, typename C>
void distances_of_width(const C* row, const C* columns, int64_t terms, const General<C> norm, C* out, int64_t width) {
  using V = math::Vec<C>;
  const int64_t count = Width ? Width : width;
  const V power(norm.p), root(C(1) / norm.p);
  alignas(64) C total[tile] = {};
  for (int64_t first = 0; first < terms; first += terms_per_sum) {
    alignas(64) C sums[tile] = {};
    const int64_t last = std::min(terms, first + terms_per_sum);
    for (int64_t m = first; m < last; ++m) {
      const V value(row[m]);
      for (int64_t j = 0; j < count; j += V::size)
        (V::load(sums + j) + math::pow(abs(value - V::load(columns + m * tile + j)), power)).store(sums + j);
    }
    for (int64_t j = 0; j < count; j += V::size) (V::load(total + j) + V::load(sums + j)).store(total + j);
  }
  for (int64_t j = 0; j < count; j += V::size) math::pow(V::load(total + j), root).store(out + j);
}

template <typename C, typename Norm>
void row_distances(const C* row, const C* columns, int64_t terms, const Norm norm, C* out, int64_t width = tile) {
  if (width == tile)
    distances_of_width<tile>(row, columns, terms, norm, out, tile);
  else
    distances_of_width<0>(row, columns, terms, norm, out, width);
}

// ---- Euclidean distances

constexpr int rows_per_step = 4;

// The dot products of `rows_per_step` rows with the columns of a tile. The sums stay in registers.
template <typename C>
void products(const C* const* rows, const C* columns, int64_t terms, C (*out)[tile]) {
  using L = reduce::Lanes<C>;
  using V = typename L::type;
  // AVX-512 has twice as many registers as AVX2.
  constexpr int vectors = sizeof(V) == 64 ? 4 : 2;
  for (int64_t j = 0; j < tile; j += vectors * L::count) {
    V total[rows_per_step][vectors] = {};
    for (int64_t first = 0; first < terms; first += terms_per_sum) {
      V sums[rows_per_step][vectors] = {};
      const int64_t last = std::min(terms, first + terms_per_sum);
      for (int64_t m = first; m < last; ++m) {
        V column[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) column[v] = L::load(columns + m * tile + j + v * L::count);
#pragma GCC unroll 4
        for (int r = 0; r < rows_per_step; ++r)
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) sums[r][v] += column[v] * rows[r][m];
      }
      for (int r = 0; r < rows_per_step; ++r)
        for (int v = 0; v < vectors; ++v) total[r][v] += sums[r][v];
    }
    for (int r = 0; r < rows_per_step; ++r)
      for (int v = 0; v < vectors; ++v) L::store(out[r] + j + v * L::count, total[r][v]);
  }
}

template <typename C>
C square_of(const C* row, int64_t terms) {
  C total = 0;
  for (int64_t first = 0; first < terms; first += terms_per_sum) {
    const int64_t last = std::min(terms, first + terms_per_sum);
    C sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t m = first; m < last; ++m) sum += row[m] * row[m];
    total += sum;
  }
  return total;
}

// Distances of `count` rows to a tile. `squares` are the squared lengths of the tile's columns.
template <typename C>
void euclidean_rows(const C* const* rows, int count, const C* columns, const C* squares, int64_t terms,
                    C (*out)[tile]) {
  products(rows, columns, terms, out);
  for (int r = 0; r < count; ++r) {
    const C own = square_of(rows[r], terms);
    int32_t close = 0;
    alignas(64) C distances[tile];
#pragma omp simd reduction(| : close)
    for (int64_t j = 0; j < tile; ++j) {
      const C sum = own + squares[j], square = sum - 2 * out[r][j];
      close |= !((square >= C(0.25) * sum) & (sum <= std::numeric_limits<C>::max()));
      distances[j] = std::sqrt(std::max(square, C(0)));
    }
    if (close)
      row_distances(rows[r], columns, terms, Euclidean<C>{}, out[r]);
    else
      std::copy_n(distances, tile, out[r]);
  }
}

// A transposed tile of rows of the second matrix, and their squared lengths.
template <typename C>
struct Tile {
  Scratch<C> columns;
  alignas(64) C squares[tile];

  explicit Tile(int64_t terms) : columns(terms * tile) {}
  template <typename T>
  void load(const T* rows, int64_t width, int64_t terms, bool with_squares) {
    for (int64_t m = 0; m < terms; ++m)
      for (int64_t j = 0; j < tile; ++j) columns[m * tile + j] = j < width ? static_cast<C>(rows[j * terms + m]) : C(0);
    if (!with_squares) return;
    std::fill_n(squares, tile, C(0));
    const C* from = columns.data();
    for (int64_t m = 0; m < terms; ++m)
#pragma omp simd
      for (int64_t j = 0; j < tile; ++j) squares[j] += from[m * tile + j] * from[m * tile + j];
  }
};

// Calls give(row, distances) with the distances of each of rows [first, last) to the tile.
template <typename T, typename Norm, typename F>
void rows_to_tile(const T* rows, int64_t first, int64_t last, Tile<compute_t<T>>& others, int64_t width, int64_t terms,
                  compute_t<T>* wide, const Norm& norm, F&& give) {
  using C = compute_t<T>;
  constexpr int64_t few = 8;  // up to this many columns, products save no work
  alignas(64) C distances[rows_per_step][tile];
  for (int64_t i = first; i < last; i += rows_per_step) {
    const int count = static_cast<int>(std::min<int64_t>(rows_per_step, last - i));
    const C* rows_of[rows_per_step];
    for (int r = 0; r < rows_per_step; ++r) {  // missing rows repeat the last one
      const T* from = rows + (i + std::min(r, count - 1)) * terms;
      C* to = wide + r * terms;
      for (int64_t m = 0; m < terms; ++m) to[m] = static_cast<C>(from[m]);
      rows_of[r] = to;
    }
    bool done = false;
    if constexpr (std::is_same_v<Norm, Euclidean<C>>)
      if (width > few) {
        euclidean_rows(rows_of, count, others.columns.data(), others.squares, terms, distances);
        done = true;
      }
    if (!done)
      for (int r = 0; r < count; ++r)
        row_distances(rows_of[r], others.columns.data(), terms, norm, distances[r], width);
    for (int r = 0; r < count; ++r) give(i + r, static_cast<const C*>(distances[r]));
  }
}

template <typename T, typename Norm>
void all_pairs(Call& call, const Norm& norm) {
  using C = compute_t<T>;
  const arguments::CdistForward args(call);
  const cb_tensor &x1 = *args.x1, &x2 = *args.x2, &out = call.output();
  const int64_t rows = x1.sizes[x1.ndim - 2], terms = x1.sizes[x1.ndim - 1], others = x2.sizes[x2.ndim - 2];
  const int64_t batch = out.numel / (rows * others);
  const int64_t across = (others + tile - 1) / tile, down = (rows + rows_per_block - 1) / rows_per_block;
  parallel_for(
      batch * across * down, grain_for(rows_per_block * tile * std::max<int64_t>(terms, 1) / 4),
      [&](int64_t begin, int64_t end) {
        Tile<C> second(terms);
        Scratch<C> wide(terms * rows_per_step);
        int64_t loaded = -1;
        for (int64_t item = begin; item < end; ++item) {
          const int64_t b = item / (across * down), j0 = item / down % across * tile, i0 = item % down * rows_per_block;
          const int64_t width = std::min(tile, others - j0);
          if (std::exchange(loaded, item / down) != item / down)
            second.load(data<T>(x2) + (b * others + j0) * terms, width, terms, std::is_same_v<Norm, Euclidean<C>>);
          rows_to_tile(data<T>(x1) + b * rows * terms, i0, std::min(rows, i0 + rows_per_block), second, width, terms,
                       wide.data(), norm, [&](int64_t i, const C* distances) {
                         T* to = mutable_data<T>(out) + (b * rows + i) * others + j0;
                         for (int64_t j = 0; j < width; ++j) to[j] = static_cast<T>(distances[j]);
                       });
        }
      });
}

// The pairs (i, j > i) of one matrix, in row-major order.
template <typename T, typename Norm>
void self_pairs(Call& call, const Norm& norm) {
  using C = compute_t<T>;
  const cb_tensor &x = *arguments::PdistForward(call).self, &out = call.output();
  const int64_t rows = x.sizes[0], terms = x.sizes[1];
  const int64_t across = (rows + tile - 1) / tile;
  parallel_for(across, grain_for(rows * tile * std::max<int64_t>(terms, 1) / 8), [&](int64_t begin, int64_t end) {
    Tile<C> second(terms);
    Scratch<C> wide(terms * rows_per_step);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t j0 = item * tile, width = std::min(tile, rows - j0);
      second.load(data<T>(x) + j0 * terms, width, terms, std::is_same_v<Norm, Euclidean<C>>);
      rows_to_tile(data<T>(x), 0, j0 + width - 1, second, width, terms, wide.data(), norm,
                   [&](int64_t i, const C* distances) {
                     T* to = mutable_data<T>(out) + i * (2 * rows - i - 1) / 2 - i - 1;
                     for (int64_t j = std::max(i + 1, j0); j < j0 + width; ++j)
                       to[j] = static_cast<T>(distances[j - j0]);
                   });
    }
  });
}

// Calls f with the norm of order p.
template <typename C, typename F>
void with_norm(double p, F&& f) {
  if (p == 2) return f(Euclidean<C>{});
  if (p == 1) return f(Manhattan<C>{});
  if (p == 0) return f(Unequal<C>{});
  if (p == std::numeric_limits<double>::infinity()) return f(Largest<C>{});
  f(General<C>{static_cast<C>(p)});
}

void pdist_forward(Call& call) {
  if (call.output().numel == 0) return;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    with_norm<compute_t<T>>(arguments::PdistForward(call).p, [&](const auto& norm) { self_pairs<T>(call, norm); });
  });
}

void cdist_forward(Call& call) {
  if (call.output().numel == 0) return;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    with_norm<compute_t<T>>(arguments::CdistForward(call).p, [&](const auto& norm) { all_pairs<T>(call, norm); });
  });
}

// The gradient of one distance with respect to its row.
template <typename C>
struct DistanceGradient {
  double p;
  C slope, distance, scale;

  DistanceGradient(double order, C grad, C result) : p(order), slope(grad), distance(result), scale(0) {
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

// The gradient of Euclidean distances: sum over `other` of scale * (row - other). The sums of a few
// rows and columns stay in registers.
template <typename T>
void euclidean_backward(Call& call) {
  using C = compute_t<T>;
  using L = reduce::Lanes<C>;
  using V = typename L::type;
  constexpr int64_t width = 2 * L::count;
  const arguments::CdistBackward args(call);
  const cb_tensor &x1 = *args.x1, &x2 = *args.x2, &out = call.output();
  const int64_t rows = x1.sizes[x1.ndim - 2], terms = x1.sizes[x1.ndim - 1], others = x2.sizes[x2.ndim - 2];
  const int64_t groups = (rows + rows_per_step - 1) / rows_per_step, padded = (terms + width - 1) / width * width;
  const T *slopes = data<T>(*args.grad), *results = data<T>(*args.result);
  parallel_for(out.numel / (terms * rows) * groups, grain_for(2 * rows_per_step * terms * std::max<int64_t>(others, 1)),
               [&](int64_t begin, int64_t end) {
                 Scratch<C> scales(rows_per_step * others), own(rows_per_step * padded), sums(rows_per_step * padded);
                 alignas(64) C wide[width];
                 for (int64_t item = begin; item < end; ++item) {
                   const int64_t b = item / groups, first = item % groups * rows_per_step;
                   const int64_t count = std::min<int64_t>(rows_per_step, rows - first);
                   std::fill_n(own.data(), rows_per_step * padded, C(0));
                   for (int64_t r = 0; r < rows_per_step; ++r) {
                     const int64_t row = b * rows + first + std::min(r, count - 1);
                     for (int64_t m = 0; m < terms; ++m)
                       own[r * padded + m] = static_cast<C>(data<T>(x1)[row * terms + m]);
                     for (int64_t j = 0; j < others; ++j) {
                       const C distance = static_cast<C>(results[row * others + j]);
                       scales[r * others + j] =
                           distance == 0 ? C(0) : static_cast<C>(slopes[row * others + j]) / distance;
                     }
                   }
                   const T* second = data<T>(x2) + b * others * terms;
                   for (int64_t m = 0; m < terms; m += width) {
                     const int64_t some = std::min(width, terms - m);
                     V mine[rows_per_step][2], sum[rows_per_step][2] = {};
                     for (int r = 0; r < rows_per_step; ++r)
                       for (int half = 0; half < 2; ++half)
                         mine[r][half] = L::load(own.data() + r * padded + m + half * L::count);
                     std::fill_n(wide, width, C(0));
                     const C* scale = scales.data();
                     for (int64_t j = 0; j < others; ++j) {
                       const T* other = second + j * terms + m;
                       V theirs[2];
                       if (std::is_same_v<T, C> && some == width) {
                         for (int half = 0; half < 2; ++half)
                           theirs[half] = L::load(reinterpret_cast<const C*>(other) + half * L::count);
                       } else {
                         for (int64_t k = 0; k < some; ++k) wide[k] = static_cast<C>(other[k]);
                         for (int half = 0; half < 2; ++half) theirs[half] = L::load(wide + half * L::count);
                       }
                       for (int r = 0; r < rows_per_step; ++r)
                         for (int half = 0; half < 2; ++half)
                           sum[r][half] += (mine[r][half] - theirs[half]) * scale[r * others + j];
                     }
                     for (int r = 0; r < rows_per_step; ++r)
                       for (int half = 0; half < 2; ++half)
                         L::store(sums.data() + r * padded + m + half * L::count, sum[r][half]);
                   }
                   for (int64_t r = 0; r < count; ++r) {
                     T* to = mutable_data<T>(out) + (b * rows + first + r) * terms;
                     for (int64_t m = 0; m < terms; ++m) to[m] = static_cast<T>(sums[r * padded + m]);
                   }
                 }
               });
}

void cdist_backward(Call& call) {
  const arguments::CdistBackward args(call);
  const cb_tensor &x1 = *args.x1, &x2 = *args.x2, &out = call.output();
  if (out.numel == 0) return;
  const double p = args.p;
  const int64_t rows = x1.sizes[x1.ndim - 2], terms = x1.sizes[x1.ndim - 1], others = x2.sizes[x2.ndim - 2];
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() {
    if (p == 2) return euclidean_backward<T>(call);
    using C = compute_t<T>;
    parallel_for(out.numel / terms, grain_for(2 * terms * std::max<int64_t>(others, 1)),
                 [&](int64_t begin, int64_t end) {
                   Scratch<C> sums(terms), wide(terms);
                   for (int64_t item = begin; item < end; ++item) {
                     const T *row = data<T>(x1) + item * terms, *second = data<T>(x2) + item / rows * others * terms;
                     for (int64_t m = 0; m < terms; ++m) wide[m] = static_cast<C>(row[m]);
                     std::fill_n(sums.data(), terms, C(0));
                     // For p = 0 the distance is a count of unequal elements: its gradient is zero.
                     for (int64_t j = 0; j < others && p != 0; ++j) {
                       const int64_t at = item * others + j;
                       const DistanceGradient<C> change(p, static_cast<C>(data<T>(*args.grad)[at]),
                                                        static_cast<C>(data<T>(*args.result)[at]));
                       change.add(wide.data(), second + j * terms, terms, sums.data());
                     }
                     T* to = mutable_data<T>(out) + item * terms;
                     for (int64_t m = 0; m < terms; ++m) to[m] = static_cast<T>(sums[m]);
                   }
                 });
  });
}

}  // namespace

void register_cdist(KernelTable& table) {
  table.add<cdist_forward>("_cdist_forward");
  table.add<pdist_forward>("_pdist_forward");
  table.add<cdist_backward>("_cdist_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
