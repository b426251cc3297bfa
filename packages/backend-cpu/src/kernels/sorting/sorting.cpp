// sort, topk.
//
// Elements are mapped to unsigned keys of the same order, each paired with its index: 32-bit keys
// and indices in one word, 64-bit keys in a struct. No two entries are equal, so that every sorting
// algorithm is stable.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

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

using SortableTypes = decltype(BoolType{} + RealTypes{});

struct LongEntry {
  uint64_t key;
  uint64_t index;
  friend bool operator<(const LongEntry& a, const LongEntry& b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  }
};
inline uint64_t index_of(uint64_t entry) {
  return entry & 0xffffffffu;
}
inline uint64_t index_of(const LongEntry& entry) {
  return entry.index;
}
inline uint64_t sort_key(uint64_t entry) {
  return entry >> 32;
}
inline uint64_t sort_key(const LongEntry& entry) {
  return entry.key;
}

// Short: whether key and index fit in one word.
template <typename T, bool Short>
struct Entries {
  using Entry = std::conditional_t<Short, uint64_t, LongEntry>;
  static Entry make(T value, uint64_t index, bool reversed) {
    auto key = key_of(value);
    if (reversed) key = key_bits<T> < 32 ? ((decltype(key){1} << (key_bits<T> & 31)) - 1) ^ key : ~key;
    if constexpr (Short)
      return static_cast<uint64_t>(key) << 32 | index;
    else
      return {key, index};
  }
};

constexpr int64_t max_short_length = int64_t{1} << 32;  // indices fit in half a word
constexpr int64_t few = 192;                            // below this, a comparison sort is faster
constexpr int64_t run_length = 131072;                  // entries of a run; they and their buffer fit L2
constexpr int64_t merge_length = 65536;                 // entries of a merge task

// LSD radix sort by bytes. A pass in which all entries share the byte is skipped. Returns the
// buffer with the sorted entries: `entries` or `other`.
template <typename Entry>
Entry* radix_sort(Entry* entries, Entry* other, int64_t n, int bits) {
  int digits = (bits + 7) / 8;
  uint32_t counts[8][256] = {};
  for (int64_t i = 0; i < n; ++i) {
    uint64_t key = sort_key(entries[i]);
    for (int d = 0; d < digits; ++d) ++counts[d][key >> (8 * d) & 255];
  }
  for (int d = 0; d < digits; ++d) {
    uint32_t* count = counts[d];
    if (count[sort_key(entries[0]) >> (8 * d) & 255] == n) continue;
    uint32_t sum = 0;
    for (int b = 0; b < 256; ++b) sum += std::exchange(count[b], sum);
    for (int64_t i = 0; i < n; ++i) {
      Entry entry = entries[i];
      other[count[sort_key(entry) >> (8 * d) & 255]++] = entry;
    }
    std::swap(entries, other);
  }
  return entries;
}

// The rank of an entry is the number of smaller entries. All pairs are compared, vectorized and
// without branches: the ranks of several entries at once, so that no vector has to be summed.
void rank_sort(uint64_t* entries, uint64_t* other, int64_t n) {
  using Lanes [[gnu::vector_size(32), gnu::may_alias]] = int64_t;  // signed, because vector compares are
  constexpr int64_t lanes = 4, at_once = 4 * lanes;
  alignas(64) int64_t keys[few + at_once], ranks[few + at_once];
  for (int64_t i = 0; i < n; ++i) keys[i] = static_cast<int64_t>(entries[i] ^ uint64_t{1} << 63);
  std::fill_n(keys + n, at_once, 0);
  for (int64_t first = 0; first < n; first += at_once) {
    const auto* from = reinterpret_cast<const Lanes*>(keys + first);
    const Lanes a = from[0], b = from[1], c = from[2], d = from[3];
    Lanes below[4] = {};
    for (int64_t j = 0; j < n; ++j) {
      const Lanes key = Lanes{} + keys[j];
      below[0] -= key < a;
      below[1] -= key < b;
      below[2] -= key < c;
      below[3] -= key < d;
    }
    std::memcpy(ranks + first, below, sizeof(below));
  }
  for (int64_t i = 0; i < n; ++i) other[ranks[i]] = entries[i];
  std::copy_n(other, n, entries);
}

