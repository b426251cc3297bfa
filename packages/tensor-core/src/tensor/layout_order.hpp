// Dense strides for dimensions in a partial order.
#pragma once

#include <algorithm>
#include <utility>

#include "tensor/dims.hpp"

namespace candelabra {

// `order(a, b)` is positive if dimension a must be outside of b, negative if inside, and 0 if their
// order is unspecified. Unspecified pairs are row-major.
template <typename Order>
Dims strides_in_order(const Dims& sizes, const Order& order) {
  const int ndim = sizes.size();
  Dims fastest_first;
  fastest_first.resize(ndim);
  for (int d = 0; d < ndim; ++d) fastest_first[d] = ndim - 1 - d;
  // Insertion sort that skips unspecified pairs, because the order need not be total.
  for (int i = 1; i < ndim; ++i) {
    int moving = i;
    for (int other = i - 1; other >= 0; --other) {
      const int known = order(static_cast<int>(fastest_first[other]), static_cast<int>(fastest_first[moving]));
      if (known > 0) {
        std::swap(fastest_first[other], fastest_first[moving]);
        moving = other;
      } else if (known < 0) {
        break;
      }
    }
  }
  Dims strides(ndim, 1);
  int64_t step = 1;
  for (int64_t dim : fastest_first) {
    strides[static_cast<int>(dim)] = step;
    step *= std::max<int64_t>(sizes[static_cast<int>(dim)], 1);
  }
  return strides;
}

}  // namespace candelabra
