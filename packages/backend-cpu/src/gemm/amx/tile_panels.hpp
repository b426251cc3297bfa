// Products with a common right factor on AMX: the counterpart of Panels (gemm/panels.hpp). The
// factor is split once, into panels of four tiles of columns. The tiles may lie anywhere in it, so
// that a panel can hold the gates of the same units of a recurrent layer. Sixteen rows fill a tile.
// The epilogue of a product runs between the steps of the next one, so that AMX and the vector
// units are both busy.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/allocator.hpp"

namespace candelabra::cpu {

// Columns of a tile, and of a panel.
constexpr int64_t tile_columns = 16, tile_panel_columns = 64;

// Adjacent columns of the factor, at most one tile of them.
struct TileColumns {
  int64_t first, count;
};

// The right factor, with k rows. Columns lie `side_step` apart and elements of a column
// `depth_step`; one of the two is 1. Panel p has the columns columns[4 p] to columns[4 p + 3].
// `data` must stay valid.
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
  Scratch<Range> ranges_;  // exponents, for each panel and part of k
};

// The caller's work on the vector units while AMX multiplies: work(context, i, n) does part i of n.
struct Between {
  void (*work)(void* context, int64_t part, int64_t parts) = nullptr;
  void* context = nullptr;
};

// A left factor of at most `most_rows` rows, on one thread, which must not use AMX otherwise while
// this exists. Requires has_amx_gemm(). Results of a row do not depend on the rows around it.
class TileRows {
 public:
  TileRows(int64_t most_rows, int64_t k);
  ~TileRows();
  TileRows(const TileRows&) = delete;
  TileRows& operator=(const TileRows&) = delete;
  // Sets the next left factor, with `step` elements between rows. It must stay valid until its
  // products are done.
  void set_rows(const float* rows, int64_t step, int64_t count);
  // sums[i * 64 + j] = the product of row i and column j of the panel, for its first `tiles` tiles.
  void multiply(TilePanels& factor, int64_t panel, float* sums, int tiles, const Between& between);

 private:
  void multiply_float32(TilePanels& factor, int64_t panel, int64_t row, int column, int columns, int64_t depth,
                        int64_t depths, const TilePanels::Range& of_right, float* sums);
  int64_t k_, count_ = 0, step_ = 0;
  const float* rows_ = nullptr;
  Scratch<uint16_t> tiles_;
  Scratch<TilePanels::Range> ranges_;
};

}  // namespace candelabra::cpu
