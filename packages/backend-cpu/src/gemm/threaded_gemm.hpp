// Matrix products cut into parts, each computed by a library on one thread.
//
// A library that divides a product among its threads cuts it by their number, long sums too, so
// that results change with it. Here the cuts follow from the sizes alone: results are the same for
// any number of threads. Where that is slower, it is used in deterministic mode only. For large
// squares the library packs each factor once for all threads, and more threads than parts need
// finer cuts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dtypes.hpp"
#include "gemm/gemm.hpp"
#include "memory/allocator.hpp"
#include "threads/interruption.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {

// Number of parts of the rows, of the columns and of the inner dimension.
struct Cuts {
  int64_t down = 1, across = 1, deep = 1;
  int64_t count() const { return down * across * deep; }
};

// Whether k is cut and the partial sums are added: for few results that are long sums. Cut
// otherwise, so few results would make parts too narrow to amortize packing both factors.
bool is_deep(int64_t m, int64_t n, int64_t k);

Cuts cuts_of(int64_t m, int64_t n, int64_t k, bool transpose_b);

// Whether the library divides such a product better among its own threads, and may.
bool is_left_to_library(int64_t m, int64_t n, const Cuts& cuts);

namespace parts_detail {

// Parts begin at multiples of a library's register blocks.
inline int64_t start_of(int64_t size, int64_t part, int64_t parts) {
  constexpr int64_t step = 16;
  return part == parts ? size : size * part / parts / step * step;
}

// Applies the epilogue to the block of rows x columns of p's result at (row, column).
template <typename T>
void apply_epilogue_at(const Gemm<T>& p, const Epilogue<T>* finish, EpilogueBlock<T> epilogue_block, int64_t row,
                       int64_t column, int64_t rows, int64_t columns) {
  if (!finish) return;
  Epilogue<T> block = *finish;
  if (block.added) block.added += row * block.added_step + column;
  epilogue_block(block, p.c + row * p.ldc + column, p.ldc, rows, columns);
}

// Blocks for the library's threads. With an epilogue these are rows, which get it while they are
// cached, and enough of them to amortize packing the other factor again for each. A product that
// takes seconds is cut into blocks of about a second, so that it can be interrupted.
template <typename T>
Cuts library_blocks(const Gemm<T>& p, bool has_epilogue) {
  constexpr int64_t block_size = int64_t{1} << 19, fewest_rows = 512;
  Cuts blocks;
  if (has_epilogue) blocks.down = std::max<int64_t>(1, p.m / std::max(fewest_rows, block_size / p.n));
  constexpr double float_operations = int64_t{1} << 36;  // in double: the product may exceed 64 bits
  constexpr double most_operations = float_operations * sizeof(float) / sizeof(T) / (is_complex_v<T> ? 2 : 1);
  const auto operations = [&] {
    return static_cast<double>(p.m / blocks.down) * static_cast<double>(p.n / blocks.across) * static_cast<double>(p.k);
  };
  while (operations() > most_operations && std::max(p.m / blocks.down, p.n / blocks.across) >= 4 * fewest_rows)
    (p.m / blocks.down >= p.n / blocks.across ? blocks.down : blocks.across) *= 2;
  return blocks;
}

template <typename T>
void multiply_on_library_threads(const Gemm<T>& p, void (*multiply)(const Gemm<T>&), const Epilogue<T>* finish,
                                 EpilogueBlock<T> epilogue_block) {
  const Cuts blocks = library_blocks(p, finish != nullptr);
  for (int64_t i = 0; i < blocks.down; ++i)
    for (int64_t j = 0; j < blocks.across; ++j) {
      const int64_t row = p.m * i / blocks.down, column = start_of(p.n, j, blocks.across);
      Gemm<T> block = p;
      block.m = p.m * (i + 1) / blocks.down - row;
      block.n = start_of(p.n, j + 1, blocks.across) - column;
      block.a += row * (p.transpose_a ? 1 : p.lda);
      block.b += column * (p.transpose_b ? p.ldb : 1);
      block.c += row * p.ldc + column;
      poll_interruption();
      const LibraryThreads all;
      multiply(block);
      apply_epilogue_at(p, finish, epilogue_block, row, column, block.m, block.n);
    }
}

}  // namespace parts_detail

// Calls multiply(part) for each part, on one thread of the library each, then applies the epilogue.
// `finish` and `epilogue_block` may be null.
template <typename T>
void multiply_in_parts(const Gemm<T>& p, const Cuts& cuts, void (*multiply)(const Gemm<T>&),
                       const Epilogue<T>* finish = nullptr, EpilogueBlock<T> epilogue_block = nullptr) {
  if (cuts.count() == 1) {
    const LibraryThreads one(1);
    multiply(p);
    return parts_detail::apply_epilogue_at(p, finish, epilogue_block, 0, 0, p.m, p.n);
  }
  using parts_detail::apply_epilogue_at;
  using parts_detail::start_of;
  const int64_t results = p.m * p.n;
  Scratch<T> sums((cuts.deep - 1) * results);  // of the parts along k, without the first
  parallel_for(cuts.count(), 1, [&](int64_t begin, int64_t end) {
    const LibraryThreads one(1);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row_part = i / cuts.across % cuts.down, column_part = i % cuts.across,
                    depth_part = i / (cuts.across * cuts.down);
      const int64_t row = start_of(p.m, row_part, cuts.down), column = start_of(p.n, column_part, cuts.across),
                    depth = start_of(p.k, depth_part, cuts.deep);
      Gemm<T> part = p;
      poll_interruption();
      part.m = start_of(p.m, row_part + 1, cuts.down) - row;
      part.n = start_of(p.n, column_part + 1, cuts.across) - column;
      part.k = start_of(p.k, depth_part + 1, cuts.deep) - depth;
      part.a += row * (p.transpose_a ? 1 : p.lda) + depth * (p.transpose_a ? p.lda : 1);
      part.b += column * (p.transpose_b ? p.ldb : 1) + depth * (p.transpose_b ? 1 : p.ldb);
      if (depth_part == 0) {
        part.c += row * p.ldc + column;
      } else {
        part.beta = 0;
        part.c = sums.data() + (depth_part - 1) * results + row * p.n + column;
        part.ldc = p.n;
      }
      multiply(part);
      if (cuts.deep == 1) apply_epilogue_at(p, finish, epilogue_block, row, column, part.m, part.n);
    }
  });
  if (cuts.deep == 1) return;
  parallel_for(p.m, grain_for(cuts.deep * p.n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t part = 0; part + 1 < cuts.deep; ++part)
        for (int64_t j = 0; j < p.n; ++j) p.c[i * p.ldc + j] += sums[part * results + i * p.n + j];
    apply_epilogue_at(p, finish, epilogue_block, begin, 0, end - begin, p.n);
  });
}

// The same for a multiply() of a library, which may divide the product among its own threads.
template <typename T>
void multiply_by_library(const Gemm<T>& p, const Cuts& cuts, void (*multiply)(const Gemm<T>&),
                         const Epilogue<T>* finish = nullptr, EpilogueBlock<T> epilogue_block = nullptr) {
  if (cuts.count() > 1 && is_left_to_library(p.m, p.n, cuts))
    return parts_detail::multiply_on_library_threads(p, multiply, finish, epilogue_block);
  multiply_in_parts(p, cuts, multiply, finish, epilogue_block);
}

}  // namespace candelabra::cpu
