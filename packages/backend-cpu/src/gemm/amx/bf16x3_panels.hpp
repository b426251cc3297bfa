// Factors of a product, split into three bfloat16 parts and packed as AMX tiles.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

constexpr int64_t tile_side = 16;       // rows of a tile, and its columns of 32 bits
constexpr int64_t tile_elements = 512;  // bfloat16 in a tile
constexpr int64_t panel_side = 32;      // rows of a left panel, columns of a right one: two tiles
constexpr int64_t tile_depth = 32;      // k in a tile
// bfloat16 in a panel per tile_depth of k
constexpr int64_t tile_block = panel_side * tile_depth * 3;
constexpr int64_t longest_chain = 4;  // in tile_depth of k: what AMX sums before float32 additions

// A matrix: `side` counts rows of the left factor or columns of the right one. One of the steps is
// 1.
struct SplitSource {
  const float* data;
  int64_t side_step, depth_step;
};

// The range of float32 exponents in a panel, without zeros; 255 and 0 if it holds only zeros.
struct SplitRange {
  int32_t lowest = 255, highest = 0;
};

// Whether the parts of these panels and their products are normal numbers. Then rounding is the
// only error.
inline bool in_range(const SplitRange& a, const SplitRange& b) {
  constexpr int32_t bias = 127, min_exponent = bias - 100, sum_from = 2 * bias - 100, sum_to = 2 * bias + 100;
  return a.lowest >= min_exponent && b.lowest >= min_exponent && a.highest <= 250 && b.highest <= 250 &&
         a.lowest + b.lowest >= sum_from && a.highest + b.highest <= sum_to;
}

namespace split_detail {

// Splits two vectors into three parts each. In a result, bits 0 to 15 of an element belong to `low`
// and the others to `high`. Adding half a unit in the last place rounds; lower bits are cut off.
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

// Transposes sixteen rows of sixteen elements. Rows lie `step` elements apart; missing ones are
// zero.
inline void transpose_16x16_floats(const float* from, int64_t step, int64_t rows, __mmask16 columns, float* to) {
  __m512i r[16], t[16];
  if (rows >= 16 && columns == 0xffff) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(from + i * step);
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i)
      r[i] = _mm512_castps_si512(_mm512_maskz_loadu_ps(i < rows ? columns : 0, from + i * step));
  }
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
    _mm512_store_si512(to + i * 16, _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88));
    _mm512_store_si512(to + (i + 4) * 16, _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88));
    _mm512_store_si512(to + (i + 8) * 16, _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd));
    _mm512_store_si512(to + (i + 12) * 16, _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd));
  }
}

inline __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((uint32_t{1} << std::clamp<int64_t>(count, 0, 16)) - 1);
}

}  // namespace split_detail

