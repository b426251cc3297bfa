// _scaled_dot_product_attention and _scaled_dot_product_attention_backward: softmax(scale * query @
// key^T + mask) @ value, tile by tile.
//
// Only one tile of scores exists at a time. The running maximum and sum of a row are corrected with
// each tile (Milakov and Gimelshein 2018). The gradient recomputes the scores from the logarithm of
// the sum (Dao et al. 2022). Each block owns the part of a result that it sums, so that sums are
// deterministic. Tiles of half precisions are multiplied on tensor cores; their weights are rounded
// to the precision of the values.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <algorithm>
#include <limits>

#include "candelabra/arguments/attention.hpp"
#include "candelabra/math.hpp"
#include "drivers/elementwise.cuh"
#include "vendor/cudnn/cudnn_attention.hpp"

namespace candelabra::cuda {
namespace {

constexpr int side = 16, block = side * side;
// Columns of queries and keys, or rows of values, in shared memory at a time
constexpr int depth = 32;

// The rows and columns of a tile of scores.
template <typename C>
constexpr int tile_rows = sizeof(C) == 8 ? 32 : 64;

// A tensor (N, H, rows, columns).
struct Heads {
  void* data;
  int64_t strides[4];

  Heads() = default;
  explicit Heads(const cb_tensor& t) : data(t.data) { std::copy_n(t.strides, 4, strides); }
  __device__ int64_t head(int64_t n, int64_t h) const { return n * strides[0] + h * strides[1]; }
};

enum class Result { Output, Query, Key, Value };

struct Attention {
  Heads query, key, value, grad, result;
  const void* mask;
  int64_t mask_strides[4];
  bool mask_is_bool, causal;
  double scale;
  // Share: query heads for each key head
  int64_t heads, key_heads, share, queries, keys, width, columns;
  void* logsumexp;       // compute_t, (N, H, L)
  const void* row_dots;  // compute_t, (N, H, L): dot products of the rows of gradient and result
  int64_t query_tiles, key_tiles, chunks, tasks;
};

// The rows of one head.
template <typename T>
struct Rows {
  const T* data;
  int64_t row, column, count;
};
template <typename T>
__device__ Rows<T> rows_of(const Heads& heads, int64_t n, int64_t h, int64_t count) {
  return {static_cast<const T*>(heads.data) + heads.head(n, h), heads.strides[2], heads.strides[3], count};
}

// Loads rows [first, first + N) and columns [begin, begin + depth) to shared memory in column-major
// order; zeros beyond the end.
template <typename T, int N>
__device__ void load_transposed(const Rows<T>& from, int64_t first, int64_t begin, int64_t columns, compute_t<T>* to) {
  for (int i = static_cast<int>(threadIdx.x); i < N * depth; i += block) {
    const int column = i % depth, row = i / depth;
    const bool inside = first + row < from.count && begin + column < columns;
    to[column * (N + 1) + row] =
        inside ? loaded<T>(from.data[(first + row) * from.row + (begin + column) * from.column]) : compute_t<T>(0);
  }
}

// Loads rows [first, first + depth) and columns [begin, begin + N) in row-major order.
template <typename T, int N>
__device__ void load_rows(const Rows<T>& from, int64_t first, int64_t begin, int64_t columns, compute_t<T>* to) {
  for (int i = static_cast<int>(threadIdx.x); i < N * depth; i += block) {
    const int column = i % N, row = i / N;
    const bool inside = first + row < from.count && begin + column < columns;
    to[row * (N + 1) + column] =
        inside ? loaded<T>(from.data[(first + row) * from.row + (begin + column) * from.column]) : compute_t<T>(0);
  }
}

// ---- half precisions

namespace tensor_cores {

namespace wmma = nvcuda::wmma;

// The type that wmma uses for the dtype.
template <typename T>
using unit_t = std::conditional_t<std::is_same_v<T, Half>, __half, __nv_bfloat16>;

constexpr int unit = 16;       // rows, columns and depth of a wmma fragment
constexpr int tile = 64;       // rows and columns of a tile: four by four fragments, two for each warp
constexpr int gap = 8;         // padding of rows against bank conflicts; rows stay aligned to 16 bytes
constexpr int sum_pitch = 68;  // row pitch of the sums in shared memory
constexpr size_t most_elements = 2 * tile * (tile + gap);
static_assert(block / 32 * 2 == tile / unit * (tile / unit) && tile * sum_pitch * sizeof(float) <= most_elements * 2);

template <typename T>
using Left = wmma::fragment<wmma::matrix_a, unit, unit, unit, unit_t<T>, wmma::row_major>;
template <typename T, typename Order>
using Right = wmma::fragment<wmma::matrix_b, unit, unit, unit, unit_t<T>, Order>;
using Sums = wmma::fragment<wmma::accumulator, unit, unit, unit, float>;

// Loads rows [first, first + tile) and columns [begin, begin + columns_here), rows `pitch` elements
// apart; zeros beyond the end.
template <typename T>
__device__ void load(const Rows<T>& from, int64_t first, int64_t begin, int64_t columns, int columns_here, int pitch,
                     T* to) {
  for (int i = static_cast<int>(threadIdx.x); i < tile * columns_here; i += block) {
    const int column = i % columns_here, row = i / columns_here;
    const bool inside = first + row < from.count && begin + column < columns;
    to[row * pitch + column] = inside ? from.data[(first + row) * from.row + (begin + column) * from.column] : T(0.0f);
  }
}

// The position of the two adjacent fragments of a tile that a warp computes.
__device__ inline int row_of_warp() {
  return static_cast<int>(threadIdx.x) / 32 / 2 * unit;
}
__device__ inline int column_of_warp(int piece) {
  return (static_cast<int>(threadIdx.x) / 32 % 2 * 2 + piece) * unit;
}

// sums += left @ right over `columns` columns of `left`. With Order col_major `right` is read
// transposed.
template <typename T, typename Order>
__device__ void multiply(const T* left, const T* right, int columns, int pitch, Sums (&sums)[2]) {
  for (int k = 0; k < columns; k += unit) {
    Left<T> a;
    wmma::load_matrix_sync(a, reinterpret_cast<const unit_t<T>*>(left + row_of_warp() * pitch + k),
                           static_cast<unsigned>(pitch));
#pragma unroll
    for (int piece = 0; piece < 2; ++piece) {
      Right<T, Order> b;
      const int column = column_of_warp(piece);
      const T* from = std::is_same_v<Order, wmma::col_major> ? right + column * pitch + k : right + k * pitch + column;
      wmma::load_matrix_sync(b, reinterpret_cast<const unit_t<T>*>(from), static_cast<unsigned>(pitch));
      wmma::mma_sync(sums[piece], a, b, sums[piece]);
    }
  }
}

// Stores the sums to shared memory for all threads.
__device__ inline void share(const Sums (&sums)[2], float* memory) {
  __syncthreads();  // all threads have read the factors stored there
#pragma unroll
  for (int piece = 0; piece < 2; ++piece)
    wmma::store_matrix_sync(memory + row_of_warp() * sum_pitch + column_of_warp(piece), sums[piece],
                            static_cast<unsigned>(sum_pitch), wmma::mem_row_major);
  __syncthreads();
}

template <typename T>
__device__ void products(const Rows<T>& a, int64_t a_first, const Rows<T>& b, int64_t b_first, int64_t columns,
                         float* memory, float (&result)[tile / side][tile / side]) {
  constexpr int pitch = depth + gap;
  T *left = reinterpret_cast<T*>(memory), *right = left + tile * pitch;
  const int x = static_cast<int>(threadIdx.x) % side, y = static_cast<int>(threadIdx.x) / side;
  Sums sums[2];
#pragma unroll
  for (Sums& one : sums) wmma::fill_fragment(one, 0.0f);
  for (int64_t begin = 0; begin < columns; begin += depth) {
    __syncthreads();
    load(a, a_first, begin, columns, depth, pitch, left);
    load(b, b_first, begin, columns, depth, pitch, right);
    __syncthreads();
    multiply<T, wmma::col_major>(left, right, depth, pitch, sums);
  }
  share(sums, memory);
#pragma unroll
  for (int i = 0; i < tile / side; ++i)
#pragma unroll
    for (int j = 0; j < tile / side; ++j) result[i][j] = memory[(y + i * side) * sum_pitch + x + j * side];
}

template <typename T, int Width, bool Transposed>
__device__ void add_products(const float* weights, const Rows<T>& with, int64_t first, int64_t begin, int64_t columns,
                             float* memory, float (&results)[tile / side][Width / side]) {
  constexpr int pitch = tile + gap;
  T *left = reinterpret_cast<T*>(memory), *right = left + tile * pitch;
  const int x = static_cast<int>(threadIdx.x) % side, y = static_cast<int>(threadIdx.x) / side;
#pragma unroll
  for (int part = 0; part < Width; part += tile) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < tile * tile; i += block) {
      const int column = i % tile, row = i / tile;
      // Either way the reads follow the rows in shared memory.
      left[Transposed ? column * pitch + row : row * pitch + column] = T(weights[row * (tile + 1) + column]);
    }
    load(with, first, begin + part, columns, tile, pitch, right);
    __syncthreads();
    Sums sums[2];
#pragma unroll
    for (Sums& one : sums) wmma::fill_fragment(one, 0.0f);
    multiply<T, wmma::row_major>(left, right, tile, pitch, sums);
    share(sums, memory);
#pragma unroll
    for (int i = 0; i < tile / side; ++i)
#pragma unroll
      for (int j = 0; j < tile / side; ++j)
        results[i][part / side + j] += memory[(y + i * side) * sum_pitch + x + j * side];
  }
}

}  // namespace tensor_cores

