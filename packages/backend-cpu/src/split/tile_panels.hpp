// Products with one factor that many of them have in common, on the tile units: what Panels (matmul/panels.hpp) is for the vector
// units. The factor is taken apart once, in panels of four tiles of columns, which may lie anywhere in it; so one panel can be the
// gates of the same units of a recurrent layer. Sixteen rows fill the units. What comes after a product is done
// between the steps of the next one, so that both kinds of units are busy.
#pragma once

#include <cstdint>
#include <vector>

#include "../allocator.hpp"

namespace candelabra::cpu {

// Columns of a tile, and of a panel.
constexpr int64_t tile_columns = 16, tile_panel_columns = 64;

// Some columns next to each other in the factor; at most those of a tile.
struct TileColumns {
  int64_t first, count;
};

// The right factor, k rows: columns lie `side_step` apart and elements of one `depth_step`; one of the two is 1. Panel p has the
// columns columns[4 p] to columns[4 p + 3]. What it is made of has to stay.
class TilePanels {
 public:
  TilePanels(const float* data, int64_t side_step, int64_t depth_step, int64_t k, std::vector<TileColumns> columns);

 private:
  friend class TileRows;
  struct Range {
    int32_t lowest, highest;
  };
  int64_t parts() const;
  const float* data_;
  int64_t side_step_, depth_step_, k_;
  std::vector<TileColumns> columns_;
  Scratch<uint16_t> tiles_;
  Scratch<Range> ranges_;  // of the exponents, for each panel and part of k
};

// Work of the caller's on the vector units while the tile units multiply: work(context, i, n) is to do part i of n.
struct Between {
  void (*work)(void* context, int64_t part, int64_t parts) = nullptr;
  void* context = nullptr;
};

// A left factor of at most so many rows, on one thread, which does not use the units otherwise while this lives; made where
// has_split_gemm(). The results of a row do not depend on the rows around it.
class TileRows {
 public:
  TileRows(int64_t most_rows, int64_t k);
  ~TileRows();
  TileRows(const TileRows&) = delete;
  TileRows& operator=(const TileRows&) = delete;
  // The next one; `step` elements from row to row. It stays where it is until the products with it are done.
  void take(const float* rows, int64_t step, int64_t count);
  // Of panel p the first `tiles` tiles: sums[i * 64 + j] = the product of row i and column j of the panel.
  void multiply(TilePanels& factor, int64_t panel, float* sums, int tiles, const Between& between);

 private:
  void multiply_plainly(TilePanels& factor, int64_t panel, int64_t row, int column, int columns, int64_t depth, int64_t depths,
                        const TilePanels::Range& of_right, float* sums);
  int64_t k_, count_ = 0, step_ = 0;
  const float* rows_ = nullptr;
  Scratch<uint16_t> tiles_;
  Scratch<TilePanels::Range> ranges_;
};

}  // namespace candelabra::cpu
