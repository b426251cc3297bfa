// mode_position: where the most frequent element of each line is.
//
// The keys of a line are counted in a table with open addressing (Knuth, The Art of Computer Programming 3, 6.4): one pass, where
// sorting takes several. A long line is first divided by the hashes of its keys, so that each part's table stays in the second
// cache, and threads share the parts. A table that more distinct keys come to than it was made for, or whose keys were chosen to
// collide, is given up, and that part is sorted.
#include <algorithm>
#include <bit>
#include <limits>

#include "../allocator.hpp"
#include "../dtypes.hpp"
#include "../iterate.hpp"
#include "../kernels.hpp"
#include "../load.hpp"
#include "../parallel.hpp"
#include "sort_keys.hpp"
#include "turned_lines.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// The most frequent key of some, the least among equals; no key has been seen where the count is 0.
template <typename K>
struct Frequent {
  K key = 0;
  int64_t count = 0;

  void take(K other, int64_t times) {
    if (times > count || (times == count && other < key)) key = other, count = times;
  }
};

constexpr int most_slot_bits = 15;
constexpr int64_t whole_line = 1 << (most_slot_bits - 1);  // keys that a table is not too small for, whatever they are

// The finalizer of splitmix64 (Steele, Lea, Flood 2014), shortened.
inline uint64_t hash_of(uint64_t key) {
  key = (key ^ key >> 32) * 0x9e3779b97f4a7c15u;
  return (key ^ key >> 29) * 0xbf58476d1ce4e5b9u;
}

template <typename K>
class Table {
 public:
  explicit Table(int64_t keys)
      : bits_(std::clamp(static_cast<int>(std::bit_width(static_cast<uint64_t>(2 * keys))), 4, most_slot_bits)),
        slots_(int64_t{1} << bits_) {}

  // Counts keys and leaves them as they are, or sorts them.
  Frequent<K> most_frequent(K* keys, int64_t n) {
    Frequent<K> found;
    if (count(keys, n, found)) return found;
    std::sort(keys, keys + n);
    found = {};
    for (int64_t first = 0; first < n;) {
      int64_t last = first + 1;
      while (last < n && keys[last] == keys[first]) ++last;
      found.take(keys[first], last - first);
      first = last;
    }
    return found;
  }

 private:
  struct Slot {
    K key;
    uint32_t count;
  };

  bool count(const K* keys, int64_t n, Frequent<K>& found) {
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
      found.take(key, ++slot.count);
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

// A NaN equals nothing, itself included: it is frequent in no line but one of nothing else, whose first it is.
template <typename T>
int64_t last_place(const T* from, int64_t stride, int64_t length, const Frequent<Key<T>>& found) {
  if (found.count == 0) return 0;
  for (int64_t i = length - 1; i > 0; --i)
    if (key_of(load(from + i * stride)) == found.key) return i;
  return 0;
}

template <typename T>
int64_t numbers_of(const T* from, int64_t stride, int64_t begin, int64_t end, Key<T>* keys) {
  int64_t count = 0;
  for (int64_t i = begin; i < end; ++i) {
    const Key<T> key = key_of(load(from + i * stride));
    keys[count] = key;
    count += !is_nan_key<T>(key);
  }
  return count;
}

// Keys with equal hashes are brought together, in parts of about a table's size.
template <typename T>
int64_t place_in_long(const T* from, int64_t stride, int64_t length) {
  using K = Key<T>;
  constexpr int64_t pieces = 16;
  const int bits = std::min(12, static_cast<int>(std::bit_width(static_cast<uint64_t>(length / whole_line))) + 1);
  const int64_t parts = int64_t{1} << bits, piece = (length + pieces - 1) / pieces;
  // The last bits, as the first ones choose the place in a table.
  const auto part_of = [mask = static_cast<uint64_t>(parts) - 1](K key) { return static_cast<int64_t>(hash_of(key) & mask); };
  Scratch<K> keys(length), parted(length);
  Scratch<int64_t> numbers(pieces), places(pieces * parts);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      K* mine = keys.data() + std::min(length, p * piece);
      numbers[p] = numbers_of(from, stride, std::min(length, p * piece), std::min(length, (p + 1) * piece), mine);
      int64_t* counts = places.data() + p * parts;
      std::fill_n(counts, parts, int64_t{0});
      for (int64_t i = 0; i < numbers[p]; ++i) ++counts[part_of(mine[i])];
    }
  });
  Scratch<int64_t> ends(parts + 1);
  int64_t total = 0;
  for (int64_t part = 0; part < parts; ++part) {
    ends[part] = total;
    for (int64_t p = 0; p < pieces; ++p) total += std::exchange(places[p * parts + part], total);
  }
  ends[parts] = total;
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const K* mine = keys.data() + std::min(length, p * piece);
      int64_t* next = places.data() + p * parts;
      for (int64_t i = 0; i < numbers[p]; ++i) parted[next[part_of(mine[i])]++] = mine[i];
    }
  });
  Scratch<Frequent<K>> found(parts);
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    Table<K> table(whole_line);
    for (int64_t part = begin; part < end; ++part)
      found[part] = table.most_frequent(parted.data() + ends[part], ends[part + 1] - ends[part]);
  });
  Frequent<K> best = found[0];
  for (int64_t part = 1; part < parts; ++part)
    if (found[part].count) best.take(found[part].key, found[part].count);
  return last_place(from, stride, length, best);
}

template <typename T>
void places_of(const cb_tensor& in, const cb_tensor& out, int dim) {
  const int64_t length = in.sizes[dim], stride = in.strides[dim];
  cb_tensor heads = in;
  heads.sizes = out.sizes;
  heads.numel = out.numel;
  const auto g = geometry<2>({&out, &heads});
  const auto line = [&](const int64_t* at, int64_t i) { return data<T>(in) + at[1] + i * g.strides[1][0]; };
  const auto result = [&](const int64_t* at, int64_t i) { return mutable_data<int64_t>(out) + at[0] + i * g.strides[0][0]; };
  if (length > whole_line) {  // the threads share each line
    for_each_run(g, 0, g.numel, [&](const int64_t* at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) *result(at, i) = place_in_long(line(at, i), stride, length);
    });
    return;
  }
  parallel_for(g.numel, grain_for(8 * length), [&](int64_t begin, int64_t end) {
    Scratch<Key<T>> keys(length);
    Table<Key<T>> table(length);
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
      for_each_line(line(at, 0), stride, g.strides[1][0], n, length, [&](int64_t i, const T* from, int64_t step) {
        const int64_t count = numbers_of(from, step, 0, length, keys.data());
        *result(at, i) = last_place(from, step, length, table.most_frequent(keys.data(), count));
      });
    });
  });
}

void mode_position(Call& call) {
  const cb_tensor &in = call.tensor(0), &out = call.output();
  if (out.numel == 0) return;
  dispatch_among(in.dtype, BoolType{} + RealTypes{},
                 [&]<typename T>() { places_of<T>(in, out, static_cast<int>(call.integer(1))); });
}

}  // namespace

void register_sorting_mode(KernelTable& table) {
  table.add<mode_position>("mode_position");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