// Sorts a run in place. Its entries are in the order of their indices.
template <typename Entry>
void sort_run(Entry* entries, Entry* other, int64_t n, int bits) {
  if (std::is_sorted(entries, entries + n)) return;
  if (n < few) {
    if constexpr (std::is_same_v<Entry, uint64_t>)
      rank_sort(entries, other, n);
    else
      std::sort(entries, entries + n);
    return;
  }
  Entry* sorted = radix_sort(entries, other, n, bits);
  if (sorted != entries) std::copy_n(sorted, n, entries);
}

// The number of entries that a contributes to the first `count` of the merged a and b.
template <typename Entry>
int64_t merge_path(const Entry* a, int64_t na, const Entry* b, int64_t nb, int64_t count) {
  int64_t low = std::max<int64_t>(0, count - nb), high = std::min(count, na);
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (a[middle] < b[count - 1 - middle])
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

template <typename Entry>
void merge(const Entry* a, const Entry* a_end, const Entry* b, const Entry* b_end, Entry* out) {
  while (a != a_end && b != b_end) {
    bool second = *b < *a;
    *out++ = second ? *b : *a;
    b += second;
    a += !second;
  }
  std::copy(b, b_end, std::copy(a, a_end, out));
}

// Merge sort on all threads: sorted runs are merged in pairs, each pair in pieces. Returns the
// buffer with the sorted entries.
template <typename Entry>
Entry* merge_sort(Entry* entries, Entry* other, int64_t n, int bits) {
  int64_t runs = (n + run_length - 1) / run_length;
  parallel_for(runs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      sort_run(entries + r * run_length, other + r * run_length, std::min(run_length, n - r * run_length), bits);
  });
  int64_t pieces = (n + merge_length - 1) / merge_length;
  for (int64_t length = run_length; length < n; length *= 2) {
    parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        int64_t first = piece * merge_length, last = std::min(first + merge_length, n);
        // Run_length is a multiple of merge_length
        int64_t pair = first / (2 * length) * (2 * length);
        const Entry *a = entries + pair, *b = a + std::min(length, n - pair);
        int64_t na = b - a, nb = std::min(length, n - pair - na);
        int64_t from = merge_path(a, na, b, nb, first - pair), to = merge_path(a, na, b, nb, last - pair);
        merge(a + from, a + to, b + (first - pair - from), b + (last - pair - to), other + first);
      }
    });
    std::swap(entries, other);
  }
  return entries;
}

// The slices of three tensors along one dimension.
struct Slices {
  int64_t sizes[max_dims];
  Geometry<3> outer;
  int64_t length;
  int64_t strides[3];

  Slices(const cb_tensor& in, const cb_tensor& values, const cb_tensor& indices, int64_t dim) {
    const cb_tensor* operands[3] = {&values, &indices, &in};
    length = in.ndim ? in.sizes[dim] : 1;
    cb_tensor outer_operands[3];
    std::copy_n(in.sizes, in.ndim, sizes);
    if (in.ndim) sizes[dim] = 1;
    for (int k = 0; k < 3; ++k) {
      strides[k] = in.ndim ? operands[k]->strides[dim] : 1;
      outer_operands[k] = *operands[k];
      outer_operands[k].sizes = sizes;
      outer_operands[k].numel = in.numel / std::max<int64_t>(length, 1);
    }
    outer = geometry<3>({&outer_operands[0], &outer_operands[1], &outer_operands[2]});
  }

  // Calls f(offsets, n) for each run of n neighbouring slices, side(k) apart in operand k. Short
  // slices are divided among threads, and long ones are sorted by all of them.
  int64_t side(int k) const { return outer.strides[k][0]; }
  template <typename F>
  void for_each_row(F&& f) const {
    const auto range = [&](int64_t begin, int64_t end) { for_each_run(outer, begin, end, f); };
    if (outer.numel > 1 && length <= 4 * run_length)
      parallel_for(outer.numel, grain_for(8 * length), range);
    else
      range(0, outer.numel);
  }
};

