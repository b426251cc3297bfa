// softmax, log_softmax and their gradients.
//
// A slice is 1-D, along `dim`. A warp or a block computes a contiguous slice and keeps it in
// registers if it fits, so that memory is read once. One thread computes a strided slice; adjacent
// threads have adjacent slices.
#include <array>
#include <cstdint>
#include <limits>

#include "candelabra/arguments/softmax.hpp"
#include "candelabra/math.hpp"
#include "drivers/elementwise.cuh"
#include "drivers/slices.hpp"

namespace candelabra::cuda {
namespace {

// The statistics of a slice: the maximum and the sum of exp(x - maximum). The gradients only need a
// sum.
template <typename V>
struct Exponentials {
  V largest, sum;
};

// An operation has accumulate(), which adds an element to the statistics, merge(), which merges the
// statistics of two threads, and result(), which computes an element of the result.
template <bool Log>
struct Forward {
  static constexpr int inputs = 1;
  template <typename V>
  using Statistics = Exponentials<V>;

  template <typename V>
  __device__ static Exponentials<V> identity() {
    return {-std::numeric_limits<V>::infinity(), V(0)};
  }
  template <typename V>
  __device__ static Exponentials<V> merge(const Exponentials<V>& a, const Exponentials<V>& b) {
    const V largest = a.largest > b.largest ? a.largest : b.largest;
    // While all values are -infinity the sum is 0: the factor 1 avoids exp(NaN).
    const V by_a = a.largest == largest ? V(1) : math::exp(a.largest - largest);
    const V by_b = b.largest == largest ? V(1) : math::exp(b.largest - largest);
    return {largest, a.sum * by_a + b.sum * by_b};
  }
  template <typename V>
  __device__ static void accumulate(Exponentials<V>& s, const V* x) {
    // x - x + 1 is 1, or NaN if x is infinite or NaN: NaN propagates through the sum.
    if (x[0] > s.largest) {
      s.sum = s.sum * math::exp(s.largest - x[0]) + (x[0] - x[0] + V(1));
      s.largest = x[0];
    } else if (x[0] != -std::numeric_limits<V>::infinity()) {
      s.sum += math::exp(x[0] - s.largest);
    }
  }
  template <typename V>
  __device__ static V result(const Exponentials<V>& s, const V* x) {
    if constexpr (Log)
      return x[0] - s.largest - math::log(s.sum);
    else
      return math::exp(x[0] - s.largest) / s.sum;
  }
};

// softmax: y (grad - sum(grad y)); log_softmax: grad - exp(y) sum(grad)
template <bool Log>
struct Backward {
  static constexpr int inputs = 2;
  template <typename V>
  using Statistics = V;

