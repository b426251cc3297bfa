#include "drivers/scatter_add.hpp"

#include <bit>
#include <cuda/std/limits>

#include "drivers/radix_sort.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 128;
// Pairs per thread.
constexpr int64_t stretch = 32;

__global__ void __launch_bounds__(256) number_kernel(uint32_t* positions, uint32_t count) {
  const uint32_t i = blockIdx.x * 256 + threadIdx.x;
  if (i < count) positions[i] = i;
}

struct Pairs {
  const uint64_t* keys;  // sorted
  const uint32_t* positions;
  const int64_t *to, *from;
  int64_t count, places, stretches;
  Combination combination;
};

template <typename T>
__device__ __forceinline__ compute_t<T> sum_of(compute_t<T> a, compute_t<T> b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else
    return static_cast<compute_t<T>>(a + b);
}
template <typename T>
__device__ __forceinline__ compute_t<T> product_of(compute_t<T> a, compute_t<T> b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else
    return static_cast<compute_t<T>>(a * b);
}

template <typename T>
__device__ __forceinline__ compute_t<T> combined(Combination::Kind kind, compute_t<T> a, compute_t<T> b) {
  if constexpr (!is_complex_v<T>) {  // NaN propagates
    if (kind == Combination::Largest) return a > b || a != a ? a : b;
    if (kind == Combination::Smallest) return a < b || a != a ? a : b;
  }
  return kind == Combination::Product ? product_of<T>(a, b) : sum_of<T>(a, b);
}
// The identity element.
template <typename T>
__device__ __forceinline__ compute_t<T> identity(Combination::Kind kind) {
  using C = compute_t<T>;
  if (kind == Combination::Product) return C(1);
  if constexpr (!is_complex_v<T>) {
    using Limits = ::cuda::std::numeric_limits<C>;
    if (kind == Combination::Largest)
      return Limits::has_infinity ? static_cast<C>(-Limits::infinity()) : Limits::lowest();
    if (kind == Combination::Smallest) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  return C(0);
}

// The number of pairs with this key.
__device__ int64_t pairs_of(const Pairs& pairs, uint64_t key) {
  const auto below = [&](uint64_t limit) {
    int64_t low = 0;
    for (int64_t left = pairs.count; left > 0;) {
      const int64_t half = left / 2;
      const bool after = pairs.keys[low + half] < limit;
      low = after ? low + half + 1 : low;
      left = after ? left - half - 1 : half;
    }
    return low;
  };
  return below(key + 1) - below(key);
}

// Integer quotients are rounded down.
template <typename C>
__device__ C divided(C value, int64_t count) {
  if constexpr (is_complex_v<C> || std::is_floating_point_v<C>) {
    return value / static_cast<real_t<C>>(count);
  } else if constexpr (std::is_unsigned_v<C>) {
    // float index: C is an unsigned integer here
    return static_cast<C>(static_cast<uint64_t>(value) / static_cast<uint64_t>(count));
  } else {
    const auto whole = static_cast<int64_t>(value);  // float index: C is a signed integer here
    return static_cast<C>(whole / count - (whole % count != 0 && whole < 0 ? 1 : 0));
  }
}

template <typename T>
__device__ __forceinline__ void write_sum(memory_t<T>* place, compute_t<T> value, const Pairs& pairs, uint64_t key) {
  const Combination& how = pairs.combination;
  if (how.with_self) value = combined<T>(how.kind, loaded<T>(*place), value);
  if (how.kind == Combination::Mean) value = divided(value, pairs_of(pairs, key) + (how.with_self ? 1 : 0));
  *place = stored<T>(value);
}

// heads[s] is the sum of the key that continues from the stretch before. tails[s] is the sum of the
// key that continues into the next one. A key within one stretch is written directly.
template <typename T>
__global__ void __launch_bounds__(threads)
    stretch_kernel(memory_t<T>* out, const memory_t<T>* source, compute_t<T> factor, compute_t<T>* heads,
                   compute_t<T>* tails, const compute_t<T>* weights, const __grid_constant__ Pairs pairs,
                   const __grid_constant__ Indexer<2> slice) {
  const int64_t number = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x, s = number / slice.count;
  const auto element = static_cast<uint32_t>(number - s * slice.count);
  if (s >= pairs.stretches) return;
  uint32_t at[2];
  slice.at_rolled(element, at);
  const int64_t first = s * stretch, last = min(first + stretch, pairs.count);
  uint64_t key = pairs.keys[first];
  if (key == static_cast<uint64_t>(pairs.places)) return;  // keys that are skipped come last
  bool continued = first > 0 && pairs.keys[first - 1] == key;
  const Combination::Kind kind = pairs.combination.kind;
  compute_t<T> sum = identity<T>(kind);
  for (int64_t p = first; p < last; ++p) {
    const uint32_t j = pairs.positions[p];
    const compute_t<T> by = weights ? product_of<T>(factor, weights[j]) : factor;
    sum = combined<T>(kind, sum, product_of<T>(by, loaded<T>(source[pairs.from[j] + at[1]])));
    const uint64_t next = p + 1 < pairs.count ? pairs.keys[p + 1] : ~uint64_t{0};
    if (next == key) continue;
    if (continued)
      heads[number] = sum;
    else
      write_sum<T>(out + pairs.to[j] + at[0], sum, pairs, key);
    if (next == static_cast<uint64_t>(pairs.places)) return;
    key = next;
    sum = identity<T>(kind);
    continued = false;
  }
  if (last < pairs.count && pairs.keys[last - 1] == pairs.keys[last]) (continued ? heads : tails)[number] = sum;
}

// Adds up the keys that span several stretches.
template <typename T>
__global__ void __launch_bounds__(threads)
    join_kernel(memory_t<T>* out, const compute_t<T>* heads, const compute_t<T>* tails,
                const __grid_constant__ Pairs pairs, const __grid_constant__ Indexer<2> slice) {
  const int64_t number = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x, s = number / slice.count;
  const auto element = static_cast<uint32_t>(number - s * slice.count);
  // The last stretch has no successor.
  const int64_t first = s * stretch, end = first + stretch;
  if (end >= pairs.count) return;
  const uint64_t key = pairs.keys[end - 1];
  if (key == static_cast<uint64_t>(pairs.places) || pairs.keys[end] != key) return;
  if (first > 0 && pairs.keys[first - 1] == key) return;  // the key began earlier
  uint32_t at[2];
  slice.at_rolled(element, at);
  compute_t<T> sum = tails[number];
  for (int64_t k = s + 1; k < pairs.stretches && pairs.keys[k * stretch] == key; ++k)
    sum = combined<T>(pairs.combination.kind, sum, heads[k * slice.count + element]);
  write_sum<T>(out + pairs.to[pairs.positions[end - 1]] + at[0], sum, pairs, key);
}

}  // namespace