// Two buffers for the entries of a slice.
template <typename Entry>
class Buffers {
 public:
  explicit Buffers(int64_t n)
      : large_(n > inline_entries ? 2 * n : 0), each_(n > inline_entries ? n : inline_entries) {}
  Entry* entries() { return each_ > inline_entries ? large_.data() : small_; }
  Entry* other() { return entries() + each_; }

 private:
  static constexpr int64_t inline_entries = 256;
  alignas(64) Entry small_[2 * inline_entries];
  Scratch<Entry> large_;
  int64_t each_;
};

// Counting sort of one-byte elements. Each piece of a slice is counted and written by one thread.
constexpr int64_t min_counting_length = 512;
constexpr int64_t piece_length = 65536;

template <typename T>
void sort_bytes(const T* from, int64_t from_step, T* values, int64_t values_step, int64_t* indices,
                int64_t indices_step, int64_t n, bool descending) {
  const int flipped = (std::is_signed_v<T> ? 128 : 0) ^ (descending ? 255 : 0);
  const auto key_at = [=](int64_t i) {
    return static_cast<int>(static_cast<uint8_t>(load(from + i * from_step))) ^ flipped;
  };
  const int64_t pieces = (n + piece_length - 1) / piece_length;
  Scratch<int64_t> offsets(256 * pieces);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      // Four tables, because increments of one counter by neighbours would depend on each other.
      uint32_t counts[4][256] = {};
      int64_t i = p * piece_length;
      const int64_t last = std::min(i + piece_length, n);
      for (; i + 4 <= last; i += 4)
        for (int k = 0; k < 4; ++k) ++counts[k][key_at(i + k)];
      for (; i < last; ++i) ++counts[0][key_at(i)];
      for (int key = 0; key < 256; ++key)
        offsets[256 * p + key] = int64_t{counts[0][key]} + counts[1][key] + counts[2][key] + counts[3][key];
    }
  });
  int64_t sum = 0;
  for (int key = 0; key < 256; ++key)
    for (int64_t p = 0; p < pieces; ++p) sum += std::exchange(offsets[256 * p + key], sum);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t next[256];
      std::copy_n(offsets.data() + 256 * p, 256, next);
      const int64_t last = std::min((p + 1) * piece_length, n);
      for (int64_t i = p * piece_length; i < last; ++i) indices[next[key_at(i)]++ * indices_step] = i;
      for (int key = 0; key < 256; ++key) {
        const int64_t first = offsets[256 * p + key];
        const T value = static_cast<T>(key ^ flipped);
        if (values_step == 1)
          std::fill(values + first, values + next[key], value);
        else
          for (int64_t i = first; i < next[key]; ++i) values[i * values_step] = value;
      }
    }
  });
}

// Integers of 64 bits whose range has at most 32, which most have: entries of one word, and no more
// passes than the range has bytes. Returns false, having done nothing, for others.
bool sort_narrow_range(const int64_t* from, int64_t from_step, int64_t* values, int64_t values_step, int64_t* indices,
                       int64_t indices_step, int64_t n, bool descending, Buffers<LongEntry>& buffers) {
  int64_t low = from[0], high = from[0];
  for (int64_t i = 1; i < n; ++i) {
    low = std::min(low, from[i * from_step]);
    high = std::max(high, from[i * from_step]);
  }
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  if (range >> 32 || n > max_short_length) return false;
  auto *entries = reinterpret_cast<uint64_t*>(buffers.entries()), *other = reinterpret_cast<uint64_t*>(buffers.other());
  parallel_for(n, light_grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto value = static_cast<uint64_t>(from[i * from_step]);
      const uint64_t key = descending ? static_cast<uint64_t>(high) - value : value - static_cast<uint64_t>(low);
      entries[i] = key << 32 | static_cast<uint64_t>(i);
    }
  });
  const int bits = static_cast<int>(std::bit_width(range));
  if (n > run_length)
    entries = merge_sort(entries, other, n, bits);
  else
    sort_run(entries, other, n, bits);
  parallel_for(n, light_grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t key = sort_key(entries[i]), up = static_cast<uint64_t>(low) + key;
      values[i * values_step] = static_cast<int64_t>(descending ? static_cast<uint64_t>(high) - key : up);
      indices[i * indices_step] = static_cast<int64_t>(index_of(entries[i]));
    }
  });
  return true;
}

