// _mode_index: the index of the most frequent element of each slice.
//
// The keys of a slice are counted in a hash table with open addressing (Knuth, The Art of Computer
// Programming 3, 6.4): one pass, where sorting takes several. A long slice is first partitioned by
// hash, so that each partition's table stays in the L2 cache; threads share the partitions. If a
// table gets too many distinct keys, or too many collisions, its partition is sorted instead.
#include <algorithm>
#include <bit>
#include <limits>

#include "candelabra/arguments/sorting.hpp"
#include "drivers/iterate.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/movement/transposed_slices.hpp"
#include "kernels/sorting/sort_keys.hpp"
#include "memory/allocator.hpp"
#include "simd/load.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// The most frequent key so far, the smallest among equals. A count of 0 means no key.
template <typename K>
struct Mode {
  K key = 0;
  int64_t count = 0;

  void add(K other, int64_t times) {
    if (times > count || (times == count && other < key)) key = other, count = times;
  }
};

constexpr int max_slot_bits = 15;
constexpr int64_t max_whole_length = 1 << (max_slot_bits - 1);  // keys that always fit a table

// The finalizer of splitmix64 (Steele, Lea, Flood 2014), shortened.
inline uint64_t hash_of(uint64_t key) {
  key = (key ^ key >> 32) * 0x9e3779b97f4a7c15u;
  return (key ^ key >> 29) * 0xbf58476d1ce4e5b9u;
}

template <typename K>
class Table {
 public:
  explicit Table(int64_t keys)
      : bits_(std::clamp(static_cast<int>(std::bit_width(static_cast<uint64_t>(2 * keys))), 4, max_slot_bits)),
        slots_(int64_t{1} << bits_) {}

  // May sort the keys.
  Mode<K> most_frequent(K* keys, int64_t n) {
    Mode<K> found;
    if (count(keys, n, found)) return found;
    std::sort(keys, keys + n);
    found = {};
    for (int64_t first = 0; first < n;) {
      int64_t last = first + 1;
      while (last < n && keys[last] == keys[first]) ++last;
      found.add(keys[first], last - first);
      first = last;
    }
    return found;
  }

 private:
  struct Slot {
    K key;
    uint32_t count;
  };

  bool count(const K* keys, int64_t n, Mode<K>& found) {
    if (n > std::numeric_limits<uint32_t>::max()) return false;
    const int64_t size = int64_t{1} << bits_;
    const uint64_t mask = static_cast<uint64_t>(size) - 1;
    int64_t free = size / 2 + 1, steps = 4 * n + 64;
    std::fill_n(slots_.data(), size, Slot{});
    for (int64_t i = 0; i < n; ++i) {
      const K key = keys[i];
      uint64_t at = hash_of(key) >> (64 - bits_);
      while (slots_[at].count != 0 && slots_[at].key != key) {
        at = (at + 1) & mask;
        if (--steps < 0) return false;
      }
      Slot& slot = slots_[at];
      if (slot.count == 0 && --free < 0) return false;
      slot.key = key;
      found.add(key, ++slot.count);
    }
    return true;
  }

  int bits_;
  Scratch<Slot> slots_;
};

template <typename T>
constexpr bool has_nan = is_half_v<T> || std::is_floating_point_v<T>;
template <typename T>
bool is_nan_key(Key<T> key) {
  return has_nan<T> && key == static_cast<Key<T>>(is_half_v<T> ? Key<T>{0xffff} : ~Key<T>{0});
}

// The last index of the mode. NaN equals nothing, so it is not counted; a slice of nothing else has
// its mode at index 0.
template <typename T>
int64_t last_index(const T* from, int64_t stride, int64_t length, const Mode<Key<T>>& found) {
  if (found.count == 0) return 0;
  for (int64_t i = length - 1; i > 0; --i)
    if (key_of(load(from + i * stride)) == found.key) return i;
  return 0;
}

// Writes the keys that are not NaN; returns their number.
template <typename T>
int64_t load_keys(const T* from, int64_t stride, int64_t begin, int64_t end, Key<T>* keys) {
  int64_t count = 0;
  for (int64_t i = begin; i < end; ++i) {
    const Key<T> key = key_of(load(from + i * stride));
    keys[count] = key;
    count += !is_nan_key<T>(key);
  }
  return count;
}

