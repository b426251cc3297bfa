// sort, topk.
//
// Elements become unsigned keys of the same order, each with its index. A slice is 1-D, along
// `dim`. Slices that fit into shared memory are sorted there, by a network over unique pairs of key
// and index. Longer slices are sorted by CUB's radix sort, all in one call: the number of the slice
// is the high part of the key. topk with a small k sorts the parts of a long slice first, and then
// the first k entries of each part.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "candelabra/arguments/sorting.hpp"
#include "drivers/elementwise.cuh"
#include "drivers/radix_sort.hpp"
#include "drivers/slices.hpp"
#include "drivers/sort_keys.cuh"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;
constexpr int longest_in_block = 2048;
// Topk by parts; with larger k a pass drops too few entries
constexpr int64_t most_kept = longest_in_block / 4;

// A key with its index.
struct LongEntry {
  uint64_t key;
  uint32_t at;
  friend __device__ __forceinline__ bool operator<(const LongEntry& a, const LongEntry& b) {
    return a.key < b.key || (a.key == b.key && a.at < b.at);
  }
};
template <typename K>
struct Entries;
template <>
struct Entries<uint32_t> {
  using Entry = uint64_t;
  __device__ static Entry make(uint32_t key, uint32_t at) { return static_cast<uint64_t>(key) << 32 | at; }
  __device__ static uint32_t index(Entry entry) { return static_cast<uint32_t>(entry); }
};
template <>
struct Entries<uint64_t> {
  using Entry = LongEntry;
  __device__ static Entry make(uint64_t key, uint32_t at) { return {key, at}; }
  __device__ static uint32_t index(const Entry& entry) { return entry.at; }
};

struct Arguments {
  const void* in;
  void* values;
  int64_t* indices;
  int64_t in_stride, values_stride, indices_stride;  // along a slice
  int64_t length;                                    // of a slice of the input
  int64_t kept;                                      // length of a slice of the outputs
  bool descending;
  Indexer<3> slices;  // values, indices, in
};

// One pass over parts of slices. `from` and `to` hold entries; null means the elements and the
// outputs.
struct Parts {
  const void* from;
  void* to;
  int64_t length;  // of a slice of `from`
  uint32_t parts;  // of a slice
  int width;       // of a part: a power of two
};

// Half the width (blockDim.x) threads sort a part; a block sorts blockDim.y parts.
template <typename T>
__global__ void __launch_bounds__(longest_in_block / 2)
    sort_parts(const __grid_constant__ Arguments a, const __grid_constant__ Parts p) {
  using E = Entries<Key<T>>;
  using Entry = typename E::Entry;
  extern __shared__ __align__(16) unsigned char sort_memory[];
  const int me = static_cast<int>(threadIdx.x);
  Entry* entries = reinterpret_cast<Entry*>(sort_memory) + static_cast<int>(threadIdx.y) * p.width;
  const uint32_t unit = blockIdx.x * blockDim.y + threadIdx.y;
  const uint32_t slice = unit / p.parts, part = unit - slice * p.parts;
  const bool there = slice < a.slices.count;
  uint32_t at[3] = {};
  if (there) a.slices.at_rolled(slice, at);
  const auto* in = static_cast<const memory_t<T>*>(a.in) + at[2];
  const int64_t first = static_cast<int64_t>(part) * p.width;
  const Key<T> mask = a.descending ? key_mask<T> : Key<T>{0};
  for (int i = me; i < p.width; i += static_cast<int>(blockDim.x)) {
    // Padding sorts after all entries: no index is 2^32 - 1.
    Entry entry = E::make(~Key<T>{0}, ~uint32_t{0});
    if (there && first + i < p.length) {
      if (p.from)
        entry = static_cast<const Entry*>(p.from)[slice * p.length + first + i];
      else
        entry = E::make(key_of<T>(in[(first + i) * a.in_stride]) ^ mask, static_cast<uint32_t>(first + i));
    }
    entries[i] = entry;
  }
  __syncthreads();
  // Bitonic sort: Batcher, Sorting networks and their applications (1968).
  for (int size = 2; size <= p.width; size *= 2)
    for (int distance = size / 2; distance > 0; distance /= 2) {
      const int low = 2 * me - (me & (distance - 1)), high = low + distance;
      const Entry x = entries[low], y = entries[high];
      if ((y < x) == ((low & size) == 0)) {
        entries[low] = y;
        entries[high] = x;
      }
      __syncthreads();
    }
  if (!there) return;
  const int kept = a.kept < p.width ? static_cast<int>(a.kept) : p.width;
  for (int i = me; i < kept; i += static_cast<int>(blockDim.x)) {
    if (p.to) {
      static_cast<Entry*>(p.to)[static_cast<int64_t>(unit) * a.kept + i] = entries[i];
    } else {
      const int64_t source = E::index(entries[i]);
      static_cast<memory_t<T>*>(a.values)[at[0] + i * a.values_stride] = in[source * a.in_stride];
      a.indices[at[1] + i * a.indices_stride] = source;
    }
  }
}