template <typename T, bool Short>
void sort_slice(const T* from, int64_t from_step, T* values, int64_t values_step, int64_t* indices,
                int64_t indices_step, int64_t n, bool descending, Buffers<typename Entries<T, Short>::Entry>& buffers) {
  if constexpr (sizeof(T) == 1)
    if (n >= min_counting_length)
      return sort_bytes(from, from_step, values, values_step, indices, indices_step, n, descending);
  if constexpr (std::is_same_v<T, int64_t> && !Short)
    if (n > 1 && sort_narrow_range(from, from_step, values, values_step, indices, indices_step, n, descending, buffers))
      return;
  using E = Entries<T, Short>;
  typename E::Entry *entries = buffers.entries(), *other = buffers.other();
  parallel_for(n, light_grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      entries[i] = E::make(load(from + i * from_step), static_cast<uint64_t>(i), descending);
  });
  if (n > run_length)
    entries = merge_sort(entries, other, n, key_bits<T>);
  else
    sort_run(entries, other, n, key_bits<T>);
  parallel_for(n, light_grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t source = static_cast<int64_t>(index_of(entries[i]));
      values[i * values_step] = load(from + source * from_step);
      indices[i * indices_step] = source;
    }
  });
}

template <typename T, bool Short>
void sort_slices(const cb_tensor& in, cb_tensor& values, cb_tensor& indices, const Slices& slices, bool descending) {
  const int64_t n = slices.length;
  const auto [values_step, indices_step, in_step] = std::to_array(slices.strides);
  slices.for_each_row([&](const int64_t* at, int64_t count) {
    T* to_values = mutable_data<T>(values) + at[0];
    int64_t* to_indices = mutable_data<int64_t>(indices) + at[1];
    Buffers<typename Entries<T, Short>::Entry> buffers(n);
    const bool transposes = TransposedSlices<T>::pays_off(values_step, slices.side(0), count, n) &&
                            TransposedSlices<int64_t>::pays_off(indices_step, slices.side(1), count, n);
    constexpr int64_t width = TransposedSlices<T>::width;
    TransposedSlices<T> slice_values(transposes ? n : 0);
    TransposedSlices<int64_t> slice_indices(transposes ? n : 0);
    for_each_slice(data<T>(in) + at[2], in_step, slices.side(2), count, n, [&](int64_t i, const T* from, int64_t step) {
      if (!transposes)
        return sort_slice<T, Short>(from, step, to_values + i * slices.side(0), values_step,
                                    to_indices + i * slices.side(1), indices_step, n, descending, buffers);
      const int64_t here = i % width, first = i - here;
      sort_slice<T, Short>(from, step, slice_values.slice(here), 1, slice_indices.slice(here), 1, n, descending,
                           buffers);
      if (here + 1 < width && i + 1 < count) return;
      slice_values.write(to_values + first, values_step, here + 1);
      slice_indices.write(to_indices + first, indices_step, here + 1);
    });
  });
}

// Whether the keys of T, and the indices of a slice up to max_short_length, fit in half a word.
template <typename T>
constexpr bool short_keys = sizeof(Key<T>) == 4;

void sort(Call& call) {
  const arguments::Sort args(call);
  const cb_tensor& in = *args.self;
  cb_tensor &values = call.output(0), &indices = call.output(1);
  bool descending = args.descending;
  dispatch<SortableTypes>(in.dtype, [&]<typename T>() {
    if (values.numel == 0) return;
    Slices slices(in, values, indices, args.dim);
    if constexpr (short_keys<T>)
      if (slices.length <= max_short_length) return sort_slices<T, true>(in, values, indices, slices, descending);
    sort_slices<T, false>(in, values, indices, slices, descending);
  });
}

// ---- topk

// Selects the k smallest of the entries added. The buffer is pruned to k entries whenever it is
// full.
template <typename Entry>
class Smallest {
 public:
  Smallest(Entry* buffer, int64_t capacity, int64_t k) : buffer_(buffer), capacity_(capacity), k_(k) {}
  static int64_t capacity_for(int64_t k, int64_t n) { return std::min(n, 2 * k + 64); }

