// distances, pair_distances and distances_backward: p-norms of the differences of all pairs of rows. A block computes a tile of
// distances from pieces of both matrices in shared memory. Differences are taken as they are, so that rows that are close to each
// other lose no digits.
#include <algorithm>

#include "candelabra/math.hpp"
#include "launch.hpp"

namespace candelabra::cuda {
namespace {

enum class Norm { Unequal, Manhattan, Euclidean, Largest, General };

Norm norm_of(double p) {
  if (p == 0) return Norm::Unequal;
  if (p == 1) return Norm::Manhattan;
  if (p == 2) return Norm::Euclidean;
  return p == std::numeric_limits<double>::infinity() ? Norm::Largest : Norm::General;
}

constexpr int side = 64, depth = 16, each = 4, threads = 256;  // a thread has `each` rows and columns of a tile
constexpr int terms_together = 128;                            // summed before they are added to the total

template <typename T>
struct DistanceArguments {
  const memory_t<T>*first, *second;
  memory_t<T>* out;
  int64_t rows, others, terms, across, down, tiles;
  compute_t<T> p;
  Norm norm;
  bool within;  // of one matrix: row i to those behind it, one row's after the other's
};

template <typename C, Norm Kind>
__device__ __forceinline__ void take(C& sum, C d, C p) {
  if constexpr (Kind == Norm::Unequal)
    sum += d != C(0) ? C(1) : C(0);
  else if constexpr (Kind == Norm::Manhattan)
    sum += math::abs(d);
  else if constexpr (Kind == Norm::Euclidean)
    sum += d * d;
  else if constexpr (Kind == Norm::Largest)
    sum = math::abs(d) > sum || d != d ? math::abs(d) : sum;  // NaN stays
  else
    sum += math::pow(math::abs(d), p);
}

template <typename C, Norm Kind>
__device__ void take_piece(C (&sums)[each][each], const C (&rows)[depth][side + 1], const C (&columns)[depth][side + 1], int count,
                           C p) {
  const int i = static_cast<int>(threadIdx.x) / (side / each), j = static_cast<int>(threadIdx.x) % (side / each);
  for (int m = 0; m < count; ++m) {
    C a[each], b[each];
#pragma unroll
    for (int k = 0; k < each; ++k) a[k] = rows[m][i * each + k], b[k] = columns[m][j + k * (side / each)];
#pragma unroll
    for (int r = 0; r < each; ++r)
#pragma unroll
      for (int c = 0; c < each; ++c) take<C, Kind>(sums[r][c], a[r] - b[c], p);
  }
}

// `depth` terms of `side` rows, turned so that a thread's rows of one term lie together; zeros where there is none.
template <typename T>
__device__ void load_piece(compute_t<T> (&to)[depth][side + 1], const memory_t<T>* from, int64_t first_row, int64_t rows,
                           int64_t first_term, int64_t terms) {
  for (int e = static_cast<int>(threadIdx.x); e < side * depth; e += threads) {
    const int r = e / depth, m = e % depth;
    const int64_t row = first_row + r, term = first_term + m;
    to[m][r] = row < rows && term < terms ? loaded<T>(from[row * terms + term]) : compute_t<T>(0);
  }
}

template <typename T>
__global__ void __launch_bounds__(threads) distance_kernel(const __grid_constant__ DistanceArguments<T> a) {
  using C = compute_t<T>;
  __shared__ C rows[depth][side + 1], columns[depth][side + 1];
  for (int64_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
    const int64_t j0 = tile % a.across * side, above = tile / a.across, i0 = above % a.down * side, b = above / a.down;
    if (a.within && j0 + side <= i0) continue;
    const memory_t<T>*first = a.first + b * a.rows * a.terms, *second = a.second + b * a.others * a.terms;
    C total[each][each] = {}, sums[each][each] = {};
    for (int64_t m0 = 0; m0 < a.terms; m0 += depth) {
      load_piece<T>(rows, first, i0, a.rows, m0, a.terms);
      load_piece<T>(columns, second, j0, a.others, m0, a.terms);
      __syncthreads();
      const int count = static_cast<int>(a.terms - m0 < depth ? a.terms - m0 : depth);
      switch (a.norm) {
        case Norm::Unequal:
          take_piece<C, Norm::Unequal>(sums, rows, columns, count, a.p);
          break;
        case Norm::Manhattan:
          take_piece<C, Norm::Manhattan>(sums, rows, columns, count, a.p);
          break;
        case Norm::Euclidean:
          take_piece<C, Norm::Euclidean>(sums, rows, columns, count, a.p);
          break;
        case Norm::Largest:
          take_piece<C, Norm::Largest>(sums, rows, columns, count, a.p);
          break;
        case Norm::General:
          take_piece<C, Norm::General>(sums, rows, columns, count, a.p);
          break;
      }
      __syncthreads();
      if (a.norm == Norm::Largest || ((m0 + depth) % terms_together != 0 && m0 + depth < a.terms)) continue;
      for (int r = 0; r < each; ++r)
        for (int c = 0; c < each; ++c) total[r][c] += sums[r][c], sums[r][c] = C(0);
    }
    const int i = static_cast<int>(threadIdx.x) / (side / each), j = static_cast<int>(threadIdx.x) % (side / each);
    for (int r = 0; r < each; ++r) {
      const int64_t row = i0 + i * each + r;
      for (int c = 0; c < each; ++c) {
        const int64_t other = j0 + j + c * (side / each);
        if (row >= a.rows || other >= a.others || (a.within && other <= row)) continue;
        C value = a.norm == Norm::Largest ? sums[r][c] : total[r][c];
        if (a.norm == Norm::Euclidean)
          value = math::sqrt(value);
        else if (a.norm == Norm::General)
          value = math::pow(value, C(1) / a.p);
        a.out[a.within ? row * (2 * a.rows - row - 1) / 2 - row - 1 + other : (b * a.rows + row) * a.others + other] =
            stored<T>(value);
      }
    }
  }
}

template <typename T>
void run_distances(const Call& call, const cb_tensor& x1, const cb_tensor& x2, double p, bool within) {
  using Element = memory_t<T>;
  const int64_t rows = x1.sizes[x1.ndim - 2], others = x2.sizes[x2.ndim - 2];
  const int64_t across = divide_up(others, side), down = divide_up(rows, side);
  const int64_t batch = within ? 1 : call.output().numel / (rows * others), tiles = batch * across * down;
  const DistanceArguments<T> a{data<Element>(x1),
                               data<Element>(x2),
                               data<Element>(call.output()),
                               rows,
                               others,
                               x1.sizes[x1.ndim - 1],
                               across,
                               down,
                               tiles,
                               static_cast<compute_t<T>>(p),
                               norm_of(p),
                               within};
  launch(call, distance_kernel<T>, static_cast<unsigned>(std::min<int64_t>(tiles, 1 << 30)), threads, 0, a);
}

void distances(Call& call) {
  if (call.output().numel == 0) return;
  dispatch<FloatTypes>(call.output().dtype,
                       [&]<typename T>() { run_distances<T>(call, call.tensor(0), call.tensor(1), call.real(2), false); });
}
void pair_distances(Call& call) {
  if (call.output().numel == 0) return;
  dispatch<FloatTypes>(call.output().dtype,
                       [&]<typename T>() { run_distances<T>(call, call.tensor(0), call.tensor(0), call.real(1), true); });
}

// ---- the gradient: of each term of a row the sum over all other rows

constexpr int gradient_threads = 128, rows_each = 4, most_pairs = 2048, most_together = 64;

template <typename T>
struct GradientArguments {
  const memory_t<T>*slopes, *first, *second, *results;
  memory_t<T>* out;       // null: sums of parts of the other rows go to `partial`
  compute_t<T>* partial;  // (parts, elements of out)
  int64_t rows_in_all, rows, others, terms, columns, blocks, part, elements;
  compute_t<T> p;
  Norm norm;
  int together;  // other rows of which the slopes are kept at a time
};

// blockDim (x: terms, y: groups of rows); block.y: parts of the other rows. Rows of a block may be of several batches.
template <typename T>
__global__ void __launch_bounds__(gradient_threads) gradient_kernel(const __grid_constant__ GradientArguments<T> a) {
  using C = compute_t<T>;
  __shared__ C scales[most_pairs], distances[most_pairs];
  const int rows_together = static_cast<int>(blockDim.y) * rows_each,
            rank = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * a.part, end = begin + a.part < a.others ? begin + a.part : a.others;
  for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
    const int64_t term = block % a.columns * blockDim.x + threadIdx.x, row0 = block / a.columns * rows_together;
    const bool there = term < a.terms;
    C mine[rows_each], sums[rows_each] = {};
    int64_t other_of[rows_each];  // where the other rows of this one's batch begin
    for (int r = 0; r < rows_each; ++r) {
      const int64_t row = row0 + threadIdx.y * rows_each + r;
      mine[r] = there && row < a.rows_in_all ? loaded<T>(a.first[row * a.terms + term]) : C(0);
      other_of[r] = row < a.rows_in_all ? row / a.rows * a.others : 0;
    }
    for (int64_t j0 = begin; j0 < end; j0 += a.together) {
      const int count = static_cast<int>(end - j0 < a.together ? end - j0 : a.together);
      __syncthreads();  // what was there has been read
      for (int e = rank; e < rows_together * count; e += gradient_threads) {
        const int64_t row = row0 + e / count;
        C scale(0), distance(0);
        if (row < a.rows_in_all) {
          const int64_t at = row * a.others + j0 + e % count;
          const C slope = loaded<T>(a.slopes[at]);
          distance = loaded<T>(a.results[at]);
          scale = slope;
          if (a.norm == Norm::Euclidean)
            scale = distance == C(0) ? C(0) : slope / distance;
          else if (a.norm == Norm::General)
            scale = distance == C(0) ? C(0) : slope / math::pow(distance, a.p - C(1));
        }
        scales[e] = scale;
        distances[e] = distance;
      }
      __syncthreads();
      if (!there) continue;
      for (int k = 0; k < count; ++k) {
#pragma unroll
        for (int r = 0; r < rows_each; ++r) {
          const int e = (static_cast<int>(threadIdx.y) * rows_each + r) * count + k;
          const C d = mine[r] - loaded<T>(a.second[(other_of[r] + j0 + k) * a.terms + term]);
          const C sign = static_cast<C>((d > C(0)) - (d < C(0)));
          if (a.norm == Norm::Euclidean)
            sums[r] += scales[e] * d;
          else if (a.norm == Norm::Manhattan)
            sums[r] += scales[e] * sign;
          else if (a.norm == Norm::Largest)
            sums[r] += math::abs(d) == distances[e] ? scales[e] * sign : C(0);
          else
            sums[r] += d == C(0) ? C(0) : scales[e] * sign * math::pow(math::abs(d), a.p - C(1));
        }
      }
    }
    for (int r = 0; r < rows_each; ++r) {
      const int64_t row = row0 + threadIdx.y * rows_each + r;
      if (!there || row >= a.rows_in_all) continue;
      if (a.partial)
        a.partial[blockIdx.y * a.elements + row * a.terms + term] = sums[r];
      else
        a.out[row * a.terms + term] = stored<T>(sums[r]);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(threads)
    parts_kernel(memory_t<T>* out, const compute_t<T>* partial, int64_t elements, int parts) {
  for (int64_t i = first_index(); i < elements; i += index_step()) {
    compute_t<T> sum(0);
    for (int k = 0; k < parts; ++k) sum += partial[k * elements + i];
    out[i] = stored<T>(sum);
  }
}

template <typename T>
void backward(Call& call) {
  using C = compute_t<T>;
  using Element = memory_t<T>;
  const cb_tensor &x1 = call.tensor(1), &x2 = call.tensor(2);
  cb_tensor& out = call.output();
  const double p = call.real(4);
  const int64_t rows = x1.sizes[x1.ndim - 2], terms = x1.sizes[x1.ndim - 1], others = x2.sizes[x2.ndim - 2];
  // Distances that are the number of unequal elements do not change with them.
  if (p == 0 || others == 0) return fill_bytes(call, out.data, 0, static_cast<size_t>(out.numel) * sizeof(Element));
  unsigned wide = 1;
  while (wide < gradient_threads && wide < terms) wide *= 2;
  const unsigned high = gradient_threads / wide;
  const int64_t rows_in_all = out.numel / terms, rows_together = static_cast<int64_t>(high) * rows_each;
  const int64_t columns = divide_up(terms, wide), blocks = columns * divide_up(rows_in_all, rows_together);
  // Where there are few rows, their other rows are shared out.
  const int64_t wanted = 4 * static_cast<int64_t>(device_traits(call.device()).multiprocessors);
  const int64_t parts = std::clamp<int64_t>(std::min(wanted / blocks, others / 256), 1, 256), part = divide_up(others, parts);
  const Workspace partial(call, parts > 1 ? static_cast<size_t>(parts * out.numel) * sizeof(C) : 0);
  const GradientArguments<T> a{data<Element>(call.tensor(0)),
                               data<Element>(x1),
                               data<Element>(x2),
                               data<Element>(call.tensor(3)),
                               data<Element>(out),
                               parts > 1 ? partial.as<C>() : nullptr,
                               rows_in_all,
                               rows,
                               others,
                               terms,
                               columns,
                               blocks,
                               part,
                               out.numel,
                               static_cast<C>(p),
                               norm_of(p),
                               static_cast<int>(std::min<int64_t>(most_together, most_pairs / rows_together))};
  launch(call, gradient_kernel<T>, dim3(static_cast<unsigned>(std::min<int64_t>(blocks, 1 << 30)), static_cast<unsigned>(parts)),
         dim3(wide, high), 0, a);
  if (parts > 1)
    launch(call, parts_kernel<T>, grid_for(call, out.numel, threads), threads, 0, data<Element>(out),
           static_cast<const C*>(partial.as<C>()), out.numel, static_cast<int>(parts));
}

void distances_backward(Call& call) {
  if (call.output().numel == 0) return;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { backward<T>(call); });
}

}  // namespace

void register_linalg_distances(KernelTable& table) {
  table.add<distances>("distances");
  table.add<pair_distances>("pair_distances");
  table.add<distances_backward>("distances_backward");
}

}  // namespace candelabra::cuda
