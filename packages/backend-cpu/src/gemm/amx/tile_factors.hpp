// Factors of products on AMX behind one interface: bfloat16, and float32 in three bfloat16 parts.
#pragma once

#include <type_traits>

#include "dtypes.hpp"
#include "gemm/amx/bf16x3_panels.hpp"
#include "gemm/amx/bf16x3_tiles.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

template <typename T>
constexpr int64_t tile_parts = std::is_same_v<T, float> ? 3 : 1;
// Elements of a panel per 32 of k.
template <typename T>
constexpr int64_t factor_block = panel_side * tile_depth * tile_parts<T>;

// Like SplitSource.
template <typename T>
struct FactorSource {
  const T* data;
  int64_t side_step, depth_step;
};

namespace factor_detail {

// Like split_block(), for bfloat16. If k is contiguous, a pair is of neighbours, else of k and k +
// 16. Both factors must agree.
inline void pack_block(const FactorSource<BFloat16>& source, bool left, int64_t side, int64_t sides, int64_t depth,
                       int64_t depths, uint16_t* to) {
  const bool along_depth = source.depth_step == 1;
  alignas(64) uint16_t rows[tile_elements];
  for (int64_t half = 0; half < sides; half += tile_side) {
    const uint16_t* from =
        reinterpret_cast<const uint16_t*>(source.data) + (side + half) * source.side_step + depth * source.depth_step;
    uint16_t *tile = to + half / tile_side * tile_elements, *into = along_depth == left ? tile : rows;
    const int64_t wanted = sides - half;
    if (along_depth) {
      const __mmask32 lanes = depths >= 32 ? ~__mmask32{0} : (__mmask32{1} << depths) - 1;
      for (int64_t row = 0; row < tile_side; ++row)
        _mm512_store_si512(into + row * 32,
                           _mm512_maskz_loadu_epi16(row < wanted ? lanes : 0, from + row * source.side_step));
    } else {
      const __mmask16 lanes = split_detail::first_lanes(wanted);
      for (int64_t row = 0; row < tile_side; ++row) {
        const uint16_t* at = from + row * source.depth_step;
        const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(row < depths ? lanes : 0, at)),
                      high = _mm512_cvtepu16_epi32(
                          _mm256_maskz_loadu_epi16(row + 16 < depths ? lanes : 0, at + 16 * source.depth_step));
        _mm512_store_si512(into + row * 32, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
      }
    }
    if (into == rows)
      split_detail::transpose_16x16_floats(reinterpret_cast<const float*>(rows), 16, 16, 0xffff,
                                           reinterpret_cast<float*>(tile));
  }
}

template <bool rows, bool columns>
[[gnu::noinline]] void multiply_whole(const uint16_t* left, const uint16_t* right, int64_t blocks, float* sums) {
  constexpr int64_t block = panel_side * tile_depth;
  __asm__ volatile("" : : : "memory");
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t k = 0; k < blocks; ++k, left += block, right += block) {
    split_detail::load_left<rows>(left);
    split_detail::load_right<columns>(right);
    split_detail::multiply_loaded<rows, columns>();
  }
  split_detail::store_sums<rows, columns>(sums);
  __asm__ volatile("" : : : "memory");
}

}  // namespace factor_detail

// Packs `sides` rows of a left factor (columns of a right one) and `depths` of k. Panels lie `step`
// elements apart. Returns the exponent range of float32 numbers.
template <typename T>
SplitRange pack_factor(const FactorSource<T>& source, bool left, int64_t side, int64_t sides, int64_t depth,
                       int64_t depths, uint16_t* to, int64_t step) {
  SplitRange range;
  for (int64_t panel = 0; panel * panel_side < sides; ++panel)
    for (int64_t block = 0; block * tile_depth < depths; ++block) {
      const int64_t from = side + panel * panel_side, here = std::min(panel_side, sides - panel * panel_side),
                    k = depth + block * tile_depth, deep = std::min(tile_depth, depths - block * tile_depth);
      uint16_t* into = to + panel * step + block * factor_block<T>;
      if constexpr (tile_parts<T> == 1) {
        factor_detail::pack_block(source, left, from, here, k, deep, into);
      } else {
        const SplitRange one =
            split_block({source.data, source.side_step, source.depth_step}, left, from, here, k, deep, into);
        range = {std::min(range.lowest, one.lowest), std::max(range.highest, one.highest)};
      }
    }
  return range;
}

// sums (32 by 32) = left @ right for panels of `blocks` blocks.
template <typename T>
void multiply_factors(const uint16_t* left, const uint16_t* right, int64_t blocks, int64_t rows, int64_t columns,
                      float* sums) {
  if constexpr (tile_parts<T> == 3) {
    multiply_split_panels(left, right, blocks, rows, columns, sums, [] {});
  } else if (rows > tile_side) {
    columns > tile_side ? factor_detail::multiply_whole<true, true>(left, right, blocks, sums)
                        : factor_detail::multiply_whole<true, false>(left, right, blocks, sums);
  } else {
    columns > tile_side ? factor_detail::multiply_whole<false, true>(left, right, blocks, sums)
                        : factor_detail::multiply_whole<false, false>(left, right, blocks, sums);
  }
}

// Stores one row of a tile for each part: pairs of `low` (bits 0 to 15) and `high`. Parts lie two
// tiles apart.
template <typename T>
[[gnu::always_inline]] inline void store_pairs(__m512 low, __m512 high, uint16_t* to) {
  if constexpr (tile_parts<T> == 1) {
    const __m512i half = _mm512_set1_epi32(0x8000);
    const __m512i l = _mm512_add_epi32(_mm512_castps_si512(low), half),
                  h = _mm512_add_epi32(_mm512_castps_si512(high), half);
    _mm512_store_si512(to, _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(l, 16), h));
  } else {
    __m512i parts[3];
    split_detail::split_pair(low, high, parts);
#pragma GCC unroll 3
    for (int part = 0; part < 3; ++part) _mm512_store_si512(to + part * 2 * tile_elements, parts[part]);
  }
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
