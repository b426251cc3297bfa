// The driver of all scans: cumsum and its relatives.
//
// One block scans one slice along `dim`, tile by tile. Each thread combines a few elements, the
// block scans the threads' totals, and the total of a tile is carried to the next one. Few long
// slices are divided into chunks: one kernel computes their totals, a second one scans the totals,
// and a third one scans the chunks. If adjacent slices are adjacent in memory, each thread scans a
// slice of its own. The order of operations depends only on the sizes and the device.
//
// An operation is a function object that is copied into the kernel's arguments:
//
//   struct Operation {
//     using Element = float;                  // in memory
//     using Result = float;                   // in memory
//     struct Acc;                             // a running result: trivially copyable
//     static constexpr bool sequential = false;  // true: elements are combined strictly in order
//     __device__ Acc identity() const;
//     __device__ Acc element(compute_t<Element> value, int64_t index) const;
//     __device__ Acc apply(const Acc& a, const Acc& b) const;   // associative up to rounding, unless sequential
//     __device__ compute_t<Result> result(const Acc& acc) const;
//   };
//   scan_along(call, operation, input, output, dim);
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "drivers/elementwise.cuh"
#include "drivers/slices.hpp"

namespace candelabra::cuda {

namespace scanning {

constexpr int threads = 256;
constexpr int items = 4;  // elements of a tile per thread
constexpr int64_t short_slice = 32;
constexpr int64_t least_chunk = 8192, most_chunks = 4096;

template <typename Op>
struct Arguments {
  Op op;
  void* out;
  const void* in;
  int64_t out_stride, in_stride;  // along a slice
  int64_t length;
  int64_t chunk;  // elements of a slice per block: whole tiles
  void* starts;   // (slices, chunks): totals, then prefixes of the chunks; null: one chunk per slice
  uint32_t chunks;
  Indexer<2> slices;

  __device__ typename Op::Acc read(const memory_t<typename Op::Element>* slice, int64_t i) const {
    return op.element(loaded<typename Op::Element>(slice[i * in_stride]), i);
  }
};

// The stride of tile elements in shared memory, padded against bank conflicts between threads that
// read several adjacent elements.
__device__ __forceinline__ int spread(int i) {
  return i + i / 8;
}

template <typename Acc>
__device__ Acc shuffled_up(const Acc& value, int delta) {
  constexpr int words = (sizeof(Acc) + 3) / 4;
  uint32_t raw[words] = {};
  memcpy(raw, &value, sizeof(Acc));
#pragma unroll
  for (int w = 0; w < words; ++w) raw[w] = __shfl_up_sync(0xffffffffu, raw[w], static_cast<unsigned>(delta));
  Acc result;
  memcpy(&result, raw, sizeof(Acc));
  return result;
}

// The exclusive scan of `mine` over the block's threads, from `start` on. `total` becomes the sum
// of all. Requires whole warps and all threads. `of_warps` is in use until the next
// __syncthreads().
template <typename Op>
__device__ typename Op::Acc before(const Op& op, typename Op::Acc mine, const typename Op::Acc& start,
                                   typename Op::Acc* total, typename Op::Acc* of_warps) {
  using Acc = typename Op::Acc;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32),
            warps = static_cast<int>(blockDim.x / 32);
  for (int delta = 1; delta < 32; delta *= 2) {
    const Acc lower = shuffled_up(mine, delta);
    if (lane >= delta) mine = op.apply(lower, mine);
  }
  if (lane == 31) of_warps[warp] = mine;
  const Acc neighbour = shuffled_up(mine, 1);
  __syncthreads();
  Acc result = start, all = start;
  for (int w = 0; w < warps; ++w) {
    if (w == warp) result = all;
    all = op.apply(all, of_warps[w]);
  }
  *total = all;
  return lane == 0 ? result : op.apply(result, neighbour);
}

// One block scans one chunk of a slice. Grid: x slices, y chunks.
template <typename Op>
__global__ void __launch_bounds__(threads) scan_chunks(const __grid_constant__ Arguments<Op> a) {
  using Acc = typename Op::Acc;
  using Result = typename Op::Result;
  constexpr int most = threads * items;
  __shared__ alignas(16) unsigned char tile_memory[(most + most / 8) * sizeof(Acc)];
  __shared__ alignas(16) unsigned char warp_memory[threads / 32 * sizeof(Acc)];
  Acc *tile = reinterpret_cast<Acc*>(tile_memory), *of_warps = reinterpret_cast<Acc*>(warp_memory);
  uint32_t at[2];
  a.slices.at_rolled(blockIdx.x, at);
  auto* out = static_cast<memory_t<Result>*>(a.out) + at[0];
  const auto* in = static_cast<const memory_t<typename Op::Element>*>(a.in) + at[1];
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * a.chunk;
  const int64_t end = begin + a.chunk < a.length ? begin + a.chunk : a.length;
  const int width = static_cast<int>(blockDim.x), me = static_cast<int>(threadIdx.x);
  Acc start = a.starts ? static_cast<const Acc*>(a.starts)[static_cast<int64_t>(blockIdx.x) * a.chunks + blockIdx.y]
                       : a.op.identity();
  for (int64_t first = begin; first < end; first += width * items) {
#pragma unroll
    for (int j = 0; j < items; ++j) {
      const int i = me + j * width;
      tile[spread(i)] = first + i < end ? a.read(in, first + i) : a.op.identity();
    }
    __syncthreads();
    Acc mine[items];
#pragma unroll
    for (int j = 0; j < items; ++j) {
      const Acc& element = tile[spread(me * items + j)];
      mine[j] = j == 0 ? element : a.op.apply(mine[j - 1], element);
    }
    Acc total;
    const Acc lower = before(a.op, mine[items - 1], start, &total, of_warps);
    start = total;
#pragma unroll
    for (int j = 0; j < items; ++j) tile[spread(me * items + j)] = a.op.apply(lower, mine[j]);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < items; ++j) {
      const int i = me + j * width;
      if (first + i < end) out[(first + i) * a.out_stride] = stored<Result>(a.op.result(tile[spread(i)]));
    }
    __syncthreads();
  }
}

