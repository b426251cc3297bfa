// Adding slabs where their indices say: in the order of the index, whatever the number of threads.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "../load.hpp"
#include "slabs.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Slabs without gaps, by where they go: sources[starts[g]] to sources[starts[g + 1]] are added to place[g], in the order of the
// index.
struct Groups {
  Scratch<int64_t> sources, places, starts;
  int64_t count = 0;

  explicit Groups(int64_t slabs) : sources(slabs), places(slabs), starts(slabs + 1) {}
};

// By counting; null where the slabs are few, have gaps, or are spread over far more memory than they take.
inline std::unique_ptr<Groups> group(const Slabs& slabs) {
  constexpr int64_t fewest = 64, shortest = 8, spread = 8;
  const int64_t *to = slabs.to.values(), n = slabs.count, length = slabs.shape.numel;
  if (!to || n < fewest || length < shortest || !slabs.shape.contiguous() || !slabs.slab_after_slab) return nullptr;
  // Slabs that are apart are at least `length` apart, so that this division tells them from one another.
  Scratch<int64_t> keys(n);
  int64_t largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    if (to[j] < 0) return nullptr;
    keys[j] = static_cast<int64_t>(static_cast<uint64_t>(to[j]) / static_cast<uint64_t>(length));
    largest = std::max(largest, keys[j]);
  }
  if (largest > spread * n + 1024) return nullptr;
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
  for (int64_t g = 0; g < groups->count; ++g) groups->places[g] = to[groups->sources[groups->starts[g]]];
  for (int64_t k = 0; k < n; ++k) groups->sources[k] = slabs.from[groups->sources[k]];
  return groups;
}

// The sums of a few columns stay in registers; rows that come later are asked for early. Half precisions are summed in float32.
// `base`: what is added to; null for zeros.
template <typename T, typename S>
void add_group(T* to, const T* base, const S* from, const int64_t* sources, int64_t n, const int64_t* all_end, int64_t length,
               compute_t<T> factor) {
  using C = compute_t<T>;
  constexpr int64_t together = 256 / sizeof(C) ? 256 / sizeof(C) : 1, ahead = 6;
  int64_t c = 0;
  for (; c + together <= length; c += together) {
    C sums[together];
    for (int64_t k = 0; k < together; ++k) sums[k] = base ? static_cast<C>(base[c + k]) : C(0);
    for (int64_t s = 0; s < n; ++s) {
      if (sources + s + ahead < all_end) {
        const auto* next = reinterpret_cast<const char*>(from + sources[s + ahead] + c);
        for (int64_t byte = 0; byte < together * static_cast<int64_t>(sizeof(S)); byte += 64) __builtin_prefetch(next + byte);
      }
      const S* row = from + sources[s] + c;
#pragma omp simd
      for (int64_t k = 0; k < together; ++k) sums[k] = static_cast<C>(sums[k] + factor * static_cast<C>(row[k]));
    }
    if constexpr (is_half_v<T>)
      from_float(sums, to + c, together);
    else
      std::copy_n(sums, together, to + c);
  }
  if (c == length) return;
  const int64_t rest = length - c;
  C sums[together];
  for (int64_t k = 0; k < rest; ++k) sums[k] = base ? static_cast<C>(base[c + k]) : C(0);
  for (int64_t s = 0; s < n; ++s) {
    const S* row = from + sources[s] + c;
#pragma omp simd
    for (int64_t k = 0; k < rest; ++k) sums[k] = static_cast<C>(sums[k] + factor * static_cast<C>(row[k]));
  }
  for (int64_t k = 0; k < rest; ++k) to[c + k] = static_cast<T>(sums[k]);
}

// `all`: whether the slabs that could be written make up the whole of `to`, which then begins as `base` (zeros where it is null).
template <typename T, typename S>
void add_groups(Groups& groups, int64_t length, T* to, const T* base, bool all, int64_t numel, const S* from, compute_t<T> factor) {
  const int64_t *starts = groups.starts.data(), *sources = groups.sources.data(), *places = groups.places.data();
  const int64_t count = groups.count, *all_end = sources + starts[count];
  const auto begin_between = [&](int64_t first, int64_t last) {
    if (!all || first >= last) return;
    if (base)
      std::memcpy(to + first, base + first, static_cast<size_t>(last - first) * sizeof(T));
    else
      std::fill(to + first, to + last, T(0));
  };
  // Shared out by slabs that are added, at the boundaries of groups, each with what lies before it.
  parallel_for(starts[count], grain_for(length), [&](int64_t begin, int64_t end) {
    for (int64_t g = std::lower_bound(starts, starts + count, begin) - starts; g < count && starts[g] < end; ++g) {
      begin_between(g == 0 ? 0 : places[g - 1] + length, places[g]);
      add_group(to + places[g], base ? base + places[g] : nullptr, from, sources + starts[g], starts[g + 1] - starts[g], all_end,
                length, factor);
      if (g + 1 == count) begin_between(places[g] + length, numel);
    }
  });
}

// The output begins as a copy of self, where that is given.
template <typename T, typename S>
void add_slabs(Slabs& slabs, const cb_tensor& out, const cb_tensor* self, const S* from, T factor) {
  T* to = mutable_data<T>(out);
  if constexpr (!std::is_same_v<T, bool>)
    if (const auto groups = group(slabs)) {
      const bool all = self && self->data != out.data && is_contiguous(out) && is_contiguous(*self);
      if (self && !all) begin_as(out, *self);
      return add_groups(*groups, slabs.shape.numel, to, all ? data<T>(*self) : to, all, out.numel, from,
                        static_cast<compute_t<T>>(factor));
    }
  if (self) begin_as(out, *self);
  slabs.for_each<false>([=](int64_t o, int64_t i, int64_t n, int64_t out_stride, int64_t in_stride) {
    T* a = to + o;
    const S* b = from + i;
    if constexpr (std::is_same_v<T, bool>) {
      for (int64_t k = 0; k < n; ++k) a[k * out_stride] = load(a + k * out_stride) || (load(b + k * in_stride) && factor);
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
