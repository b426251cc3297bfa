// Strided iteration for all kernels: descriptors of the same sizes become as few dimensions as possible, then runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

#include "candelabra/backend.h"
#include "dtypes.hpp"

namespace candelabra::cpu {

constexpr int max_dims = 64;

inline namespace CANDELABRA_ISA_NAMESPACE {

// N operands over one index space. Dimension 0 is the innermost; strides are in elements. There is always at least one dimension.
template <int N>
struct Geometry {
  int ndim = 1;
  int64_t numel = 0;
  int64_t sizes[max_dims];
  int64_t strides[N][max_dims];

  bool flat() const { return ndim == 1; }
  // One dimension, every operand without gaps.
  bool contiguous() const {
    if (ndim != 1) return false;
    for (int k = 0; k < N; ++k)
      if (strides[k][0] != 1) return false;
    return true;
  }
};

enum class Order {
  Any,      // dimensions may be reordered: innermost is where the first operand's (then the next one's) stride is smallest
  RowMajor  // element i is the i-th of the descriptors in row-major order
};

namespace iterate_detail {

template <int N>
bool inner_first(const Geometry<N>& g, int a, int b) {  // whether dimension a belongs inside dimension b
  for (int k = 0; k < N; ++k) {
    int64_t sa = std::abs(g.strides[k][a]), sb = std::abs(g.strides[k][b]);
    if (sa == 0 || sb == 0 || sa == sb) continue;
    return sa < sb;
  }
  return true;
}

template <int N>
void swap_dims(Geometry<N>& g, int a, int b) {
  std::swap(g.sizes[a], g.sizes[b]);
  for (int k = 0; k < N; ++k) std::swap(g.strides[k][a], g.strides[k][b]);
}

// Reorders and merges the first `count` dimensions that were entered innermost first.
template <int N>
void finish(Geometry<N>& g, int count, Order order) {
  if (count == 0) {
    g.ndim = 1;
    g.sizes[0] = 1;
    for (int k = 0; k < N; ++k) g.strides[k][0] = 1;
    return;
  }
  if (order == Order::Any)
    for (int i = 1; i < count; ++i)
      for (int j = i; j > 0 && !inner_first(g, j - 1, j); --j) swap_dims(g, j - 1, j);
  int last = 0;
  for (int d = 1; d < count; ++d) {
    bool joins = true;
    for (int k = 0; k < N; ++k) joins &= g.strides[k][d] == g.strides[k][last] * g.sizes[last];
    if (joins) {
      g.sizes[last] *= g.sizes[d];
    } else if (++last != d) {
      g.sizes[last] = g.sizes[d];
      for (int k = 0; k < N; ++k) g.strides[k][last] = g.strides[k][d];
    }
  }
  g.ndim = last + 1;
}

}  // namespace iterate_detail

// All operands must have the sizes of the first.
template <int N>
Geometry<N> geometry(const std::array<const cb_tensor*, N>& operands, Order order = Order::Any) {
  Geometry<N> g;
  const cb_tensor& first = *operands[0];
  g.numel = first.numel;
  int count = 0;
  if (g.numel != 0) {
    for (int d = first.ndim - 1; d >= 0; --d) {
      if (first.sizes[d] == 1) continue;
      g.sizes[count] = first.sizes[d];
      for (int k = 0; k < N; ++k) g.strides[k][count] = operands[k]->strides[d];
      ++count;
    }
  }
  iterate_detail::finish(g, count, order);
  if (g.numel == 0) g.sizes[0] = 0;
  return g;
}

// Where one is in a geometry: element offsets of the operands, and how many elements are left in the innermost dimension.
template <int N>
struct Position {
  int64_t index[max_dims];
  int64_t offsets[N];

  Position(const Geometry<N>& g, int64_t element) {
    for (int k = 0; k < N; ++k) offsets[k] = 0;
    for (int d = 0; d < g.ndim; ++d) {
      index[d] = d + 1 < g.ndim ? element % g.sizes[d] : element;
      element /= g.sizes[d] ? g.sizes[d] : 1;
      for (int k = 0; k < N; ++k) offsets[k] += index[d] * g.strides[k][d];
    }
  }
  // Moves on by n elements, n at most what is left in the innermost dimension.
  void advance(const Geometry<N>& g, int64_t n) {
    index[0] += n;
    for (int k = 0; k < N; ++k) offsets[k] += n * g.strides[k][0];
    for (int d = 0; index[d] == g.sizes[d] && d + 1 < g.ndim; ++d) {
      index[d] = 0;
      ++index[d + 1];
      for (int k = 0; k < N; ++k) offsets[k] += g.strides[k][d + 1] - g.sizes[d] * g.strides[k][d];
    }
  }
  int64_t left(const Geometry<N>& g) const { return g.sizes[0] - index[0]; }
};

// Calls run(offsets, n) for runs along the innermost dimension that cover elements [begin, end): offsets[k] is that of the first
// element of operand k; from there its stride is g.strides[k][0]. Use with parallel_for(g.numel, …).
template <int N, typename F>
void for_each_run(const Geometry<N>& g, int64_t begin, int64_t end, F&& run) {
  if (begin >= end) return;
  Position<N> at(g, begin);
  for (int64_t done = begin; done < end;) {
    int64_t n = std::min(at.left(g), end - done);
    run(static_cast<const int64_t*>(at.offsets), n);
    done += n;
    if (done < end) at.advance(g, n);
  }
}

}  // namespace CANDELABRA_ISA_NAMESPACE

}  // namespace candelabra::cpu
