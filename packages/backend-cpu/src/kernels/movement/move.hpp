// Copies elements between tensors of the same sizes and dtype.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "drivers/iterate.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "memory/copy_bytes.hpp"
#include "memory/move_rows.hpp"
#include "memory/transpose.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

inline void copy_contiguous(std::byte* out, const std::byte* in, int64_t bytes) {
  const LargeMove move(bytes, 2 * bytes);
  const MoveStores stores = move_stores(bytes, move.is_non_temporal());
  parallel_for(bytes, light_grain * 4, [&](int64_t begin, int64_t end) {
    move_bytes(out + begin, in + begin, end - begin, stores);
    fence_after(stores);
  });
}

// The dimension along which the source is contiguous, if the output is contiguous along dimension 0
// instead; otherwise 0.
inline int transposed_dimension(const Geometry<2>& g) {
  if (g.ndim < 2 || g.strides[0][0] != 1 || g.strides[1][0] == 1 || g.strides[1][0] == 0 || g.sizes[0] < 8) return 0;
  for (int d = 1; d < g.ndim; ++d)
    if (g.strides[1][d] == 1 && g.sizes[d] >= 8) return d;
  return 0;
}

template <typename U>
void copy_transposed(const Geometry<2>& g, int across, U* out, const U* in) {
  constexpr int64_t tile = sizeof(U) >= 8 ? 32 : 64;
  int64_t columns = g.sizes[0], rows = g.sizes[across];
  const Geometry<2> outer = without_dims(g, 0, across);
  int64_t row_tiles = (rows + tile - 1) / tile;
  parallel_for(outer.numel * row_tiles, std::max<int64_t>(1, light_grain / (tile * columns)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t item = begin; item < end; ++item) {
                   Position<2> at(outer, item / row_tiles);
                   int64_t j = item % row_tiles * tile, tile_rows = std::min(tile, rows - j);
                   for (int64_t i = 0; i < columns; i += tile)
                     transpose_bits(out + at.offsets[0] + i + j * g.strides[0][across], g.strides[0][across],
                                    in + at.offsets[1] + i * g.strides[1][0] + j, g.strides[1][0],
                                    std::min(tile, columns - i), tile_rows);
                 }
               });
}

// Which side interleaves the rows of the other, as stack(dim=-1), repeat_interleave and
// pixel_shuffle do, and conversions between channels first and channels last with few channels.
enum class Interleaved { None, Output, Input };

// One side has a short innermost dimension, and the other is contiguous along the next one. The
// input's stride along a short dimension of the output is arbitrary.
inline Interleaved interleaving(const Geometry<2>& g) {
  constexpr int64_t max_short = 4, min_run = 8;
  if (g.ndim < 2 || g.strides[0][0] != 1) return Interleaved::None;
  const auto is_short = [](int64_t size) { return size >= 2 && size <= max_short; };
  if (is_short(g.sizes[0]) && g.strides[0][1] == g.sizes[0] && g.strides[1][1] == 1 && g.sizes[1] >= min_run)
    return Interleaved::Output;
  if (is_short(g.sizes[1]) && g.strides[1][0] == g.sizes[1] && g.strides[1][1] == 1 && g.sizes[0] >= min_run)
    return Interleaved::Input;
  return Interleaved::None;
}

// Copies n elements of each row. `stride` is the row stride on the side that is not interleaved.
template <int64_t Rows, Interleaved side, typename U>
void interleave(U* out, const U* in, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < Rows; ++k) {
      if constexpr (side == Interleaved::Output)
        out[i * Rows + k] = in[k * stride + i];
      else
        out[k * stride + i] = in[i * Rows + k];
    }
}

template <Interleaved side, typename U>
void copy_interleaved(const Geometry<2>& g, U* out, const U* in) {
  constexpr bool of_output = side == Interleaved::Output;
  const int64_t rows = g.sizes[of_output ? 0 : 1], n = g.sizes[of_output ? 1 : 0];
  const int64_t stride = of_output ? g.strides[1][0] : g.strides[0][1];
  const Geometry<2> outer = without_dims(g, 0, 1);
  constexpr int64_t piece = 8192;
  const int64_t pieces = (n + piece - 1) / piece;
  parallel_for(outer.numel * pieces, grain_for(rows * std::min(n, piece)), [&](int64_t begin, int64_t end) {
    Position<2> at(outer, begin / pieces);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item % pieces * piece, count = std::min(piece, n - first);
      U* to = out + at.offsets[0] + first * (of_output ? rows : 1);
      const U* from = in + at.offsets[1] + first * (of_output ? 1 : rows);
      if (rows == 2)
        interleave<2, side>(to, from, stride, count);
      else if (rows == 3)
        interleave<3, side>(to, from, stride, count);
      else
        interleave<4, side>(to, from, stride, count);
      if (first + count == n && item + 1 < end) at.advance(outer, 1);
    }
  });
}