// result[i][j]: the product of row y + side * i of a tile of `a` and row x + side * j of one of
// `b`.
template <typename T, int N>
__device__ void products(const Rows<T>& a, int64_t a_first, const Rows<T>& b, int64_t b_first, int64_t columns,
                         compute_t<T>* memory, compute_t<T> (&result)[N / side][N / side]) {
  if constexpr (is_half_v<T>) return tensor_cores::products<T>(a, a_first, b, b_first, columns, memory, result);
  using C = compute_t<T>;
  C *left = memory, *right = memory + depth * (N + 1);
  const int x = static_cast<int>(threadIdx.x) % side, y = static_cast<int>(threadIdx.x) / side;
#pragma unroll
  for (auto& row : result)
#pragma unroll
    for (C& value : row) value = C(0);
  for (int64_t begin = 0; begin < columns; begin += depth) {
    __syncthreads();
    load_transposed<T, N>(a, a_first, begin, columns, left);
    load_transposed<T, N>(b, b_first, begin, columns, right);
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < depth; ++k) {
      C p[N / side], q[N / side];
#pragma unroll
      for (int i = 0; i < N / side; ++i) p[i] = left[k * (N + 1) + y + i * side];
#pragma unroll
      for (int j = 0; j < N / side; ++j) q[j] = right[k * (N + 1) + x + j * side];
#pragma unroll
      for (int i = 0; i < N / side; ++i)
#pragma unroll
        for (int j = 0; j < N / side; ++j) result[i][j] += p[i] * q[j];
    }
  }
}

