// _kthvalue_index, the index of the element of a given rank, and _histc, a histogram with bins of
// equal width.
//
// Elements are compared as unsigned keys of the same order. For a long slice, a radix select counts
// the leading digits of all keys. It then searches only the bucket that holds the rank, as pairs of
// key and index. The pairs are distinct, so the result is the same as with a stable sort.
#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "candelabra/arguments/sorting.hpp"
#include "candelabra/float_index.hpp"
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

enum class Among { all, median, numbers };

Among among_named(std::string_view name) {
  return name == "median" ? Among::median : name == "nanmedian" ? Among::numbers : Among::all;
}

template <typename T>
bool is_nan(T value) {
  if constexpr (is_half_v<T>) {
    constexpr uint16_t infinity = std::is_same_v<T, Half> ? 0x7c00 : 0x7f80;
    return (value.bits & 0x7fff) > infinity;
  } else if constexpr (std::is_floating_point_v<T>) {
    return value != value;
  } else {
    return false;
  }
}

// The rank to look for: the number of elements before it in sorted order, with NaN last. `numbers`
// is the number of elements that are not NaN.
int64_t rank_of(Among among, int64_t rank, int64_t length, int64_t numbers) {
  if (among == Among::all) return rank;
  if (among == Among::median) return numbers < length ? numbers : (length - 1) / 2;
  return std::max<int64_t>(0, (numbers - 1) / 2);
}

template <typename K>
struct Pair {
  K key;
  int64_t at;
  friend bool operator<(const Pair& a, const Pair& b) { return a.key < b.key || (a.key == b.key && a.at < b.at); }
};

// The radix select counts the leading `digit_bits` bits of key - lowest key.
constexpr int digit_bits = 11;
constexpr int64_t digits = int64_t{1} << digit_bits;
constexpr int64_t counted_length = 2048;  // shorter slices use nth_element
constexpr int64_t piece_length = 262144;  // part of a long slice that a thread takes at a time

template <typename T>
class Line {
 public:
  using K = Key<T>;
  Line(const T* from, int64_t stride, int64_t length) : from_(from), stride_(stride), length_(length) {}

  int64_t find(Among among, int64_t rank) const {
    return length_ < counted_length ? find_in_short(among, rank) : find_by_counting(among, rank);
  }

 private:
  K key(int64_t i) const { return key_of(load(from_ + i * stride_)); }

  // Among equal keys, skip as many as the rank exceeds the number of smaller keys.
  int64_t find_in_short(Among among, int64_t rank) const {
    K keys[counted_length];
    int64_t numbers = length_;
    for (int64_t i = 0; i < length_; ++i) {
      const T value = load(from_ + i * stride_);
      keys[i] = key_of(value);
      numbers -= is_nan(value);
    }
    int64_t before = rank_of(among, rank, length_, numbers);
    const auto [lowest, largest] = std::minmax_element(keys, keys + length_);
    if (*lowest == *largest) return before;
    std::nth_element(keys, keys + before, keys + length_);
    const K found = keys[before];
    before -= std::count_if(keys, keys + before, [=](K lesser) { return lesser < found; });
    for (int64_t i = 0;; ++i)
      if (key(i) == found && before-- == 0) return i;
  }

  int64_t find_by_counting(Among among, int64_t rank) const {
    const int64_t pieces = (length_ + piece_length - 1) / piece_length;
    const auto [lowest, largest] = ends(pieces);
    if (lowest == largest) return find_in_equal(among, rank);
    const int shift = std::max(0, static_cast<int>(std::bit_width(static_cast<K>(largest - lowest))) - digit_bits);
    Scratch<uint32_t> counts(pieces * digits);
    Scratch<int64_t> nans(pieces);
    parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        uint32_t* count = counts.data() + piece * digits;
        std::fill_n(count, digits, 0u);
        int64_t nan = 0;
        const int64_t last = std::min(length_, (piece + 1) * piece_length);
        for (int64_t i = piece * piece_length; i < last; ++i) {
          const T value = load(from_ + i * stride_);
          ++count[static_cast<K>(key_of(value) - lowest) >> shift];
          nan += is_nan(value);
        }
        nans[piece] = nan;
      }
    });
    int64_t numbers = length_;
    for (int64_t piece = 0; piece < pieces; ++piece) numbers -= nans[piece];
    int64_t before = rank_of(among, rank, length_, numbers);
    // Find the digit whose bucket holds the rank, and the rank within that bucket.
    int64_t digit = 0, here = 0;
    for (;; ++digit, before -= here) {
      here = 0;
      for (int64_t piece = 0; piece < pieces; ++piece) here += counts[piece * digits + digit];
      if (before < here) break;
    }
    std::vector<int64_t> starts(pieces + 1, 0);
    for (int64_t piece = 0; piece < pieces; ++piece) starts[piece + 1] = starts[piece] + counts[piece * digits + digit];
    Scratch<Pair<K>> candidates(here + pieces);
    parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        // Write every key, but advance only past candidates: a branch would be unpredictable.
        Pair<K>*to = candidates.data() + starts[piece], *full = candidates.data() + starts[piece + 1];
        const int64_t last = std::min(length_, (piece + 1) * piece_length);
        for (int64_t i = piece * piece_length; i < last && to != full; ++i) {
          const K value = key(i);
          *to = {value, i};
          to += static_cast<int64_t>(static_cast<K>(value - lowest) >> shift) == digit;
        }
      }
    });
    // With shift == 0 all candidates have the same key, and their indices are already in order.
    if (shift > 0) std::nth_element(candidates.data(), candidates.data() + before, candidates.data() + here);
    return candidates[before].at;
  }

  // If all keys are equal, the index is the rank.
  int64_t find_in_equal(Among among, int64_t rank) const {
    return rank_of(among, rank, length_, is_nan(load(from_)) ? 0 : length_);
  }

  // The smallest and the largest key.
  std::pair<K, K> ends(int64_t pieces) const {
    Scratch<K> lowest(pieces), largest(pieces);
    parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t first = piece * piece_length, last = std::min(length_, first + piece_length);
        K low = key(first), high = low;
        if (stride_ == 1) {
          const T* from = from_;
#pragma omp simd reduction(min : low) reduction(max : high)
          for (int64_t i = first; i < last; ++i) {
            const K now = key_of(load(from + i));
            low = std::min(low, now);
            high = std::max(high, now);
          }
        } else {
          for (int64_t i = first; i < last; ++i) low = std::min(low, key(i)), high = std::max(high, key(i));
        }
        lowest[piece] = low;
        largest[piece] = high;
      }
    });
    K low = lowest[0], high = largest[0];
    for (int64_t piece = 1; piece < pieces; ++piece)
      low = std::min(low, lowest[piece]), high = std::max(high, largest[piece]);
    return {low, high};
  }

  const T* from_;
  int64_t stride_, length_;
};