// Copies contiguous, interleaved and transposed memory. Returns false, with nothing written, for
// any other layout.
inline bool move_blocks(const Geometry<2>& g, const cb_tensor& out, const cb_tensor& in) {
  int64_t size = itemsize(out.dtype);
  if (g.contiguous()) {
    copy_contiguous(static_cast<std::byte*>(out.data), static_cast<const std::byte*>(in.data), g.numel * size);
    return true;
  }
  const Interleaved side = interleaving(g);
  if (side != Interleaved::None) {
    dispatch_size(size, [&]<typename U>() {
      if (side == Interleaved::Output)
        copy_interleaved<Interleaved::Output>(g, mutable_data<U>(out), data<U>(in));
      else
        copy_interleaved<Interleaved::Input>(g, mutable_data<U>(out), data<U>(in));
    });
    return true;
  }
  int across = transposed_dimension(g);
  if (across) dispatch_size(size, [&]<typename U>() { copy_transposed(g, across, mutable_data<U>(out), data<U>(in)); });
  return across != 0;
}

// Copies n elements with any stride on both sides.
template <typename U>
[[gnu::always_inline]] inline void move_run(U* out, int64_t out_stride, const U* in, int64_t in_stride, int64_t n) {
  if (out_stride == 1 && in_stride == 1) {
    if (n <= 16)
      for (int64_t i = 0; i < n; ++i) out[i] = in[i];
    else
      std::memcpy(out, in, static_cast<size_t>(n) * sizeof(U));
  } else if (out_stride == 1 && in_stride == -1) {
    for (int64_t i = 0; i < n; ++i) out[i] = in[-i];
  } else if (out_stride == 1 && in_stride == 0) {
    std::fill_n(out, n, *in);
  } else if (out_stride == 1 && in_stride == 2) {
    for (int64_t i = 0; i < n; ++i) out[i] = in[i * 2];
  } else {
    for (int64_t i = 0; i < n; ++i) out[i * out_stride] = in[i * in_stride];
  }
}

// For an innermost dimension that is contiguous on both sides.
inline void move_dense_rows(const Geometry<2>& g, const cb_tensor& out, const cb_tensor& in) {
  const int64_t size = itemsize(out.dtype), bytes = g.sizes[0] * size;
  const Geometry<2> outer = without_dims(g, 0);
  const MoveStores stores = move_stores(g.numel * size);
  auto* to = static_cast<std::byte*>(out.data);
  const auto* from = static_cast<const std::byte*>(in.data);
  parallel_for(outer.numel, std::max<int64_t>(1, light_grain * 4 / std::max<int64_t>(bytes, 4)),
               [&](int64_t begin, int64_t end) {
                 for_each_run(outer, begin, end, [&](const int64_t* at, int64_t rows) {
                   move_rows(to + at[0] * size, outer.strides[0][0] * size, from + at[1] * size,
                             outer.strides[1][0] * size, rows, bytes, stores);
                 });
                 fence_after(stores);
               });
}

// For a short innermost dimension. If the next dimension is contiguous on one side, the inner loop
// runs along that one, in blocks that fit into the L1 cache.
template <typename U>
void move_short_runs(const Geometry<2>& g, U* out, const U* in) {
  constexpr int64_t block = 512;
  const Geometry<2> outer = without_dims(g, 0);
  const int64_t width = g.sizes[0], out_side = g.strides[0][0], in_side = g.strides[1][0];
  const int64_t out_step = outer.strides[0][0], in_step = outer.strides[1][0];
  parallel_for(outer.numel, std::max<int64_t>(1, light_grain / width), [&](int64_t begin, int64_t end) {
    for_each_run(outer, begin, end, [&](const int64_t* at, int64_t n) {
      for (int64_t first = 0; first < n; first += block) {
        const int64_t count = std::min(block, n - first);
        U* to = out + at[0] + first * out_step;
        const U* from = in + at[1] + first * in_step;
        if (out_step == 1 || in_step == 1)
          for (int64_t k = 0; k < width; ++k) move_run(to + k * out_side, out_step, from + k * in_side, in_step, count);
        else
          for (int64_t i = 0; i < count; ++i)
            for (int64_t k = 0; k < width; ++k) to[i * out_step + k * out_side] = from[i * in_step + k * in_side];
      }
    });
  });
}

inline void move_elements(const cb_tensor& out, const cb_tensor& in) {
  if (out.numel == 0) return;
  auto g = geometry<2>({&out, &in});
  if (move_blocks(g, out, in)) return;
  if (g.ndim > 1 && g.strides[0][0] == 1 && g.strides[1][0] == 1) return move_dense_rows(g, out, in);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    U* to = mutable_data<U>(out);
    const U* from = data<U>(in);
    constexpr int64_t short_run = 16;
    if (g.ndim > 1 && g.sizes[0] <= short_run && g.sizes[1] > g.sizes[0]) return move_short_runs(g, to, from);
    const bool repeats = g.strides[0][0] == 1 && g.strides[1][0] == 0 &&
                         g.numel * static_cast<int64_t>(sizeof(U)) >= streaming_threshold();
    parallel_for(g.numel, light_grain, [&](int64_t begin, int64_t end) {
      for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
        if (repeats)
          fill_non_temporal(to + at[0], from[at[1]], n);
        else
          move_run(to + at[0], g.strides[0][0], from + at[1], g.strides[1][0], n);
      });
      if (repeats) _mm_sfence();
    });
  });
}

// For kernels that change some elements of self: copies self to the output, unless the call is in
// place.
inline void initialize_from(const cb_tensor& out, const cb_tensor& self) {
  if (out.data != self.data) move_elements(out, self);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
