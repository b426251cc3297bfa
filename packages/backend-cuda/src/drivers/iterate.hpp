// Strided iteration on the host. Merges dimensions of descriptors of the same sizes
// (candelabra/geometry.hpp), and divides the result into pieces that a kernel can index with 32
// bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "candelabra/geometry.hpp"
#include "dtypes.hpp"

namespace candelabra::cuda {

using kernel::Geometry;
using kernel::geometry;
using kernel::max_dims;
using kernel::Order;

// The dimensions that a kernel's argument holds. The host loops over further ones (after merging).
constexpr int max_piece_dims = 8;

enum class Pieces {
  Any,     // any order of the dimensions
  InOrder  // the pieces are consecutive ranges of row-major indices, if the dimensions fit (see for_each_piece)
};

// Calls f(piece, offsets) for pieces with at most max_piece_dims dimensions whose indices and
// offsets fit in 31 bits. offsets[k] is the offset in elements of operand k's first element of the
// piece.
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
    // Halves the dimension with the largest extent; with InOrder the outermost one.
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

// Division by a launch-time constant (Granlund and Montgomery, 1994), for numerators below 2^31.
// The quotient is the upper half of a product.
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

// Maps an index in a piece to the offsets of N operands. Part of a kernel's argument.
template <int N>
struct Indexer {
  int ndim = 1;
  uint32_t count = 0;
  Divider sizes[max_piece_dims];  // without the outermost dimension
  uint32_t strides[max_piece_dims][N];

  Indexer() = default;
  explicit Indexer(const Geometry<N>& piece) : ndim(piece.ndim), count(static_cast<uint32_t>(piece.numel)) {
    for (int d = 0; d < max_piece_dims; ++d) {
      if (d + 1 < ndim) sizes[d] = Divider(piece.sizes[d]);
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

  // The same with a rolled loop: less code, for kernels whose time is spent elsewhere.
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