// Partitions the keys by hash, into partitions of about a table's size.
template <typename T>
int64_t mode_of_long_slice(const T* from, int64_t stride, int64_t length) {
  using K = Key<T>;
  constexpr int64_t pieces = 16;
  const int bits = std::min(12, static_cast<int>(std::bit_width(static_cast<uint64_t>(length / max_whole_length))) + 1);
  const int64_t partitions = int64_t{1} << bits, piece = (length + pieces - 1) / pieces;
  // The low bits of the hash, because the high bits select the slot in a table.
  const auto partition_of = [mask = static_cast<uint64_t>(partitions) - 1](K key) {
    return static_cast<int64_t>(hash_of(key) & mask);
  };
  Scratch<K> keys(length), partitioned(length);
  Scratch<int64_t> counts_of_pieces(pieces), offsets(pieces * partitions);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      K* mine = keys.data() + std::min(length, p * piece);
      counts_of_pieces[p] =
          load_keys(from, stride, std::min(length, p * piece), std::min(length, (p + 1) * piece), mine);
      int64_t* counts = offsets.data() + p * partitions;
      std::fill_n(counts, partitions, int64_t{0});
      for (int64_t i = 0; i < counts_of_pieces[p]; ++i) ++counts[partition_of(mine[i])];
    }
  });
  Scratch<int64_t> ends(partitions + 1);
  int64_t total = 0;
  for (int64_t part = 0; part < partitions; ++part) {
    ends[part] = total;
    for (int64_t p = 0; p < pieces; ++p) total += std::exchange(offsets[p * partitions + part], total);
  }
  ends[partitions] = total;
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const K* mine = keys.data() + std::min(length, p * piece);
      int64_t* next = offsets.data() + p * partitions;
      for (int64_t i = 0; i < counts_of_pieces[p]; ++i) partitioned[next[partition_of(mine[i])]++] = mine[i];
    }
  });
  Scratch<Mode<K>> found(partitions);
  parallel_for(partitions, 1, [&](int64_t begin, int64_t end) {
    Table<K> table(max_whole_length);
    for (int64_t part = begin; part < end; ++part)
      found[part] = table.most_frequent(partitioned.data() + ends[part], ends[part + 1] - ends[part]);
  });
  Mode<K> best = found[0];
  for (int64_t part = 1; part < partitions; ++part)
    if (found[part].count) best.add(found[part].key, found[part].count);
  return last_index(from, stride, length, best);
}

template <typename T>
void modes(const cb_tensor& in, const cb_tensor& out, int dim) {
  const int64_t length = in.sizes[dim], stride = in.strides[dim];
  cb_tensor outer = in;
  outer.sizes = out.sizes;
  outer.numel = out.numel;
  const auto g = geometry<2>({&out, &outer});
  const auto slice = [&](const int64_t* at, int64_t i) { return data<T>(in) + at[1] + i * g.strides[1][0]; };
  const auto result = [&](const int64_t* at, int64_t i) {
    return mutable_data<int64_t>(out) + at[0] + i * g.strides[0][0];
  };
  if (length > max_whole_length) {  // the threads share each slice
    for_each_run(g, 0, g.numel, [&](const int64_t* at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) *result(at, i) = mode_of_long_slice(slice(at, i), stride, length);
    });
    return;
  }
  parallel_for(g.numel, grain_for(8 * length), [&](int64_t begin, int64_t end) {
    Scratch<Key<T>> keys(length);
    Table<Key<T>> table(length);
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
      for_each_slice(slice(at, 0), stride, g.strides[1][0], n, length, [&](int64_t i, const T* from, int64_t step) {
        const int64_t count = load_keys(from, step, 0, length, keys.data());
        *result(at, i) = last_index(from, step, length, table.most_frequent(keys.data(), count));
      });
    });
  });
}

void mode_index(Call& call) {
  const arguments::ModeIndex args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  if (out.numel == 0) return;
  dispatch_among(in.dtype, BoolType{} + RealTypes{},
                 [&]<typename T>() { modes<T>(in, out, static_cast<int>(args.dim)); });
}

}  // namespace

void register_sorting_mode(KernelTable& table) {
  table.add<mode_index>("_mode_index");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
