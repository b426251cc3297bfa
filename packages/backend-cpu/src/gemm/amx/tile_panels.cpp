#include "gemm/amx/tile_panels.hpp"

#include <immintrin.h>

#include <algorithm>
#include <utility>

#include "gemm/amx/bf16x3_tiles.hpp"
#include "memory/transpose.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace {

constexpr int64_t panel_tiles = 4, split_parts = 3;
constexpr int64_t depth_of_part = 128;  // k of a part: its sums are added in float32
// Elements per 32 of k: the three parts of one tile in a left factor, and of four tiles in a right
// panel.
constexpr int64_t left_block = split_parts * tile_elements, right_block = panel_tiles * left_block;

int64_t blocks_of(int64_t k) {
  return (k + tile_depth - 1) / tile_depth;
}
int64_t parts_of(int64_t k) {
  return (k + depth_of_part - 1) / depth_of_part;
}
int64_t tiles_of(int64_t rows) {
  return (rows + tile_side - 1) / tile_side;
}

struct Exponents {
  __m512i min_bits = _mm512_set1_epi32(-1), max_bits = _mm512_setzero_si512();

  void add(__m512 value) {
    const __m512i bits = _mm512_and_si512(_mm512_castps_si512(value), _mm512_set1_epi32(0x7fffffff));
    max_bits = _mm512_max_epu32(max_bits, bits);
    // zero wraps around to the largest value
    min_bits = _mm512_min_epu32(min_bits, _mm512_sub_epi32(bits, _mm512_set1_epi32(1)));
  }
  SplitRange range() const {
    const uint32_t low = _mm512_reduce_min_epu32(min_bits), high = _mm512_reduce_max_epu32(max_bits);
    return {low == UINT32_MAX ? 255 : static_cast<int32_t>((low + 1) >> 23), static_cast<int32_t>(high >> 23)};
  }
};

// Splits one tile into three parts that lie `part_step` elements apart: 32 of k for up to sixteen
// rows of a left factor or columns of a right one. A row of a left tile is a row of the factor, a
// row of a right tile is a pair of k. Pairs are of k and k + 16 in both factors. A left factor is
// contiguous along k.
void split_tile(const SplitSource& source, bool left, int64_t side, int64_t sides, int64_t depth, int64_t depths,
                uint16_t* to, int64_t part_step, Exponents& exponents) {
  const float *low = source.data + side * source.side_step + depth * source.depth_step,
              *high = low + 16 * source.depth_step;
  const int64_t near = std::clamp<int64_t>(depths, 0, 16), far = std::clamp<int64_t>(depths - 16, 0, 16);
  int64_t step = left ? source.side_step : source.depth_step;
  alignas(64) float transposed[2][tile_side * 16];
  if (!left && source.depth_step == 1) {
    const auto transpose = [&](const float* from, int64_t columns, float* into) {
      transpose_bits(reinterpret_cast<uint32_t*>(into), 16, reinterpret_cast<const uint32_t*>(from), source.side_step,
                     sides, columns);
    };
    transpose(low, near, transposed[0]);
    transpose(high, far, transposed[1]);
    low = transposed[0];
    high = transposed[1];
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
    for (int64_t part = 0; part < split_parts; ++part)
      _mm512_store_si512(to + part * part_step + row * 32, parts[part]);
  }
}

// Runs the caller's work between the steps of a product, one part at a time.
class Interleaved {
 public:
  Interleaved(const Between& between, int64_t steps) : between_(between), steps_(steps) {}
  [[gnu::always_inline]] void next() {
    if (between_.work) between_.work(between_.context, step_++, steps_);
  }

 private:
  Between between_;
  int64_t step_ = 0, steps_;
};
constexpr int64_t steps_of_block = 3;

// Sums of sixteen rows with one to three tiles of columns over `blocks` times 32 of k. Products of
// small parts have accumulators of their own, which are added last, so that the right factor is
// read once. Tile numbers must be literals. About three other products must lie between two on the
// same accumulator, hence the order.
[[gnu::always_inline]] inline void load_right(const uint16_t* tile) {
  _tile_loadd(7, tile, 64);
}

