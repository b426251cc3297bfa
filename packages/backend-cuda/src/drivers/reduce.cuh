// The driver of all reductions. The assignment of elements to threads and the order of merges
// depend only on the sizes and the device, and no kernel uses atomic additions: results are
// deterministic.
//
// An operation is a function object that is copied into the kernel's arguments:
//
//   struct Operation {
//     using Element = float;                  // in memory
//     struct Acc;                             // a partial result: trivially copyable
//     using Results = Types<float>;           // dtypes of the outputs, one or two
//     static constexpr bool ordered = false;  // true: `index` counts the reduced elements in row-major order
//     __device__ Acc identity() const;
//     __device__ void take(Acc& acc, compute_t<Element> value, int64_t index) const;
//     __device__ Acc merge(const Acc& a, const Acc& b) const;
//     __device__ void finish(const Acc& acc, int64_t length, compute_t<float>* result) const;   // one pointer per result
//   };
//   reduce<Operation>(call, operation, input, {&output});
//
// A block has threads along the elements of a result and along results, so that accesses are
// coalesced both for rows (the elements of a result are contiguous) and for columns (those of
// adjacent results are). For few results of many elements, several blocks share a result: they
// store partial results in a workspace, and a second kernel merges them.
#pragma once

#include <cstring>

#include "drivers/elementwise.cuh"
#include "drivers/reduce.hpp"

