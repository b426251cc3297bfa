#include "gemm/threaded_gemm.hpp"

#include <bit>
#include <limits>

#include "candelabra/float_index.hpp"
#include "gemm/autotune.hpp"
#include "threads/deterministic.hpp"

namespace candelabra::cpu {
namespace {

// Rounds down to a count that two or four threads share evenly: 1, 2, 4, or a multiple of 4.
int64_t even(int64_t parts) {
  return parts < 8 ? static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, parts))))
                   : parts / 4 * 4;
}

// The number of parts of one side: quarters, but none shorter than `least` and none longer than
// about `most`.
int64_t parts_of_side(int64_t size, int64_t least, int64_t most) {
  return even(size / std::clamp(size / 4, least, most));
}

constexpr int64_t short_side = 16, part_of_depth = 256, most_deep = 8;

}  // namespace

bool is_deep(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t longest = 128;
  return std::min(m, n) >= short_side && std::max(m, n) <= longest && k >= 4 * part_of_depth &&
         shape_class(m, n, k) != ShapeClass::small;
}

// Every part packs its own operands, and the operand that parts share is packed once per part. So
// the longer side of the result is cut, into parts long enough to keep packing cheap.
Cuts cuts_of(int64_t m, int64_t n, int64_t k, bool transpose_b) {
  Cuts cuts;
  if (shape_class(m, n, k) == ShapeClass::small) return cuts;
  const double rows = static_cast<double>(m), columns = static_cast<double>(n), depth = static_cast<double>(k);
  // The least work of a part: so many multiplications, or so many elements read and written.
  constexpr double few_operations = 1 << 19, few_elements = 1 << 16;
  const auto worth =
      index_from_float<int64_t>(std::max(rows * columns * depth / few_operations,
                                         (rows * depth + depth * columns + rows * columns) / few_elements),
                                0, std::numeric_limits<int64_t>::max());
  if (worth < 2) return cuts;

  if (is_deep(m, n, k)) {
    cuts.deep = std::min({most_deep, k / part_of_depth, worth});
    return cuts;
  }
  // Each part packs all of b. Packing a large b pays only for parts of 256 rows or more.
  constexpr int64_t large_factor = 1 << 18;
  const int64_t fewest_rows = n * k > large_factor || (transpose_b && n * k == large_factor) ? 256 : 128;
  const int64_t fewest_columns = 256;
  // If both sides are long, cut both: the result has more parts, for more threads.
  constexpr int64_t long_side = 1024, long_part = 512;
  if (std::min(m, n) >= long_side) {
    cuts.down = even(m / long_part);
    cuts.across = even(n / (n >= 2 * long_side ? long_side : long_part));
    return cuts;
  }
  if (m >= n)
    cuts.down = even(std::min(worth, parts_of_side(m, fewest_rows, 512)));
  else
    cuts.across = even(std::min(worth, parts_of_side(n, fewest_columns, 1024)));
  if (cuts.count() > 1) return cuts;

  constexpr int64_t few_results = 1 << 16;
  if (k >= 2 * part_of_depth && rows * columns <= few_results)
    cuts.deep = std::min({most_deep, k / part_of_depth, worth});
  else if (m >= n && m >= 2 * short_side)
    cuts.down = 2;
  else if (n >= 2 * short_side)
    cuts.across = 2;
  return cuts;
}

bool is_left_to_library(int64_t m, int64_t n, const Cuts& cuts) {
  if (is_deterministic()) return false;
  // The library's own threads are faster when both sides are long.
  constexpr int64_t long_side = 512;
  const int64_t threads = in_parallel() ? 1 : thread_count(), rounds = (cuts.count() + threads - 1) / threads;
  // More than a fifth of the threads' time would be idle.
  const bool shares_badly = 5 * cuts.count() < 4 * rounds * threads;
  return cuts.deep == 1 && (std::min(m, n) >= long_side || shares_badly);
}

}  // namespace candelabra::cpu
