#include "tile_panels.hpp"

#include <immintrin.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "../parallel.hpp"
#include "../transpose.hpp"
#include "split_panels.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace {

constexpr int64_t panel_tiles = 4, split_parts = 3;
constexpr int64_t depth_of_part = 128;  // of k: sums of so many products are added in float32
// Of a left factor, and of a right panel, what belongs to 32 of k: the three parts of a tile, or of all four.
constexpr int64_t left_block = split_parts * tile_elements, right_block = panel_tiles * left_block;

int64_t blocks_of(int64_t k) {
  return (k + tile_depth - 1) / tile_depth;
}
int64_t parts_of(int64_t k) {
  return (k + depth_of_part - 1) / depth_of_part;
}

struct Exponents {
  __m512i least = _mm512_set1_epi32(-1), most = _mm512_setzero_si512();

  void add(__m512 value) {
    const __m512i bits = _mm512_and_si512(_mm512_castps_si512(value), _mm512_set1_epi32(0x7fffffff));
    most = _mm512_max_epu32(most, bits);
    least = _mm512_min_epu32(least, _mm512_sub_epi32(bits, _mm512_set1_epi32(1)));  // zero is the largest of all
  }
  SplitRange range() const {
    const uint32_t low = _mm512_reduce_min_epu32(least), high = _mm512_reduce_max_epu32(most);
    return {low == UINT32_MAX ? 255 : static_cast<int32_t>((low + 1) >> 23), static_cast<int32_t>(high >> 23)};
  }
};

// One tile in three parts, `part_step` elements apart: 32 of k for up to sixteen rows of a left factor or columns of a right one.
// A row of a left tile is one of the factor, of a right one a pair of k; such pairs are of k and k + 16, in both factors. A left
// factor lies along k.
void split_tile(const SplitSource& source, bool left, int64_t side, int64_t sides, int64_t depth, int64_t depths, uint16_t* to,
                int64_t part_step, Exponents& exponents) {
  const float *low = source.data + side * source.side_step + depth * source.depth_step, *high = low + 16 * source.depth_step;
  const int64_t near = std::clamp<int64_t>(depths, 0, 16), far = std::clamp<int64_t>(depths - 16, 0, 16);
  int64_t step = left ? source.side_step : source.depth_step;
  alignas(64) float turned[2][tile_side * 16];
  if (!left && source.depth_step == 1) {
    const auto turn = [&](const float* from, int64_t columns, float* into) {
      transpose_tile(reinterpret_cast<uint32_t*>(into), 16, reinterpret_cast<const uint32_t*>(from), source.side_step, sides,
                     columns);
    };
    turn(low, near, turned[0]);
    turn(high, far, turned[1]);
    low = turned[0];
    high = turned[1];
    step = 16;
  }
  const int64_t low_rows = left ? sides : near, high_rows = left ? sides : far;
  const __mmask16 low_lanes = split_detail::first_lanes(left ? near : sides),
                  high_lanes = split_detail::first_lanes(left ? far : sides);
  for (int64_t row = 0; row < tile_side; ++row) {
    const __m512 l = row < low_rows ? _mm512_maskz_loadu_ps(low_lanes, low + row * step) : _mm512_setzero_ps(),
                 h = row < high_rows ? _mm512_maskz_loadu_ps(high_lanes, high + row * step) : _mm512_setzero_ps();
    exponents.add(l);
    exponents.add(h);
    __m512i parts[split_parts];
    split_detail::split_pair(l, h, parts);
#pragma GCC unroll 3
    for (int64_t part = 0; part < split_parts; ++part) _mm512_store_si512(to + part * part_step + row * 32, parts[part]);
  }
}

// Sums of `rows` × `columns` tiles over `blocks` times 32 of k; those of products of small parts first, and apart, as in
// split_tiles.hpp. Tiles 0 to 3 are the sums; the factors are loaded from the first cache level as they are needed.
template <int columns, int part>
[[gnu::always_inline]] inline void across(const uint16_t* right) {
  // The numbers of tiles have to be literals.
  const auto one = [&]<int column>(std::integral_constant<int, column>) {
    if constexpr (column < columns) {
      _tile_loadd(7, right + column * tile_elements, 64);
      if constexpr (column == 0 && part == 0) _tile_dpbf16ps(0, 4, 7);
      if constexpr (column == 0 && part == 1) _tile_dpbf16ps(0, 5, 7);
      if constexpr (column == 0 && part == 2) _tile_dpbf16ps(0, 6, 7);
      if constexpr (column == 1 && part == 0) _tile_dpbf16ps(1, 4, 7);
      if constexpr (column == 1 && part == 1) _tile_dpbf16ps(1, 5, 7);
      if constexpr (column == 1 && part == 2) _tile_dpbf16ps(1, 6, 7);
      if constexpr (column == 2 && part == 0) _tile_dpbf16ps(2, 4, 7);
      if constexpr (column == 2 && part == 1) _tile_dpbf16ps(2, 5, 7);
      if constexpr (column == 2 && part == 2) _tile_dpbf16ps(2, 6, 7);
      if constexpr (column == 3 && part == 0) _tile_dpbf16ps(3, 4, 7);
      if constexpr (column == 3 && part == 1) _tile_dpbf16ps(3, 5, 7);
      if constexpr (column == 3 && part == 2) _tile_dpbf16ps(3, 6, 7);
    }
  };
  one(std::integral_constant<int, 0>{});
  one(std::integral_constant<int, 1>{});
  one(std::integral_constant<int, 2>{});
  one(std::integral_constant<int, 3>{});
}

