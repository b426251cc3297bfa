// Where grid_sampler takes values from, along one dimension, for the kernels of all backends.
#ifndef CANDELABRA_GRID_SAMPLING_HPP
#define CANDELABRA_GRID_SAMPLING_HPP

#include <cmath>
#include <cstdint>
#include <string_view>

#include "candelabra/math.hpp"

namespace candelabra::grid_sampling {

enum class Mode : int32_t { linear, nearest, cubic };
enum class Outside : int32_t { zeros, border, reflection };

inline Mode mode_named(std::string_view name) {
  return name == "nearest" ? Mode::nearest : name == "bicubic" ? Mode::cubic : Mode::linear;
}
inline Outside outside_named(std::string_view name) {
  return name == "border" ? Outside::border : name == "reflection" ? Outside::reflection : Outside::zeros;
}

// A place brought inside, and how it moves with the place that was given.
template <typename C>
struct Inside {
  C place, slope;
};

template <typename C>
CANDELABRA_FORMULA Inside<C> confined(C place, C size, Outside outside, bool align_corners) {
  if (outside == Outside::zeros) return {place, 1};
  C slope = 1;
  if (outside == Outside::reflection) {
    const C low = align_corners ? C(0) : C(-0.5), whole = align_corners ? size - 1 : size, span = whole > 0 ? whole : C(1);
    const C distance = math::abs(place - low), turns = math::floor(distance / span), rest = distance - turns * span;
    const bool even = turns - 2 * math::floor(turns / 2) == 0;
    slope = (place < low) == even ? C(-1) : C(1);
    place = even ? rest + low : span - rest + low;
    place = whole > 0 ? place : C(0);
  }
  // What is no number goes to the beginning. Two choices one after the other, which compilers make of whole registers.
  const bool within = (place > 0) & (place < size - 1);
  const C least = place > 0 ? place : C(0);
  return {least < size - 1 ? least : size - 1, within ? slope : C(0)};
}

// Keys' cubic weights with a = -0.75 of the four neighbours of a place t behind the second, and their derivatives.
template <typename C>
CANDELABRA_FORMULA void cubic(C t, C* weights, C* slopes) {
  constexpr C a = C(-0.75);
  const auto near = [](C x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](C x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const auto near_slope = [](C x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
  const auto far_slope = [](C x) { return (3 * a * x - 10 * a) * x + 8 * a; };
  weights[0] = far(t + 1);
  weights[1] = near(t);
  weights[2] = near(1 - t);
  weights[3] = far(2 - t);
  slopes[0] = far_slope(t + 1);
  slopes[1] = near_slope(t);
  slopes[2] = -near_slope(1 - t);
  slopes[3] = -far_slope(2 - t);
}

}  // namespace candelabra::grid_sampling

#endif
