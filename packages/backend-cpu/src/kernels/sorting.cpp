// sort, topk.
//
// Elements become unsigned keys of the same order, each with its position: 32-bit keys and positions in one word, 64-bit keys in
// a pair. No two entries are equal, so that every way of sorting them is stable.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

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

using SortableTypes = decltype(BoolType{} + RealTypes{});

struct LongEntry {
  uint64_t key;
  uint64_t at;
  friend bool operator<(const LongEntry& a, const LongEntry& b) { return a.key < b.key || (a.key == b.key && a.at < b.at); }
};
inline uint64_t position(uint64_t entry) {
  return entry & 0xffffffffu;
}
inline uint64_t position(const LongEntry& entry) {
  return entry.at;
}
inline uint64_t sort_key(uint64_t entry) {
  return entry >> 32;
}
inline uint64_t sort_key(const LongEntry& entry) {
  return entry.key;
}

// Short: whether key and position fit in one word.
template <typename T, bool Short>
struct Entries {
  using Entry = std::conditional_t<Short, uint64_t, LongEntry>;
  static Entry make(T value, uint64_t at, bool reversed) {
    auto key = key_of(value);
    if (reversed) key = key_bits<T> < 32 ? ((decltype(key){1} << (key_bits<T> & 31)) - 1) ^ key : ~key;
    if constexpr (Short)
      return static_cast<uint64_t>(key) << 32 | at;
    else
      return {key, at};
  }
};

constexpr int64_t few = 192;             // below this, comparing is faster than counting
constexpr int64_t run_length = 131072;   // entries sorted at once: they and their buffer stay in the second cache level
constexpr int64_t merge_length = 65536;  // entries of one task of merging

// Least significant digit first, a byte at a time; passes in which all entries share the byte are left out. Returns where the
// sorted entries are: in `entries` or in `other`.
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

// Each entry goes to the place that as many entries are less than: a comparison of every pair, several at once and without a branch
// that cannot be predicted.
void rank_sort(uint64_t* entries, uint64_t* other, int64_t n) {
  constexpr int64_t together = 8;
  alignas(64) int64_t keys[few + together];  // with a sign, as vectors compare them
  for (int64_t i = 0; i < n; ++i) keys[i] = static_cast<int64_t>(entries[i] ^ uint64_t{1} << 63);
  const int64_t whole = (n + together - 1) / together * together;
  std::fill(keys + n, keys + whole, std::numeric_limits<int64_t>::max());
  for (int64_t i = 0; i < n; ++i) {
    const int64_t key = keys[i];
    int64_t rank = 0;
#pragma omp simd reduction(+ : rank)
    for (int64_t j = 0; j < whole; ++j) rank += keys[j] < key;
    other[rank] = entries[i];
  }
  std::copy_n(other, n, entries);
}

// Sorts a run, whose entries are in the order of their positions, in place.
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

// How many of the first `count` entries of the merged a and b come from a.
template <typename Entry>
int64_t split(const Entry* a, int64_t na, const Entry* b, int64_t nb, int64_t count) {
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

// Sorts many entries on all threads: runs first, then pairs of them are merged, each pair in pieces. Returns where they are.
template <typename Entry>
Entry* sort_many(Entry* entries, Entry* other, int64_t n, int bits) {
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
        int64_t pair = first / (2 * length) * (2 * length);  // run lengths are multiples of a piece's
        const Entry *a = entries + pair, *b = a + std::min(length, n - pair);
        int64_t na = b - a, nb = std::min(length, n - pair - na);
        int64_t from = split(a, na, b, nb, first - pair), to = split(a, na, b, nb, last - pair);
        merge(a + from, a + to, b + (first - pair - from), b + (last - pair - to), other + first);
      }
    });
    std::swap(entries, other);
  }
  return entries;
}

// The lines of three descriptors along one dimension.
struct Lines {
  int64_t sizes[max_dims];
  Geometry<3> kept;
  int64_t length;
  int64_t strides[3];

