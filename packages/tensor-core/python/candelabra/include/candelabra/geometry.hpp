// Merges the dimensions of tensors of equal sizes: adjacent dimensions become one if all operands
// are contiguous across them.
#ifndef CANDELABRA_GEOMETRY_HPP
#define CANDELABRA_GEOMETRY_HPP

#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "candelabra/backend.h"
#include "candelabra/host_device.hpp"

namespace candelabra::kernel {

constexpr int max_dims = 64;

inline namespace CANDELABRA_ISA_NAMESPACE {

// N operands over one index space. Dimension 0 is the innermost. Strides are in elements. There is
// always at least one dimension.
template <int N>
struct Geometry {
  int ndim = 1;
  int64_t numel = 0;
  int64_t sizes[max_dims];
  int64_t strides[N][max_dims];

  bool flat() const { return ndim == 1; }
  // One dimension, with stride 1 in every operand.
  bool contiguous() const {
    if (ndim != 1) return false;
    for (int k = 0; k < N; ++k)
      if (strides[k][0] != 1) return false;
    return true;
  }
};

enum class Order {
  // dimensions may be reordered by ascending stride of the first operand, then of the next ones
  Any,
  RowMajor  // element i is the i-th of the descriptors in row-major order
};

namespace geometry_detail {

template <int N>
// whether a is the inner one of the two dimensions
bool inner_first(const Geometry<N>& g, int a, int b) {
  for (int k = 0; k < N; ++k) {
    const int64_t sa = std::abs(g.strides[k][a]), sb = std::abs(g.strides[k][b]);
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

}  // namespace geometry_detail

// Reorders and merges the first `count` dimensions of a geometry, which are stored innermost first.
template <int N>
void merge_dims(Geometry<N>& g, int count, Order order) {
  if (count == 0) {
    g.ndim = 1;
    g.sizes[0] = 1;
    for (int k = 0; k < N; ++k) g.strides[k][0] = 1;
    return;
  }
  if (order == Order::Any)
    for (int i = 1; i < count; ++i)
      for (int j = i; j > 0 && !geometry_detail::inner_first(g, j - 1, j); --j) geometry_detail::swap_dims(g, j - 1, j);
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
      for (int k = 0; k < N; ++k) g.strides[k][count] = operands[static_cast<size_t>(k)]->strides[d];
      ++count;
    }
  }
  merge_dims(g, count, order);
  if (g.numel == 0) g.sizes[0] = 0;
  return g;
}

}  // namespace CANDELABRA_ISA_NAMESPACE

}  // namespace candelabra::kernel

#endif  // CANDELABRA_GEOMETRY_HPP
