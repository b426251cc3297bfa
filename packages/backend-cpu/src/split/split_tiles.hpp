// Products of panels in three bfloat16 parts on the tile units.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "split_panels.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Eight tiles of sixteen rows of 64 bytes for the time of a block; the state of the units is given back after it, so that changes
// between threads need not save it.
class TileUnits {
 public:
  TileUnits() {
    struct alignas(64) {
      uint8_t palette = 1, start = 0, reserved[14] = {};
      uint16_t bytes[16] = {};
      uint8_t rows[16] = {};
    } layout;
    for (int tile = 0; tile < 8; ++tile) {
      layout.bytes[tile] = 64;
      layout.rows[tile] = tile_side;
    }
    __asm__ volatile("" : : "r"(&layout) : "memory");
    _tile_loadconfig(&layout);
  }
  ~TileUnits() { _tile_release(); }
  TileUnits(const TileUnits&) = delete;
  TileUnits& operator=(const TileUnits&) = delete;
};

// Where the sums go next: asked for while they are made, a few lines after each step.
struct ResultPlace {
  const float* c;
  int64_t step;     // elements between rows
  int64_t columns;  // of 32
};

namespace split_detail {

template <bool second_row, bool second_column>
[[gnu::always_inline]] inline void multiply_loaded(const ResultPlace& place, int64_t step) {
  if (step < 16)
    for (int64_t row = step; row < (second_row ? 32 : 16); row += 16) {
      const float* line = place.c + row * place.step;
      __builtin_prefetch(line, 1);
      __builtin_prefetch(line + place.columns - 1, 1);
      if constexpr (second_column) __builtin_prefetch(line + 15, 1);
    }
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

template <bool rows, bool columns>
void multiply_split(const uint16_t* left, const uint16_t* right, int64_t blocks, float* sums, const ResultPlace& place) {
  int64_t step = 0;
  constexpr int64_t part = 2 * tile_elements, block = 3 * part;
  // The intrinsics do not say that they read and write memory.
  __asm__ volatile("" : : : "memory");
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const uint16_t *a = left, *b = right;
  for (int64_t k = 0; k < blocks; ++k, a += block, b += block) {
    load_left<rows>(a);
    load_right<columns>(b + 2 * part);
    multiply_loaded<rows, columns>(place, step++);  // a1 b3
    load_right<columns>(b + part);
    multiply_loaded<rows, columns>(place, step++);  // a1 b2
    load_left<rows>(a + part);
    multiply_loaded<rows, columns>(place, step++);  // a2 b2
    load_right<columns>(b);
    multiply_loaded<rows, columns>(place, step++);  // a2 b1
    load_left<rows>(a + 2 * part);
    multiply_loaded<rows, columns>(place, step++);  // a3 b1
  }
  a = left;
  b = right;
  for (int64_t k = 0; k < blocks; ++k, a += block, b += block) {
    load_left<rows>(a);
    load_right<columns>(b);
    multiply_loaded<rows, columns>(place, step++);  // a1 b1
  }
  constexpr int64_t pitch = panel_side * sizeof(float), below = tile_side * panel_side;
  _tile_stored(0, sums, pitch);
  if constexpr (columns) _tile_stored(1, sums + tile_side, pitch);
  if constexpr (rows) _tile_stored(2, sums + below, pitch);
  if constexpr (rows && columns) _tile_stored(3, sums + below + tile_side, pitch);
  __asm__ volatile("" : : : "memory");
}

}  // namespace split_detail

// sums (rows of 32 elements) = left @ right, for panels that are `blocks` tiles deep; `rows` and `columns` of them are wanted.
inline void multiply_split_panels(const uint16_t* left, const uint16_t* right, int64_t blocks, int64_t rows, int64_t columns,
                                  float* sums, const ResultPlace& place) {
  if (rows > tile_side)
    columns > tile_side ? split_detail::multiply_split<true, true>(left, right, blocks, sums, place)
                        : split_detail::multiply_split<true, false>(left, right, blocks, sums, place);
  else
    columns > tile_side ? split_detail::multiply_split<false, true>(left, right, blocks, sums, place)
                        : split_detail::multiply_split<false, false>(left, right, blocks, sums, place);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
