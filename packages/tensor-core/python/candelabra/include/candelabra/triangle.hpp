// Counts the elements of a matrix on one side of a diagonal, row by row. tril_indices and
// triu_indices use it to number them.
#ifndef CANDELABRA_TRIANGLE_HPP
#define CANDELABRA_TRIANGLE_HPP

#include <algorithm>
#include <cstdint>

#include "host_device.hpp"

namespace candelabra::triangle {
inline namespace CANDELABRA_ISA_NAMESPACE {

// The number of elements (r, c) with c < r + reach in the first `rows` rows of a matrix with
// `columns` columns: the sum of clamp(r + reach, 0, columns). The sum of |reach|, `rows` and
// `columns`, and the product of the latter two, must fit into 64 bits.
CANDELABRA_HOST_DEVICE inline int64_t count_below(int64_t rows, int64_t columns, int64_t reach) {
  const auto within = [](int64_t value, int64_t low, int64_t high) { return value < low ? low : value > high ? high : value; };
  const int64_t first = within(-reach, 0, rows);               // earlier rows have no such element
  const int64_t whole = within(columns - reach, first, rows);  // from this row on, rows are full
  const int64_t growing = whole - first;
  // The arithmetic series 0 + 1 + ... + (growing - 1). The even factor is halved first, so that
  // nothing overflows.
  const int64_t series = growing % 2 == 0 ? growing / 2 * (growing - 1) : (growing - 1) / 2 * growing;
  return growing * (first + reach) + series + (rows - whole) * columns;
}

// How many elements of the first `rows` rows are in the triangle: c <= r + offset of the lower
// triangle, c >= r + offset of the upper one.
CANDELABRA_HOST_DEVICE inline int64_t count(int64_t rows, int64_t columns, int64_t offset, bool upper) {
  return upper ? rows * columns - count_below(rows, columns, offset) : count_below(rows, columns, offset + 1);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::triangle

#endif  // CANDELABRA_TRIANGLE_HPP