  Lines(const cb_tensor& in, const cb_tensor& values, const cb_tensor& indices, int64_t dim) {
    const cb_tensor* operands[3] = {&values, &indices, &in};
    length = in.ndim ? in.sizes[dim] : 1;
    cb_tensor seen[3];
    std::copy_n(in.sizes, in.ndim, sizes);
    if (in.ndim) sizes[dim] = 1;
    for (int k = 0; k < 3; ++k) {
      strides[k] = in.ndim ? operands[k]->strides[dim] : 1;
      seen[k] = *operands[k];
      seen[k].sizes = sizes;
      seen[k].numel = in.numel / std::max<int64_t>(length, 1);
    }
    kept = geometry<3>({&seen[0], &seen[1], &seen[2]});
  }

  // f(offsets, n) for each n lines in a row, on all threads when lines are short; the next line is side(k) further.
  int64_t side(int k) const { return kept.strides[k][0]; }
  template <typename F>
  void for_each_row(F&& f) const {
    const auto some = [&](int64_t begin, int64_t end) { for_each_run(kept, begin, end, f); };
    if (kept.numel > 1 && length <= 4 * run_length)
      parallel_for(kept.numel, grain_for(8 * length), some);
    else
      some(0, kept.numel);
  }
};

// Room for the entries of a line, twice.
template <typename Entry>
class Room {
 public:
  explicit Room(int64_t n) : large_(n > inline_entries ? 2 * n : 0), each_(n > inline_entries ? n : inline_entries) {}
  Entry* entries() { return each_ > inline_entries ? large_.data() : small_; }
  Entry* other() { return entries() + each_; }

 private:
  static constexpr int64_t inline_entries = 256;
  alignas(64) Entry small_[2 * inline_entries];
  Scratch<Entry> large_;
  int64_t each_;
};

// Elements of one byte, by counting: where those of each value go follows from how many there are in the pieces before.
constexpr int64_t fewest_bytes = 512;
constexpr int64_t counted_together = 65536;

template <typename T>
void sort_bytes(const T* from, int64_t from_step, T* values, int64_t values_step, int64_t* indices, int64_t indices_step, int64_t n,
                bool descending) {
  const int flipped = (std::is_signed_v<T> ? 128 : 0) ^ (descending ? 255 : 0);
  const auto key_at = [=](int64_t i) { return static_cast<int>(static_cast<uint8_t>(load(from + i * from_step))) ^ flipped; };
  const int64_t pieces = (n + counted_together - 1) / counted_together;
  Scratch<int64_t> places(256 * pieces);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      // Neighbours count in tables of their own: equal ones would wait for each other.
      uint32_t counts[4][256] = {};
      int64_t i = p * counted_together;
      const int64_t last = std::min(i + counted_together, n);
      for (; i + 4 <= last; i += 4)
        for (int k = 0; k < 4; ++k) ++counts[k][key_at(i + k)];
      for (; i < last; ++i) ++counts[0][key_at(i)];
      for (int key = 0; key < 256; ++key)
        places[256 * p + key] = int64_t{counts[0][key]} + counts[1][key] + counts[2][key] + counts[3][key];
    }
  });
  int64_t sum = 0;
  for (int key = 0; key < 256; ++key)
    for (int64_t p = 0; p < pieces; ++p) sum += std::exchange(places[256 * p + key], sum);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t next[256];
      std::copy_n(places.data() + 256 * p, 256, next);
      const int64_t last = std::min((p + 1) * counted_together, n);
      for (int64_t i = p * counted_together; i < last; ++i) indices[next[key_at(i)]++ * indices_step] = i;
      for (int key = 0; key < 256; ++key) {
        const int64_t first = places[256 * p + key];
        const T value = static_cast<T>(key ^ flipped);
        if (values_step == 1)
          std::fill(values + first, values + next[key], value);
        else
          for (int64_t i = first; i < next[key]; ++i) values[i * values_step] = value;
      }
    }
  });
}

template <typename T, bool Short>
void sort_line(const T* from, int64_t from_step, T* values, int64_t values_step, int64_t* indices, int64_t indices_step, int64_t n,
               bool descending, Room<typename Entries<T, Short>::Entry>& room) {
  if constexpr (sizeof(T) == 1)
    if (n >= fewest_bytes) return sort_bytes(from, from_step, values, values_step, indices, indices_step, n, descending);
  using E = Entries<T, Short>;
  typename E::Entry *entries = room.entries(), *other = room.other();
  parallel_for(n, light_grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) entries[i] = E::make(load(from + i * from_step), static_cast<uint64_t>(i), descending);
  });
  if (n > run_length)
    entries = sort_many(entries, other, n, key_bits<T>);
  else
    sort_run(entries, other, n, key_bits<T>);
  parallel_for(n, light_grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t source = static_cast<int64_t>(position(entries[i]));
      values[i * values_step] = load(from + source * from_step);
      indices[i * indices_step] = source;
    }
  });
}

