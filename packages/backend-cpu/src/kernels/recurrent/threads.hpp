// Divides the rows of the batch among threads, which go through all steps independently.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/recurrent/sequence.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace recurrent {

// Calls walk(first, last) for blocks of rows. `work` is the cost of a row at one step. In a packed
// sequence the first rows have more steps than the last ones, so threads get equal numbers of
// steps, not of rows.
template <typename Walk>
void for_blocks_of_rows(const Sequence& sequence, int64_t work, Walk&& walk) {
  const auto walk_all = [&](int64_t begin, int64_t end) {
    if (begin < end) walk(begin, end);
  };
  if (!sequence.is_packed()) return parallel_for(sequence.batch, grain_for(sequence.steps * work), walk_all);
  const int64_t pieces = std::min<int64_t>(thread_count(), sequence.batch);
  std::vector<int64_t> bounds{0};
  int64_t steps_before = 0, length = 0;
  for (int64_t row = sequence.batch - 1; row >= 0; --row) {
    // Counted from the end, where sequences are short: their lengths grow.
    while (length < sequence.steps && sequence.rows_at(length) > row) ++length;
    steps_before += length;
    if (steps_before * pieces >= static_cast<int64_t>(bounds.size()) * sequence.all_rows())
      bounds.push_back(sequence.batch - row);
  }
  parallel_for(static_cast<int64_t>(bounds.size()) - 1,
               std::max<int64_t>(1, light_grain / std::max<int64_t>(1, sequence.all_rows() * work / pieces)),
               [&](int64_t begin, int64_t end) {
                 walk_all(sequence.batch - bounds[static_cast<size_t>(end)],
                          sequence.batch - bounds[static_cast<size_t>(begin)]);
               });
}

}  // namespace recurrent
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