// Splits up to 32 rows of the left factor (or columns of the right one) from `side` on. Covers up
// to 32 of k from `depth` on.
//
// Layout of a panel: for each 32 of k, three parts of two tiles each. The second tiles are not
// written if the panel has at most sixteen rows (or columns). A row of a left tile is a row of the
// factor, a row of a right tile is a pair of k. Pairs are of k and k + 16. Any pairing works if
// both factors use the same.
[[gnu::noinline]] inline SplitRange split_block(const SplitSource& source, bool left, int64_t side, int64_t sides,
                                                int64_t depth, int64_t depths, uint16_t* to) {
  const bool along_depth = source.depth_step == 1, transposes = along_depth != left;
  // Distances in elements: between rows in memory, to k + 16, and to what is prefetched. A block
  // has two cache lines of each row.
  const int64_t step = along_depth ? source.side_step : source.depth_step, far = 16 * source.depth_step,
                ahead = along_depth ? 4 * 16 : 2 * far;
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff), one = _mm512_set1_epi32(1);
  // bits of numbers without their sign, minus one; bits
  __m512i min_bits = _mm512_set1_epi32(-1), max_bits = _mm512_setzero_si512();
  alignas(64) float transposed_rows[2][256];
  const auto split_vectors = [&](__m512 low, __m512 high, uint16_t* row) __attribute__((always_inline)) {
    for (const __m512 value : {low, high}) {
      const __m512i bits = _mm512_and_si512(_mm512_castps_si512(value), magnitude);
      max_bits = _mm512_max_epu32(max_bits, bits);
      // zero wraps around to the largest value
      min_bits = _mm512_min_epu32(min_bits, _mm512_sub_epi32(bits, one));
    }
    __m512i parts[3];
    split_detail::split_pair(low, high, parts);
#pragma GCC unroll 3
    for (int part = 0; part < 3; ++part) _mm512_store_si512(row + part * 2 * tile_elements, parts[part]);
  };
  const auto split_rows = [&](const float* low, const float* high, int64_t row_step,
                              uint16_t* tile) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int64_t row = 0; row < 16; ++row)
      split_vectors(_mm512_loadu_ps(low + row * row_step), _mm512_loadu_ps(high + row * row_step), tile + row * 32);
  };
  for (int64_t half = 0; half < sides; half += tile_side) {
    const float* from = source.data + (side + half) * source.side_step + depth * source.depth_step;
    uint16_t* tile = to + half / tile_side * tile_elements;
    // For the first and the second sixteen of k: how many rows in memory there are, and how long
    // they are.
    const int64_t wanted = sides - half, near_rows = along_depth ? wanted : depths,
                  far_rows = along_depth ? wanted : depths - 16;
    const __mmask16 near_lanes = split_detail::first_lanes(along_depth ? depths : wanted),
                    far_lanes = split_detail::first_lanes(along_depth ? depths - 16 : wanted);
    for (int64_t row = 0; row < 16; ++row) {
      _mm_prefetch(from + row * step + ahead, _MM_HINT_T1);
      _mm_prefetch(from + row * step + far + ahead, _MM_HINT_T1);
    }
    if (transposes) {
      split_detail::transpose_16x16_floats(from, step, near_rows, near_lanes, transposed_rows[0]);
      split_detail::transpose_16x16_floats(from + far, step, far_rows, far_lanes, transposed_rows[1]);
      split_rows(transposed_rows[0], transposed_rows[1], 16, tile);
    } else if (near_rows >= 16 && far_rows >= 16 && near_lanes == 0xffff && far_lanes == 0xffff) {
      split_rows(from, from + far, step, tile);
    } else {
      for (int64_t row = 0; row < 16; ++row)
        split_vectors(_mm512_maskz_loadu_ps(row < near_rows ? near_lanes : 0, from + row * step),
                      _mm512_maskz_loadu_ps(row < far_rows ? far_lanes : 0, from + far + row * step), tile + row * 32);
    }
  }
  const uint32_t low = _mm512_reduce_min_epu32(min_bits), high = _mm512_reduce_max_epu32(max_bits);
  return {low == UINT32_MAX ? 255 : static_cast<int32_t>((low + 1) >> 23), static_cast<int32_t>(high >> 23)};
}

// Splits some panels for one chain of k. They are `step` elements apart, the first one at `to`.
// Reads the source along its contiguous dimension.
inline void split_panels(const SplitSource& source, bool left, int64_t side, int64_t sides, int64_t depth,
                         int64_t depths, uint16_t* to, int64_t step, SplitRange* ranges, int64_t range_step) {
  const auto one = [&](int64_t panel, int64_t block) {
    const SplitRange here =
        split_block(source, left, side + panel * panel_side, std::min(panel_side, sides - panel * panel_side),
                    depth + block * tile_depth, std::min(tile_depth, depths - block * tile_depth),
                    to + panel * step + block * tile_block);
    SplitRange& range = ranges[panel * range_step];
    range = block ? SplitRange{std::min(range.lowest, here.lowest), std::max(range.highest, here.highest)} : here;
  };
  const int64_t panels = (sides + panel_side - 1) / panel_side, blocks = (depths + tile_depth - 1) / tile_depth;
  if (source.depth_step == 1) {
    for (int64_t panel = 0; panel < panels; ++panel)
      for (int64_t block = 0; block < blocks; ++block) one(panel, block);
  } else {
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t panel = 0; panel < panels; ++panel) one(panel, block);
  }
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