// Two buffers of keys and positions for the sort, around the offsets.
DeterministicScatterAdd::DeterministicScatterAdd(const Call& call, int64_t count, int64_t places)
    : call_(call), count_(count), places_(places), memory_(call, static_cast<size_t>(40 * count)) {}

void DeterministicScatterAdd::run(const cb_tensor& out, const void* source, const Geometry<2>& slice,
                                  const cb_scalar& factor, const void* weights, const Combination& combination) const {
  if (count_ == 0 || slice.numel == 0) return;
  const auto count = static_cast<uint32_t>(count_);
  const auto n = static_cast<size_t>(count_);
  const PairBuffers<uint64_t> buffers{{keys(), memory_.as<uint64_t>(8 * n)},
                                      {memory_.as<uint32_t>(32 * n), memory_.as<uint32_t>(36 * n)}};
  launch(call_, number_kernel, static_cast<unsigned>(divide_up(count_, 256)), 256, 0, buffers.positions[0], count);
  const int sorted =
      radix_sort(call_, buffers, count, static_cast<int>(std::bit_width(static_cast<uint64_t>(places_))));
  const Pairs pairs{
      buffers.keys[sorted], buffers.positions[sorted], to(), from(), count_, places_, divide_up(count_, stretch),
      combination};
  dispatch<AllTypes>(out.dtype, [&]<typename T>() {
    using C = compute_t<T>;
    for_each_piece(slice, [&](const Geometry<2>& piece, const std::array<int64_t, 2>& offsets) {
      const int64_t partial = pairs.stretches * piece.numel;
      const Workspace sums(call_, static_cast<size_t>(2 * partial) * sizeof(C));
      C *heads = sums.as<C>(), *tails = heads + partial;
      const auto blocks = static_cast<unsigned>(divide_up(partial, threads));
      const Indexer<2> indexer(piece);
      auto* to = static_cast<memory_t<T>*>(out.data) + offsets[0];
      launch(call_, stretch_kernel<T>, blocks, threads, 0, to, static_cast<const memory_t<T>*>(source) + offsets[1],
             static_cast<C>(scalar_to<T>(factor)), heads, tails, static_cast<const C*>(weights), pairs, indexer);
      if (pairs.stretches > 1) launch(call_, join_kernel<T>, blocks, threads, 0, to, heads, tails, pairs, indexer);
    });
  });
}

}  // namespace candelabra::cuda
