// How many elements of a matrix are on or below a diagonal, counted row by row: what tril_indices and triu_indices number.
#ifndef CANDELABRA_TRIANGLE_HPP
#define CANDELABRA_TRIANGLE_HPP

#include <algorithm>
#include <cstdint>

#include "host_device.hpp"

namespace candelabra::triangle {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Of the first `rows` rows of a matrix with `columns` columns: how many elements (r, c) there are with c < r + reach, the sum of
// clamp(r + reach, 0, columns) over the rows. |reach| may be any number whose sum with `rows` and `columns` fits into 64 bits; so
// must the product of those two.
CANDELABRA_HOST_DEVICE inline int64_t count_below(int64_t rows, int64_t columns, int64_t reach) {
  const auto within = [](int64_t value, int64_t low, int64_t high) { return value < low ? low : value > high ? high : value; };
  const int64_t first = within(-reach, 0, rows);               // the rows before it have none
  const int64_t whole = within(columns - reach, first, rows);  // from here on rows are full
  const int64_t growing = whole - first;
  // An arithmetic series; of two neighbouring numbers one is even.
  const int64_t series = growing % 2 == 0 ? growing / 2 * (growing - 1) : (growing - 1) / 2 * growing;
  return growing * (first + reach) + series + (rows - whole) * columns;
}

// How many of the first `rows` rows' elements are in the triangle: c <= r + offset of the lower one, c >= r + offset of the upper.
CANDELABRA_HOST_DEVICE inline int64_t count(int64_t rows, int64_t columns, int64_t offset, bool upper) {
  return upper ? rows * columns - count_below(rows, columns, offset) : count_below(rows, columns, offset + 1);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::triangle

#endif  // CANDELABRA_TRIANGLE_HPP