constexpr int64_t of_part = panel_tiles * tile_elements;  // step between parts of a right block

[[gnu::noinline]] void multiply_one(const uint16_t* a, const uint16_t* b, int64_t blocks, float* sums,
                                    Interleaved& between) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t k = 0; k < blocks; ++k, a += left_block, b += right_block) {
    _tile_loadd(4, a, 64);
    _tile_loadd(5, a + tile_elements, 64);
    _tile_loadd(6, a + 2 * tile_elements, 64);
    load_right(b + 2 * of_part);
    _tile_dpbf16ps(0, 4, 7);
    load_right(b);
    _tile_dpbf16ps(3, 4, 7);
    between.next();
    _tile_dpbf16ps(1, 5, 7);
    _tile_dpbf16ps(2, 6, 7);
    between.next();
    load_right(b + of_part);
    _tile_dpbf16ps(0, 4, 7);
    _tile_dpbf16ps(1, 5, 7);
    between.next();
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + 256, 64);
  _tile_stored(2, sums + 512, 64);
  _tile_stored(3, sums + 768, 64);
}

[[gnu::noinline]] void multiply_two(const uint16_t* a, const uint16_t* b, int64_t blocks, float* sums,
                                    Interleaved& between) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t k = 0; k < blocks; ++k, a += left_block, b += right_block) {
    _tile_loadd(4, a, 64);
    _tile_loadd(5, a + tile_elements, 64);
    _tile_loadd(6, a + 2 * tile_elements, 64);
    load_right(b + 2 * of_part);
    _tile_dpbf16ps(0, 4, 7);
    load_right(b + 2 * of_part + tile_elements);
    _tile_dpbf16ps(1, 4, 7);
    load_right(b);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(0, 5, 7);
    between.next();
    load_right(b + tile_elements);
    _tile_dpbf16ps(3, 4, 7);
    _tile_dpbf16ps(1, 5, 7);
    load_right(b + of_part);
    _tile_dpbf16ps(0, 4, 7);
    load_right(b + of_part + tile_elements);
    _tile_dpbf16ps(1, 4, 7);
    between.next();
    load_right(b);
    _tile_dpbf16ps(0, 6, 7);
    load_right(b + tile_elements);
    _tile_dpbf16ps(1, 6, 7);
    load_right(b + of_part);
    _tile_dpbf16ps(0, 5, 7);
    load_right(b + of_part + tile_elements);
    _tile_dpbf16ps(1, 5, 7);
    between.next();
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + 256, 64);
  _tile_stored(2, sums + 512, 64);
  _tile_stored(3, sums + 768, 64);
}

[[gnu::noinline]] void multiply_three(const uint16_t* a, const uint16_t* b, int64_t blocks, float* sums,
                                      Interleaved& between) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (int64_t k = 0; k < blocks; ++k, a += left_block, b += right_block) {
    _tile_loadd(6, a, 64);
    load_right(b + 2 * of_part);
    _tile_dpbf16ps(0, 6, 7);
    load_right(b + 2 * of_part + tile_elements);
    _tile_dpbf16ps(1, 6, 7);
    load_right(b + 2 * of_part + 2 * tile_elements);
    _tile_dpbf16ps(2, 6, 7);
    load_right(b);
    _tile_dpbf16ps(3, 6, 7);
    load_right(b + tile_elements);
    _tile_dpbf16ps(4, 6, 7);
    load_right(b + 2 * tile_elements);
    _tile_dpbf16ps(5, 6, 7);
    between.next();
    load_right(b + of_part);
    _tile_dpbf16ps(0, 6, 7);
    load_right(b + of_part + tile_elements);
    _tile_dpbf16ps(1, 6, 7);
    load_right(b + of_part + 2 * tile_elements);
    _tile_dpbf16ps(2, 6, 7);
    _tile_loadd(6, a + tile_elements, 64);
    load_right(b + of_part);
    _tile_dpbf16ps(0, 6, 7);
    load_right(b + of_part + tile_elements);
    _tile_dpbf16ps(1, 6, 7);
    load_right(b + of_part + 2 * tile_elements);
    _tile_dpbf16ps(2, 6, 7);
    between.next();
    load_right(b);
    _tile_dpbf16ps(0, 6, 7);
    load_right(b + tile_elements);
    _tile_dpbf16ps(1, 6, 7);
    load_right(b + 2 * tile_elements);
    _tile_dpbf16ps(2, 6, 7);
    _tile_loadd(6, a + 2 * tile_elements, 64);
    load_right(b);
    _tile_dpbf16ps(0, 6, 7);
    load_right(b + tile_elements);
    _tile_dpbf16ps(1, 6, 7);
    load_right(b + 2 * tile_elements);
    _tile_dpbf16ps(2, 6, 7);
    between.next();
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + 256, 64);
  _tile_stored(2, sums + 512, 64);
  _tile_stored(3, sums + 768, 64);
  _tile_stored(4, sums + 1024, 64);
  _tile_stored(5, sums + 1280, 64);
}