template <int columns>
[[gnu::noinline]] void multiply_row(const uint16_t* left, const uint16_t* right, int64_t blocks, float* sums) {
  constexpr int64_t part = panel_tiles * tile_elements;
  // The intrinsics do not say that they read and write memory.
  __asm__ volatile("" : : : "memory");
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const uint16_t *a = left, *b = right;
  for (int64_t k = 0; k < blocks; ++k, a += left_block, b += right_block) {
    _tile_loadd(4, a, 64);
    _tile_loadd(5, a + tile_elements, 64);
    _tile_loadd(6, a + 2 * tile_elements, 64);
    across<columns, 0>(b + 2 * part);  // a1 b3
    across<columns, 0>(b + part);      // a1 b2
    across<columns, 1>(b + part);      // a2 b2
    across<columns, 1>(b);             // a2 b1
    across<columns, 2>(b);             // a3 b1
  }
  a = left;
  b = right;
  for (int64_t k = 0; k < blocks; ++k, a += left_block, b += right_block) {
    _tile_loadd(4, a, 64);
    across<columns, 0>(b);  // a1 b1
  }
  constexpr int64_t pitch = tile_panel_columns * sizeof(float);
  _tile_stored(0, sums, pitch);
  if constexpr (columns > 1) _tile_stored(1, sums + tile_side, pitch);
  if constexpr (columns > 2) _tile_stored(2, sums + 2 * tile_side, pitch);
  if constexpr (columns > 3) _tile_stored(3, sums + 3 * tile_side, pitch);
  __asm__ volatile("" : : : "memory");
}

// Two tiles of rows by two of columns: half of what a row alone reads of the right factor. `down` is where the second rows are.
[[gnu::always_inline]] inline void square(const uint16_t* left, int64_t down, const uint16_t* right) {
  _tile_loadd(4, left, 64);
  _tile_loadd(5, left + down, 64);
  _tile_loadd(6, right, 64);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(7, right + tile_elements, 64);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(3, 5, 7);
}
[[gnu::noinline]] void multiply_square(const uint16_t* left, int64_t down, const uint16_t* right, int64_t blocks, float* sums) {
  constexpr int64_t part = panel_tiles * tile_elements;
  __asm__ volatile("" : : : "memory");
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const uint16_t *a = left, *b = right;
  for (int64_t k = 0; k < blocks; ++k, a += left_block, b += right_block) {
    square(a, down, b + 2 * part);
    square(a, down, b + part);
    square(a + tile_elements, down, b + part);
    square(a + tile_elements, down, b);
    square(a + 2 * tile_elements, down, b);
  }
  a = left;
  b = right;
  for (int64_t k = 0; k < blocks; ++k, a += left_block, b += right_block) square(a, down, b);
  constexpr int64_t pitch = tile_panel_columns * sizeof(float), below = tile_side * tile_panel_columns;
  _tile_stored(0, sums, pitch);
  _tile_stored(1, sums + tile_side, pitch);
  _tile_stored(2, sums + below, pitch);
  _tile_stored(3, sums + below + tile_side, pitch);
  __asm__ volatile("" : : : "memory");
}

void configure(int64_t rows) {
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

}  // namespace
}  // namespace CANDELABRA_ISA_NAMESPACE

static_assert(tile_columns == tile_side && tile_panel_columns == panel_tiles * tile_side);

int64_t TilePanels::parts() const {
  return parts_of(k_);
}

TilePanels::TilePanels(const float* data, int64_t side_step, int64_t depth_step, int64_t k, std::vector<TileColumns> columns)
    : data_(data),
      side_step_(side_step),
      depth_step_(depth_step),
      k_(k),
      columns_(std::move(columns)),
      tiles_(static_cast<int64_t>(columns_.size()) / panel_tiles * blocks_of(k) * right_block),
      ranges_(static_cast<int64_t>(columns_.size()) / panel_tiles * parts_of(k)) {
  const int64_t panels = static_cast<int64_t>(columns_.size()) / panel_tiles;
  const SplitSource source{data_, side_step_, depth_step_};
  parallel_for(panels, grain_for(2 * tile_panel_columns * k), [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel)
      for (int64_t part = 0; part < parts_of(k_); ++part) {
        Exponents exponents;
        for (int64_t depth = part * depth_of_part; depth < std::min(k_, (part + 1) * depth_of_part); depth += tile_depth)
          for (int64_t tile = 0; tile < panel_tiles; ++tile) {
            const TileColumns& some = columns_[static_cast<size_t>(panel * panel_tiles + tile)];
            uint16_t* to = tiles_.data() + (panel * blocks_of(k_) + depth / tile_depth) * right_block + tile * tile_elements;
            split_tile(source, false, some.first, some.count, depth, std::min(tile_depth, k_ - depth), to,
                       panel_tiles * tile_elements, exponents);
          }
        const SplitRange range = exponents.range();
        ranges_[panel * parts_of(k_) + part] = {range.lowest, range.highest};
      }
  });
}

