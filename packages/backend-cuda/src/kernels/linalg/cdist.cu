// _cdist_forward (cdist), _pdist_forward (pdist) and _cdist_backward: p-norms of the differences of
// all pairs of rows. A block computes a tile of distances from tiles of both matrices in shared
// memory. The differences are computed directly, not from products of the rows, so that close rows
// lose no digits.
#include <algorithm>

#include "candelabra/arguments/linalg.hpp"
#include "candelabra/math.hpp"
#include "runtime/launch.hpp"

namespace candelabra::cuda {
namespace {

enum class Norm { Unequal, Manhattan, Euclidean, Largest, General };

Norm norm_of(double p) {
  if (p == 0) return Norm::Unequal;
  if (p == 1) return Norm::Manhattan;
  if (p == 2) return Norm::Euclidean;
  return p == std::numeric_limits<double>::infinity() ? Norm::Largest : Norm::General;
}

// A thread computes `each` rows and columns of a tile
constexpr int side = 64, depth = 16, each = 4, threads = 256;
// Summed before they are added to the total
constexpr int terms_per_sum = 128;

template <typename T>
struct DistanceArguments {
  const memory_t<T>*first, *second;
  memory_t<T>* out;
  int64_t rows, others, terms, across, down, tiles;
  compute_t<T> p;
  Norm norm;
  bool within;  // pdist: each row to the rows after it, as a condensed vector
};

template <typename C, Norm Kind>
__device__ __forceinline__ void accumulate(C& sum, C d, C p) {
  if constexpr (Kind == Norm::Unequal)
    sum += d != C(0) ? C(1) : C(0);
  else if constexpr (Kind == Norm::Manhattan)
    sum += math::abs(d);
  else if constexpr (Kind == Norm::Euclidean)
    sum += d * d;
  else if constexpr (Kind == Norm::Largest)
    sum = math::abs(d) > sum || d != d ? math::abs(d) : sum;  // keeps NaN
  else
    sum += math::pow(math::abs(d), p);
}

template <typename C, Norm Kind>
__device__ void accumulate_tile(C (&sums)[each][each], const C (&rows)[depth][side + 1],
                                const C (&columns)[depth][side + 1], int count, C p) {
  const int i = static_cast<int>(threadIdx.x) / (side / each), j = static_cast<int>(threadIdx.x) % (side / each);
  for (int m = 0; m < count; ++m) {
    C a[each], b[each];
#pragma unroll
    for (int k = 0; k < each; ++k) a[k] = rows[m][i * each + k], b[k] = columns[m][j + k * (side / each)];
#pragma unroll
    for (int r = 0; r < each; ++r)
#pragma unroll
      for (int c = 0; c < each; ++c) accumulate<C, Kind>(sums[r][c], a[r] - b[c], p);
  }
}

// Loads `depth` terms of `side` rows, transposed so that a thread's rows of one term are adjacent;
// zeros beyond the end.
template <typename T>
__device__ void load_tile(compute_t<T> (&to)[depth][side + 1], const memory_t<T>* from, int64_t first_row, int64_t rows,
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
      load_tile<T>(rows, first, i0, a.rows, m0, a.terms);
      load_tile<T>(columns, second, j0, a.others, m0, a.terms);
      __syncthreads();
      const int count = static_cast<int>(a.terms - m0 < depth ? a.terms - m0 : depth);
      switch (a.norm) {
        case Norm::Unequal:
          accumulate_tile<C, Norm::Unequal>(sums, rows, columns, count, a.p);
          break;
        case Norm::Manhattan:
          accumulate_tile<C, Norm::Manhattan>(sums, rows, columns, count, a.p);
          break;
        case Norm::Euclidean:
          accumulate_tile<C, Norm::Euclidean>(sums, rows, columns, count, a.p);
          break;
        case Norm::Largest:
          accumulate_tile<C, Norm::Largest>(sums, rows, columns, count, a.p);
          break;
        case Norm::General:
          accumulate_tile<C, Norm::General>(sums, rows, columns, count, a.p);
          break;
      }
      __syncthreads();
      if (a.norm == Norm::Largest || ((m0 + depth) % terms_per_sum != 0 && m0 + depth < a.terms)) continue;
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

void cdist_forward(Call& call) {
  if (call.output().numel == 0) return;
  const arguments::CdistForward args(call);
  dispatch<FloatTypes>(call.output().dtype,
                       [&]<typename T>() { run_distances<T>(call, *args.x1, *args.x2, args.p, false); });
}
void pdist_forward(Call& call) {
  if (call.output().numel == 0) return;
  const arguments::PdistForward args(call);
  dispatch<FloatTypes>(call.output().dtype,
                       [&]<typename T>() { run_distances<T>(call, *args.self, *args.self, args.p, true); });
}

// ---- the gradient: for each term of a row, the sum over all rows of the other matrix

constexpr int gradient_threads = 128, rows_each = 4, most_pairs = 2048, largest_batch = 64;

template <typename T>
struct GradientArguments {
  const memory_t<T>*grads, *first, *second, *results;
  memory_t<T>* out;       // unused where `partial` is given
  compute_t<T>* partial;  // (parts, elements of out)
  int64_t rows_in_all, rows, others, terms, columns, blocks, part, elements;
  compute_t<T> p;
  Norm norm;
  int other_batch;  // other rows whose gradients are in shared memory at a time
};

// blockDim: (terms, groups of rows). blockIdx.y selects a part of the other rows. The rows of a
// block may belong to several batches.
template <typename T>
__global__ void __launch_bounds__(gradient_threads) gradient_kernel(const __grid_constant__ GradientArguments<T> a) {
  using C = compute_t<T>;
  __shared__ C scales[most_pairs], distances[most_pairs];
  const int block_rows = static_cast<int>(blockDim.y) * rows_each,
            rank = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * a.part,
                end = begin + a.part < a.others ? begin + a.part : a.others;
  for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
    const int64_t term = block % a.columns * blockDim.x + threadIdx.x, row0 = block / a.columns * block_rows;
    const bool there = term < a.terms;
    C mine[rows_each], sums[rows_each] = {};
    int64_t other_of[rows_each];  // the first other row in the batch of this row
    for (int r = 0; r < rows_each; ++r) {
      const int64_t row = row0 + threadIdx.y * rows_each + r;
      mine[r] = there && row < a.rows_in_all ? loaded<T>(a.first[row * a.terms + term]) : C(0);
      other_of[r] = row < a.rows_in_all ? row / a.rows * a.others : 0;
    }
    for (int64_t j0 = begin; j0 < end; j0 += a.other_batch) {
      const int count = static_cast<int>(end - j0 < a.other_batch ? end - j0 : a.other_batch);
      __syncthreads();  // all threads have read the previous batch
      for (int e = rank; e < block_rows * count; e += gradient_threads) {
        const int64_t row = row0 + e / count;
        C scale(0), distance(0);
        if (row < a.rows_in_all) {
          const int64_t at = row * a.others + j0 + e % count;
          const C grad = loaded<T>(a.grads[at]);
          distance = loaded<T>(a.results[at]);
          scale = grad;
          if (a.norm == Norm::Euclidean)
            scale = distance == C(0) ? C(0) : grad / distance;
          else if (a.norm == Norm::General)
            scale = distance == C(0) ? C(0) : grad / math::pow(distance, a.p - C(1));
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
  const arguments::CdistBackward args(call);
  const cb_tensor &x1 = *args.x1, &x2 = *args.x2;
  cb_tensor& out = call.output();
  const double p = args.p;
  const int64_t rows = x1.sizes[x1.ndim - 2], terms = x1.sizes[x1.ndim - 1], others = x2.sizes[x2.ndim - 2];
  // For p = 0 the distance counts unequal elements: its gradient is zero.
  if (p == 0 || others == 0) return fill_bytes(call, out.data, 0, static_cast<size_t>(out.numel) * sizeof(Element));
  unsigned wide = 1;
  while (wide < gradient_threads && wide < terms) wide *= 2;
  const unsigned high = gradient_threads / wide;
  const int64_t rows_in_all = out.numel / terms, block_rows = static_cast<int64_t>(high) * rows_each;
  const int64_t columns = divide_up(terms, wide), blocks = columns * divide_up(rows_in_all, block_rows);
  // With few rows the other rows are split among blocks to fill the device.
  const int64_t blocks_to_fill = 4 * static_cast<int64_t>(device_traits(call.device()).multiprocessors);
  const int64_t parts = std::clamp<int64_t>(std::min(blocks_to_fill / blocks, others / 256), 1, 256),
                part = divide_up(others, parts);
  const Workspace partial(call, parts > 1 ? static_cast<size_t>(parts * out.numel) * sizeof(C) : 0);
  const GradientArguments<T> a{data<Element>(*args.grad),
                               data<Element>(x1),
                               data<Element>(x2),
                               data<Element>(*args.result),
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
                               static_cast<int>(std::min<int64_t>(largest_batch, most_pairs / block_rows))};
  launch(call, gradient_kernel<T>,
         dim3(static_cast<unsigned>(std::min<int64_t>(blocks, 1 << 30)), static_cast<unsigned>(parts)),
         dim3(wide, high), 0, a);
  if (parts > 1)
    launch(call, parts_kernel<T>, grid_for(call, out.numel, threads), threads, 0, data<Element>(out),
           static_cast<const C*>(partial.as<C>()), out.numel, static_cast<int>(parts));
}

void cdist_backward(Call& call) {
  if (call.output().numel == 0) return;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { backward<T>(call); });
}

}  // namespace

void register_cdist(KernelTable& table) {
  table.add<cdist_forward>("_cdist_forward");
  table.add<pdist_forward>("_pdist_forward");
  table.add<cdist_backward>("_cdist_backward");
}

}  // namespace candelabra::cuda
