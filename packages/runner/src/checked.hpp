// Arithmetic on the numbers of a file, which fails instead of wrapping around, and bytes that are
// bools.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "failure.hpp"

namespace candelabra::runner {

constexpr int64_t largest_number = int64_t{1} << 62;

inline int64_t product_of(int64_t a, int64_t b) {
  int64_t result;
  require(!__builtin_mul_overflow(a, b, &result) && result <= largest_number, "sizes that are too large");
  return result;
}

inline int64_t sum_of(int64_t a, int64_t b) {
  int64_t result;
  require(!__builtin_add_overflow(a, b, &result) && result <= largest_number, "sizes that are too large");
  return result;
}

// How many elements there are of these sizes, each of which is at least 0.
inline int64_t numel_of(std::span<const int64_t> sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes)
    if (size == 0) return 0;
  for (const int64_t size : sizes) count = product_of(count, size);
  return count;
}

inline bool are_bools(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte <= std::byte{1}; });
}

}  // namespace candelabra::runner
