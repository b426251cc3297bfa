// Products of panels in three bfloat16 parts on AMX.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "gemm/amx/bf16x3_panels.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Configures eight tiles of 64 bytes per row: the last with sixteen rows, the others with `rows`.
inline void configure_tiles(int64_t rows) {
  struct alignas(64) {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {};
    uint8_t rows[16] = {};
  } layout;
  for (int tile = 0; tile < 8; ++tile) {
    layout.bytes[tile] = 64;
    layout.rows[tile] = static_cast<uint8_t>(tile == 7 ? tile_side : rows);
  }
  __asm__ volatile("" : : "r"(&layout) : "memory");
  _tile_loadconfig(&layout);
}

// Eight whole tiles while in scope. The destructor releases the AMX state, so that context switches
// need not save it.
class AmxTiles {
 public:
  AmxTiles() { configure_tiles(tile_side); }
  ~AmxTiles() { _tile_release(); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

namespace split_detail {

template <bool second_row, bool second_column>
[[gnu::always_inline]] inline void multiply_loaded() {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (second_column) _tile_dpbf16ps(1, 4, 7);
  if constexpr (second_row) _tile_dpbf16ps(2, 5, 6);
  if constexpr (second_row && second_column) _tile_dpbf16ps(3, 5, 7);
}
template <bool second>
[[gnu::always_inline]] inline void load_left(const uint16_t* tiles) {
  _tile_loadd(4, tiles, 64);
  if constexpr (second) _tile_loadd(5, tiles + tile_elements, 64);
}
template <bool second>
[[gnu::always_inline]] inline void load_right(const uint16_t* tiles) {
  _tile_loadd(6, tiles, 64);
  if constexpr (second) _tile_loadd(7, tiles + tile_elements, 64);
}

template <bool second_row, bool second_column>
[[gnu::always_inline]] inline void store_sums(float* sums) {
  constexpr int64_t pitch = panel_side * sizeof(float), below = tile_side * panel_side;
  _tile_stored(0, sums, pitch);
  if constexpr (second_column) _tile_stored(1, sums + tile_side, pitch);
  if constexpr (second_row) _tile_stored(2, sums + below, pitch);
  if constexpr (second_row && second_column) _tile_stored(3, sums + below + tile_side, pitch);
}

template <bool rows, bool columns, typename Between>
[[gnu::noinline]] void multiply_split(const uint16_t* left, const uint16_t* right, int64_t blocks, float* sums,
                                      Between& between) {
  constexpr int64_t part = 2 * tile_elements;
  // The intrinsics do not declare that they read and write memory.
  __asm__ volatile("" : : : "memory");
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const uint16_t *a = left, *b = right;
  for (int64_t k = 0; k < blocks; ++k, a += tile_block, b += tile_block) {
    load_left<rows>(a);
    load_right<columns>(b + 2 * part);
    multiply_loaded<rows, columns>();  // a1 b3
    load_right<columns>(b + part);
    multiply_loaded<rows, columns>();  // a1 b2
    load_left<rows>(a + part);
    multiply_loaded<rows, columns>();  // a2 b2
    load_right<columns>(b);
    multiply_loaded<rows, columns>();  // a2 b1
    load_left<rows>(a + 2 * part);
    multiply_loaded<rows, columns>();  // a3 b1
  }
  between();
  a = left;
  b = right;
  for (int64_t k = 0; k < blocks; ++k, a += tile_block, b += tile_block) {
    load_left<rows>(a);
    load_right<columns>(b);
    multiply_loaded<rows, columns>();  // a1 b1
  }
  store_sums<rows, columns>(sums);
  __asm__ volatile("" : : : "memory");
}

}  // namespace split_detail

// sums (rows of 32 elements) = left @ right, for panels that are `blocks` tiles deep. Only `rows`
// rows and `columns` columns are needed. between() is called while AMX is busy.
template <typename Between>
void multiply_split_panels(const uint16_t* left, const uint16_t* right, int64_t blocks, int64_t rows, int64_t columns,
                           float* sums, Between&& between) {
  if (rows > tile_side)
    columns > tile_side ? split_detail::multiply_split<true, true>(left, right, blocks, sums, between)
                        : split_detail::multiply_split<true, false>(left, right, blocks, sums, between);
  else
    columns > tile_side ? split_detail::multiply_split<false, true>(left, right, blocks, sums, between)
                        : split_detail::multiply_split<false, false>(left, right, blocks, sums, between);
}

// sums = left @ right in plain float32, for a block outside the range of the emulation.
inline void multiply_float32(const SplitSource& left, const SplitSource& right, int64_t row, int64_t rows,
                             int64_t column, int64_t columns, int64_t depth, int64_t depths, float* sums) {
  alignas(64) float line[panel_side];
  std::fill_n(sums, panel_side * panel_side, 0.0f);
  for (int64_t k = depth; k < depth + depths; ++k) {
    for (int64_t j = 0; j < panel_side; ++j)
      line[j] = j < columns ? right.data[(column + j) * right.side_step + k * right.depth_step] : 0.0f;
    const __m512 first = _mm512_load_ps(line), second = _mm512_load_ps(line + 16);
    for (int64_t i = 0; i < rows; ++i) {
      const __m512 one = _mm512_set1_ps(left.data[(row + i) * left.side_step + k * left.depth_step]);
      float* to = sums + i * panel_side;
      _mm512_store_ps(to, _mm512_fmadd_ps(one, first, _mm512_load_ps(to)));
      _mm512_store_ps(to + 16, _mm512_fmadd_ps(one, second, _mm512_load_ps(to + 16)));
    }
  }
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