// sums[i][j] += the product of row y + side * i of the tile (or of its transpose) and column x +
// side * j of `with`.
template <typename T, int N, int Width, bool Transposed>
__device__ void add_products(const compute_t<T>* tile, const Rows<T>& with, int64_t first, int64_t begin,
                             int64_t columns, compute_t<T>* memory, compute_t<T> (&sums)[N / side][Width / side]) {
  if constexpr (is_half_v<T>)
    return tensor_cores::add_products<T, Width, Transposed>(tile, with, first, begin, columns, memory, sums);
  using C = compute_t<T>;
  const int x = static_cast<int>(threadIdx.x) % side, y = static_cast<int>(threadIdx.x) / side;
  for (int part = 0; part < N; part += depth) {
    __syncthreads();
    load_rows<T, Width>(with, first + part, begin, columns, memory);
    __syncthreads();
#pragma unroll 2
    for (int k = 0; k < depth; ++k) {
      C p[N / side], q[Width / side];
#pragma unroll
      for (int i = 0; i < N / side; ++i)
        p[i] = Transposed ? tile[(part + k) * (N + 1) + y + i * side] : tile[(y + i * side) * (N + 1) + part + k];
#pragma unroll
      for (int j = 0; j < Width / side; ++j) q[j] = memory[k * (Width + 1) + x + j * side];
#pragma unroll
      for (int i = 0; i < N / side; ++i)
#pragma unroll
        for (int j = 0; j < Width / side; ++j) sums[i][j] += p[i] * q[j];
    }
  }
}

