#include "additions.hpp"

#include <bit>

#include "radix_sort.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 128;
// Pairs that one thread goes through.
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
__device__ __forceinline__ void add_to(memory_t<T>* place, compute_t<T> sum) {
  *place = stored<T>(sum_of<T>(loaded<T>(*place), sum));
}

// heads[s]: the sum of what continues from the stretch before; tails[s]: of what begins in stretch s and goes on behind it. A place
// that lies within one stretch is written at once.
template <typename T>
__global__ void __launch_bounds__(threads)
    stretch_kernel(memory_t<T>* out, const memory_t<T>* source, compute_t<T> factor, compute_t<T>* heads, compute_t<T>* tails,
                   const compute_t<T>* weights, const __grid_constant__ Pairs pairs, const __grid_constant__ Indexer<2> slab) {
  const int64_t number = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x, s = number / slab.count;
  const auto element = static_cast<uint32_t>(number - s * slab.count);
  if (s >= pairs.stretches) return;
  uint32_t at[2];
  slab.at_rolled(element, at);
  const int64_t first = s * stretch, last = min(first + stretch, pairs.count);
  uint64_t key = pairs.keys[first];
  if (key == static_cast<uint64_t>(pairs.places)) return;  // these come last
  bool continued = first > 0 && pairs.keys[first - 1] == key;
  compute_t<T> sum(0);
  for (int64_t p = first; p < last; ++p) {
    const uint32_t j = pairs.positions[p];
    const compute_t<T> by = weights ? product_of<T>(factor, weights[j]) : factor;
    sum = sum_of<T>(sum, product_of<T>(by, loaded<T>(source[pairs.from[j] + at[1]])));
    const uint64_t next = p + 1 < pairs.count ? pairs.keys[p + 1] : ~uint64_t{0};
    if (next == key) continue;
    if (continued)
      heads[number] = sum;
    else
      add_to<T>(out + pairs.to[j] + at[0], sum);
    if (next == static_cast<uint64_t>(pairs.places)) return;
    key = next;
    sum = compute_t<T>(0);
    continued = false;
  }
  if (last < pairs.count && pairs.keys[last - 1] == pairs.keys[last]) (continued ? heads : tails)[number] = sum;
}

// The places that reach over several stretches.
template <typename T>
__global__ void __launch_bounds__(threads)
    join_kernel(memory_t<T>* out, const compute_t<T>* heads, const compute_t<T>* tails, const __grid_constant__ Pairs pairs,
                const __grid_constant__ Indexer<2> slab) {
  const int64_t number = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x, s = number / slab.count;
  const auto element = static_cast<uint32_t>(number - s * slab.count);
  const int64_t first = s * stretch, end = first + stretch;  // the last stretch has nothing behind it
  if (end >= pairs.count) return;
  const uint64_t key = pairs.keys[end - 1];
  if (key == static_cast<uint64_t>(pairs.places) || pairs.keys[end] != key) return;
  if (first > 0 && pairs.keys[first - 1] == key) return;  // began before
  uint32_t at[2];
  slab.at_rolled(element, at);
  compute_t<T> sum = tails[number];
  for (int64_t k = s + 1; k < pairs.stretches && pairs.keys[k * stretch] == key; ++k)
    sum = sum_of<T>(sum, heads[k * slab.count + element]);
  add_to<T>(out + pairs.to[pairs.positions[end - 1]] + at[0], sum);
}

}  // namespace

// Keys and positions twice over, for the sort, around the offsets.
Additions::Additions(const Call& call, int64_t count, int64_t places)
    : call_(call), count_(count), places_(places), memory_(call, static_cast<size_t>(40 * count)) {}

void Additions::run(const cb_tensor& out, const void* source, const Geometry<2>& slab, const cb_scalar& factor,
                    const void* weights) const {
  if (count_ == 0 || slab.numel == 0) return;
  const auto count = static_cast<uint32_t>(count_);
  const auto n = static_cast<size_t>(count_);
  const PairBuffers<uint64_t> buffers{{keys(), memory_.as<uint64_t>(8 * n)},
                                      {memory_.as<uint32_t>(32 * n), memory_.as<uint32_t>(36 * n)}};
  launch(call_, number_kernel, static_cast<unsigned>(divide_up(count_, 256)), 256, 0, buffers.positions[0], count);
  const int sorted = radix_sort(call_, buffers, count, static_cast<int>(std::bit_width(static_cast<uint64_t>(places_))));
  const Pairs pairs{buffers.keys[sorted], buffers.positions[sorted], to(), from(), count_, places_, divide_up(count_, stretch)};
  dispatch<AllTypes>(out.dtype, [&]<typename T>() {
    using C = compute_t<T>;
    for_each_piece(slab, [&](const Geometry<2>& piece, const std::array<int64_t, 2>& offsets) {
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