template <typename T>
void positions_of(const cb_tensor& in, const cb_tensor& out, int dim, Among among, int64_t rank) {
  const int64_t length = in.sizes[dim], stride = in.strides[dim];
  cb_tensor heads = in;
  heads.sizes = out.sizes;
  heads.numel = out.numel;
  const auto g = geometry<2>({&out, &heads});
  const auto some = [&](int64_t begin, int64_t end) {
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
      for_each_slice(
          data<T>(in) + at[1], stride, g.strides[1][0], n, length, [&](int64_t i, const T* line, int64_t step) {
            mutable_data<int64_t>(out)[at[0] + i * g.strides[0][0]] = Line<T>(line, step, length).find(among, rank);
          });
    });
  };
  if (length > 2 * piece_length)
    some(0, g.numel);  // the threads share each slice
  else
    parallel_for(g.numel, grain_for(4 * length), some);
}

void kthvalue_index(Call& call) {
  const arguments::KthvalueIndex args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  if (out.numel == 0) return;
  dispatch_among(in.dtype, BoolType{} + RealTypes{}, [&]<typename T>() {
    positions_of<T>(in, out, static_cast<int>(args.dim), among_named(args.among), args.rank);
  });
}

// ---- histograms

// Counts n elements. Those outside the range go to one extra bin at the end.
template <typename C>
void count_some(const C* values, int64_t n, const EqualBins<C> range, int64_t* counts) {
  constexpr int64_t together = 256;
  int32_t places[together];
  for (int64_t first = 0; first < n; first += together) {
    const int64_t count = std::min(together, n - first);
    const C* here = values + first;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) places[i] = range.bin_of(here[i]);
    for (int64_t i = 0; i < count; ++i) ++counts[places[i]];
  }
}

template <typename T>
void count_bins_of(const cb_tensor& in, const cb_tensor& out, double low, double high) {
  using C = compute_t<T>;
  constexpr int64_t most_pieces = 16, shortest_piece = 32768, buffered = 256;
  const int64_t bins = out.numel;
  const int64_t pieces = std::clamp<int64_t>(in.numel / std::max(shortest_piece, bins), 1, most_pieces);
  const int64_t length = (in.numel + pieces - 1) / pieces;
  const EqualBins<C> range(low, high, bins);
  Scratch<int64_t> counts(pieces * (bins + 1));
  const auto g = geometry<1>({&in});
  const int64_t stride = g.strides[0][0];
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      int64_t* count = counts.data() + piece * (bins + 1);
      std::fill_n(count, bins + 1, int64_t{0});
      for_each_run(g, piece * length, std::min(in.numel, (piece + 1) * length), [&](const int64_t* at, int64_t n) {
        const T* from = data<T>(in) + at[0];
        if constexpr (!is_half_v<T>)
          if (stride == 1) return count_some<C>(from, n, range, count);
        C wide[buffered];
        for (int64_t first = 0; first < n; first += buffered) {
          const int64_t some = std::min(buffered, n - first);
          for (int64_t i = 0; i < some; ++i) wide[i] = static_cast<C>(from[(first + i) * stride]);
          count_some<C>(wide, some, range, count);
        }
      });
    }
  });
  for (int64_t bin = 0; bin < bins; ++bin) {
    int64_t sum = 0;
    for (int64_t piece = 0; piece < pieces; ++piece) sum += counts[piece * (bins + 1) + bin];
    mutable_data<T>(out)[bin * out.strides[0]] = static_cast<T>(static_cast<C>(sum));
  }
}

void histc(Call& call) {
  const arguments::Histc args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  dispatch<FloatTypes>(in.dtype, [&]<typename T>() { count_bins_of<T>(in, out, args.low, args.high); });
}

}  // namespace

void register_sorting_kthvalue(KernelTable& table) {
  table.add<kthvalue_index>("_kthvalue_index");
  table.add<histc>("_histc");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