TileRows::TileRows(int64_t most_rows, int64_t k)
    : k_(k),
      tiles_(padded_rows(most_rows) / tile_side * blocks_of(k) * left_block),
      ranges_(padded_rows(most_rows) / tile_side * parts_of(k)) {
  configure(std::clamp<int64_t>(most_rows, 1, tile_side));
}

TileRows::~TileRows() {
  _tile_release();
}

void TileRows::take(const float* rows, int64_t step, int64_t count) {
  rows_ = rows;
  step_ = step;
  count_ = count;
  // Rows are taken in pairs of tiles, unless they fit into one; those that are not there are zeros.
  const int64_t tiles = count <= tile_side ? 1 : padded_rows(count) / tile_side;
  for (int64_t tile = 0; tile < tiles; ++tile)
    for (int64_t part = 0; part < parts_of(k_); ++part) {
      Exponents exponents;
      for (int64_t depth = part * depth_of_part; depth < std::min(k_, (part + 1) * depth_of_part); depth += tile_depth)
        split_tile({rows, step, 1}, true, tile * tile_side, std::clamp<int64_t>(count - tile * tile_side, 0, tile_side), depth,
                   std::min(tile_depth, k_ - depth), tiles_.data() + (tile * blocks_of(k_) + depth / tile_depth) * left_block,
                   tile_elements, exponents);
      const SplitRange range = exponents.range();
      ranges_[tile * parts_of(k_) + part] = {range.lowest, range.highest};
    }
}

void TileRows::multiply(TilePanels& factor, int64_t panel, float* sums, int tiles) {
  const int64_t parts = parts_of(k_);
  alignas(64) float block[2 * tile_side * tile_panel_columns];
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t depth = part * depth_of_part, depths = std::min(depth_of_part, k_ - depth), blocks = blocks_of(depths);
    const uint16_t* right = factor.tiles_.data() + (panel * blocks_of(k_) + depth / tile_depth) * right_block;
    const TilePanels::Range of_right = factor.ranges_[panel * parts + part];
    const SplitRange right_range{of_right.lowest, of_right.highest};
    const bool single = count_ <= tile_side;
    const int64_t together = single ? tile_side : 2 * tile_side;
    for (int64_t row = 0; row < count_; row += together) {
      const int64_t tile = row / tile_side, here = std::min(together, count_ - row);
      const uint16_t* left = tiles_.data() + (tile * blocks_of(k_) + depth / tile_depth) * left_block;
      float* to = part ? block : sums + row * tile_panel_columns;
      if (single) {
        tiles == 4   ? multiply_row<4>(left, right, blocks, to)
        : tiles == 3 ? multiply_row<3>(left, right, blocks, to)
        : tiles == 2 ? multiply_row<2>(left, right, blocks, to)
                     : multiply_row<1>(left, right, blocks, to);
      } else {
        const int64_t down = blocks_of(k_) * left_block;
        multiply_square(left, down, right, blocks, to);
        if (tiles > 2) multiply_square(left, down, right + 2 * tile_elements, blocks, to + 2 * tile_side);
      }
      // Rows that the units cannot do, in float32 as they are; which ones does not depend on the rows around them.
      for (int64_t from = row; from < row + here; from += tile_side) {
        const TilePanels::Range of_left = ranges_[from / tile_side * parts + part];
        if (in_range({of_left.lowest, of_left.highest}, right_range)) continue;
        for (int64_t i = from; i < std::min(from + tile_side, row + here); ++i) {
          const float* a = rows_ + i * step_ + depth;
          Exponents exponents;
          for (int64_t k = 0; k < depths; k += 16)
            exponents.add(_mm512_maskz_loadu_ps(split_detail::first_lanes(depths - k), a + k));
          if (in_range(exponents.range(), right_range)) continue;
          for (int v = 0; v < tiles; ++v) {
            const TileColumns& some = factor.columns_[static_cast<size_t>(panel * panel_tiles + v)];
            for (int64_t j = 0; j < some.count; ++j) {
              const float* b = factor.data_ + (some.first + j) * factor.side_step_ + depth * factor.depth_step_;
              float sum = 0;
              for (int64_t k = 0; k < depths; ++k) sum += a[k] * b[k * factor.depth_step_];
              to[(i - row) * tile_panel_columns + v * tile_side + j] = sum;
            }
          }
        }
      }
      if (part == 0) continue;
      for (int64_t i = 0; i < here; ++i)
        for (int v = 0; v < tiles; ++v) {
          float* sum = sums + (row + i) * tile_panel_columns + v * tile_side;
          _mm512_storeu_ps(sum,
                           _mm512_add_ps(_mm512_loadu_ps(sum), _mm512_load_ps(block + i * tile_panel_columns + v * tile_side)));
        }
    }
  }
}

}  // namespace candelabra::cpu