template <typename T>
void launch_parts(const Call& call, const Arguments& a, const Parts& p) {
  const int block_parts = std::max(1, threads / (p.width / 2));
  const size_t shared =
      static_cast<size_t>(p.width) * static_cast<size_t>(block_parts) * sizeof(typename Entries<Key<T>>::Entry);
  const int64_t units = static_cast<int64_t>(a.slices.count) * p.parts;
  launch(call, sort_parts<T>, static_cast<unsigned>(divide_up(units, block_parts)),
         dim3(static_cast<unsigned>(p.width / 2), static_cast<unsigned>(block_parts)), shared, a, p);
}

template <typename T>
void sort_in_blocks(const Call& call, const Arguments& a) {
  using Entry = typename Entries<Key<T>>::Entry;
  Parts p{nullptr, nullptr, a.length, 1, longest_in_block};
  Workspace before;
  while (p.length > longest_in_block) {
    p.parts = static_cast<uint32_t>(divide_up(p.length, longest_in_block));
    const int64_t found = p.parts * a.kept;
    Workspace after(call, static_cast<size_t>(found * a.slices.count) * sizeof(Entry));
    p.to = after.data();
    launch_parts<T>(call, a, p);
    p.from = p.to;
    p.length = found;
    // Frees the entries that the queued pass reads; the stream orders their reuse
    before = std::move(after);
  }
  p.to = nullptr;
  p.parts = 1;
  p.width = std::max(2, static_cast<int>(std::bit_ceil(static_cast<uint64_t>(p.length))));
  launch_parts<T>(call, a, p);
}

// ---- by radix

// Makes the keys of the slices from `first_slice` on. If `numbered`, the slice number is the high
// part of a key.
template <typename T, typename K>
__global__ void __launch_bounds__(threads) make_keys(const __grid_constant__ Arguments a, uint32_t first_slice,
                                                     uint32_t count, bool numbered, K* keys, uint32_t* positions) {
  const auto length = static_cast<uint32_t>(a.length);
  const Key<T> mask = a.descending ? key_mask<T> : Key<T>{0};
  for (int64_t i = first_index(); i < count; i += index_step()) {
    const auto element = static_cast<uint32_t>(i);
    const uint32_t slice = element / length, index = element - slice * length;
    uint32_t at[3];
    a.slices.at_rolled(first_slice + slice, at);
    K key = key_of<T>(static_cast<const memory_t<T>*>(a.in)[at[2] + index * a.in_stride]) ^ mask;
    if constexpr (key_bits<T> < 8 * static_cast<int>(sizeof(K)))
      if (numbered) key |= static_cast<K>(slice) << key_bits<T>;
    keys[i] = key;
    positions[i] = element;
  }
}

__global__ void __launch_bounds__(threads)
    slice_keys(const uint32_t* positions, uint32_t count, uint32_t length, uint32_t* keys) {
  for (int64_t i = first_index(); i < count; i += index_step()) keys[i] = positions[i] / length;
}

// Moves the elements to their ranks.
template <typename U>
__global__ void __launch_bounds__(threads)
    move_kernel(const __grid_constant__ Arguments a, uint32_t first_slice, uint32_t count, const uint32_t* positions) {
  const auto length = static_cast<uint32_t>(a.length);
  for (int64_t i = first_index(); i < count; i += index_step()) {
    const auto element = static_cast<uint32_t>(i);
    const uint32_t slice = element / length, rank = element - slice * length;
    if (rank >= a.kept) continue;
    uint32_t at[3];
    a.slices.at_rolled(first_slice + slice, at);
    const int64_t source = positions[i] - slice * length;
    static_cast<U*>(a.values)[at[0] + rank * a.values_stride] =
        static_cast<const U*>(a.in)[at[2] + source * a.in_stride];
    a.indices[at[1] + rank * a.indices_stride] = source;
  }
}

// The buffers of the radix sort, in one workspace.
template <typename K>
class PairMemory {
 public:
  PairMemory(const Call& call, int64_t count)
      : memory_(call, static_cast<size_t>(count) * 2 * (sizeof(K) + sizeof(uint32_t))),
        buffers{{memory_.as<K>(), memory_.as<K>() + count},
                {reinterpret_cast<uint32_t*>(memory_.as<K>() + 2 * count),
                 reinterpret_cast<uint32_t*>(memory_.as<K>() + 2 * count) + count}} {}

 private:
  Workspace memory_;

 public:
  PairBuffers<K> buffers;
};

void move_to_ranks(const Call& call, const Arguments& a, int64_t size, uint32_t first_slice, uint32_t count,
                   const uint32_t* positions) {
  dispatch_size(size, [&]<typename U>() {
    if constexpr (sizeof(U) <= 8)
      launch(call, move_kernel<U>, grid_for(call, count, threads, 16), threads, 0, a, first_slice, count, positions);
  });
}