namespace candelabra::cuda {

namespace reduction {

template <typename Acc>
__device__ __forceinline__ Acc shuffled_down(const Acc& value, int delta, int width) {
  constexpr int words = (sizeof(Acc) + 3) / 4;
  uint32_t raw[words] = {};
  memcpy(raw, &value, sizeof(Acc));
#pragma unroll
  for (int w = 0; w < words; ++w) raw[w] = __shfl_down_sync(0xffffffffu, raw[w], static_cast<unsigned>(delta), width);
  Acc result;
  memcpy(&result, raw, sizeof(Acc));
  return result;
}

template <typename Operation, typename Results>
struct Writer;
template <typename Operation, typename R>
struct Writer<Operation, Types<R>> {
  __device__ static void write(const Operation& op, const typename Operation::Acc& acc, int64_t length,
                               void* const* outs, const uint32_t* offsets) {
    compute_t<R> result;
    op.finish(acc, length, &result);
    static_cast<memory_t<R>*>(outs[0])[offsets[0]] = stored<R>(result);
  }
};
template <typename Operation, typename R, typename S>
struct Writer<Operation, Types<R, S>> {
  __device__ static void write(const Operation& op, const typename Operation::Acc& acc, int64_t length,
                               void* const* outs, const uint32_t* offsets) {
    compute_t<R> result;
    compute_t<S> other;
    op.finish(acc, length, &result, &other);
    static_cast<memory_t<R>*>(outs[0])[offsets[0]] = stored<R>(result);
    static_cast<memory_t<S>*>(outs[1])[offsets[1]] = stored<S>(other);
  }
};

template <typename Operation, int Outs>
struct Arguments {
  Operation op;
  Part<Outs> part;
};

// Merges the partial results of the threads with the same `slot`. The first of them (rank 0) gets
// the result.
template <typename Operation, bool Inner>
__device__ typename Operation::Acc merged(const Operation& op, typename Operation::Acc acc, int rank, int ranks,
                                          int slot) {
  using Acc = typename Operation::Acc;
  __shared__ alignas(16) unsigned char memory[threads * sizeof(Acc)];
  Acc* shared = reinterpret_cast<Acc*>(memory);
  int left = ranks;
  if constexpr (Inner) {  // the threads of a result are adjacent, in one warp if possible
    const int width = ranks < 32 ? ranks : 32;
    for (int delta = width / 2; delta > 0; delta /= 2) {
      const Acc other = shuffled_down(acc, delta, width);
      acc = op.merge(acc, other);
    }
    if (ranks <= 32) return acc;
    left = ranks / 32;
    if (rank % 32 == 0) shared[slot * left + rank / 32] = acc;
    __syncthreads();
    if (rank < left) acc = shared[slot * left + rank];
    // `left` is at most 8. All lanes take part in the shuffles; only the first warp of the result
    // uses the values.
    for (int delta = left / 2; delta > 0; delta /= 2) {
      const Acc other = shuffled_down(acc, delta, 32);
      acc = op.merge(acc, other);
    }
    return acc;
  }
  const int slots = static_cast<int>(blockDim.x);
  shared[rank * slots + slot] = acc;
  __syncthreads();
  for (left = ranks / 2; left > 0; left /= 2) {
    if (rank < left) {
      acc = op.merge(acc, shared[(rank + left) * slots + slot]);
      shared[rank * slots + slot] = acc;
    }
    __syncthreads();
  }
  return acc;
}

// blockDim is (ranks, slots) for rows and (slots, ranks) for columns; both powers of two. Grid: x
// results, y chunks.
template <typename Operation, int Outs, bool Inner, int Vec>
__global__ void __launch_bounds__(threads) reduce_kernel(const __grid_constant__ Arguments<Operation, Outs> a) {
  using Element = typename Operation::Element;
  using Value = compute_t<Element>;
  const int rank = static_cast<int>(Inner ? threadIdx.x : threadIdx.y),
            ranks = static_cast<int>(Inner ? blockDim.x : blockDim.y);
  const int slot = static_cast<int>(Inner ? threadIdx.y : threadIdx.x),
            slots = static_cast<int>(Inner ? blockDim.y : blockDim.x);
  const uint32_t result = blockIdx.x * static_cast<uint32_t>(slots) + static_cast<uint32_t>(slot);
  const bool there = result < a.part.kept.count;
  uint32_t at[1 + Outs] = {};
  typename Operation::Acc acc = a.op.identity();
  if (there) {
    a.part.kept.at_rolled(result, at);
    const auto* in = static_cast<const memory_t<Element>*>(a.part.in) + at[0];
    const uint32_t begin = blockIdx.y * a.part.chunk;
    const uint32_t end = a.part.reduced.count - begin < a.part.chunk ? a.part.reduced.count : begin + a.part.chunk;
    if constexpr (Vec > 1) {  // the reduced elements have no gaps, and chunks are whole packets
      constexpr int unroll = 2;
      const auto step = static_cast<uint32_t>(ranks * Vec);
      uint32_t i = begin + static_cast<uint32_t>(rank * Vec);
      for (; i + (unroll - 1) * step + Vec <= end; i += unroll * step) {
        Value values[unroll * Vec];
#pragma unroll
        for (int u = 0; u < unroll; ++u) elementwise::load_packed<Element, Vec>(in + i + u * step, values + u * Vec);
#pragma unroll
        for (int j = 0; j < unroll * Vec; ++j) a.op.take(acc, values[j], a.part.first + i + (j / Vec) * step + j % Vec);
      }
      for (; i + Vec <= end; i += step) {
        Value values[Vec];
        elementwise::load_packed<Element, Vec>(in + i, values);
#pragma unroll
        for (int j = 0; j < Vec; ++j) a.op.take(acc, values[j], a.part.first + i + j);
      }
      i = end - (end - begin) % Vec + static_cast<uint32_t>(rank);  // elements that do not fill a packet
      for (; i < end; i += static_cast<uint32_t>(ranks)) a.op.take(acc, loaded<Element>(in[i]), a.part.first + i);
    } else {
      constexpr int unroll = Inner || sizeof(memory_t<Element>) >= 8 ? 4 : 8;
      const auto step = static_cast<uint32_t>(ranks);
      uint32_t i = begin + static_cast<uint32_t>(rank);
      for (; i + (unroll - 1) * step < end; i += unroll * step) {
        Value values[unroll];
#pragma unroll
        for (int u = 0; u < unroll; ++u) {
          uint32_t offset[1];
          a.part.reduced.at_rolled(i + u * step, offset);
          values[u] = loaded<Element>(in[offset[0]]);
        }
#pragma unroll
        for (int u = 0; u < unroll; ++u) a.op.take(acc, values[u], a.part.first + i + u * step);
      }
      if (i < end) {  // loads of the remaining elements also overlap
        Value values[unroll - 1];
#pragma unroll
        for (int u = 0; u < unroll - 1; ++u) {
          if (i + u * step >= end) continue;
          uint32_t offset[1];
          a.part.reduced.at_rolled(i + u * step, offset);
          values[u] = loaded<Element>(in[offset[0]]);
        }
#pragma unroll
        for (int u = 0; u < unroll - 1; ++u)
          if (i + u * step < end) a.op.take(acc, values[u], a.part.first + i + u * step);
      }
    }
  }
  acc = merged<Operation, Inner>(a.op, acc, rank, ranks, slot);
  if (rank != 0 || !there) return;
  if (a.part.partial)
    static_cast<typename Operation::Acc*>(
        a.part.partial)[static_cast<size_t>(a.part.first_chunk + blockIdx.y) * a.part.results_in_all +
                        a.part.first_result + result] = acc;
  else
    Writer<Operation, typename Operation::Results>::write(a.op, acc, a.part.length, a.part.outs, at + 1);
}

// The second kernel: blockDim is (results, chunks).
template <typename Operation, int Outs>
__global__ void __launch_bounds__(threads) merge_kernel(const __grid_constant__ Arguments<Operation, Outs> a) {
  using Acc = typename Operation::Acc;
  const uint32_t result = blockIdx.x * blockDim.x + threadIdx.x;
  const bool there = result < a.part.kept.count;
  Acc acc = a.op.identity();
  if (there) {
    const Acc* partial = static_cast<const Acc*>(a.part.partial) + a.part.first_result + result;
    for (uint32_t c = threadIdx.y; c < a.part.chunks; c += blockDim.y)
      acc = a.op.merge(acc, partial[static_cast<size_t>(c) * a.part.results_in_all]);
  }
  acc = merged<Operation, false>(a.op, acc, static_cast<int>(threadIdx.y), static_cast<int>(blockDim.y),
                                 static_cast<int>(threadIdx.x));
  if (threadIdx.y != 0 || !there) return;
  uint32_t at[1 + Outs];
  a.part.kept.at_rolled(result, at);
  Writer<Operation, typename Operation::Results>::write(a.op, acc, a.part.length, a.part.outs, at + 1);
}

// The host side of one operation. reduce.cpp has the part that all operations share.
template <typename Operation, int Outs>
void launch_part(const Call& call, const void* op, const Part<Outs>& part, const Shape& shape) {
  constexpr int vec = vector_of(sizeof(memory_t<typename Operation::Element>));
  Arguments<Operation, Outs> arguments{*static_cast<const Operation*>(op), part};
  const void* kernel = nullptr;
  switch (shape.kind) {
    case Kind::Columns:
      kernel = reinterpret_cast<const void*>(reduce_kernel<Operation, Outs, false, 1>);
      break;
    case Kind::Rows:
      kernel = reinterpret_cast<const void*>(reduce_kernel<Operation, Outs, true, 1>);
      break;
    case Kind::PackedRows:
      kernel = reinterpret_cast<const void*>(reduce_kernel<Operation, Outs, true, vec>);
      break;
    case Kind::Merge:
      kernel = reinterpret_cast<const void*>(merge_kernel<Operation, Outs>);
      break;
  }
  launch_with(call, kernel, shape.blocks, shape.threads, &arguments);
}

}  // namespace reduction

// Reduces `in` to the sizes of the outputs, whose reduced dimensions have size 1 and stride 0.
template <typename Operation, size_t Count>
void reduce(const Call& call, const Operation& op, const cb_tensor& in,
            const std::array<const cb_tensor*, Count>& outs) {
  using Element = memory_t<typename Operation::Element>;
  constexpr int count = static_cast<int>(Count);
  reduction::Task<count> task{&in, {}, {}, sizeof(Element), sizeof(typename Operation::Acc), Operation::ordered};
  std::copy(outs.begin(), outs.end(), task.outs.begin());
  reduction::describe(task, typename Operation::Results{});
  reduction::run_parts(call, task, reduction::launch_part<Operation, count>, &op);
}
template <typename Operation>
void reduce(const Call& call, const Operation& op, const cb_tensor& in, const cb_tensor& out) {
  reduce(call, op, in, std::array<const cb_tensor*, 1>{&out});
}

}  // namespace candelabra::cuda