// sums (+)= left @ right for `rows` rows and up to three tiles of columns.
void multiply_tiles(const uint16_t* left, const uint16_t* right, int64_t blocks, int64_t rows, int columns, bool add,
                    float* sums, Interleaved& between) {
  constexpr int64_t tile = tile_side * 16;
  alignas(64) float parts[6 * tile];
  // The intrinsics do not declare that they read and write memory.
  __asm__ volatile("" : : "r"(parts) : "memory");
  columns == 3   ? multiply_three(left, right, blocks, parts, between)
  : columns == 2 ? multiply_two(left, right, blocks, parts, between)
                 : multiply_one(left, right, blocks, parts, between);
  __asm__ volatile("" : : "r"(parts) : "memory");
  // Accumulators of a column: with one column three of small parts and one of large ones, else one
  // each.
  const int small = columns == 1 ? 3 : 1, large = columns == 1 ? 3 : columns;
  for (int column = 0; column < columns; ++column)
    for (int64_t row = 0; row < rows; ++row) {
      __m512 sum = _mm512_load_ps(parts + column * tile + row * 16);
      for (int i = 1; i < small; ++i) sum = _mm512_add_ps(sum, _mm512_load_ps(parts + (column + i) * tile + row * 16));
      sum = _mm512_add_ps(sum, _mm512_load_ps(parts + (column + large) * tile + row * 16));
      float* to = sums + row * tile_panel_columns + column * 16;
      _mm512_storeu_ps(to, add ? _mm512_add_ps(_mm512_loadu_ps(to), sum) : sum);
    }
}

}  // namespace
}  // namespace CANDELABRA_ISA_NAMESPACE

static_assert(tile_columns == tile_side && tile_panel_columns == panel_tiles * tile_side);

int64_t TilePanels::parts() const {
  return parts_of(k_);
}

TilePanels::TilePanels(const float* data, int64_t side_step, int64_t depth_step, int64_t k,
                       std::vector<TileColumns> columns)
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
        for (int64_t depth = part * depth_of_part; depth < std::min(k_, (part + 1) * depth_of_part);
             depth += tile_depth)
          for (int64_t tile = 0; tile < panel_tiles; ++tile) {
            const TileColumns& some = columns_[static_cast<size_t>(panel * panel_tiles + tile)];
            uint16_t* to =
                tiles_.data() + (panel * blocks_of(k_) + depth / tile_depth) * right_block + tile * tile_elements;
            split_tile(source, false, some.first, some.count, depth, std::min(tile_depth, k_ - depth), to,
                       panel_tiles * tile_elements, exponents);
          }
        const SplitRange range = exponents.range();
        ranges_[panel * parts_of(k_) + part] = {range.lowest, range.highest};
      }
  });
}

TileRows::TileRows(int64_t most_rows, int64_t k)
    : k_(k), tiles_(tiles_of(most_rows) * blocks_of(k) * left_block), ranges_(tiles_of(most_rows) * parts_of(k)) {
  configure_tiles(std::clamp<int64_t>(most_rows, 1, tile_side));
}

TileRows::~TileRows() {
  _tile_release();
}

