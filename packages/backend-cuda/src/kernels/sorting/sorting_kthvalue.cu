// _kthvalue_index (kthvalue): the index of the element of a rank. _histc (histc): histograms of
// equal intervals.
//
// A block finds the element by radix select: it counts the next digit of the keys with the prefix
// found so far. Of equal keys it selects the one that a stable sort has at the rank. Only integers
// are added atomically.
#include <array>
#include <string_view>

#include "candelabra/arguments/sorting.hpp"
#include "candelabra/float_index.hpp"
#include "drivers/elementwise.cuh"
#include "drivers/slices.hpp"
#include "drivers/sort_keys.cuh"

namespace candelabra::cuda {
namespace {

using Count = unsigned long long;

constexpr int threads = 512;
constexpr int digits = 256;

enum class Among : int32_t { All, Median, Numbers };

struct OrderArguments {
  int64_t* out;
  const void* in;
  int64_t stride, length;
  int64_t rank;
  Among among;
  Indexer<2> lines;  // out, in
};

template <typename T>
__global__ void __launch_bounds__(threads) find_position(const __grid_constant__ OrderArguments a) {
  using K = Key<T>;
  constexpr int warps = threads / 32;
  __shared__ Count counts[digits];
  __shared__ Count nans, left;
  __shared__ int found;
  __shared__ int of_warps[warps];
  uint32_t at[2];
  a.lines.at_rolled(blockIdx.x, at);
  const auto* in = static_cast<const memory_t<T>*>(a.in) + at[1];
  const int me = static_cast<int>(threadIdx.x);

  // The number of elements to skip among those with the prefix
  int64_t before = a.rank;
  if (a.among != Among::All) {
    if (me == 0) nans = 0;
    __syncthreads();
    if constexpr (is_floating_v<T>) {
      Count mine = 0;
      for (int64_t i = me; i < a.length; i += threads) mine += key_of<T>(in[i * a.stride]) == key_mask<T>;
      if (mine) atomicAdd(&nans, mine);
    }
    __syncthreads();
    const int64_t numbers = a.length - static_cast<int64_t>(nans);
    if (a.among == Among::Median)
      before = numbers < a.length ? numbers : (a.length - 1) / 2;
    else
      before = numbers > 0 ? (numbers - 1) / 2 : 0;
  }

  K prefix = 0, decided = 0;  // the prefix, and the mask of its bits
  for (int shift = key_bits<T> - 8; shift >= 0; shift -= 8) {
    if (me < digits) counts[me] = 0;
    __syncthreads();
    for (int64_t i = me; i < a.length; i += threads) {
      const K key = key_of<T>(in[i * a.stride]);
      if ((key & decided) == prefix) atomicAdd(&counts[static_cast<uint32_t>(key >> shift) & (digits - 1)], Count{1});
    }
    __syncthreads();
    if (me == 0) {
      auto rest = static_cast<Count>(before);
      int digit = 0;
      while (digit + 1 < digits && rest >= counts[digit]) rest -= counts[digit++];
      found = digit;
      left = rest;
    }
    __syncthreads();
    prefix |= static_cast<K>(found) << shift;
    decided |= static_cast<K>(digits - 1) << shift;
    before = static_cast<int64_t>(left);
  }

  for (int64_t first = 0; first < a.length; first += threads) {
    const int64_t i = first + me;
    const bool hit = i < a.length && key_of<T>(in[i * a.stride]) == prefix;
    const int hits = __syncthreads_count(hit);
    if (before >= hits) {
      before -= hits;
      continue;
    }
    const unsigned votes = __ballot_sync(0xffffffffu, hit);
    if (me % 32 == 0) of_warps[me / 32] = __popc(votes);
    __syncthreads();
    int64_t number = __popc(votes & ((1u << (me % 32)) - 1));
    for (int w = 0; w < me / 32; ++w) number += of_warps[w];
    if (hit && number == before) a.out[at[0]] = i;
    return;
  }
}

void kthvalue_index(Call& call) {
  const arguments::KthvalueIndex args(call);
  const cb_tensor& in = *args.self;
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  const int dim = static_cast<int>(args.dim);
  const std::string_view name = args.among;
  const Among among = name == "median" ? Among::Median : name == "nanmedian" ? Among::Numbers : Among::All;
  const FirstOfLines to(out, dim), from(in, dim);
  dispatch<SortableTypes>(in.dtype, [&]<typename T>() {
    for_each_piece(geometry<2>({&to.tensor(), &from.tensor()}),
                   [&](const Geometry<2>& piece, const std::array<int64_t, 2>& offsets) {
                     const OrderArguments a{data<int64_t>(out) + offsets[0],
                                            data<memory_t<T>>(in) + offsets[1],
                                            from.stride(),
                                            from.length(),
                                            args.rank,
                                            among,
                                            Indexer<2>(piece)};
                     launch(call, find_position<T>, static_cast<unsigned>(piece.numel), threads, 0, a);
                   });
  });
}

// ---- histograms

constexpr int most_shared_bins = 4096;

template <typename T>
struct BinArguments {
  const memory_t<T>* in;
  Count* counts;
  int64_t bins;
  EqualBins<compute_t<T>> range;
  Indexer<1> elements;
};

// Shared: each block counts in shared memory first.
template <typename T, bool Shared>
__global__ void __launch_bounds__(threads) count_elements(const __grid_constant__ BinArguments<T> a) {
  using C = compute_t<T>;
  __shared__ uint32_t counts[Shared ? most_shared_bins : 1];
  if constexpr (Shared) {
    for (int64_t b = threadIdx.x; b < a.bins; b += threads) counts[b] = 0;
    __syncthreads();
  }
  for (int64_t i = first_index(); i < a.elements.count; i += index_step()) {
    uint32_t at[1];
    a.elements.at_rolled(static_cast<uint32_t>(i), at);
    const C value = loaded<T>(a.in[at[0]]);
    const int32_t bin = a.range.bin_of(value);
    if (bin == a.range.bins) continue;
    if constexpr (Shared)
      atomicAdd(&counts[bin], 1u);
    else
      atomicAdd(&a.counts[bin], Count{1});
  }
  if constexpr (Shared) {
    __syncthreads();
    for (int64_t b = threadIdx.x; b < a.bins; b += threads)
      if (counts[b]) atomicAdd(&a.counts[b], static_cast<Count>(counts[b]));
  }
}

template <typename T>
__global__ void __launch_bounds__(threads)
    write_counts(const Count* counts, int64_t bins, memory_t<T>* out, int64_t stride) {
  for (int64_t b = first_index(); b < bins; b += index_step())
    out[b * stride] = stored<T>(static_cast<compute_t<T>>(static_cast<int64_t>(counts[b])));
}

void histc(Call& call) {
  const arguments::Histc args(call);
  const cb_tensor& in = *args.self;
  cb_tensor& out = call.output();
  const int64_t bins = out.numel;
  const double low = args.low, high = args.high;
  const Workspace counts(call, static_cast<size_t>(bins) * sizeof(Count));
  fill_bytes(call, counts.data(), 0, counts.bytes());
  dispatch<FloatTypes>(in.dtype, [&]<typename T>() {
    using C = compute_t<T>;
    for_each_piece(geometry<1>({&in}), [&](const Geometry<1>& piece, const std::array<int64_t, 1>& offsets) {
      const BinArguments<T> a{data<memory_t<T>>(in) + offsets[0], counts.as<Count>(), bins,
                              EqualBins<C>(low, high, bins), Indexer<1>(piece)};
      const unsigned blocks = grid_for(call, piece.numel, threads, 4);
      if (bins <= most_shared_bins)
        launch(call, count_elements<T, true>, blocks, threads, 0, a);
      else
        launch(call, count_elements<T, false>, blocks, threads, 0, a);
    });
    launch(call, write_counts<T>, grid_for(call, bins, threads), threads, 0,
           static_cast<const Count*>(counts.as<Count>()), bins, data<memory_t<T>>(out), out.strides[0]);
  });
}

}  // namespace

void register_sorting_kthvalue(KernelTable& table) {
  table.add<kthvalue_index>("_kthvalue_index");
  table.add<histc>("_histc");
}

}  // namespace candelabra::cuda