// Applies the masks to a score: hidden scores are minus infinity.
template <typename T>
__device__ compute_t<T> masked(const Attention& a, int64_t n, int64_t h, int64_t query, int64_t key,
                               compute_t<T> score) {
  using C = compute_t<T>;
  constexpr C none = -std::numeric_limits<C>::infinity();
  if (query >= a.queries || key >= a.keys || (a.causal && key > query)) return none;
  if (a.mask) {
    const int64_t at =
        n * a.mask_strides[0] + h * a.mask_strides[1] + query * a.mask_strides[2] + key * a.mask_strides[3];
    if (a.mask_is_bool) return static_cast<const uint8_t*>(a.mask)[at] ? score : none;
    return score + loaded<T>(static_cast<const T*>(a.mask)[at]);
  }
  return score;
}

// Writes the masked scores of a tile to shared memory; each thread those that products() gave it.
template <typename T>
__device__ void make_scores(const Attention& a, int64_t n, int64_t h, const Rows<T>& query, int64_t q0,
                            const Rows<T>& key, int64_t k0, compute_t<T>* scores, compute_t<T>* loads) {
  using C = compute_t<T>;
  constexpr int n_tile = tile_rows<C>, each = n_tile / side;
  const int x = static_cast<int>(threadIdx.x) % side, y = static_cast<int>(threadIdx.x) / side;
  C made[each][each];
  products<T, n_tile>(query, q0, key, k0, a.width, loads, made);
  __syncthreads();  // all threads have read the previous tile
#pragma unroll
  for (int i = 0; i < each; ++i)
#pragma unroll
    for (int j = 0; j < each; ++j)
      scores[(y + i * side) * (n_tile + 1) + x + j * side] = made[i][j] * static_cast<C>(a.scale);
#pragma unroll 1
  for (int k = 0; k < each * each; ++k) {
    const int row = y + k / each * side, column = x + k % each * side;
    C& score = scores[row * (n_tile + 1) + column];
    score = masked<T>(a, n, h, q0 + row, k0 + column, score);
  }
}

template <typename T, int Width>
constexpr size_t shared_elements() {
  using C = compute_t<T>;
  constexpr int n = tile_rows<C>;
  if constexpr (is_half_v<T>) return n * (n + 1) + tensor_cores::most_elements * sizeof(T) / sizeof(C);
  constexpr int loads = 2 * depth * (n + 1), values = depth * (Width + 1);
  return static_cast<size_t>(n * (n + 1) + (loads > values ? loads : values));
}