void TileRows::set_rows(const float* rows, int64_t step, int64_t count) {
  rows_ = rows;
  step_ = step;
  count_ = count;
  for (int64_t tile = 0; tile < tiles_of(count); ++tile)
    for (int64_t part = 0; part < parts_of(k_); ++part) {
      Exponents exponents;
      for (int64_t depth = part * depth_of_part; depth < std::min(k_, (part + 1) * depth_of_part); depth += tile_depth)
        split_tile({rows, step, 1}, true, tile * tile_side, std::min(tile_side, count - tile * tile_side), depth,
                   std::min(tile_depth, k_ - depth),
                   tiles_.data() + (tile * blocks_of(k_) + depth / tile_depth) * left_block, tile_elements, exponents);
      const SplitRange range = exponents.range();
      ranges_[tile * parts_of(k_) + part] = {range.lowest, range.highest};
    }
}

void TileRows::multiply(TilePanels& factor, int64_t panel, float* sums, int tiles, const Between& between) {
  const int64_t parts = parts_of(k_), row_tiles = tiles_of(count_);
  // Three tiles of columns at once, else two, which keep AMX busy.
  const int batch = tiles == 3 ? 3 : 2, groups = (tiles + batch - 1) / batch;
  Interleaved interleaved(between, blocks_of(k_) * row_tiles * groups * steps_of_block);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t depth = part * depth_of_part, depths = std::min(depth_of_part, k_ - depth);
    const uint16_t* right = factor.tiles_.data() + (panel * blocks_of(k_) + depth / tile_depth) * right_block;
    const TilePanels::Range of_right = factor.ranges_[panel * parts + part];
    const SplitRange right_range{of_right.lowest, of_right.highest};
    for (int column = 0; column < tiles; column += batch)
      for (int64_t tile = 0; tile < row_tiles; ++tile) {
        const int64_t row = tile * tile_side, here = std::min(tile_side, count_ - row);
        const uint16_t* left = tiles_.data() + (tile * blocks_of(k_) + depth / tile_depth) * left_block;
        const int columns = std::min(batch, tiles - column);
        float* to = sums + row * tile_panel_columns + column * tile_side;
        const TilePanels::Range of_left = ranges_[tile * parts + part];
        if (in_range({of_left.lowest, of_left.highest}, right_range)) [[likely]] {
          multiply_tiles(left, right + column * tile_elements, blocks_of(depths), here, columns, part > 0, to,
                         interleaved);
          continue;
        }
        alignas(64) float block[tile_side * tile_panel_columns];
        multiply_tiles(left, right + column * tile_elements, blocks_of(depths), here, columns, false, block,
                       interleaved);
        for (int64_t i = 0; i < here; ++i) {
          multiply_float32(factor, panel, row + i, column, columns, depth, depths, of_right,
                           block + i * tile_panel_columns);
          for (int64_t j = 0; j < columns * tile_side; ++j) {
            float& sum = to[i * tile_panel_columns + j];
            sum = part ? sum + block[i * tile_panel_columns + j] : block[i * tile_panel_columns + j];
          }
        }
      }
  }
}

// Multiplies a row outside the range of the emulation in plain float32. The choice does not depend
// on the rows around it.
void TileRows::multiply_float32(TilePanels& factor, int64_t panel, int64_t row, int column, int columns, int64_t depth,
                                int64_t depths, const TilePanels::Range& of_right, float* sums) {
  const float* a = rows_ + row * step_ + depth;
  Exponents exponents;
  for (int64_t k = 0; k < depths; k += 16)
    exponents.add(_mm512_maskz_loadu_ps(split_detail::first_lanes(depths - k), a + k));
  if (in_range(exponents.range(), {of_right.lowest, of_right.highest})) return;
  for (int v = 0; v < columns; ++v) {
    const TileColumns& some = factor.columns_[static_cast<size_t>(panel * panel_tiles + column + v)];
    for (int64_t j = 0; j < some.count; ++j) {
      const float* b = factor.data_ + (some.first + j) * factor.side_step_ + depth * factor.depth_step_;
      float sum = 0;
      for (int64_t k = 0; k < depths; ++k) sum += a[k] * b[k * factor.depth_step_];
      sums[v * tile_side + j] = sum;
    }
  }
}

}  // namespace candelabra::cpu