template <typename T, typename K>
void sort_pairs(const Call& call, const Arguments& a, uint32_t first_slice, uint32_t slices, int slice_bits) {
  const auto count = static_cast<uint32_t>(slices * a.length);
  const unsigned blocks = grid_for(call, count, threads, 16);
  const bool numbered = key_bits<T> + slice_bits <= 8 * static_cast<int>(sizeof(K));
  const PairMemory<K> memory(call, count);
  const PairBuffers<K>& pairs = memory.buffers;
  launch(call, make_keys<T, K>, blocks, threads, 0, a, first_slice, count, numbered, pairs.keys[0], pairs.positions[0]);
  const int sorted = radix_sort<K>(call, pairs, count, key_bits<T> + (numbered ? slice_bits : 0));
  uint32_t* positions = pairs.positions[sorted];
  if (numbered) return move_to_ranks(call, a, sizeof(memory_t<T>), first_slice, count, positions);
  // The slice number did not fit into the key: a stable sort by slice keeps the order of keys in
  // each slice.
  auto* slice_numbers = reinterpret_cast<uint32_t*>(pairs.keys[0]);
  const PairBuffers<uint32_t> by_slice{{slice_numbers, slice_numbers + count},
                                       {positions, pairs.positions[1 - sorted]}};
  launch(call, slice_keys, blocks, threads, 0, static_cast<const uint32_t*>(positions), count,
         static_cast<uint32_t>(a.length), by_slice.keys[0]);
  const int last = radix_sort<uint32_t>(call, by_slice, count, slice_bits);
  move_to_ranks(call, a, sizeof(memory_t<T>), first_slice, count, by_slice.positions[last]);
}

template <typename T>
void sort_by_radix(const Call& call, const Arguments& a) {
  const int64_t group = std::max<int64_t>(1, INT32_MAX / a.length);
  for (int64_t first = 0; first < a.slices.count; first += group) {
    const int64_t slices = std::min<int64_t>(group, a.slices.count - first);
    const int slice_bits = std::bit_width(static_cast<uint64_t>(slices - 1));
    const auto from = static_cast<uint32_t>(first), slice_count = static_cast<uint32_t>(slices);
    if constexpr (key_bits<T> <= 32)
      if (key_bits<T> + slice_bits <= 32) {
        sort_pairs<T, uint32_t>(call, a, from, slice_count, slice_bits);
        continue;
      }
    sort_pairs<T, uint64_t>(call, a, from, slice_count, slice_bits);
  }
}

// ---- sort and topk

// Writes the first elements of each slice in sorted order; the outputs' sizes say how many.
void sort_slices(Call& call, const cb_tensor& in, int64_t dim, bool descending) {
  const cb_tensor &values = call.output(0), &indices = call.output(1);
  if (values.numel == 0) return;
  static constexpr int64_t one = 1;
  std::array<cb_tensor, 3> views{values, indices, in};  // at least 1-D
  for (cb_tensor& each : views)
    if (each.ndim == 0) each.ndim = 1, each.sizes = each.strides = &one;
  const int along = static_cast<int>(dim);
  const FirstOfLines to_values(views[0], along), to_indices(views[1], along), from(views[2], along);
  if (from.length() >= UINT32_MAX)
    throw failure(CB_RUNTIME_ERROR, "%s: lines of %lld elements are too long to be sorted on this device",
                  call.raw()->operator_name, static_cast<long long>(from.length()));
  for_each_piece(geometry<3>({&to_values.tensor(), &to_indices.tensor(), &from.tensor()}),
                 [&](const Geometry<3>& piece, const std::array<int64_t, 3>& offsets) {
                   const int64_t size = itemsize(in.dtype);
                   const Arguments a{static_cast<const char*>(in.data) + offsets[2] * size,
                                     static_cast<char*>(values.data) + offsets[0] * size,
                                     data<int64_t>(call.output(1)) + offsets[1],
                                     from.stride(),
                                     to_values.stride(),
                                     to_indices.stride(),
                                     from.length(),
                                     to_values.length(),
                                     descending,
                                     Indexer<3>(piece)};
                   dispatch<SortableTypes>(in.dtype, [&]<typename T>() {
                     if (a.length <= longest_in_block || a.kept <= most_kept)
                       sort_in_blocks<T>(call, a);
                     else
                       sort_by_radix<T>(call, a);
                   });
                 });
}

void sort(Call& call) {
  const arguments::Sort args(call);
  sort_slices(call, *args.self, args.dim, args.descending);
}

void topk(Call& call) {
  const arguments::Topk args(call);
  sort_slices(call, *args.self, args.dim, args.largest);
}

}  // namespace

void register_sorting(KernelTable& table) {
  table.add<sort>("sort");
  table.add<topk>("topk");
}

}  // namespace candelabra::cuda
