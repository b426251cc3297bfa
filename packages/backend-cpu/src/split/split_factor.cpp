#include "split_factor.hpp"

#include <algorithm>

#include "../parallel.hpp"
#include "split_tiles.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace {

// Of k in one sum of the units.
constexpr int64_t chain_depth = longest_chain * tile_depth, chain_elements = longest_chain * tile_block;

int64_t chains_of(int64_t k) {
  return (k + chain_depth - 1) / chain_depth;
}
int64_t panels_of(int64_t side) {
  return (side + panel_side - 1) / panel_side;
}

// All of k for one panel, in one piece of memory.
void split_one(const SplitSource& source, bool left, int64_t panel, int64_t side, int64_t k, uint16_t* to, int32_t* ranges) {
  const int64_t from = panel * panel_side, sides = std::min(panel_side, side - from);
  for (int64_t chain = 0; chain < chains_of(k); ++chain) {
    const int64_t at = panel * chains_of(k) + chain;
    SplitRange range;
    split_panels(source, left, from, sides, chain * chain_depth, std::min(chain_depth, k - chain * chain_depth),
                 to + at * chain_elements, 0, &range, 0);
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
      panels_(panels_of(n) * chains_of(k) * chain_elements),
      ranges_(2 * panels_of(n) * chains_of(k)) {
  parallel_for(panels_of(n), grain_for(2 * panel_side * k), [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel)
      split_one({data_, side_step_, depth_step_}, false, panel, n_, k_, panels_.data(), ranges_.data());
  });
}

SplitRows::SplitRows(int64_t most_rows, int64_t k)
    : k_(k), panels_(panels_of(most_rows) * chains_of(k) * chain_elements), ranges_(2 * panels_of(most_rows) * chains_of(k)) {}

void SplitRows::take(const float* a, int64_t lda, int64_t rows) {
  a_ = a;
  lda_ = lda;
  rows_ = rows;
  for (int64_t panel = 0; panel < panels_of(rows); ++panel)
    split_one({a, lda, 1}, true, panel, rows, k_, panels_.data(), ranges_.data());
}

void SplitRows::multiply(SplitFactor& factor, int64_t panel, float* sums, int64_t step) {
  const int64_t chains = chains_of(k_), columns = std::min(panel_side, factor.n_ - panel * panel_side);
  const auto range = [](Scratch<int32_t>& ranges, int64_t at) { return SplitRange{ranges[2 * at], ranges[2 * at + 1]}; };
  const TileUnits units;
  // The right panel stays in the first cache level for all rows.
  for (int64_t chain = 0; chain < chains; ++chain)
    for (int64_t up = 0; up * panel_side < rows_; ++up) {
      const int64_t rows = std::min(panel_side, rows_ - up * panel_side), depth = std::min(chain_depth, k_ - chain * chain_depth);
      const int64_t left = up * chains + chain, right = panel * chains + chain;
      alignas(64) float block[panel_side * panel_side];
      if (in_range(range(ranges_, left), range(factor.ranges_, right)))
        multiply_split_panels(panels_.data() + left * chain_elements, factor.panels_.data() + right * chain_elements,
                              (depth + tile_depth - 1) / tile_depth, rows, columns, block, [] {});
      else
        multiply_plainly({a_, lda_, 1}, {factor.data_, factor.side_step_, factor.depth_step_}, up * panel_side, rows,
                         panel * panel_side, columns, chain * chain_depth, depth, block);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; j += 16) {
          const __mmask16 mask = split_detail::first_lanes(columns - j);
          float* to = sums + (up * panel_side + i) * step + j;
          const __m512 sum = _mm512_load_ps(block + i * panel_side + j);
          _mm512_mask_storeu_ps(to, mask, chain ? _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), sum) : sum);
        }
    }
}

}  // namespace candelabra::cpu