  template <typename V>
  __device__ static V identity() {
    return V(0);
  }
  template <typename V>
  __device__ static V merge(V a, V b) {
    return a + b;
  }
  template <typename V>
  __device__ static void accumulate(V& sum, const V* x) {
    if constexpr (Log)
      sum += x[0];
    else
      sum += x[0] * x[1];
  }
  template <typename V>
  __device__ static V result(V sum, const V* x) {
    if constexpr (Log)
      return x[0] - math::exp(x[1]) * sum;
    else
      return x[1] * (x[0] - sum);
  }
};

template <int Inputs>
struct SliceArguments {
  void* out;
  const void* in[Inputs];
  int64_t out_stride, in_strides[Inputs];  // along a slice
  int64_t length;
  Indexer<1 + Inputs> slices;
};

template <typename S>
__device__ S shuffled(const S& value, int mask) {
  static_assert(sizeof(S) % 4 == 0);
  uint32_t words[sizeof(S) / 4];
  memcpy(words, &value, sizeof(S));
#pragma unroll
  for (uint32_t& word : words) word = __shfl_xor_sync(0xffffffffu, word, mask);
  S result;
  memcpy(&result, words, sizeof(S));
  return result;
}

// Merges the statistics of the `Lanes` threads of a slice in a fixed order; every thread gets the
// result.
template <typename Op, typename V, int Lanes>
__device__ typename Op::template Statistics<V> merge_lanes(typename Op::template Statistics<V> mine) {
  using S = typename Op::template Statistics<V>;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    const S other = shuffled(mine, mask);
    // Both lanes merge in the same order, so that they get identical bits.
    mine = (threadIdx.x & static_cast<unsigned>(mask)) ? Op::merge(other, mine) : Op::merge(mine, other);
  }
  if constexpr (Lanes > 32) {
    constexpr int warps = Lanes / 32;
    __shared__ S of_warps[warps];
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
    __syncthreads();
    mine = of_warps[0];
    for (int w = 1; w < warps; ++w) mine = Op::merge(mine, of_warps[w]);
  }
  return mine;
}

// `Lanes` threads (x) compute a slice; a block has blockDim.y slices. Slices of at most Lanes *
// Items elements are kept in registers; with Items 0 they are read twice.
template <typename Op, typename T, int Lanes, int Items>
__global__ void __launch_bounds__(Lanes == 32 ? 256 : Lanes)
    softmax_slices(const __grid_constant__ SliceArguments<Op::inputs> a) {
  using V = compute_t<T>;
  constexpr int inputs = Op::inputs;
  const uint32_t slice = blockIdx.x * blockDim.y + threadIdx.y;
  if (slice >= a.slices.count) return;  // uniform for all threads of the slice
  uint32_t at[1 + inputs];
  a.slices.at_rolled(slice, at);
  const memory_t<T>* in[inputs];
  for (int k = 0; k < inputs; ++k) in[k] = static_cast<const memory_t<T>*>(a.in[k]) + at[1 + k];
  auto* out = static_cast<memory_t<T>*>(a.out) + at[0];
  const auto lane = static_cast<int>(threadIdx.x);
  auto statistics = Op::template identity<V>();
  if constexpr (Items > 0) {
    V values[Items][inputs];
    const auto length = static_cast<int>(a.length);
#pragma unroll
    for (int j = 0; j < Items; ++j) {
      const int i = lane + j * Lanes;
      if (i < length)
        for (int k = 0; k < inputs; ++k) values[j][k] = loaded<T>(in[k][i * a.in_strides[k]]);
    }
#pragma unroll
    for (int j = 0; j < Items; ++j)
      if (lane + j * Lanes < length) Op::accumulate(statistics, values[j]);
    statistics = merge_lanes<Op, V, Lanes>(statistics);
#pragma unroll
    for (int j = 0; j < Items; ++j) {
      const int i = lane + j * Lanes;
      if (i < length) out[i * a.out_stride] = stored<T>(Op::result(statistics, values[j]));
    }
  } else {
    for (int64_t i = lane; i < a.length; i += Lanes) {
      V values[inputs];
      for (int k = 0; k < inputs; ++k) values[k] = loaded<T>(in[k][i * a.in_strides[k]]);
      Op::accumulate(statistics, values);
    }
    statistics = merge_lanes<Op, V, Lanes>(statistics);
    for (int64_t i = lane; i < a.length; i += Lanes) {
      V values[inputs];
      for (int k = 0; k < inputs; ++k) values[k] = loaded<T>(in[k][i * a.in_strides[k]]);
      out[i * a.out_stride] = stored<T>(Op::result(statistics, values));
    }
  }
}

// One thread computes one slice.
template <typename Op, typename T>
__global__ void __launch_bounds__(elementwise::threads)
    softmax_strided(const __grid_constant__ SliceArguments<Op::inputs> a) {
  using V = compute_t<T>;
  constexpr int inputs = Op::inputs;
  const uint32_t slice = blockIdx.x * elementwise::threads + threadIdx.x;
  if (slice >= a.slices.count) return;
  uint32_t at[1 + inputs];
  a.slices.at_rolled(slice, at);
  const memory_t<T>* in[inputs];
  for (int k = 0; k < inputs; ++k) in[k] = static_cast<const memory_t<T>*>(a.in[k]) + at[1 + k];
  auto* out = static_cast<memory_t<T>*>(a.out) + at[0];
  auto statistics = Op::template identity<V>();
  for (int64_t i = 0; i < a.length; ++i) {
    V values[inputs];
    for (int k = 0; k < inputs; ++k) values[k] = loaded<T>(in[k][i * a.in_strides[k]]);
    Op::accumulate(statistics, values);
  }
  for (int64_t i = 0; i < a.length; ++i) {
    V values[inputs];
    for (int k = 0; k < inputs; ++k) values[k] = loaded<T>(in[k][i * a.in_strides[k]]);
    out[i * a.out_stride] = stored<T>(Op::result(statistics, values));
  }
}

template <typename Op, typename T>
void launch_slices(const Call& call, const SliceArguments<Op::inputs>& a) {
  const uint32_t slices = a.slices.count;
  // Contiguous slices, or too few slices to occupy the device with one thread each.
  const bool parallel_slices = a.in_strides[0] == 1 || slices < 4096;
  if (!parallel_slices)
    return launch(call, softmax_strided<Op, T>, static_cast<unsigned>(divide_up(slices, elementwise::threads)),
                  elementwise::threads, 0, a);
  const auto warps = static_cast<unsigned>(divide_up(slices, 8));
  if (a.length <= 128) return launch(call, softmax_slices<Op, T, 32, 4>, warps, dim3(32, 8), 0, a);
  if (a.length <= 1024) return launch(call, softmax_slices<Op, T, 32, 32>, warps, dim3(32, 8), 0, a);
  if (a.length <= 8192) return launch(call, softmax_slices<Op, T, 512, 16>, slices, dim3(512, 1), 0, a);
  launch(call, softmax_slices<Op, T, 1024, 0>, slices, dim3(1024, 1), 0, a);
}

template <typename Op>
void softmax_along(Call& call) {
  constexpr int inputs = Op::inputs;
  // softmax, log_softmax: the same arguments; so have their gradients.
  using Arguments = std::conditional_t<inputs == 1, arguments::Softmax, arguments::SoftmaxBackward>;
  const cb_tensor& out = call.output();
  const int dim = static_cast<int>(Arguments(call).dim);
  if (out.numel == 0) return;
  const auto operands = leading_tensors<inputs>(call);
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() {
    const FirstOfLines result(out, dim), first(*operands.front(), dim), second(*operands.back(), dim);
    const std::array<const FirstOfLines*, 3> all{&result, &first, &second};
    std::array<const cb_tensor*, 1 + inputs> tensors{};
    SliceArguments<inputs> a{};
    a.out_stride = result.stride();
    a.length = result.length();
    for (int k = 0; k <= inputs; ++k) tensors[static_cast<size_t>(k)] = &all[static_cast<size_t>(k)]->tensor();
    for (int k = 0; k < inputs; ++k) a.in_strides[k] = all[static_cast<size_t>(k) + 1]->stride();
    for_each_piece(geometry<1 + inputs>(tensors),
                   [&](const Geometry<1 + inputs>& piece, const std::array<int64_t, 1 + inputs>& offsets) {
                     a.out = static_cast<memory_t<T>*>(out.data) + offsets[0];
                     for (int k = 0; k < inputs; ++k)
                       a.in[k] = static_cast<const memory_t<T>*>(tensors[static_cast<size_t>(k) + 1]->data) +
                                 offsets[static_cast<size_t>(k) + 1];
                     a.slices = Indexer<1 + inputs>(piece);
                     launch_slices<Op, T>(call, a);
                   });
  });
}

}  // namespace

void register_softmax(KernelTable& table) {
  table.add<softmax_along<Forward<false>>>("softmax");
  table.add<softmax_along<Forward<true>>>("log_softmax");
  table.add<softmax_along<Backward<false>>>("softmax_backward");
  table.add<softmax_along<Backward<true>>>("log_softmax_backward");
}

}  // namespace candelabra::cuda