template <typename T, bool Short>
void sort_lines(const cb_tensor& in, cb_tensor& values, cb_tensor& indices, const Lines& lines, bool descending) {
  const int64_t n = lines.length;
  const auto [values_step, indices_step, in_step] = std::to_array(lines.strides);
  lines.for_each_row([&](const int64_t* at, int64_t count) {
    T* to_values = mutable_data<T>(values) + at[0];
    int64_t* to_indices = mutable_data<int64_t>(indices) + at[1];
    Room<typename Entries<T, Short>::Entry> room(n);
    const bool turns = TurnedLines<T>::pays(values_step, lines.side(0), count, n) &&
                       TurnedLines<int64_t>::pays(indices_step, lines.side(1), count, n);
    constexpr int64_t width = TurnedLines<T>::width;
    TurnedLines<T> some_values(turns ? n : 0);
    TurnedLines<int64_t> some_indices(turns ? n : 0);
    for_each_line(data<T>(in) + at[2], in_step, lines.side(2), count, n, [&](int64_t i, const T* from, int64_t step) {
      if (!turns)
        return sort_line<T, Short>(from, step, to_values + i * lines.side(0), values_step, to_indices + i * lines.side(1),
                                   indices_step, n, descending, room);
      const int64_t here = i % width, first = i - here;
      sort_line<T, Short>(from, step, some_values.line(here), 1, some_indices.line(here), 1, n, descending, room);
      if (here + 1 < width && i + 1 < count) return;
      some_values.write(to_values + first, values_step, here + 1);
      some_indices.write(to_indices + first, indices_step, here + 1);
    });
  });
}

// Whether a line's keys and positions fit in one word each.
template <typename T>
constexpr bool short_keys = sizeof(Key<T>) == 4;
constexpr int64_t short_positions = int64_t{1} << 32;

void sort(Call& call) {
  const cb_tensor& in = call.tensor(0);
  cb_tensor &values = call.output(0), &indices = call.output(1);
  bool descending = call.boolean(2);
  dispatch<SortableTypes>(in.dtype, [&]<typename T>() {
    if (values.numel == 0) return;
    Lines lines(in, values, indices, call.integer(1));
    if constexpr (short_keys<T>)
      if (lines.length <= short_positions) return sort_lines<T, true>(in, values, indices, lines, descending);
    sort_lines<T, false>(in, values, indices, lines, descending);
  });
}

// ---- topk

// The k smallest entries of those offered, in a buffer that is cut back to k when it is full.
template <typename Entry>
class Smallest {
 public:
  Smallest(Entry* buffer, int64_t capacity, int64_t k) : buffer_(buffer), capacity_(capacity), k_(k) {}
  static int64_t capacity_for(int64_t k, int64_t n) { return std::min(n, 2 * k + 64); }

  // No entry of this key or a larger one can be among the smallest any more.
  bool limited() const { return limited_; }
  uint64_t limit() const { return limit_; }
  bool add(const Entry& entry) {  // true when the limit has changed
    buffer_[count_++] = entry;
    if (count_ < capacity_) return false;
    return cut();
  }
  int64_t finish() {
    if (count_ > k_) cut();
    return count_;
  }