template <typename T, int Width>
__global__ void __launch_bounds__(block) forward_kernel(const __grid_constant__ Attention a) {
  using C = compute_t<T>;
  constexpr int n_tile = tile_rows<C>, each = n_tile / side, wide = Width / side, row_threads = block / n_tile;
  constexpr C none = -std::numeric_limits<C>::infinity();
  __shared__ alignas(32) unsigned char memory[shared_elements<T, Width>() * sizeof(C)];
  __shared__ C factors[n_tile], totals[n_tile];
  C* scores = reinterpret_cast<C*>(memory);
  C* loads = scores + n_tile * (n_tile + 1);
  const int thread = static_cast<int>(threadIdx.x), x = thread % side, y = thread / side;
  for (int64_t task = blockIdx.x; task < a.tasks; task += gridDim.x) {
    // With causal masking the last queries have the most keys: they start first.
    const int64_t chunk = task % a.chunks, head = task / a.chunks / a.query_tiles;
    const int64_t first = (a.query_tiles - 1 - task / a.chunks % a.query_tiles) * n_tile, n = head / a.heads,
                  h = head % a.heads;
    const Rows<T> query = rows_of<T>(a.query, n, h, a.queries), key = rows_of<T>(a.key, n, h / a.share, a.keys),
                  value = rows_of<T>(a.value, n, h / a.share, a.keys);
    C sums[each][wide];
#pragma unroll
    for (auto& row : sums)
#pragma unroll
      for (C& one : row) one = C(0);
    // Of row thread / row_threads; all threads of a row hold the same values.
    C largest = none, total = C(0);
    const int64_t last = a.causal ? min(first + n_tile, a.keys) : a.keys;
    for (int64_t k0 = 0; k0 < last; k0 += n_tile) {
      make_scores<T>(a, n, h, query, first, key, k0, scores, loads);
      __syncthreads();
      C* row = scores + thread / row_threads * (n_tile + 1);
      C most = largest;
      // Skips NaN
      for (int j = thread % row_threads; j < n_tile; j += row_threads) most = row[j] > most ? row[j] : most;
      for (int step = row_threads / 2; step > 0; step /= 2) {
        const C other = __shfl_xor_sync(0xffffffffu, most, step);
        most = other > most ? other : most;
      }
      C added = C(0);
      for (int j = thread % row_threads; j < n_tile; j += row_threads) {
        // While all scores are minus infinity the weights are zero; NaN is kept.
        const C weight = most == none ? (row[j] == row[j] ? C(0) : row[j]) : math::exp(row[j] - most);
        row[j] = weight;
        added += weight;
      }
      for (int step = row_threads / 2; step > 0; step /= 2) added += __shfl_xor_sync(0xffffffffu, added, step);
      const C factor = largest == most ? C(1) : math::exp(largest - most);
      total = total * factor + added;
      largest = most;
      if (thread % row_threads == 0) factors[thread / row_threads] = factor;
      __syncthreads();
#pragma unroll
      for (int i = 0; i < each; ++i)
#pragma unroll
        for (int j = 0; j < wide; ++j) sums[i][j] *= factors[y + i * side];
      add_products<T, n_tile, Width, false>(scores, value, k0, chunk * Width, a.columns, loads, sums);
    }
    __syncthreads();
    // A row whose keys are all masked becomes zeros; logsumexp = infinity makes its weights zero in
    // the gradient.
    const bool empty = total == C(0);
    if (thread % row_threads == 0) {
      const int64_t at = first + thread / row_threads;
      totals[thread / row_threads] = empty ? C(1) : total;
      if (chunk == 0 && at < a.queries)
        static_cast<C*>(a.logsumexp)[head * a.queries + at] =
            empty ? std::numeric_limits<C>::infinity() : largest + math::log(total);
    }
    __syncthreads();
    T* out = static_cast<T*>(a.result.data) + a.result.head(n, h);
#pragma unroll
    for (int i = 0; i < each; ++i)
#pragma unroll
      for (int j = 0; j < wide; ++j) {
        const int64_t at = first + y + i * side, column = chunk * Width + x + j * side;
        if (at < a.queries && column < a.columns)
          out[at * a.result.strides[2] + column * a.result.strides[3]] = stored<T>(sums[i][j] / totals[y + i * side]);
      }
  }
}

// The dot products of the rows of gradient and result: one warp for each row.
template <typename T>
__global__ void __launch_bounds__(block)
    row_dots_kernel(compute_t<T>* row_dots, int64_t rows, const __grid_constant__ Attention a) {
  using C = compute_t<T>;
  constexpr int warp = 32;
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const int64_t step = static_cast<int64_t>(gridDim.x) * (block / warp);
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * (block / warp) + threadIdx.x / warp; row < rows; row += step) {
    const int64_t head = row / a.queries, at = row % a.queries, n = head / a.heads, h = head % a.heads;
    const Rows<T> grad = rows_of<T>(a.grad, n, h, a.queries), result = rows_of<T>(a.result, n, h, a.queries);
    C sum = C(0);
    for (int64_t j = lane; j < a.columns; j += warp)
      sum += loaded<T>(grad.data[at * grad.row + j * grad.column]) *
             loaded<T>(result.data[at * result.row + j * result.column]);
    for (int offset = warp / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) row_dots[row] = sum;
  }
}

