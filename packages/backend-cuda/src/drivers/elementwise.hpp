// The host side that all elementwise kernels share: pieces, addresses, alignment. Compiled once,
// not for each formula.
#pragma once

#include <array>

#include "drivers/iterate.hpp"
#include "kernels.hpp"

namespace candelabra::cuda::elementwise {

constexpr int threads = 256;

// The operands of a call, outputs first.
template <int N>
struct Plan {
  std::array<const cb_tensor*, N> tensors;
  int outs;
  int vec;           // elements per packet; 1: no packed kernel
  int sizes[N];      // bytes per element
  bool as_float[N];  // half precisions and float32 are computed in float32
};

// The part of a kernel's argument that describes a piece.
template <int N>
struct Piece {
  Indexer<N> indexer;  // indexes elements, or packets
  void* data[N];       // null: the operand is `value`
  alignas(16) unsigned char values[N][16];
};

template <int N>
using Launcher = void (*)(const Call& call, const void* op, const Piece<N>& piece, bool packed);
// For up to 6 operands.
template <int N>
void run_pieces(const Call& call, const Plan<N>& plan, Launcher<N> launcher, const void* op);

using GenerateLauncher = void (*)(const Call& call, const void* value, const Piece<1>& piece, int64_t first);
void generate_pieces(const Call& call, const cb_tensor& out, int itemsize, GenerateLauncher launcher,
                     const void* value);

// Throws if a tensor's memory is not aligned to its elements.
void check_alignment(const cb_tensor& tensor, size_t itemsize);

template <int N, typename... Outs, typename... Ins>
void describe(Plan<N>& plan, Types<Outs...>, Types<Ins...>) {
  constexpr int sizes[] = {static_cast<int>(sizeof(memory_t<Outs>))..., static_cast<int>(sizeof(memory_t<Ins>))...};
  constexpr bool as_float[] = {std::is_same_v<compute_t<Outs>, float>..., std::is_same_v<compute_t<Ins>, float>...};
  for (int k = 0; k < N; ++k) {
    plan.sizes[k] = sizes[k];
    plan.as_float[k] = as_float[k];
  }
}

}  // namespace candelabra::cuda::elementwise
