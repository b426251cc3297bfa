#include "split_gemm.hpp"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include "../allocator.hpp"
#include "../parallel.hpp"
#include "split_tiles.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace {

// A block of the result: with its part of both factors it stays in the second cache level while all of k is added to it.
constexpr int64_t block_rows = 256, block_columns = 512;
// Results of so many elements are not read again before they are out of the caches.
constexpr int64_t streamed_size = int64_t{1} << 20;
constexpr int64_t panel_area = panel_side * panel_side;

int64_t blocks_of(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

// What belongs to one rectangle of the result, on one thread.
class Region {
 public:
  explicit Region(const Gemm<float>& problem)
      : p_(problem),
        left_{p_.a, p_.transpose_a ? 1 : p_.lda, p_.transpose_a ? p_.lda : 1},
        right_{p_.b, p_.transpose_b ? p_.ldb : 1, p_.transpose_b ? 1 : p_.ldb},
        streams_(p_.beta == 0 && p_.m * p_.n >= streamed_size && p_.ldc % 16 == 0 && reinterpret_cast<uintptr_t>(p_.c) % 64 == 0) {}

  void compute(int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end) const {
    if (row_begin >= row_end || column_begin >= column_end) return;
    // All of k for one block of the result, block after block.
    struct Step {
      int64_t column, row, part;
    };
    const auto next = [&](Step step) {
      if (++step.part * split_depth < p_.k) return step;
      step.part = 0;
      if ((step.row += block_rows) < row_end) return step;
      step.row = row_begin;
      step.column += block_columns;
      return step;
    };
    constexpr int64_t most_rows = block_rows / panel_side, most_columns = block_columns / panel_side;
    const int64_t row_panels = std::min(most_rows, blocks_of(row_end - row_begin, panel_side)),
                  column_panels = std::min(most_columns, blocks_of(column_end - column_begin, panel_side));
    Scratch<uint16_t> left(2 * row_panels * split_panel), right(2 * column_panels * split_panel);
    std::array<SplitRange, 2 * most_rows> left_ranges;
    std::array<SplitRange, 2 * most_columns> right_ranges;
    Splitter splitter;
    const auto split = [&](const Step& step, int64_t side) {
      splitter.add(left_, true, step.row, std::min(block_rows, row_end - step.row), step.part * split_depth, depth(step.part),
                   left.data() + side * row_panels * split_panel, &left_ranges[side * most_rows]);
      splitter.add(right_, false, step.column, std::min(block_columns, column_end - step.column), step.part * split_depth,
                   depth(step.part), right.data() + side * column_panels * split_panel, &right_ranges[side * most_columns]);
    };
    const TileUnits units;
    alignas(64) float sums[2][panel_area];
    // Sums over the parts so far, blocks one after another: in the result itself rows often lie a multiple of 4096 bytes apart,
    // which only a few places of the caches hold.
    Scratch<float> totals(row_panels * column_panels * panel_area);
    Block before;
    int turn = 0;
    int64_t side = 0;
    Step step{column_begin, row_begin, 0};
    split(step, side);
    splitter.finish();
    for (; step.column < column_end; side = 1 - side) {
      // While this part is multiplied, the next one is taken apart.
      const Step after = next(step);
      if (after.column < column_end) split(after, 1 - side);
      const int64_t columns = std::min(block_columns, column_end - step.column), rows = std::min(block_rows, row_end - step.row);
      const int64_t blocks = blocks_of(rows, panel_side) * blocks_of(columns, panel_side);
      const int64_t splitting = blocks_of(splitter.steps(), blocks * steps_of_block(blocks_of(depth(step.part), tile_depth)));
      // The right panel stays in the first cache level while the left ones pass by.
      for (int64_t j = 0; j * panel_side < columns; ++j)
        for (int64_t i = 0; i * panel_side < rows; ++i) {
          const int64_t up = side * row_panels + i, down = side * column_panels + j;
          const Block block{step.part,
                            step.row + i * panel_side,
                            std::min(panel_side, rows - i * panel_side),
                            step.column + j * panel_side,
                            std::min(panel_side, columns - j * panel_side),
                            totals.data() + (j * row_panels + i) * panel_area};
          multiply(block, left.data() + up * split_panel, right.data() + down * split_panel,
                   in_range(left_ranges[side * most_rows + i], right_ranges[side * most_columns + j]), sums[turn], splitter,
                   splitting);
          // One block behind, so that the units need not wait for what is done with their sums.
          if (before.rows) finish(before, sums[1 - turn]);
          before = block;
          turn = 1 - turn;
        }
      splitter.finish();
      step = after;
    }
    finish(before, sums[1 - turn]);
    if (streams_) _mm_sfence();
  }

 private:
  int64_t depth(int64_t part) const { return std::min(split_depth, p_.k - part * split_depth); }

  // A part of the sums along k, of so many rows and columns of the result.
  struct Block {
    int64_t part = 0, row = 0, rows = 0, column = 0, columns = 0;
    float* totals = nullptr;
  };

  void multiply(const Block& b, const uint16_t* left, const uint16_t* right, bool exact, float* sums, Splitter& splitter,
                int64_t splitting) const {
    if (exact) [[likely]]
      multiply_split_panels(left, right, blocks_of(depth(b.part), tile_depth), b.rows, b.columns, sums, b.totals, splitter,
                            splitting);
    else
      multiply_plainly(left_, right_, b.row, b.rows, b.column, b.columns, b.part * split_depth, depth(b.part), sums);
  }

  // The sums of a block are added to those of the parts before, or, with the last part, become the result.
  void finish(const Block& b, const float* sums) const {
    const bool first = b.part == 0, last = (b.part + 1) * split_depth >= p_.k;
    if (!last) {
      for (int64_t i = 0; i < panel_area; i += 16) {
        const __m512 sum = _mm512_load_ps(sums + i);
        _mm512_store_ps(b.totals + i, first ? sum : _mm512_add_ps(_mm512_load_ps(b.totals + i), sum));
      }
      return;
    }
    const __m512 alpha = _mm512_set1_ps(p_.alpha), beta = _mm512_set1_ps(p_.beta);
    for (int64_t j = 0; j < b.columns; j += 16) {
      const __mmask16 mask = split_detail::first_lanes(b.columns - j);
      const bool stream = streams_ && mask == 0xffff;
      for (int64_t i = 0; i < b.rows; ++i) {
        float* c = p_.c + (b.row + i) * p_.ldc + b.column + j;
        __m512 sum = _mm512_load_ps(sums + i * panel_side + j);
        if (!first) sum = _mm512_add_ps(sum, _mm512_load_ps(b.totals + i * panel_side + j));
        sum = _mm512_mul_ps(alpha, sum);
        if (p_.beta != 0) sum = _mm512_fmadd_ps(beta, _mm512_maskz_loadu_ps(mask, c), sum);
        if (stream)
          _mm512_stream_ps(c, sum);
        else
          _mm512_mask_storeu_ps(c, mask, sum);
      }
    }
  }

  const Gemm<float>& p_;
  SplitSource left_, right_;
  bool streams_;  // past the caches
};

// How many threads share rows, and how many columns: cycles for each of k are 12 a block of 32 by 32, and about 30 for taking 32
// rows or columns apart, which threads with the same ones do each for themselves.
std::pair<int64_t, int64_t> grid(int64_t row_panels, int64_t column_panels, int64_t threads) {
  std::pair<int64_t, int64_t> best{1, 1};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t down = 1; down <= threads; ++down) {
    const int64_t across = threads / down, rows = blocks_of(row_panels, down), columns = blocks_of(column_panels, across);
    const int64_t cost = 12 * rows * columns + 30 * (rows + columns);
    if (cost < least) {
      least = cost;
      best = {down, across};
    }
  }
  return best;
}

