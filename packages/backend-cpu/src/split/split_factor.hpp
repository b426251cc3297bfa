// Products on the tile units with one factor that many of them have in common: it is taken apart once.
#pragma once

#include <cstdint>

#include "../allocator.hpp"

namespace candelabra::cpu {

// Columns of a product that are computed at once.
constexpr int64_t split_columns = 32;

// The right factor: n columns, whose elements lie `side_step` apart from column to column and `depth_step` along k; one of the two
// is 1.
class SplitFactor {
 public:
  SplitFactor(const float* data, int64_t side_step, int64_t depth_step, int64_t n, int64_t k);

 private:
  friend class SplitRows;
  const float* data_;
  int64_t side_step_, depth_step_, n_, k_;
  Scratch<uint16_t> panels_;
  Scratch<int32_t> ranges_;  // of each panel the lowest and the highest exponent
};

// A left factor of at most so many rows, on one thread; made where has_split_gemm().
class SplitRows {
 public:
  SplitRows(int64_t most_rows, int64_t k);
  // The next one; `lda` elements from row to row. It stays where it is until the products with it are done.
  void take(const float* a, int64_t lda, int64_t rows);
  // sums[i * step + j] = the product of row i and column panel * split_columns + j.
  void multiply(SplitFactor& factor, int64_t panel, float* sums, int64_t step);

 private:
  int64_t k_, rows_ = 0, lda_ = 0;
  const float* a_ = nullptr;
  Scratch<uint16_t> panels_;
  Scratch<int32_t> ranges_;
};

}  // namespace candelabra::cpu
