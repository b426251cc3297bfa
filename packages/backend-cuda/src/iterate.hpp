// Strided iteration on the host: descriptors of the same sizes become as few dimensions as possible, then pieces that a kernel can
// go through with 32-bit indices.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "dtypes.hpp"

namespace candelabra::cuda {

constexpr int max_dims = 64;
// What a kernel's argument holds; more dimensions than these (after merging) are gone through on the host.
constexpr int max_piece_dims = 8;

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
      for (int k = 0; k < N; ++k) g.strides[k][count] = operands[static_cast<size_t>(k)]->strides[d];
      ++count;
    }
  }
  iterate_detail::finish(g, count, order);
  if (g.numel == 0) g.sizes[0] = 0;
  return g;
}

enum class Pieces {
  Any,     // in any order
  InOrder  // each piece is the range of indices that follows the one before (where the dimensions fit, see for_each_piece)
};

// Calls f(piece, offsets) for pieces of a geometry that have at most max_piece_dims dimensions, and of which no index and no offset
// of an element needs more than 31 bits; offsets[k] is where operand k begins in the piece, in elements.
template <int N, typename F>
void for_each_piece(const Geometry<N>& g, F&& f, Pieces order = Pieces::Any) {
  constexpr int64_t limit = int64_t{1} << 31;
  if (g.numel == 0) return;
  std::array<int64_t, N> offsets{};
  auto descend = [&](auto& self, const Geometry<N>& piece) -> void {
    if (piece.ndim > max_piece_dims) {
      Geometry<N> inner = piece;
      const int d = --inner.ndim;
      inner.numel = piece.numel / piece.sizes[d];
      const std::array<int64_t, N> before = offsets;
      for (int64_t i = 0; i < piece.sizes[d]; ++i) {
        for (size_t k = 0; k < N; ++k) offsets[k] = before[k] + i * piece.strides[k][d];
        self(self, inner);
      }
      offsets = before;
      return;
    }
    // The dimension that asks for most is halved; with InOrder the outermost one.
    int halved = piece.numel >= limit ? piece.ndim - 1 : -1;
    int64_t most = 0;
    for (int k = 0; k < N; ++k) {
      int64_t extent = 0, largest = 0;
      int at = 0;
      for (int d = 0; d < piece.ndim; ++d) {
        const int64_t part = (piece.sizes[d] - 1) * std::abs(piece.strides[k][d]);
        extent += part;
        if (part > largest) largest = part, at = d;
      }
      if (extent >= limit && extent > most) most = extent, halved = at;
    }
    if (halved < 0) {
      f(piece, static_cast<const std::array<int64_t, N>&>(offsets));
      return;
    }
    int d = order == Pieces::InOrder || piece.sizes[halved] == 1 ? piece.ndim - 1 : halved;
    while (piece.sizes[d] == 1) --d;
    const int64_t half = piece.sizes[d] / 2, row = piece.numel / piece.sizes[d];
    Geometry<N> part = piece;
    part.sizes[d] = half;
    part.numel = row * half;
    self(self, part);
    const std::array<int64_t, N> before = offsets;
    for (int k = 0; k < N; ++k) offsets[static_cast<size_t>(k)] += half * piece.strides[k][d];
    part.sizes[d] = piece.sizes[d] - half;
    part.numel = piece.numel - row * half;
    self(self, part);
    offsets = before;
  };
  descend(descend, g);
}

// Division by a number that is known when the kernel is launched (Granlund and Montgomery, 1994): the quotient is the upper half of
// a product, for numerators below 2^31.
struct Divider {
  uint32_t divisor = 1, multiplier = 0, shift = 0;

  Divider() = default;
  explicit Divider(int64_t value) : divisor(static_cast<uint32_t>(std::max<int64_t>(value, 1))) {
    while ((uint64_t{1} << shift) < divisor) ++shift;
    multiplier = static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift) - divisor) / divisor + 1);
  }
  CANDELABRA_HOST_DEVICE uint32_t quotient(uint32_t n) const {
#ifdef __CUDA_ARCH__
    const uint32_t high = __umulhi(n, multiplier);
#else
    const auto high = static_cast<uint32_t>((uint64_t{n} * multiplier) >> 32);
#endif
    return (high + n) >> shift;
  }
};

// Where the elements of N operands are: what a kernel gets of a piece.
template <int N>
struct Indexer {
  int ndim = 1;
  uint32_t count = 0;
  Divider sizes[max_piece_dims];
  uint32_t strides[max_piece_dims][N];

  Indexer() = default;
  explicit Indexer(const Geometry<N>& piece) : ndim(piece.ndim), count(static_cast<uint32_t>(piece.numel)) {
    for (int d = 0; d < max_piece_dims; ++d) {
      if (d < ndim) sizes[d] = Divider(piece.sizes[d]);
      for (int k = 0; k < N; ++k) strides[d][k] = d < ndim ? static_cast<uint32_t>(piece.strides[k][d]) : 0u;
    }
  }
  // Offsets in elements of the operands at index i of the piece.
  CANDELABRA_HOST_DEVICE void at(uint32_t i, uint32_t (&offsets)[N]) const {
    for (int k = 0; k < N; ++k) offsets[k] = 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int d = 0; d < max_piece_dims; ++d) {
      if (d + 1 == ndim) {
        for (int k = 0; k < N; ++k) offsets[k] += i * strides[d][k];
        break;
      }
      const uint32_t rest = sizes[d].quotient(i), index = i - rest * sizes[d].divisor;
      for (int k = 0; k < N; ++k) offsets[k] += index * strides[d][k];
      i = rest;
    }
  }

  // The same in less code, for kernels in which it is not what takes the time.
  CANDELABRA_HOST_DEVICE void at_rolled(uint32_t i, uint32_t (&offsets)[N]) const {
    for (int k = 0; k < N; ++k) offsets[k] = 0;
    int d = 0;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (; d + 1 < ndim; ++d) {
      const uint32_t rest = sizes[d].quotient(i), index = i - rest * sizes[d].divisor;
      for (int k = 0; k < N; ++k) offsets[k] += index * strides[d][k];
      i = rest;
    }
    for (int k = 0; k < N; ++k) offsets[k] += i * strides[d][k];
  }
};

}  // namespace candelabra::cuda
