// Factors of a product in three bfloat16 parts each, in the order in which the tile units take them.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

constexpr int64_t tile_side = 16;                              // rows of a tile, and its columns of 32 bits
constexpr int64_t tile_elements = 512;                         // bfloat16 in a tile
constexpr int64_t panel_side = 32;                             // rows of a left panel, columns of a right one: two tiles
constexpr int64_t tile_depth = 32;                             // of k in a tile
constexpr int64_t split_depth = 128;                           // of k in a panel: one of them stays in the first cache level
constexpr int64_t split_panel = panel_side * split_depth * 3;  // bfloat16 in a panel

// A matrix of which `side` counts rows of the left factor or columns of the right one; one of the steps is 1.
struct SplitSource {
  const float* data;
  int64_t side_step, depth_step;
};

// The exponents (as float32 has them) of what a panel holds, apart from zeros; 255 and 0 where it holds nothing else.
struct SplitRange {
  int32_t lowest = 255, highest = 0;
};

// Whether parts of these panels are normal numbers and so are their products: then nothing is lost but by rounding.
inline bool in_range(const SplitRange& a, const SplitRange& b) {
  constexpr int32_t bias = 127, least = bias - 100, sum_from = 2 * bias - 100, sum_to = 2 * bias + 100;
  return a.lowest >= least && b.lowest >= least && a.highest <= 250 && b.highest <= 250 && a.lowest + b.lowest >= sum_from &&
         a.highest + b.highest <= sum_to;
}

namespace split_detail {

// Pairs of parts: bits 0 to 15 of an element are of `low`, the others of `high`. Adding half of the last place rounds; what lies
// below it is cut off.
[[gnu::always_inline]] inline void split_pair(__m512 low, __m512 high, __m512i (&parts)[3]) {
  const __m512i half = _mm512_set1_epi32(0x8000), top = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
#pragma GCC unroll 3
  for (int part = 0; part < 3; ++part) {
    __m512i l = _mm512_add_epi32(_mm512_castps_si512(low), half), h = _mm512_add_epi32(_mm512_castps_si512(high), half);
    parts[part] = _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(l, 16), h);
    if (part == 2) break;
    low = _mm512_sub_ps(low, _mm512_castsi512_ps(_mm512_and_si512(l, top)));
    high = _mm512_sub_ps(high, _mm512_castsi512_ps(_mm512_and_si512(h, top)));
  }
}

// Sixteen rows of sixteen 32-bit elements, in place.
inline void turn_tile(uint16_t* tile) {
  __m512i r[16], t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = _mm512_load_si512(tile + i * 32);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm512_store_si512(tile + (i) * 32, _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88));
    _mm512_store_si512(tile + (i + 4) * 32, _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88));
    _mm512_store_si512(tile + (i + 8) * 32, _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd));
    _mm512_store_si512(tile + (i + 12) * 32, _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd));
  }
}

inline __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((uint32_t{1} << std::clamp<int64_t>(count, 0, 16)) - 1);
}

// Three tiles, one a part, that lie `next` elements apart: sixteen of the side, 32 of the depth, of which `sides` and `depths` are
// there. Element j of a row is the pair of depths j and j + 16: which pairs they are is free, as long as both factors have the
// same.
template <bool along_depth>
[[gnu::always_inline]] inline void split_tiles(const float* from, int64_t step, int64_t sides, int64_t depths, uint16_t* to,
                                               int64_t next, int64_t ahead, __m512i& least, __m512i& most) {
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff), one = _mm512_set1_epi32(1);
  const __mmask16 near = along_depth ? first_lanes(depths) : first_lanes(sides),
                  far = along_depth ? first_lanes(depths - 16) : near;
  const auto look = [&](__m512 value) {
    const __m512i bits = _mm512_and_si512(_mm512_castps_si512(value), magnitude);
    most = _mm512_max_epu32(most, bits);
    least = _mm512_min_epu32(least, _mm512_sub_epi32(bits, one));  // zero is the largest of all
  };
  for (int64_t i = 0; i < tile_side; ++i) {
    __m512 low = _mm512_setzero_ps(), high = low;
    _mm_prefetch(from + ahead + i * step, _MM_HINT_T0);
    _mm_prefetch(from + ahead + (along_depth ? i * step + 16 : (i + 16) * step), _MM_HINT_T0);
    if constexpr (along_depth) {
      if (i < sides) {
        low = _mm512_maskz_loadu_ps(near, from + i * step);
        high = _mm512_maskz_loadu_ps(far, from + i * step + 16);
      }
    } else {
      if (i < depths) low = _mm512_maskz_loadu_ps(near, from + i * step);
      if (i + 16 < depths) high = _mm512_maskz_loadu_ps(far, from + (i + 16) * step);
    }
    look(low);
    look(high);
    __m512i parts[3];
    split_pair(low, high, parts);
#pragma GCC unroll 3
    for (int part = 0; part < 3; ++part) _mm512_store_si512(to + part * next + i * 32, parts[part]);
  }
}

}  // namespace split_detail

// The panel of `sides` rows (or columns) from `side` on and `depths` of k from `depth` on. In memory: for each 32 of k the three
// parts, of each the two tiles; the second ones are left as they are where the panel has but sixteen rows.
// `left`: a tile's rows are rows of the left factor, else pairs of k.
template <bool left>
SplitRange split_panel_of(const SplitSource& source, int64_t side, int64_t sides, int64_t depth, int64_t depths, uint16_t* to,
                          int64_t ahead) {
  __m512i least = _mm512_set1_epi32(-1), most = _mm512_setzero_si512();
  const bool along_depth = source.depth_step == 1;
  for (int64_t k = 0; k < depths; k += tile_depth, to += 6 * tile_elements)
    for (int64_t half = 0; half * tile_side < sides; ++half) {
      const float* from = source.data + (side + half * tile_side) * source.side_step + (depth + k) * source.depth_step;
      uint16_t* tiles = to + half * tile_elements;
      const int64_t here = std::min(tile_side, sides - half * tile_side), deep = std::min(tile_depth, depths - k);
      if (along_depth)
        split_detail::split_tiles<true>(from, source.side_step, here, deep, tiles, 2 * tile_elements, ahead, least, most);
      else
        split_detail::split_tiles<false>(from, source.depth_step, here, deep, tiles, 2 * tile_elements, ahead, least, most);
      if (along_depth != left)
        for (int part = 0; part < 3; ++part) split_detail::turn_tile(tiles + part * 2 * tile_elements);
    }
  SplitRange range;
  const uint32_t low = _mm512_reduce_min_epu32(least), high = _mm512_reduce_max_epu32(most);
  if (low != UINT32_MAX) range.lowest = static_cast<int32_t>((low + 1) >> 23);
  range.highest = static_cast<int32_t>(high >> 23);
  return range;
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
