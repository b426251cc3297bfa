#include "split_factor.hpp"

#include <algorithm>

#include "../parallel.hpp"
#include "split_tiles.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace {

int64_t parts_of(int64_t k) {
  return (k + split_depth - 1) / split_depth;
}
int64_t panels_of(int64_t side) {
  return (side + panel_side - 1) / panel_side;
}

// All of k for one panel, in one piece of memory.
void split_one(const SplitSource& source, bool left, int64_t panel, int64_t side, int64_t k, uint16_t* to, int32_t* ranges) {
  Splitter splitter;
  const int64_t from = panel * panel_side, sides = std::min(panel_side, side - from);
  for (int64_t part = 0; part < parts_of(k); ++part) {
    const int64_t at = panel * parts_of(k) + part;
    SplitRange range;
    splitter.add(source, left, from, sides, part * split_depth, std::min(split_depth, k - part * split_depth),
                 to + at * split_panel, &range);
    splitter.finish();
    ranges[2 * at] = range.lowest;
    ranges[2 * at + 1] = range.highest;
  }
}

}  // namespace
}  // namespace CANDELABRA_ISA_NAMESPACE

static_assert(split_columns == panel_side);

SplitFactor::SplitFactor(const float* data, int64_t side_step, int64_t depth_step, int64_t n, int64_t k)
    : data_(data),
      side_step_(side_step),
      depth_step_(depth_step),
      n_(n),
      k_(k),
      panels_(panels_of(n) * parts_of(k) * split_panel),
      ranges_(2 * panels_of(n) * parts_of(k)) {
  parallel_for(panels_of(n), grain_for(2 * panel_side * k), [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel)
      split_one({data_, side_step_, depth_step_}, false, panel, n_, k_, panels_.data(), ranges_.data());
  });
}

SplitRows::SplitRows(int64_t most_rows, int64_t k)
    : k_(k), panels_(panels_of(most_rows) * parts_of(k) * split_panel), ranges_(2 * panels_of(most_rows) * parts_of(k)) {}

void SplitRows::take(const float* a, int64_t lda, int64_t rows) {
  a_ = a;
  lda_ = lda;
  rows_ = rows;
  for (int64_t panel = 0; panel < panels_of(rows); ++panel)
    split_one({a, lda, 1}, true, panel, rows, k_, panels_.data(), ranges_.data());
}

void SplitRows::multiply(SplitFactor& factor, int64_t panel, float* sums, int64_t step) {
  const int64_t parts = parts_of(k_), columns = std::min(panel_side, factor.n_ - panel * panel_side);
  const auto range = [](Scratch<int32_t>& ranges, int64_t at) { return SplitRange{ranges[2 * at], ranges[2 * at + 1]}; };
  const TileUnits units;
  Splitter nothing;
  // The right panel stays in the first cache level for all rows.
  for (int64_t part = 0; part < parts; ++part)
    for (int64_t up = 0; up * panel_side < rows_; ++up) {
      const int64_t rows = std::min(panel_side, rows_ - up * panel_side), depth = std::min(split_depth, k_ - part * split_depth);
      const int64_t left = up * parts + part, right = panel * parts + part;
      alignas(64) float block[panel_side * panel_side];
      if (in_range(range(ranges_, left), range(factor.ranges_, right)))
        multiply_split_panels(panels_.data() + left * split_panel, factor.panels_.data() + right * split_panel,
                              (depth + tile_depth - 1) / tile_depth, rows, columns, block, block, nothing, 0);
      else
        multiply_plainly({a_, lda_, 1}, {factor.data_, factor.side_step_, factor.depth_step_}, up * panel_side, rows,
                         panel * panel_side, columns, part * split_depth, depth, block);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; j += 16) {
          const __mmask16 mask = split_detail::first_lanes(columns - j);
          float* to = sums + (up * panel_side + i) * step + j;
          const __m512 sum = _mm512_load_ps(block + i * panel_side + j);
          _mm512_mask_storeu_ps(to, mask, part ? _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), sum) : sum);
        }
    }
}

}  // namespace candelabra::cpu