// Writes the softmax weights of a tile, or the gradients of its scores, to shared memory.
template <typename T>
__device__ void recompute_weights(const Attention& a, bool score_grads, int64_t n, int64_t h, int64_t q0, int64_t k0,
                                  compute_t<T>* scores, compute_t<T>* loads) {
  using C = compute_t<T>;
  constexpr int n_tile = tile_rows<C>, each = n_tile / side;
  const int x = static_cast<int>(threadIdx.x) % side, y = static_cast<int>(threadIdx.x) / side;
  const Rows<T> query = rows_of<T>(a.query, n, h, a.queries), key = rows_of<T>(a.key, n, h / a.share, a.keys);
  make_scores<T>(a, n, h, query, q0, key, k0, scores, loads);
  const int64_t first = (n * a.heads + h) * a.queries + q0;
#pragma unroll 1
  for (int k = 0; k < each * each; ++k) {
    const int row = y + k / each * side, column = x + k % each * side;
    C& score = scores[row * (n_tile + 1) + column];
    score = math::exp(score - (q0 + row < a.queries ? static_cast<const C*>(a.logsumexp)[first + row] : C(0)));
  }
  if (!score_grads) return;
  const Rows<T> grad = rows_of<T>(a.grad, n, h, a.queries), value = rows_of<T>(a.value, n, h / a.share, a.keys);
  C made[each][each];
  products<T, n_tile>(grad, q0, value, k0, a.columns, loads, made);
#pragma unroll
  for (int i = 0; i < each; ++i) {
    const int row = y + i * side;
    const C row_dot = q0 + row < a.queries ? static_cast<const C*>(a.row_dots)[first + row] : C(0);
#pragma unroll
    for (int j = 0; j < each; ++j)
      scores[row * (n_tile + 1) + x + j * side] *= (made[i][j] - row_dot) * static_cast<C>(a.scale);
  }
}

// Computes one of the gradients. Each task is a tile of rows and a chunk of columns.
template <typename T, int Width>
__global__ void __launch_bounds__(block)
    backward_kernel(const __grid_constant__ Attention a, const __grid_constant__ Heads out, Result which) {
  using C = compute_t<T>;
  constexpr int n_tile = tile_rows<C>, each = n_tile / side, wide = Width / side;
  __shared__ alignas(32) unsigned char memory[shared_elements<T, Width>() * sizeof(C)];
  C* scores = reinterpret_cast<C*>(memory);
  C* loads = scores + n_tile * (n_tile + 1);
  const int x = static_cast<int>(threadIdx.x) % side, y = static_cast<int>(threadIdx.x) / side;
  const bool of_queries = which == Result::Query, score_grads = which != Result::Value;
  const int64_t tiles = of_queries ? a.query_tiles : a.key_tiles, all_heads = of_queries ? a.heads : a.key_heads;
  const int64_t rows = of_queries ? a.queries : a.keys, columns = which == Result::Value ? a.columns : a.width;
  for (int64_t task = blockIdx.x; task < a.tasks; task += gridDim.x) {
    const int64_t chunk = task % a.chunks, tile = task / a.chunks % tiles, head = task / a.chunks / tiles;
    const int64_t n = head / all_heads, own = head % all_heads;
    const int64_t first = (of_queries ? tiles - 1 - tile : tile) * n_tile;
    C sums[each][wide];
#pragma unroll
    for (auto& row : sums)
#pragma unroll
      for (C& one : row) one = C(0);
    if (of_queries) {
      const Rows<T> key = rows_of<T>(a.key, n, own / a.share, a.keys);
      const int64_t last = a.causal ? min(first + n_tile, a.keys) : a.keys;
      for (int64_t k0 = 0; k0 < last; k0 += n_tile) {
        recompute_weights<T>(a, true, n, own, first, k0, scores, loads);
        add_products<T, n_tile, Width, false>(scores, key, k0, chunk * Width, columns, loads, sums);
      }
    } else {
      for (int64_t h = own * a.share; h < (own + 1) * a.share; ++h) {
        const Rows<T> with = rows_of<T>(score_grads ? a.query : a.grad, n, h, a.queries);
        // Causal masking hides the tile from queries before its first key.
        for (int64_t q0 = a.causal ? first : 0; q0 < a.queries; q0 += n_tile) {
          recompute_weights<T>(a, score_grads, n, h, q0, first, scores, loads);
          add_products<T, n_tile, Width, true>(scores, with, q0, chunk * Width, columns, loads, sums);
        }
      }
    }
    T* to = static_cast<T*>(out.data) + out.head(n, own);
#pragma unroll
    for (int i = 0; i < each; ++i)
#pragma unroll
      for (int j = 0; j < wide; ++j) {
        const int64_t at = first + y + i * side, column = chunk * Width + x + j * side;
        if (at < rows && column < columns) to[at * out.strides[2] + column * out.strides[3]] = stored<T>(sums[i][j]);
      }
    __syncthreads();
  }
}