 private:
  bool cut() {
    if (count_ <= k_) return false;  // everything was asked for
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

// The same for a few, which are kept in order all along.
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

// A key that none of the k smallest of elements [begin, end) is above: the k-th of a few that are spread over them. Where elements
// are sorted the wrong way, each would else be smaller than all before it.
template <typename T>
Key<T> limit_of_some(const T* from, int64_t stride, int64_t begin, int64_t end, int64_t k, Key<T> mask) {
  constexpr int64_t some = 32;
  Key<T> keys[some];
  const int64_t step = (end - begin) / some;
  for (int64_t i = 0; i < some; ++i) keys[i] = key_of(load(from + (end - 1 - i * step) * stride)) ^ mask;
  std::nth_element(keys, keys + (k - 1), keys + some);
  return keys[k - 1];
}

// Writes the k smallest of entries [begin, end) of a line to the buffer, in no order; returns how many there are.
template <typename Selection, typename T, bool Short>
int64_t select_by(const T* from, int64_t stride, int64_t begin, int64_t end, int64_t k, bool largest,
                  typename Entries<T, Short>::Entry* buffer, int64_t capacity) {
  using E = Entries<T, Short>;
  constexpr int64_t block = 64, sampled_length = 256;
  constexpr Key<T> highest = key_bits<T> < 32 ? static_cast<Key<T>>((Key<T>{1} << (key_bits<T> & 31)) - 1) : ~Key<T>{0};
  const Key<T> mask = largest ? highest : Key<T>{0};
  Selection smallest(buffer, capacity, k);
  Key<T> ceiling = highest;  // no key above it is taken any more
  if (k > 0 && k <= SmallestFew<typename E::Entry>::most && end - begin >= sampled_length)
    ceiling = limit_of_some(from, stride, begin, end, k, mask);
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
void topk_lines(const cb_tensor& in, cb_tensor& values, cb_tensor& indices, const Lines& lines, int64_t k, bool largest) {
  using Entry = typename Entries<T, Short>::Entry;
  int64_t n = lines.length;
  const auto line = [&](const T* from, int64_t step, T* to_values, int64_t* to_indices) {
    // A long line in chunks of which each gives its k, then the k of those.
    int64_t chunks = n >= 2 * run_length && k <= run_length / 8 ? (n + run_length - 1) / run_length : 1;
    int64_t length = chunks == 1 ? n : run_length;
    int64_t capacity = Smallest<Entry>::capacity_for(k, length);
    alignas(64) Entry few[2 * SmallestFew<Entry>::most + 64];
    const bool fits = chunks * capacity <= static_cast<int64_t>(std::size(few));
    Scratch<Entry> room(fits ? 0 : chunks * capacity);
    Entry* buffer = fits ? few : room.data();
    int64_t found = 0;
    if (chunks == 1) {
      found = select<T, Short>(from, step, 0, n, k, largest, buffer, capacity);
    } else {
      Scratch<int64_t> counts(chunks);
      parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c)
          counts[c] =
              select<T, Short>(from, step, c * length, std::min((c + 1) * length, n), k, largest, buffer + c * capacity, capacity);
      });
      for (int64_t c = 0; c < chunks; ++c) {
        std::copy_n(buffer + c * capacity, counts[c], buffer + found);
        found += counts[c];
      }
      std::nth_element(buffer, buffer + (k - 1), buffer + found);
    }
    if (chunks > 1 || k > SmallestFew<Entry>::most)
      std::sort(buffer, buffer + k);  // by counting, equal keys would keep the order that the selection left
    for (int64_t i = 0; i < k; ++i) {
      int64_t source = static_cast<int64_t>(position(buffer[i]));
      to_values[i * lines.strides[0]] = load(from + source * step);
      to_indices[i * lines.strides[1]] = source;
    }
  };
  lines.for_each_row([&](const int64_t* at, int64_t count) {
    for_each_line(data<T>(in) + at[2], lines.strides[2], lines.side(2), count, n, [&](int64_t i, const T* from, int64_t step) {
      line(from, step, mutable_data<T>(values) + at[0] + i * lines.side(0),
           mutable_data<int64_t>(indices) + at[1] + i * lines.side(1));
    });
  });
}

void topk(Call& call) {
  const cb_tensor& in = call.tensor(0);
  cb_tensor &values = call.output(0), &indices = call.output(1);
  int64_t k = call.integer(1), dim = call.integer(2);
  bool largest = call.boolean(3);
  dispatch<SortableTypes>(in.dtype, [&]<typename T>() {
    if (values.numel == 0) return;
    Lines lines(in, values, indices, dim);
    if constexpr (short_keys<T>)
      if (lines.length <= short_positions) return topk_lines<T, true>(in, values, indices, lines, k, largest);
    topk_lines<T, false>(in, values, indices, lines, k, largest);
  });
}

}  // namespace

void register_sorting(KernelTable& table) {
  table.add<sort>("sort");
  table.add<topk>("topk");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
