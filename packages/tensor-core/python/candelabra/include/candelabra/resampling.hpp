// What resampling takes from where, along one dimension, for the kernels of all backends.
//
// Positions are those of PyTorch: pixels are squares whose centres lie half a pixel inside or, with align_corners, points of which
// the outermost stay where they are. Cubic weights are those of Keys, "Cubic convolution interpolation for digital image
// processing", 1981, with a = -0.75, and a = -0.5 where the filter is widened against aliasing.
#ifndef CANDELABRA_RESAMPLING_HPP
#define CANDELABRA_RESAMPLING_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "candelabra/float_index.hpp"
#include "candelabra/host_device.hpp"

namespace candelabra::resampling {

enum class Filter : int32_t { nearest, nearest_exact, linear, cubic };

template <typename C>
CANDELABRA_HOST_DEVICE C cubic_near(C x, C a) {  // |x| <= 1
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <typename C>
CANDELABRA_HOST_DEVICE C cubic_far(C x, C a) {  // 1 <= |x| <= 2
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

// How far apart new positions are, in old ones; `scale` 0 where positions follow from the sizes.
inline double ratio_of(int64_t from, int64_t to, bool align_corners, double scale) {
  if (align_corners) return to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0.0;
  constexpr double largest = 1e9;  // what is further away is outside of everything, and places stay numbers
  return scale > 0 ? std::min(1 / scale, largest) : static_cast<double>(from) / static_cast<double>(to);
}

// Where the nearest position is: in single precision as PyTorch, so that places exactly between two pixels go the same way.
CANDELABRA_HOST_DEVICE inline int64_t nearest_place(int64_t i, float step, bool exact, int64_t from) {
  const float place = exact ? (static_cast<float>(i) + 0.5f) * step : static_cast<float>(i) * step;
  return index_from_float<int64_t>(place, 0, from - 1);
}

// Position i lies between `first` and the next one (the last one, if there is none), by `part` of the way.
template <typename C>
struct Between {
  int64_t first;
  C part;
};
template <typename C>
CANDELABRA_HOST_DEVICE Between<C> linear_place(int64_t i, C ratio, bool align_corners, int64_t from) {
  const C index = static_cast<C>(i), centre = (index + C(0.5)) * ratio - C(0.5);
  const C place = align_corners ? index * ratio : centre > C(0) ? centre : C(0);
  const auto first = index_from_float<int64_t>(place, 0, from - 1);
  const C part = place - static_cast<C>(first);
  return {first, part < C(0) ? C(0) : part > C(1) ? C(1) : part};
}

// The weights of positions first, first + 1, …, of which those outside are the outermost ones.
template <typename C>
struct Four {
  int64_t first;
  C weights[4];
};
template <typename C>
CANDELABRA_HOST_DEVICE Four<C> cubic_place(int64_t i, C ratio, bool align_corners, int64_t from) {
  const C index = static_cast<C>(i);
  const C place = align_corners ? index * ratio : (index + C(0.5)) * ratio - C(0.5);
  const C low = std::floor(place), t = place - low, a = C(-0.75);
  // Beyond these bounds all four positions are outside, on the same side.
  return {index_from_float<int64_t>(low, -3, from + 1) - 1,
          {cubic_far(t + 1, a), cubic_near(t, a), cubic_near(1 - t, a), cubic_far(2 - t, a)}};
}

// A filter that is as wide as what becomes one position: positions [first, last) with weights that are still to be divided by their
// sum.
struct Widened {
  int64_t first, last;
  double centre, wide;
  bool cubic;

  CANDELABRA_HOST_DEVICE Widened(int64_t i, double ratio, int64_t from, bool cubic)
      : centre((static_cast<double>(i) + 0.5) * ratio), wide(ratio > 1.0 ? ratio : 1.0), cubic(cubic) {
    const double reach = (cubic ? 2.0 : 1.0) * wide;
    first = index_from_float<int64_t>(centre - reach + 0.5, 0, from);
    last = index_from_float<int64_t>(centre + reach + 0.5, 0, from);
  }
  CANDELABRA_HOST_DEVICE double weight(int64_t j) const {
    const double distance = std::abs((static_cast<double>(j) - centre + 0.5) / wide);
    if (!cubic) return distance < 1 ? 1 - distance : 0.0;
    return distance < 1 ? cubic_near(distance, -0.5) : distance < 2 ? cubic_far(distance, -0.5) : 0.0;
  }
  // How many positions there are at most.
  static int64_t most(double ratio, int64_t from, bool cubic) {
    const double reach = (cubic ? 2.0 : 1.0) * std::max(ratio, 1.0);
    return std::min(index_from_float<int64_t>(2 * reach, 0, from) + 2, from);
  }
};

}  // namespace candelabra::resampling

#endif