// Computes the total of each chunk.
template <typename Op>
__global__ void __launch_bounds__(threads) chunk_totals(const __grid_constant__ Arguments<Op> a) {
  using Acc = typename Op::Acc;
  __shared__ alignas(16) unsigned char warp_memory[threads / 32 * sizeof(Acc)];
  uint32_t at[2];
  a.slices.at_rolled(blockIdx.x, at);
  const auto* in = static_cast<const memory_t<typename Op::Element>*>(a.in) + at[1];
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * a.chunk;
  const int64_t end = begin + a.chunk < a.length ? begin + a.chunk : a.length;
  constexpr int together = 4;  // loads in flight
  Acc mine = a.op.identity();
  int64_t i = begin + threadIdx.x;
  for (; i + (together - 1) * threads < end; i += together * threads) {
    Acc some[together];
#pragma unroll
    for (int j = 0; j < together; ++j) some[j] = a.read(in, i + j * threads);
#pragma unroll
    for (int j = 0; j < together; ++j) mine = a.op.apply(mine, some[j]);
  }
  for (; i < end; i += threads) mine = a.op.apply(mine, a.read(in, i));
  Acc total;
  before(a.op, mine, a.op.identity(), &total, reinterpret_cast<Acc*>(warp_memory));
  if (threadIdx.x == 0) static_cast<Acc*>(a.starts)[static_cast<int64_t>(blockIdx.x) * a.chunks + blockIdx.y] = total;
}

// Turns the totals of a slice's chunks into exclusive prefixes. One block per slice.
template <typename Op>
__global__ void __launch_bounds__(threads) scan_totals(const __grid_constant__ Arguments<Op> a) {
  using Acc = typename Op::Acc;
  __shared__ alignas(16) unsigned char warp_memory[threads / 32 * sizeof(Acc)];
  Acc* slice = static_cast<Acc*>(a.starts) + static_cast<int64_t>(blockIdx.x) * a.chunks;
  Acc start = a.op.identity();
  for (uint32_t first = 0; first < a.chunks; first += threads) {
    const uint32_t i = first + threadIdx.x;
    const Acc mine = i < a.chunks ? slice[i] : a.op.identity();
    Acc total;
    const Acc lower = before(a.op, mine, start, &total, reinterpret_cast<Acc*>(warp_memory));
    if (i < a.chunks) slice[i] = lower;
    start = total;
    __syncthreads();
  }
}