  // An entry whose key is limit() or larger can no longer be among the smallest.
  bool limited() const { return limited_; }
  uint64_t limit() const { return limit_; }
  bool add(const Entry& entry) {  // returns whether the limit has changed
    buffer_[count_++] = entry;
    if (count_ < capacity_) return false;
    return prune();
  }
  int64_t finish() {
    if (count_ > k_) prune();
    return count_;
  }

 private:
  bool prune() {
    if (count_ <= k_) return false;  // k is the whole length
    std::nth_element(buffer_, buffer_ + (k_ - 1), buffer_ + count_);
    limit_ = sort_key(buffer_[k_ - 1]);
    limited_ = true;
    count_ = k_;
    return true;
  }

  Entry* buffer_;
  int64_t capacity_, k_, count_ = 0;
  uint64_t limit_ = 0;
  bool limited_ = false;
};

// The same for a small k: the buffer is kept sorted.
template <typename Entry>
class SmallestFew {
 public:
  static constexpr int64_t most = 16;

  SmallestFew(Entry* buffer, int64_t, int64_t k) : buffer_(buffer), k_(k) {}
  bool limited() const { return count_ == k_; }
  uint64_t limit() const { return sort_key(buffer_[k_ - 1]); }
  void add(const Entry& entry) {
    int64_t i = count_ < k_ ? count_++ : k_ - 1;
    for (; i > 0 && entry < buffer_[i - 1]; --i) buffer_[i] = buffer_[i - 1];
    buffer_[i] = entry;
  }
  int64_t finish() const { return count_; }

 private:
  Entry* buffer_;
  int64_t k_, count_ = 0;
};

// An upper bound of the k smallest keys: the k-th of a sample. Without it, every element of a slice
// in reverse order would be smaller than all before it.
template <typename T>
Key<T> sampled_limit(const T* from, int64_t stride, int64_t begin, int64_t end, int64_t k, Key<T> mask) {
  constexpr int64_t samples = 32;
  Key<T> keys[samples];
  const int64_t step = (end - begin) / samples;
  for (int64_t i = 0; i < samples; ++i) keys[i] = key_of(load(from + (end - 1 - i * step) * stride)) ^ mask;
  std::nth_element(keys, keys + (k - 1), keys + samples);
  return keys[k - 1];
}

// Writes the k smallest of entries [begin, end) of a slice to the buffer, in no particular order.
// Returns their number.
template <typename Selection, typename T, bool Short>
int64_t select_by(const T* from, int64_t stride, int64_t begin, int64_t end, int64_t k, bool largest,
                  typename Entries<T, Short>::Entry* buffer, int64_t capacity) {
  using E = Entries<T, Short>;
  constexpr int64_t block = 64, sampled_length = 256;
  constexpr Key<T> highest = key_bits<T> < 32 ? static_cast<Key<T>>((Key<T>{1} << (key_bits<T> & 31)) - 1) : ~Key<T>{0};
  const Key<T> mask = largest ? highest : Key<T>{0};
  Selection smallest(buffer, capacity, k);
  Key<T> ceiling = highest;  // larger keys are skipped
  if (k > 0 && k <= SmallestFew<typename E::Entry>::most && end - begin >= sampled_length)
    ceiling = sampled_limit(from, stride, begin, end, k, mask);
  Key<T> keys[block];
  for (int64_t i = begin; i < end; i += block) {
    const int64_t n = std::min(block, end - i);
    int hits = 0;
    if (stride == 1) {
      const T* here = from + i;
#pragma omp simd reduction(| : hits)
      for (int64_t j = 0; j < n; ++j) {
        Key<T> key = key_of(load(here + j)) ^ mask;
        keys[j] = key;
        hits |= key <= ceiling;
      }
    } else {
      for (int64_t j = 0; j < n; ++j) {
        keys[j] = key_of(load(from + (i + j) * stride)) ^ mask;
        hits |= keys[j] <= ceiling;
      }
    }
    if (!hits) continue;
    for (int64_t j = 0; j < n; ++j) {
      if (keys[j] > ceiling) continue;
      smallest.add(E::make(load(from + (i + j) * stride), static_cast<uint64_t>(i + j), largest));
      if (!smallest.limited()) continue;
      if (smallest.limit() == 0) return smallest.finish();
      ceiling = std::min(ceiling, static_cast<Key<T>>(smallest.limit() - 1));
    }
  }
  return smallest.finish();
}

