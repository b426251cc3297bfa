#include "gemm/amx/bf16x3_gemm.hpp"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include "gemm/amx/bf16x3_tiles.hpp"
#include "gemm/epilogue.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace {

// Columns and rows that are split into parts at a time, and the most memory for the columns' parts.
// All of these stay in L2.
constexpr int64_t most_columns = 512, most_rows = 128, most_bytes = int64_t{1} << 20;
// For products with at most this many rows, and k contiguous in the right factor (a batch times a
// layer's weight). There the parts of all rows stay instead. Columns are split panel by panel where
// they are used, in L1. A large weight that is used so few times would cost more if its parts went
// through L2.
constexpr int64_t few_rows = 256;
// Results of this many elements leave the caches before they are read again.
constexpr int64_t streamed_size = int64_t{1} << 20;
constexpr int64_t panel_area = panel_side * panel_side;

int64_t blocks_of(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

// How a product is divided, which depends on its sizes alone. AMX sums one chain of k at a time. A
// pass has as many chains as the memory for parts allows.
struct Plan {
  explicit Plan(const Gemm<float>& p) {
    const int64_t blocks = blocks_of(p.k, tile_depth);
    chain_blocks = blocks_of(blocks, blocks_of(blocks, longest_chain));
    rows_stay = p.m <= few_rows && p.transpose_b;
    const int64_t chains = blocks_of(blocks, chain_blocks),
                  panels = blocks_of(rows_stay ? p.m : std::min(most_columns, p.n), panel_side);
    const int64_t fitting = most_bytes / (panels * chain_blocks * tile_block * static_cast<int64_t>(sizeof(uint16_t)));
    pass_chains = blocks_of(chains, blocks_of(chains, std::clamp<int64_t>(fitting, 1, chains)));
  }
  int64_t chain_depth() const { return chain_blocks * tile_depth; }
  int64_t pass_depth() const { return pass_chains * chain_depth(); }
  int64_t chain_elements() const { return chain_blocks * tile_block; }

  int64_t chain_blocks, pass_chains;
  bool rows_stay;
};

// The bfloat16 parts of some panels of one factor, for one pass.
class Parts {
 public:
  Parts(const Plan& plan, const SplitSource& source, bool left, int64_t panels)
      : plan_(plan),
        source_(source),
        left_(left),
        parts_(panels * plan.pass_chains * plan.chain_elements()),
        ranges_(panels * plan.pass_chains) {}

  void split(int64_t side, int64_t sides, int64_t depth, int64_t depths) {
    for (int64_t chain = 0; chain * plan_.chain_depth() < depths; ++chain) {
      const int64_t from = chain * plan_.chain_depth();
      split_panels(source_, left_, side, sides, depth + from, std::min(plan_.chain_depth(), depths - from),
                   at(0, chain), plan_.pass_chains * plan_.chain_elements(), &ranges_[chain], plan_.pass_chains);
    }
  }
  uint16_t* at(int64_t panel, int64_t chain) {
    return parts_.data() + (panel * plan_.pass_chains + chain) * plan_.chain_elements();
  }
  const SplitRange& range(int64_t panel, int64_t chain) { return ranges_[panel * plan_.pass_chains + chain]; }

 private:
  const Plan& plan_;
  const SplitSource& source_;
  const bool left_;
  Scratch<uint16_t> parts_;
  Scratch<SplitRange> ranges_;
};

class SplitProduct {
 public:
  // `epilogue` may be null.
  SplitProduct(const Gemm<float>& problem, const Epilogue<float>* epilogue)
      : p_(problem),
        epilogue_(epilogue),
        plan_(problem),
        left_{p_.a, p_.transpose_a ? 1 : p_.lda, p_.transpose_a ? p_.lda : 1},
        right_{p_.b, p_.transpose_b ? p_.ldb : 1, p_.transpose_b ? 1 : p_.ldb},
        streams_(p_.beta == 0 && p_.k <= plan_.pass_depth() && p_.m * p_.n >= streamed_size && p_.ldc % 16 == 0 &&
                 reinterpret_cast<uintptr_t>(p_.c) % 64 == 0) {}

  void compute() const {
    const int64_t row_panels = blocks_of(p_.m, panel_side), column_panels = blocks_of(p_.n, panel_side);
    const int64_t panels_per_split = blocks_of(plan_.rows_stay ? p_.n : most_columns, panel_side);
    const auto [down, across] = grid(row_panels, column_panels, panels_per_split, in_parallel() ? 1 : thread_count());
    parallel_for(down * across, 1, [&, down = down, across = across](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / across, column = i % across;
        compute(row_panels * row / down * panel_side, std::min(p_.m, row_panels * (row + 1) / down * panel_side),
                column_panels * column / across * panel_side,
                std::min(p_.n, column_panels * (column + 1) / across * panel_side));
      }
    });
  }

 private:
  // How many threads share rows, and how many share columns. Relative costs for each k: 20 for a
  // block, 26 to split a panel of 32 rows or columns. Threads with the same panel split it
  // separately. Rows are split once per `panels_per_split` panels of columns.
  static std::pair<int64_t, int64_t> grid(int64_t row_panels, int64_t column_panels, int64_t panels_per_split,
                                          int64_t threads) {
    std::pair<int64_t, int64_t> best{1, 1};
    int64_t best_cost = std::numeric_limits<int64_t>::max();
    for (int64_t down = 1; down <= threads; ++down) {
      const int64_t across = threads / down, rows = blocks_of(row_panels, down),
                    columns = blocks_of(column_panels, across);
      const int64_t cost = 20 * rows * columns + 26 * (rows * blocks_of(columns, panels_per_split) + columns);
      if (cost < best_cost) {
        best_cost = cost;
        best = {down, across};
      }
    }
    return best;
  }

  // One rectangle of the result, on one thread.
  void compute(int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end) const {
    if (row_begin >= row_end || column_begin >= column_end) return;
    const AmxTiles units;
    if (plan_.rows_stay)
      keep_rows(row_begin, row_end - row_begin, column_begin, column_end - column_begin);
    else
      keep_columns(row_begin, row_end, column_begin, column_end);
    if (streams_) _mm_sfence();
  }

  void keep_columns(int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end) const {
    Parts left(plan_, left_, true, blocks_of(std::min(most_rows, row_end - row_begin), panel_side)),
        right(plan_, right_, false, blocks_of(std::min(most_columns, column_end - column_begin), panel_side));
    for (int64_t column = column_begin; column < column_end; column += most_columns) {
      const int64_t columns = std::min(most_columns, column_end - column);
      for (int64_t depth = 0; depth < p_.k; depth += plan_.pass_depth()) {
        const int64_t depths = std::min(plan_.pass_depth(), p_.k - depth);
        right.split(column, columns, depth, depths);
        for (int64_t row = row_begin; row < row_end; row += most_rows) {
          const int64_t rows = std::min(most_rows, row_end - row);
          left.split(row, rows, depth, depths);
          Sums sums;
          // A right panel stays in L1 while the left panels pass by.
          for (int64_t j = 0; j * panel_side < columns; ++j)
            for (int64_t chain = 0; chain * plan_.chain_depth() < depths; ++chain)
              multiply(left, right.at(j, chain), right.range(j, chain), row, rows, column + j * panel_side,
                       std::min(panel_side, columns - j * panel_side), depth, depths, chain, sums);
          finish(sums.before, sums.of[1 - sums.turn]);
        }
      }
    }
  }

  void keep_rows(int64_t row, int64_t rows, int64_t column_begin, int64_t columns) const {
    Parts left(plan_, left_, true, blocks_of(rows, panel_side));
    Scratch<uint16_t> right(plan_.chain_elements());
    for (int64_t depth = 0; depth < p_.k; depth += plan_.pass_depth()) {
      const int64_t depths = std::min(plan_.pass_depth(), p_.k - depth);
      left.split(row, rows, depth, depths);
      Sums sums;
      for (int64_t j = 0; j < columns; j += panel_side)
        for (int64_t chain = 0; chain * plan_.chain_depth() < depths; ++chain) {
          const int64_t column = column_begin + j, here = std::min(panel_side, columns - j),
                        from = chain * plan_.chain_depth();
          SplitRange range;
          split_panels(right_, false, column, here, depth + from, std::min(plan_.chain_depth(), depths - from),
                       right.data(), 0, &range, 0);
          multiply(left, right.data(), range, row, rows, column, here, depth, depths, chain, sums);
        }
      finish(sums.before, sums.of[1 - sums.turn]);
    }
  }

  // One chain of a block of the result, which begins at `row` and `column`.
  struct Block {
    int64_t row = 0, rows = 0, column = 0, columns = 0;
    float* totals = nullptr;                   // sums of the chains so far
    bool first = true, last = true;            // whether this is the first or the last chain
    bool first_pass = true, last_pass = true;  // whether this is the first or the last pass
  };

  // Sums of two blocks, one computed while the other is finished, and totals of the current rows.
  struct Sums {
    Block before;
    int turn = 0;
    alignas(64) float of[2][panel_area];
    alignas(64) float totals[std::max(most_rows, few_rows) / panel_side][panel_area];
  };

  // Left panels times one right panel, for one chain of a pass.
  void multiply(Parts& left, const uint16_t* right, const SplitRange& right_range, int64_t row, int64_t rows,
                int64_t column, int64_t columns, int64_t depth, int64_t depths, int64_t chain, Sums& sums) const {
    const int64_t from = chain * plan_.chain_depth(), here = std::min(plan_.chain_depth(), depths - from);
    for (int64_t i = 0; i * panel_side < rows; ++i) {
      const Block block{row + i * panel_side,
                        std::min(panel_side, rows - i * panel_side),
                        column,
                        columns,
                        sums.totals[i],
                        chain == 0,
                        from + here == depths,
                        depth == 0,
                        depth + depths == p_.k};
      if (block.last && !streams_)
        for (int64_t line = 0; line < block.rows; ++line) {
          const float* c = p_.c + (block.row + line) * p_.ldc + block.column;
          __builtin_prefetch(c, 1);
          __builtin_prefetch(c + 16, 1);
        }
      // The sums of a block are finished while AMX works on the next block.
      const auto between = [&] {
        if (sums.before.rows) finish(sums.before, sums.of[1 - sums.turn]);
      };
      if (in_range(left.range(i, chain), right_range)) [[likely]] {
        multiply_split_panels(left.at(i, chain), right, blocks_of(here, tile_depth), block.rows, block.columns,
                              sums.of[sums.turn], between);
      } else {
        between();
        multiply_float32(left_, right_, block.row, block.rows, block.column, block.columns, depth + from, here,
                         sums.of[sums.turn]);
      }
      sums.before = block;
      sums.turn = 1 - sums.turn;
    }
  }

  // Adds the sums of a block to those of earlier chains, or writes the result after the last chain.
  void finish(const Block& b, const float* sums) const {
    if (!b.last) {
      for (int64_t i = 0; i < panel_area; i += 16) {
        const __m512 sum = _mm512_load_ps(sums + i);
        _mm512_store_ps(b.totals + i, b.first ? sum : _mm512_add_ps(_mm512_load_ps(b.totals + i), sum));
      }
      return;
    }
    const float factor = b.first_pass ? p_.beta : 1.0f;
    const Epilogue<float>* epilogue = b.last_pass ? epilogue_ : nullptr;
    const __m512 alpha = _mm512_set1_ps(p_.alpha), beta = _mm512_set1_ps(factor);
    alignas(64) float line[panel_side];
    for (int64_t i = 0; i < b.rows; ++i) {
      float* c = p_.c + (b.row + i) * p_.ldc + b.column;
      for (int64_t j = 0; j < b.columns; j += 16) {
        const __mmask16 mask = split_detail::first_lanes(b.columns - j);
        __m512 sum = _mm512_load_ps(sums + i * panel_side + j);
        if (!b.first) sum = _mm512_add_ps(sum, _mm512_load_ps(b.totals + i * panel_side + j));
        sum = _mm512_mul_ps(alpha, sum);
        if (factor != 0) sum = _mm512_fmadd_ps(beta, _mm512_maskz_loadu_ps(mask, c + j), sum);
        if (epilogue)
          _mm512_store_ps(line + j, sum);
        else
          store(c + j, mask, sum);
      }
      if (!epilogue) continue;
      apply_epilogue_row(epilogue->activation,
                         epilogue->added ? epilogue->added + (b.row + i) * epilogue->added_step + b.column : nullptr,
                         epilogue->factor, line, b.columns);
      for (int64_t j = 0; j < b.columns; j += 16)
        store(c + j, split_detail::first_lanes(b.columns - j), _mm512_load_ps(line + j));
    }
  }
  void store(float* to, __mmask16 mask, __m512 value) const {
    if (streams_ && mask == 0xffff)
      _mm512_stream_ps(to, value);
    else
      _mm512_mask_storeu_ps(to, mask, value);
  }

  const Gemm<float>& p_;
  const Epilogue<float>* epilogue_;
  const Plan plan_;
  const SplitSource left_, right_;
  bool streams_;  // uses non-temporal stores
};

bool request_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  constexpr unsigned bfloat16_tiles = 1u << 22, tiles = 1u << 24;
  if (!(d & bfloat16_tiles) || !(d & tiles)) return false;
  // OSXSAVE: the system saves extended states
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) return false;
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned tile_states = 3u << 17;
  if ((low & tile_states) != tile_states) return false;
  constexpr long request_permission = 0x1023, tile_data = 18;  // of arch_prctl
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace
}  // namespace CANDELABRA_ISA_NAMESPACE

bool has_amx_gemm() {
  static const bool has = [] {
    const char* isa = std::getenv("CANDELABRA_CPU_ISA");
    return !(isa && std::string_view(isa) == "avx2") && request_amx();
  }();
  return has;
}

void amx_gemm(const Gemm<float>& p) {
  SplitProduct(p, nullptr).compute();
}
void amx_gemm(const Gemm<float>& p, const Epilogue<float>& finish) {
  SplitProduct(p, &finish).compute();
}

}  // namespace candelabra::cpu
