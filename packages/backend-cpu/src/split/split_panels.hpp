// Factors of a product in three bfloat16 parts each, in the order in which the tile units take them.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <array>
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

}  // namespace split_detail

// Takes factors apart, a few rows of a tile at a time: between steps of the tile units it costs next to nothing.
//
// In memory a panel is, for each 32 of k, the three parts, and of each its two tiles; the second ones are left as they are where
// the panel has but sixteen rows (or columns). A row of a left tile is one of the factor, of a right one a pair of k. Such pairs
// are of k and k + 16: which they are is free, as long as both factors have the same.
class Splitter {
 public:
  // Rows of the left factor (or columns of the right one) from `side` on in panels, with `depths` of k from `depth` on. What was
  // added before is taken apart before; at most two at a time.
  void add(const SplitSource& source, bool left, int64_t side, int64_t sides, int64_t depth, int64_t depths, uint16_t* panels,
           SplitRange* ranges) {
    if (at_ == count_) at_ = count_ = 0;
    areas_[count_++] = {source, left, side, sides, depth, depths, panels, ranges};
    if (count_ == at_ + 1) begin_panel();
  }
  // How many of these steps there are.
  int64_t steps() const {
    int64_t sum = 0;
    for (int i = at_; i < count_; ++i) {
      const Area& area = areas_[i];
      const int64_t tiles = (area.sides + tile_side - 1) / tile_side * ((area.depths + tile_depth - 1) / tile_depth);
      sum += tiles * (tile_side + (area.turned() ? 3 : 0));
    }
    return sum;
  }
  void finish() { advance(steps()); }

  [[gnu::noinline]] void advance(int64_t steps) {
    while (steps > 0 && at_ < count_) {
      if (row_ == tile_side) {
        split_detail::turn_tile(to_ + turned_ * 2 * tile_elements);
        --steps;
        if (++turned_ == 3) next_tile();
        continue;
      }
      const int64_t rows = std::min(steps, tile_side - row_);
      split_rows(rows);
      steps -= rows;
      if ((row_ += rows) == tile_side && !areas_[at_].turned()) next_tile();
    }
  }

 private:
  struct Area {
    SplitSource source;
    bool left;
    int64_t side, sides, depth, depths;
    uint16_t* panels;
    SplitRange* ranges;
    bool along_depth() const { return source.depth_step == 1; }
    bool turned() const { return along_depth() != left; }
  };

  // In variables of its own: what is written might be members, as far as the compiler knows.
  void split_rows(int64_t rows) {
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff), one = _mm512_set1_epi32(1);
    const int64_t step = step_, to_high = to_high_, ahead = ahead_, low_rows = low_rows_ - row_, high_rows = high_rows_ - row_;
    const float* from = from_ + row_ * step;
    uint16_t* to = to_ + row_ * 32;
    const __mmask16 near = near_, far = far_;
    __m512i least = least_, most = most_;
    for (int64_t row = 0; row < rows; ++row, from += step, to += 32) {
      _mm_prefetch(from + ahead, _MM_HINT_T1);
      _mm_prefetch(from + ahead + to_high, _MM_HINT_T1);
      const __m512 low = _mm512_maskz_loadu_ps(row < low_rows ? near : 0, from),
                   high = _mm512_maskz_loadu_ps(row < high_rows ? far : 0, from + to_high);
      for (const __m512 value : {low, high}) {
        const __m512i bits = _mm512_and_si512(_mm512_castps_si512(value), magnitude);
        most = _mm512_max_epu32(most, bits);
        least = _mm512_min_epu32(least, _mm512_sub_epi32(bits, one));  // zero is the largest of all
      }
      __m512i parts[3];
      split_detail::split_pair(low, high, parts);
#pragma GCC unroll 3
      for (int part = 0; part < 3; ++part) _mm512_store_si512(to + part * 2 * tile_elements, parts[part]);
    }
    least_ = least;
    most_ = most;
  }

  void begin_panel() {
    first_side_ = first_depth_ = 0;
    least_ = _mm512_set1_epi32(-1);
    most_ = _mm512_setzero_si512();
    begin_tile();
  }
  void begin_tile() {
    const Area& area = areas_[at_];
    const SplitSource& source = area.source;
    const int64_t side = panel_ * panel_side + first_side_, sides = area.sides - side, depths = area.depths - first_depth_;
    from_ = source.data + (area.side + side) * source.side_step + (area.depth + first_depth_) * source.depth_step;
    const bool along = area.along_depth();
    step_ = along ? source.side_step : source.depth_step;
    to_high_ = along ? 16 : 16 * step_;
    near_ = split_detail::first_lanes(along ? depths : sides);
    far_ = along ? split_detail::first_lanes(depths - 16) : near_;
    low_rows_ = along ? sides : depths;
    high_rows_ = along ? sides : depths - 16;
    // The next panel is asked for, and with the last one the first of the next part: nothing is read by asking.
    ahead_ = area.sides > (panel_ + 1) * panel_side ? panel_side * source.side_step
                                                    : split_depth * source.depth_step - panel_ * panel_side * source.side_step;
    to_ = area.panels + panel_ * split_panel + first_depth_ / tile_depth * 6 * tile_elements +
          first_side_ / tile_side * tile_elements;
    row_ = turned_ = 0;
  }
  void next_tile() {
    const Area& area = areas_[at_];
    first_side_ = tile_side - first_side_;
    if (first_side_ != 0 && panel_ * panel_side + first_side_ < area.sides) return begin_tile();
    first_side_ = 0;
    first_depth_ += tile_depth;
    if (first_depth_ < area.depths) return begin_tile();
    SplitRange& range = area.ranges[panel_];
    const uint32_t low = _mm512_reduce_min_epu32(least_), high = _mm512_reduce_max_epu32(most_);
    range.lowest = low == UINT32_MAX ? 255 : static_cast<int32_t>((low + 1) >> 23);
    range.highest = static_cast<int32_t>(high >> 23);
    if (++panel_ * panel_side >= area.sides) {
      panel_ = 0;
      if (++at_ == count_) return;
    }
    begin_panel();
  }

  std::array<Area, 2> areas_;
  int at_ = 0, count_ = 0;
  // The tile at hand, and where it is in its area.
  int64_t panel_ = 0, first_side_ = 0, first_depth_ = 0, row_ = 0, turned_ = 0;
  const float* from_ = nullptr;
  uint16_t* to_ = nullptr;
  int64_t step_ = 0, to_high_ = 0, ahead_ = 0, low_rows_ = 0, high_rows_ = 0;
  __mmask16 near_ = 0, far_ = 0;
  __m512i least_, most_;  // bits of numbers without their sign, less one; bits
};

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