bool ask_for_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  constexpr unsigned bfloat16_tiles = 1u << 22, tiles = 1u << 24;
  if (!(d & bfloat16_tiles) || !(d & tiles)) return false;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) return false;  // the system saves extended states
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned tile_states = 3u << 17;
  if ((low & tile_states) != tile_states) return false;
  constexpr long request_permission = 0x1023, tile_data = 18;  // of arch_prctl
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace
}  // namespace CANDELABRA_ISA_NAMESPACE

bool has_split_gemm() {
  static const bool has = [] {
    const char* isa = std::getenv("CANDELABRA_CPU_ISA");
    return !(isa && std::string_view(isa) == "avx2") && ask_for_tiles();
  }();
  return has;
}

void split_gemm(const Gemm<float>& p) {
  const Region region(p);
  const int64_t row_panels = blocks_of(p.m, panel_side), column_panels = blocks_of(p.n, panel_side);
  const auto [down, across] = grid(row_panels, column_panels, in_parallel() ? 1 : thread_count());
  parallel_for(down * across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / across, column = i % across;
      region.compute(row_panels * row / down * panel_side, std::min(p.m, row_panels * (row + 1) / down * panel_side),
                     column_panels * column / across * panel_side,
                     std::min(p.n, column_panels * (column + 1) / across * panel_side));
    }
  });
}

}  // namespace candelabra::cpu
