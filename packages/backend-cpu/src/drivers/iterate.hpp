// Strided iteration for all kernels. Dimensions are coalesced (candelabra/geometry.hpp), then
// visited as runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "candelabra/geometry.hpp"
#include "dtypes.hpp"

namespace candelabra::cpu {

using kernel::Geometry;
using kernel::geometry;
using kernel::max_dims;
using kernel::Order;

inline namespace CANDELABRA_ISA_NAMESPACE {

// A position in a geometry: the index in each dimension, and the offset in each operand, in
// elements.
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
  // Advances by n elements, at most left().
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

// The geometry of all dimensions but `dims`. It has at least one dimension.
template <int N, typename... Dims>
Geometry<N> without_dims(const Geometry<N>& g, Dims... dims) {
  Geometry<N> outer;
  outer.ndim = 0;
  outer.numel = g.numel / (g.sizes[dims] * ...);
  for (int d = 0; d < g.ndim; ++d) {
    if (((d == dims) || ...)) continue;
    outer.sizes[outer.ndim] = g.sizes[d];
    for (int k = 0; k < N; ++k) outer.strides[k][outer.ndim] = g.strides[k][d];
    ++outer.ndim;
  }
  if (outer.ndim == 0) {
    outer.ndim = 1;
    outer.sizes[0] = 1;
    for (int k = 0; k < N; ++k) outer.strides[k][0] = 0;
  }
  return outer;
}

// Calls run(offsets, n) for runs along the innermost dimension that cover elements [begin, end).
// offsets[k] is the offset of the run's first element in operand k; its stride is g.strides[k][0].
// Use with parallel_for(g.numel, …).
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
