// sort, topk.
//
// Elements become unsigned keys of the same order, each with its position. Lines that fit in a block's shared memory are sorted
// there, by a network over pairs of key and position, of which no two are equal. Longer ones are sorted by CUB's radix sort, all
// together: the number of the line goes before the key. The few largest or smallest of a long line are those of its parts' few.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "elementwise.cuh"
#include "lines.hpp"
#include "radix_sort.hpp"
#include "sort_keys.cuh"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;
constexpr int longest_in_block = 2048;
constexpr int64_t most_of_parts = longest_in_block / 4;  // so many are looked for in parts; of more too little would fall away

// A key with its position.
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
  __device__ static uint32_t position(Entry entry) { return static_cast<uint32_t>(entry); }
};
template <>
struct Entries<uint64_t> {
  using Entry = LongEntry;
  __device__ static Entry make(uint64_t key, uint32_t at) { return {key, at}; }
  __device__ static uint32_t position(const Entry& entry) { return entry.at; }
};

struct Arguments {
  const void* in;
  void* values;
  int64_t* indices;
  int64_t in_stride, values_stride, indices_stride;  // along a line
  int64_t length;                                    // of a line of the input
  int64_t kept;                                      // of a line of the outputs
  bool descending;
  Indexer<3> lines;  // values, indices, in
};

// Entries that go from one pass over parts of lines to the next; `from` null: the elements, `to` null: the outputs.
struct Parts {
  const void* from;
  void* to;
  int64_t length;  // of a line of `from`
  uint32_t parts;  // of a line
  int width;       // of a part: a power of two
};

// blockDim.x, half the width, threads sort a part; a block does blockDim.y of them.
template <typename T>
__global__ void __launch_bounds__(longest_in_block / 2)
    sort_parts(const __grid_constant__ Arguments a, const __grid_constant__ Parts p) {
  using E = Entries<Key<T>>;
  using Entry = typename E::Entry;
  extern __shared__ __align__(16) unsigned char sort_memory[];
  const int me = static_cast<int>(threadIdx.x);
  Entry* entries = reinterpret_cast<Entry*>(sort_memory) + static_cast<int>(threadIdx.y) * p.width;
  const uint32_t unit = blockIdx.x * blockDim.y + threadIdx.y;
  const uint32_t line = unit / p.parts, part = unit - line * p.parts;
  const bool there = line < a.lines.count;
  uint32_t at[3] = {};
  if (there) a.lines.at_rolled(line, at);
  const auto* in = static_cast<const memory_t<T>*>(a.in) + at[2];
  const int64_t first = static_cast<int64_t>(part) * p.width;
  const Key<T> mask = a.descending ? key_mask<T> : Key<T>{0};
  for (int i = me; i < p.width; i += static_cast<int>(blockDim.x)) {
    // What fills up the width is behind all entries: no position is the last number.
    Entry entry = E::make(~Key<T>{0}, ~uint32_t{0});
    if (there && first + i < p.length) {
      if (p.from)
        entry = static_cast<const Entry*>(p.from)[line * p.length + first + i];
      else
        entry = E::make(key_of<T>(in[(first + i) * a.in_stride]) ^ mask, static_cast<uint32_t>(first + i));
    }
    entries[i] = entry;
  }
  __syncthreads();
  // Batcher, Sorting networks and their applications (1968): bitonic sorting.
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
      const int64_t source = E::position(entries[i]);
      static_cast<memory_t<T>*>(a.values)[at[0] + i * a.values_stride] = in[source * a.in_stride];
      a.indices[at[1] + i * a.indices_stride] = source;
    }
  }
}

template <typename T>
void launch_parts(const Call& call, const Arguments& a, const Parts& p) {
  const int beside = std::max(1, threads / (p.width / 2));
  const size_t shared = static_cast<size_t>(p.width) * static_cast<size_t>(beside) * sizeof(typename Entries<Key<T>>::Entry);
  const int64_t units = static_cast<int64_t>(a.lines.count) * p.parts;
  launch(call, sort_parts<T>, static_cast<unsigned>(divide_up(units, beside)),
         dim3(static_cast<unsigned>(p.width / 2), static_cast<unsigned>(beside)), shared, a, p);
}

template <typename T>
void sort_in_blocks(const Call& call, const Arguments& a) {
  using Entry = typename Entries<Key<T>>::Entry;
  Parts p{nullptr, nullptr, a.length, 1, longest_in_block};
  Workspace before;
  while (p.length > longest_in_block) {
    p.parts = static_cast<uint32_t>(divide_up(p.length, longest_in_block));
    const int64_t found = p.parts * a.kept;
    Workspace after(call, static_cast<size_t>(found * a.lines.count) * sizeof(Entry));
    p.to = after.data();
    launch_parts<T>(call, a, p);
    p.from = p.to;
    p.length = found;
    before = std::move(after);  // what it held is read by what was just queued
  }
  p.to = nullptr;
  p.parts = 1;
  p.width = std::max(2, static_cast<int>(std::bit_ceil(static_cast<uint64_t>(p.length))));
  launch_parts<T>(call, a, p);
}

// ---- by radix