// One thread scans one slice.
template <typename Op>
__global__ void __launch_bounds__(threads) scan_columns(const __grid_constant__ Arguments<Op> a) {
  using Element = typename Op::Element;
  using Result = typename Op::Result;
  constexpr int together = 4;  // loads in flight
  const uint32_t slice = blockIdx.x * threads + threadIdx.x;
  if (slice >= a.slices.count) return;
  uint32_t at[2];
  a.slices.at_rolled(slice, at);
  auto* out = static_cast<memory_t<Result>*>(a.out) + at[0];
  const auto* in = static_cast<const memory_t<Element>*>(a.in) + at[1];
  typename Op::Acc acc = a.op.identity();
  int64_t i = 0;
  for (; i + together <= a.length; i += together) {
    memory_t<Element> values[together];
#pragma unroll
    for (int j = 0; j < together; ++j) values[j] = in[(i + j) * a.in_stride];
#pragma unroll
    for (int j = 0; j < together; ++j) {
      acc = a.op.apply(acc, a.op.element(loaded<Element>(values[j]), i + j));
      out[(i + j) * a.out_stride] = stored<Result>(a.op.result(acc));
    }
  }
  for (; i < a.length; ++i) {
    acc = a.op.apply(acc, a.read(in, i));
    out[i * a.out_stride] = stored<Result>(a.op.result(acc));
  }
}

template <typename Op>
void launch_lines(const Call& call, Arguments<Op>& a) {
  const int64_t slices = a.slices.count, length = a.length;
  if constexpr (!Op::sequential) {
    // The slice is contiguous, or there are too few slices for one thread each.
    if (length > short_slice && (a.in_stride == 1 || slices < 4096)) {
      int width = 32;
      while (width < threads && width * items < length) width *= 2;
      const int64_t tile = static_cast<int64_t>(width) * items;
      const int64_t wanted = static_cast<int64_t>(device_traits(call.device()).multiprocessors) * 4;
      const int64_t parts =
          std::min({divide_up(length, least_chunk), std::max<int64_t>(1, wanted / slices), most_chunks});
      a.chunk = divide_up(divide_up(length, parts), tile) * tile;
      const int64_t chunks = divide_up(length, a.chunk);
      const dim3 grid(static_cast<unsigned>(slices), static_cast<unsigned>(chunks));
      a.chunks = static_cast<uint32_t>(chunks);
      Workspace starts;
      a.starts = nullptr;
      if (chunks > 1) {
        starts = Workspace(call, static_cast<size_t>(slices * chunks) * sizeof(typename Op::Acc));
        a.starts = starts.data();
        launch(call, chunk_totals<Op>, grid, threads, 0, a);
        launch(call, scan_totals<Op>, grid.x, threads, 0, a);
      }
      return launch(call, scan_chunks<Op>, grid, static_cast<unsigned>(width), 0, a);
    }
  }
  launch(call, scan_columns<Op>, static_cast<unsigned>(divide_up(slices, threads)), threads, 0, a);
}

}  // namespace scanning

// Scans each slice along `dim`. A tensor without dimensions is one slice of one element. Output and
// input may share their memory.
template <typename Op>
void scan_along(const Call& call, const Op& op, const cb_tensor& in, const cb_tensor& out, int64_t dim) {
  using Element = memory_t<typename Op::Element>;
  using Result = memory_t<typename Op::Result>;
  if (out.numel == 0) return;
  static constexpr int64_t one = 1;
  cb_tensor seen_out = out, seen_in = in;
  for (cb_tensor* each : {&seen_out, &seen_in})
    if (each->ndim == 0) each->ndim = 1, each->sizes = each->strides = &one;
  const FirstOfLines to(seen_out, static_cast<int>(dim)), from(seen_in, static_cast<int>(dim));
  for_each_piece(geometry<2>({&to.tensor(), &from.tensor()}),
                 [&](const Geometry<2>& piece, const std::array<int64_t, 2>& offsets) {
                   scanning::Arguments<Op> a{op,
                                             static_cast<Result*>(out.data) + offsets[0],
                                             static_cast<const Element*>(in.data) + offsets[1],
                                             to.stride(),
                                             from.stride(),
                                             to.length(),
                                             to.length(),
                                             nullptr,
                                             1,
                                             Indexer<2>(piece)};
                   scanning::launch_lines(call, a);
                 });
}

}  // namespace candelabra::cuda
