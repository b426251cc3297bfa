// The way all reductions go. Which elements make up a result, and in which order partial results are put together, follows from the
// sizes and the device alone, so that the same call gives the same bits every time; there are no atomic additions.
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
//     __device__ void finish(const Acc& acc, int64_t length, compute_t<float>* result) const;   // one pointer a result
//   };
//   reduce<Operation>(call, operation, input, {&output});
//
// A block has threads along the elements of a result and along results, so that neighbouring threads read neighbouring memory in
// both cases: rows (a result's elements lie side by side) and columns (those of neighbouring results do). Where there are few results of
// many elements, several blocks share one and leave partial results in a workspace, which a second kernel puts together.
#pragma once

#include <cstring>

#include "elementwise.cuh"

namespace candelabra::cuda {

namespace reduction {

constexpr int threads = 256;
constexpr int64_t least_chunk = 4096;  // elements that are worth a block of their own

// What the reduction of a descriptor is: one output dimension has size 1 where the input's is reduced.
template <int Outs>
struct Plan {
  Geometry<1 + Outs> kept;  // one element a result; operands: the input and the outputs
  Geometry<1> reduced;      // one element an element of the input that makes up a result
  int64_t results = 1;
  int64_t length = 1;
  bool inner = true;  // rows

  Plan(const cb_tensor& in, const std::array<const cb_tensor*, Outs>& outs, Order order) {
    const bool all = outs[0]->ndim != in.ndim;
    int kept_count = 0, reduced_count = 0;
    for (int d = in.ndim - 1; d >= 0; --d) {
      if (all || outs[0]->sizes[d] != in.sizes[d]) {
        length *= in.sizes[d];
        if (in.sizes[d] == 1) continue;
        reduced.sizes[reduced_count] = in.sizes[d];
        reduced.strides[0][reduced_count++] = in.strides[d];
      } else {
        results *= in.sizes[d];
        if (in.sizes[d] == 1) continue;
        kept.sizes[kept_count] = in.sizes[d];
        kept.strides[0][kept_count] = in.strides[d];
        for (int k = 0; k < Outs; ++k) kept.strides[1 + k][kept_count] = outs[static_cast<size_t>(k)]->strides[d];
        ++kept_count;
      }
    }
    kept.numel = results;
    reduced.numel = length;
    iterate_detail::finish(kept, results ? kept_count : 0, Order::Any);
    iterate_detail::finish(reduced, length ? reduced_count : 0, order);
    if (length == 0) reduced.sizes[0] = 0;
    const auto distance = [](int64_t stride) { return stride == 0 ? INT64_MAX : std::abs(stride); };
    inner = kept_count == 0 || (length > 1 && distance(reduced.strides[0][0]) <= distance(kept.strides[0][0]));
  }
};

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
  memory_t<R>* out;
  __device__ void write(const Operation& op, const typename Operation::Acc& acc, int64_t length, const uint32_t* offsets) const {
    compute_t<R> result;
    op.finish(acc, length, &result);
    out[offsets[0]] = stored<R>(result);
  }
};
template <typename Operation, typename R, typename S>
struct Writer<Operation, Types<R, S>> {
  memory_t<R>* out;
  memory_t<S>* second;
  __device__ void write(const Operation& op, const typename Operation::Acc& acc, int64_t length, const uint32_t* offsets) const {
    compute_t<R> result;
    compute_t<S> other;
    op.finish(acc, length, &result, &other);
    out[offsets[0]] = stored<R>(result);
    second[offsets[1]] = stored<S>(other);
  }
};

template <typename Operation, int Outs>
struct Arguments {
  Operation op;
  Writer<Operation, typename Operation::Results> writer;
  const memory_t<typename Operation::Element>* in;
  Indexer<1 + Outs> kept;
  Indexer<1> reduced;
  int64_t first;             // number of this piece's first element among those of a result
  int64_t length;            // elements of a result in all pieces
  uint32_t chunk;            // elements of a result that a block takes
  uint32_t first_chunk;      // of this piece, among the chunks of all pieces
  uint32_t results_in_all;   // distance of chunks in `partial`
  uint32_t first_result;     // of this piece
  typename Operation::Acc* partial;  // null: blocks write results
};

// Puts the partial results of the threads with the same `slot` together; the first of them (rank 0) has the result.
template <typename Operation, bool Inner>
__device__ typename Operation::Acc merged(const Operation& op, typename Operation::Acc acc, int rank, int ranks, int slot) {
  using Acc = typename Operation::Acc;
  __shared__ alignas(16) unsigned char memory[threads * sizeof(Acc)];
  Acc* shared = reinterpret_cast<Acc*>(memory);
  int left = ranks;
  if constexpr (Inner) {  // threads of a result are neighbours: in one warp as far as it goes
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
    // `left` is at most 8: the first warp of the result goes on, the others come along with what is not looked at.
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

// blockDim is (ranks, slots) for rows and (slots, ranks) for columns; both powers of two. Grid: x results, y chunks.
template <typename Operation, int Outs, bool Inner, int Vec>
__global__ void __launch_bounds__(threads) reduce_kernel(const __grid_constant__ Arguments<Operation, Outs> a) {
  using Element = typename Operation::Element;
  using Value = compute_t<Element>;
  const int rank = static_cast<int>(Inner ? threadIdx.x : threadIdx.y), ranks = static_cast<int>(Inner ? blockDim.x : blockDim.y);
  const int slot = static_cast<int>(Inner ? threadIdx.y : threadIdx.x), slots = static_cast<int>(Inner ? blockDim.y : blockDim.x);
  const uint32_t result = blockIdx.x * static_cast<uint32_t>(slots) + static_cast<uint32_t>(slot);
  const bool there = result < a.kept.count;
  uint32_t at[1 + Outs] = {};
  typename Operation::Acc acc = a.op.identity();
  if (there) {
    a.kept.at_rolled(result, at);
    const auto* in = a.in + at[0];
    const uint32_t begin = blockIdx.y * a.chunk;
    const uint32_t end = a.reduced.count - begin < a.chunk ? a.reduced.count : begin + a.chunk;
    if constexpr (Vec > 1) {  // the reduced elements have no gaps, and chunks are whole packets
      constexpr int unroll = 2;
      const auto step = static_cast<uint32_t>(ranks * Vec);
      uint32_t i = begin + static_cast<uint32_t>(rank * Vec);
      for (; i + (unroll - 1) * step < end; i += unroll * step) {
        Value values[unroll * Vec];
#pragma unroll
        for (int u = 0; u < unroll; ++u) elementwise::load_packed<Element, Vec>(in + i + u * step, values + u * Vec);
#pragma unroll
        for (int j = 0; j < unroll * Vec; ++j) a.op.take(acc, values[j], a.first + i + (j / Vec) * step + j % Vec);
      }
      for (; i < end; i += step) {
        Value values[Vec];
        elementwise::load_packed<Element, Vec>(in + i, values);
#pragma unroll
        for (int j = 0; j < Vec; ++j) a.op.take(acc, values[j], a.first + i + j);
      }
    } else {
      constexpr int unroll = 4;
      const auto step = static_cast<uint32_t>(ranks);
      uint32_t i = begin + static_cast<uint32_t>(rank);
      for (; i + (unroll - 1) * step < end; i += unroll * step) {
        Value values[unroll];
#pragma unroll
        for (int u = 0; u < unroll; ++u) {
          uint32_t offset[1];
          a.reduced.at_rolled(i + u * step, offset);
          values[u] = loaded<Element>(in[offset[0]]);
        }
#pragma unroll
        for (int u = 0; u < unroll; ++u) a.op.take(acc, values[u], a.first + i + u * step);
      }
      for (; i < end; i += step) {
        uint32_t offset[1];
        a.reduced.at_rolled(i, offset);
        a.op.take(acc, loaded<Element>(in[offset[0]]), a.first + i);
      }
    }
  }
  acc = merged<Operation, Inner>(a.op, acc, rank, ranks, slot);
  if (rank != 0 || !there) return;
  if (a.partial)
    a.partial[static_cast<size_t>(a.first_chunk + blockIdx.y) * a.results_in_all + a.first_result + result] = acc;
  else
    a.writer.write(a.op, acc, a.length, at + 1);
}

// The second kernel: one block a result.
template <typename Operation, int Outs>
__global__ void __launch_bounds__(threads) merge_kernel(const __grid_constant__ Arguments<Operation, Outs> a, uint32_t chunks) {
  uint32_t at[1 + Outs];
  a.kept.at_rolled(blockIdx.x, at);
  typename Operation::Acc acc = a.op.identity();
  for (uint32_t c = threadIdx.x; c < chunks; c += threads)
    acc = a.op.merge(acc, a.partial[static_cast<size_t>(c) * a.results_in_all + a.first_result + blockIdx.x]);
  acc = merged<Operation, true>(a.op, acc, static_cast<int>(threadIdx.x), threads, 0);
  if (threadIdx.x == 0) a.writer.write(a.op, acc, a.length, at + 1);
}

inline int power_of_two_above(int64_t value, int most) {
  int power = 1;
  while (power < value && power < most) power *= 2;
  return power;
}

template <typename Operation, typename... Results, size_t... K>
void run(const Call& call, const Operation& op, const cb_tensor& in, const std::array<const cb_tensor*, sizeof...(Results)>& outs,
         Types<Results...>, std::index_sequence<K...>) {
  constexpr int count = sizeof...(Results);
  using Element = typename Operation::Element;
  using Acc = typename Operation::Acc;
  constexpr int vec = 16 / static_cast<int>(sizeof(memory_t<Element>));
  const Plan<count> plan(in, outs, Operation::ordered ? Order::RowMajor : Order::Any);
  if (plan.results == 0) return;
  elementwise::check_alignment(in, sizeof(memory_t<Element>));

  // Threads of a block along the elements and along results.
  const int ranks = plan.inner ? power_of_two_above(divide_up(plan.length, 4), threads) : power_of_two_above(divide_up(plan.length, 4), 8);
  const int slots = threads / ranks;
  const int64_t blocks = divide_up(plan.results, slots);
  const int64_t wanted = static_cast<int64_t>(device_traits(call.device()).multiprocessors) * 8;
  const int64_t pieces_of_length = std::max<int64_t>(1, std::min<int64_t>(divide_up(plan.length, least_chunk), wanted / std::max<int64_t>(blocks, 1)));
  const int64_t share = std::min<int64_t>(divide_up(std::max<int64_t>(plan.length, 1), pieces_of_length), int64_t{1} << 30);
  const int64_t chunk = divide_up(share, vec * threads) * vec * threads;  // whole packets

  // Chunks of all pieces of the length (one, but for lengths beyond 31 bits).
  uint32_t chunks = 0;
  for_each_piece(plan.reduced, [&](const Geometry<1>& piece, const std::array<int64_t, 1>&) {
    chunks += static_cast<uint32_t>(divide_up(piece.numel, chunk));
  }, Pieces::InOrder);
  const bool several = chunks > 1;
  if (several && plan.results > UINT32_MAX)
    throw failure(CB_RUNTIME_ERROR, "a reduction to %lld results of %lld elements each is too large", static_cast<long long>(plan.results),
                  static_cast<long long>(plan.length));
  Workspace partial;
  if (several) partial = Workspace(call, static_cast<size_t>(plan.results) * chunks * sizeof(Acc));

  uint32_t first_result = 0;
  for_each_piece(plan.kept, [&](const Geometry<1 + count>& kept, const std::array<int64_t, 1 + count>& offsets) {
    Arguments<Operation, count> a{};
    a.op = op;
    a.writer = {static_cast<memory_t<Results>*>(outs[K]->data) + offsets[1 + K]...};
    a.kept = Indexer<1 + count>(kept);
    a.length = plan.length;
    a.chunk = static_cast<uint32_t>(chunk);
    a.results_in_all = static_cast<uint32_t>(several ? plan.results : 0);
    a.first_result = first_result;
    a.partial = partial.as<Acc>();
    const auto one = [&](const Geometry<1>& piece, int64_t offset) {
      a.in = static_cast<const memory_t<Element>*>(in.data) + offsets[0] + offset;
      a.reduced = Indexer<1>(piece);
      a.reduced.count = static_cast<uint32_t>(piece.numel);
      const dim3 grid(static_cast<unsigned>(divide_up(kept.numel, slots)), static_cast<unsigned>(std::max<int64_t>(1, divide_up(piece.numel, chunk))));
      bool packed = vec > 1 && plan.inner && piece.ndim == 1 && piece.strides[0][0] == 1 && piece.numel % vec == 0 &&
                    reinterpret_cast<uintptr_t>(a.in) % 16 == 0;
      for (int d = 0; d < kept.ndim; ++d) packed &= kept.sizes[d] == 1 || kept.strides[0][d] % vec == 0;
      if (!plan.inner)
        launch(call, reduce_kernel<Operation, count, false, 1>, grid, dim3(static_cast<unsigned>(slots), static_cast<unsigned>(ranks)), 0, a);
      else if (packed)
        launch(call, reduce_kernel<Operation, count, true, vec>, grid, dim3(static_cast<unsigned>(ranks), static_cast<unsigned>(slots)), 0, a);
      else
        launch(call, reduce_kernel<Operation, count, true, 1>, grid, dim3(static_cast<unsigned>(ranks), static_cast<unsigned>(slots)), 0, a);
      a.first += piece.numel;
      a.first_chunk += grid.y;
    };
    if (plan.length == 0)
      one(plan.reduced, 0);
    else
      for_each_piece(plan.reduced, [&](const Geometry<1>& piece, const std::array<int64_t, 1>& at) { one(piece, at[0]); }, Pieces::InOrder);
    if (several) launch(call, merge_kernel<Operation, count>, static_cast<unsigned>(kept.numel), threads, 0, a, chunks);
    first_result += static_cast<uint32_t>(kept.numel);
  });
}

}  // namespace reduction

// Reduces `in` to the sizes of the outputs, whose reduced dimensions have size 1 and stride 0.
template <typename Operation, size_t Count>
void reduce(const Call& call, const Operation& op, const cb_tensor& in, const std::array<const cb_tensor*, Count>& outs) {
  reduction::run(call, op, in, outs, typename Operation::Results{}, std::make_index_sequence<Count>{});
}
template <typename Operation>
void reduce(const Call& call, const Operation& op, const cb_tensor& in, const cb_tensor& out) {
  reduce(call, op, in, std::array<const cb_tensor*, 1>{&out});
}

}  // namespace candelabra::cuda