template <typename T, bool Short>
int64_t select(const T* from, int64_t stride, int64_t begin, int64_t end, int64_t k, bool largest,
               typename Entries<T, Short>::Entry* buffer, int64_t capacity) {
  using Entry = typename Entries<T, Short>::Entry;
  if (k > 0 && k <= SmallestFew<Entry>::most)
    return select_by<SmallestFew<Entry>, T, Short>(from, stride, begin, end, k, largest, buffer, capacity);
  return select_by<Smallest<Entry>, T, Short>(from, stride, begin, end, k, largest, buffer, capacity);
}

template <typename T, bool Short>
void topk_slices(const cb_tensor& in, cb_tensor& values, cb_tensor& indices, const Slices& slices, int64_t k,
                 bool largest) {
  using Entry = typename Entries<T, Short>::Entry;
  int64_t n = slices.length;
  const auto slice_topk = [&](const T* from, int64_t step, T* to_values, int64_t* to_indices) {
    // A long slice is divided into chunks. The k best of each chunk are candidates.
    int64_t chunks = n >= 2 * run_length && k <= run_length / 8 ? (n + run_length - 1) / run_length : 1;
    int64_t length = chunks == 1 ? n : run_length;
    int64_t capacity = Smallest<Entry>::capacity_for(k, length);
    alignas(64) Entry small[2 * SmallestFew<Entry>::most + 64];
    const bool fits = chunks * capacity <= static_cast<int64_t>(std::size(small));
    Scratch<Entry> large(fits ? 0 : chunks * capacity);
    Entry* buffer = fits ? small : large.data();
    int64_t found = 0;
    if (chunks == 1) {
      found = select<T, Short>(from, step, 0, n, k, largest, buffer, capacity);
    } else {
      Scratch<int64_t> counts(chunks);
      parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c)
          counts[c] = select<T, Short>(from, step, c * length, std::min((c + 1) * length, n), k, largest,
                                       buffer + c * capacity, capacity);
      });
      for (int64_t c = 0; c < chunks; ++c) {
        std::copy_n(buffer + c * capacity, counts[c], buffer + found);
        found += counts[c];
      }
      std::nth_element(buffer, buffer + (k - 1), buffer + found);
    }
    // A radix sort would keep the selection's order of equal keys.
    if (chunks > 1 || k > SmallestFew<Entry>::most) std::sort(buffer, buffer + k);
    for (int64_t i = 0; i < k; ++i) {
      int64_t source = static_cast<int64_t>(index_of(buffer[i]));
      to_values[i * slices.strides[0]] = load(from + source * step);
      to_indices[i * slices.strides[1]] = source;
    }
  };
  slices.for_each_row([&](const int64_t* at, int64_t count) {
    for_each_slice(data<T>(in) + at[2], slices.strides[2], slices.side(2), count, n,
                   [&](int64_t i, const T* from, int64_t step) {
                     slice_topk(from, step, mutable_data<T>(values) + at[0] + i * slices.side(0),
                                mutable_data<int64_t>(indices) + at[1] + i * slices.side(1));
                   });
  });
}

void topk(Call& call) {
  const arguments::Topk args(call);
  const cb_tensor& in = *args.self;
  cb_tensor &values = call.output(0), &indices = call.output(1);
  int64_t k = args.k, dim = args.dim;
  bool largest = args.largest;
  dispatch<SortableTypes>(in.dtype, [&]<typename T>() {
    if (values.numel == 0) return;
    Slices slices(in, values, indices, dim);
    if constexpr (short_keys<T>)
      if (slices.length <= max_short_length) return topk_slices<T, true>(in, values, indices, slices, k, largest);
    topk_slices<T, false>(in, values, indices, slices, k, largest);
  });
}

}  // namespace

void register_sorting(KernelTable& table) {
  table.add<sort>("sort");
  table.add<topk>("topk");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