// From the arguments of _scaled_dot_product_attention or _scaled_dot_product_attention_backward.
template <typename Arguments>
Attention describe(const Arguments& args) {
  const cb_tensor &query = *args.query, &key = *args.key, &value = *args.value;
  Attention a{};
  a.query = Heads(query);
  a.key = Heads(key);
  a.value = Heads(value);
  if (const cb_tensor* mask = args.mask) {
    a.mask = mask->data;
    a.mask_is_bool = mask->dtype == CB_BOOL;
    std::copy_n(mask->strides, 4, a.mask_strides);
  }
  a.causal = args.is_causal;
  a.scale = args.scale;
  a.heads = query.sizes[1];
  a.key_heads = key.sizes[1];
  a.share = a.key_heads ? a.heads / a.key_heads : 1;
  a.queries = query.sizes[2];
  a.keys = key.sizes[2];
  a.width = query.sizes[3];
  a.columns = value.sizes[3];
  return a;
}

constexpr int64_t most_blocks = int64_t{1} << 30;

// Calls f.operator()<T, Width>(); Width is the number of result columns of a block.
template <typename F>
void dispatch_width(int32_t dtype, int64_t columns, F&& f) {
  dispatch<FloatTypes>(dtype, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>)
      if (columns > 64) return f.template operator()<T, 128>();
    f.template operator()<T, 64>();
  });
}

void scaled_dot_product_attention(Call& call) {
  const arguments::ScaledDotProductAttention args(call);
  const cb_tensor &query = *args.query, &out = call.output(0), &logsumexp = call.output(1);
  if (logsumexp.numel == 0 || cudnn_attention_forward(call)) return;
  Attention a = describe(args);
  a.result = Heads(out);
  a.logsumexp = logsumexp.data;
  dispatch_width(query.dtype, a.columns, [&]<typename T, int Width>() {
    a.query_tiles = divide_up(a.queries, tile_rows<compute_t<T>>);
    a.chunks = std::max<int64_t>(1, divide_up(a.columns, Width));
    a.tasks = query.sizes[0] * a.heads * a.query_tiles * a.chunks;
    launch(call, forward_kernel<T, Width>, static_cast<unsigned>(std::min(a.tasks, most_blocks)), block, 0, a);
  });
}

void scaled_dot_product_attention_backward(Call& call) {
  const arguments::ScaledDotProductAttentionBackward args(call);
  const cb_tensor &query = *args.query, &logsumexp = *args.logsumexp;
  if (cudnn_attention_backward(call)) return;
  Attention a = describe(args);
  a.grad = Heads(*args.grad);
  a.result = Heads(*args.output);
  a.logsumexp = logsumexp.data;
  const int64_t rows = logsumexp.numel;
  const bool full = query.dtype == CB_FLOAT64;
  const Workspace row_dots(call, static_cast<size_t>(rows) * (full ? sizeof(double) : sizeof(float)));
  a.row_dots = row_dots.data();
  dispatch<FloatTypes>(query.dtype, [&]<typename T>() {
    if (rows != 0)
      launch(call, row_dots_kernel<T>, grid_for(call, rows * 32, block), block, 0, row_dots.as<compute_t<T>>(), rows,
             a);
  });
  for (const Result which : {Result::Query, Result::Key, Result::Value}) {
    const cb_tensor& out = call.output(static_cast<int>(which) - 1);
    if (out.numel == 0) continue;
    dispatch_width(query.dtype, out.sizes[3], [&]<typename T, int Width>() {
      a.query_tiles = divide_up(a.queries, tile_rows<compute_t<T>>);
      a.key_tiles = divide_up(a.keys, tile_rows<compute_t<T>>);
      a.chunks = divide_up(out.sizes[3], Width);
      a.tasks = out.sizes[0] * out.sizes[1] * divide_up(out.sizes[2], tile_rows<compute_t<T>>) * a.chunks;
      launch(call, backward_kernel<T, Width>, static_cast<unsigned>(std::min(a.tasks, most_blocks)), block, 0, a,
             Heads(out), which);
    });
  }
}

}  // namespace

void register_attention(KernelTable& table) {
  table.add<scaled_dot_product_attention>("_scaled_dot_product_attention");
  table.add<scaled_dot_product_attention_backward>("_scaled_dot_product_attention_backward");
}

}  // namespace candelabra::cuda
