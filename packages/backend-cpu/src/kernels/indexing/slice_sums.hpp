// Adds slices at indexed positions, in the order of the index and independent of the number of
// threads.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/indexing/slices.hpp"
#include "simd/load.hpp"
#include "simd/load_elements.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Contiguous slices grouped by destination: sources[starts[g]] to sources[starts[g + 1]] are added
// to destinations[g], in the order of the index.
struct Groups {
  Scratch<int64_t> sources, destinations, starts;
  int64_t count = 0;

  explicit Groups(int64_t slices) : sources(slices), destinations(slices), starts(slices + 1) {}
};

// Groups slices by a counting sort. Returns null if they are few, not contiguous, or spread over
// far more memory than they fill.
inline std::unique_ptr<Groups> group(const IndexedSlices& slices) {
  constexpr int64_t fewest = 64, shortest = 8, max_spread = 8;
  const int64_t *to = slices.to.values(), n = slices.count, length = slices.shape.numel;
  if (!to || n < fewest || length < shortest || !slices.shape.contiguous() || !slices.slice_by_slice) return nullptr;
  // Different slices are at least `length` apart, so that their offsets divided by it are unique
  // keys.
  Scratch<int64_t> keys(n);
  int64_t largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    if (to[j] < 0) return nullptr;
    keys[j] = static_cast<int64_t>(static_cast<uint64_t>(to[j]) / static_cast<uint64_t>(length));
    largest = std::max(largest, keys[j]);
  }
  if (largest > max_spread * n + 1024) return nullptr;
  auto groups = std::make_unique<Groups>(n);
  Scratch<int64_t> next(largest + 1);
  std::fill_n(next.data(), largest + 1, int64_t{0});
  for (int64_t j = 0; j < n; ++j) ++next[keys[j]];
  int64_t sum = 0;
  for (int64_t key = 0; key <= largest; ++key) {
    const int64_t here = next[key];
    next[key] = sum;
    if (here) groups->starts[groups->count++] = sum;
    sum += here;
  }
  groups->starts[groups->count] = n;
  for (int64_t j = 0; j < n; ++j) groups->sources[next[keys[j]]++] = j;
  for (int64_t g = 0; g < groups->count; ++g) groups->destinations[g] = to[groups->sources[groups->starts[g]]];
  for (int64_t k = 0; k < n; ++k) groups->sources[k] = slices.from[groups->sources[k]];
  return groups;
}

// Adds n source slices to `base` (zeros if null) and stores the sum. Sums of a block of columns
// stay in registers, and later rows are prefetched. Half precision is summed in float32.
template <typename T, typename S>
void add_group(T* to, const T* base, const S* from, const int64_t* sources, int64_t n, const int64_t* all_end,
               int64_t length, compute_t<T> factor) {
  using C = compute_t<T>;
  constexpr int64_t width = 256 / sizeof(C) ? 256 / sizeof(C) : 1, ahead = 6;
  int64_t c = 0;
  for (; c + width <= length; c += width) {
    C sums[width];
    for (int64_t k = 0; k < width; ++k) sums[k] = base ? static_cast<C>(base[c + k]) : C(0);
    for (int64_t s = 0; s < n; ++s) {
      if (sources + s + ahead < all_end) {
        const auto* next = reinterpret_cast<const char*>(from + sources[s + ahead] + c);
        for (int64_t byte = 0; byte < width * static_cast<int64_t>(sizeof(S)); byte += 64)
          __builtin_prefetch(next + byte);
      }
      const S* row = from + sources[s] + c;
#pragma omp simd
      for (int64_t k = 0; k < width; ++k) sums[k] = static_cast<C>(sums[k] + factor * static_cast<C>(row[k]));
    }
    store_contiguous(sums, width, to + c);
  }
  if (c == length) return;
  const int64_t rest = length - c;
  C sums[width];
  for (int64_t k = 0; k < rest; ++k) sums[k] = base ? static_cast<C>(base[c + k]) : C(0);
  for (int64_t s = 0; s < n; ++s) {
    const S* row = from + sources[s] + c;
#pragma omp simd
    for (int64_t k = 0; k < rest; ++k) sums[k] = static_cast<C>(sums[k] + factor * static_cast<C>(row[k]));
  }
  for (int64_t k = 0; k < rest; ++k) to[c + k] = static_cast<T>(sums[k]);
}

// `all`: the slices that could be written make up the whole of `to`. The others are then
// initialized from `base`, or with zeros if it is null.
template <typename T, typename S>
void add_groups(Groups& groups, int64_t length, T* to, const T* base, bool all, int64_t numel, const S* from,
                compute_t<T> factor) {
  const int64_t *starts = groups.starts.data(), *sources = groups.sources.data(),
                *destinations = groups.destinations.data();
  const int64_t count = groups.count, *all_end = sources + starts[count];
  const auto initialize_between = [&](int64_t first, int64_t last) {
    if (!all || first >= last) return;
    if (base)
      std::memcpy(to + first, base + first, static_cast<size_t>(last - first) * sizeof(T));
    else
      std::fill(to + first, to + last, T(0));
  };
  // Threads share the source slices, divided at group boundaries. A group initializes the gap
  // before it.
  parallel_for(starts[count], grain_for(length), [&](int64_t begin, int64_t end) {
    for (int64_t g = std::lower_bound(starts, starts + count, begin) - starts; g < count && starts[g] < end; ++g) {
      initialize_between(g == 0 ? 0 : destinations[g - 1] + length, destinations[g]);
      add_group(to + destinations[g], base ? base + destinations[g] : nullptr, from, sources + starts[g],
                starts[g + 1] - starts[g], all_end, length, factor);
      if (g + 1 == count) initialize_between(destinations[g] + length, numel);
    }
  });
}

// If `self` is given, the output is initialized from it.
template <typename T, typename S>
void add_slices(IndexedSlices& slices, const cb_tensor& out, const cb_tensor* self, const S* from, T factor) {
  T* to = mutable_data<T>(out);
  if constexpr (!std::is_same_v<T, bool>)
    if (const auto groups = group(slices)) {
      const bool all = self && self->data != out.data && is_contiguous(out) && is_contiguous(*self);
      if (self && !all) initialize_from(out, *self);
      return add_groups(*groups, slices.shape.numel, to, all ? data<T>(*self) : to, all, out.numel, from,
                        static_cast<compute_t<T>>(factor));
    }
  if (self) initialize_from(out, *self);
  slices.for_each<false>([=](int64_t o, int64_t i, int64_t n, int64_t out_stride, int64_t in_stride) {
    T* a = to + o;
    const S* b = from + i;
    if constexpr (std::is_same_v<T, bool>) {
      for (int64_t k = 0; k < n; ++k)
        a[k * out_stride] = load(a + k * out_stride) || (load(b + k * in_stride) && factor);
    } else if (out_stride == 1 && in_stride == 1) {
#pragma omp simd
      for (int64_t k = 0; k < n; ++k) a[k] = static_cast<T>(a[k] + factor * static_cast<T>(b[k]));
    } else {
      for (int64_t k = 0; k < n; ++k)
        a[k * out_stride] = static_cast<T>(a[k * out_stride] + factor * static_cast<T>(b[k * in_stride]));
    }
  });
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