// Keys of the lines from `first_line` on, one after the other: the number of the line, where there is room for it, and the
// element's.
template <typename T, typename K>
__global__ void __launch_bounds__(threads) make_keys(const __grid_constant__ Arguments a, uint32_t first_line, uint32_t count,
                                                     bool numbered, K* keys, uint32_t* positions) {
  const auto length = static_cast<uint32_t>(a.length);
  const Key<T> mask = a.descending ? key_mask<T> : Key<T>{0};
  for (int64_t i = first_index(); i < count; i += index_step()) {
    const auto element = static_cast<uint32_t>(i);
    const uint32_t line = element / length, place = element - line * length;
    uint32_t at[3];
    a.lines.at_rolled(first_line + line, at);
    K key = key_of<T>(static_cast<const memory_t<T>*>(a.in)[at[2] + place * a.in_stride]) ^ mask;
    if constexpr (key_bits<T> < 8 * static_cast<int>(sizeof(K)))
      if (numbered) key |= static_cast<K>(line) << key_bits<T>;
    keys[i] = key;
    positions[i] = element;
  }
}

__global__ void __launch_bounds__(threads) line_keys(const uint32_t* positions, uint32_t count, uint32_t length, uint32_t* keys) {
  for (int64_t i = first_index(); i < count; i += index_step()) keys[i] = positions[i] / length;
}

// Moves the elements to their ranks.
template <typename U>
__global__ void __launch_bounds__(threads)
    place_elements(const __grid_constant__ Arguments a, uint32_t first_line, uint32_t count, const uint32_t* positions) {
  const auto length = static_cast<uint32_t>(a.length);
  for (int64_t i = first_index(); i < count; i += index_step()) {
    const auto element = static_cast<uint32_t>(i);
    const uint32_t line = element / length, rank = element - line * length;
    if (rank >= a.kept) continue;
    uint32_t at[3];
    a.lines.at_rolled(first_line + line, at);
    const int64_t source = positions[i] - line * length;
    static_cast<U*>(a.values)[at[0] + rank * a.values_stride] = static_cast<const U*>(a.in)[at[2] + source * a.in_stride];
    a.indices[at[1] + rank * a.indices_stride] = source;
  }
}

// Memory for pairs, cut out of one workspace.
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

void place(const Call& call, const Arguments& a, int64_t size, uint32_t first_line, uint32_t count, const uint32_t* positions) {
  dispatch_size(size, [&]<typename U>() {
    if constexpr (sizeof(U) <= 8)
      launch(call, place_elements<U>, grid_for(call, count, threads, 16), threads, 0, a, first_line, count, positions);
  });
}

template <typename T, typename K>
void sort_pairs(const Call& call, const Arguments& a, uint32_t first_line, uint32_t lines, int line_bits) {
  const auto count = static_cast<uint32_t>(lines * a.length);
  const unsigned blocks = grid_for(call, count, threads, 16);
  const bool numbered = key_bits<T> + line_bits <= 8 * static_cast<int>(sizeof(K));
  const PairMemory<K> memory(call, count);
  const PairBuffers<K>& pairs = memory.buffers;
  launch(call, make_keys<T, K>, blocks, threads, 0, a, first_line, count, numbered, pairs.keys[0], pairs.positions[0]);
  const int sorted = radix_sort<K>(call, pairs, count, key_bits<T> + (numbered ? line_bits : 0));
  uint32_t* positions = pairs.positions[sorted];
  if (numbered) return place(call, a, sizeof(memory_t<T>), first_line, count, positions);
  // Sorted by key alone: then by line, which leaves the order of keys within each.
  auto* line_numbers = reinterpret_cast<uint32_t*>(pairs.keys[0]);
  const PairBuffers<uint32_t> by_line{{line_numbers, line_numbers + count}, {positions, pairs.positions[1 - sorted]}};
  launch(call, line_keys, blocks, threads, 0, static_cast<const uint32_t*>(positions), count, static_cast<uint32_t>(a.length),
         by_line.keys[0]);
  const int last = radix_sort<uint32_t>(call, by_line, count, line_bits);
  place(call, a, sizeof(memory_t<T>), first_line, count, by_line.positions[last]);
}

template <typename T>
void sort_by_radix(const Call& call, const Arguments& a) {
  const int64_t group = std::max<int64_t>(1, INT32_MAX / a.length);
  for (int64_t first = 0; first < a.lines.count; first += group) {
    const int64_t lines = std::min<int64_t>(group, a.lines.count - first);
    const int line_bits = std::bit_width(static_cast<uint64_t>(lines - 1));
    const auto from = static_cast<uint32_t>(first), many = static_cast<uint32_t>(lines);
    if constexpr (key_bits<T> <= 32)
      if (key_bits<T> + line_bits <= 32) {
        sort_pairs<T, uint32_t>(call, a, from, many, line_bits);
        continue;
      }
    sort_pairs<T, uint64_t>(call, a, from, many, line_bits);
  }
}

// ---- both

// The first `kept` elements in order, of each line.
void order_lines(Call& call, int64_t dim, bool descending) {
  const cb_tensor &in = call.tensor(0), &values = call.output(0), &indices = call.output(1);
  if (values.numel == 0) return;
  static constexpr int64_t one = 1;
  std::array<cb_tensor, 3> seen{values, indices, in};
  for (cb_tensor& each : seen)
    if (each.ndim == 0) each.ndim = 1, each.sizes = each.strides = &one;
  const int along = static_cast<int>(dim);
  const FirstOfLines to_values(seen[0], along), to_indices(seen[1], along), from(seen[2], along);
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
                     if (a.length <= longest_in_block || a.kept <= most_of_parts)
                       sort_in_blocks<T>(call, a);
                     else
                       sort_by_radix<T>(call, a);
                   });
                 });
}

void sort(Call& call) {
  order_lines(call, call.integer(1), call.boolean(2));
}

void topk(Call& call) {
  order_lines(call, call.integer(2), call.boolean(3));
}

}  // namespace

void register_sorting(KernelTable& table) {
  table.add<sort>("sort");
  table.add<topk>("topk");
}

}  // namespace candelabra::cuda
