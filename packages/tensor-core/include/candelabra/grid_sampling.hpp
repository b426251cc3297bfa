// Source coordinates and weights of grid_sampler along one dimension, for the kernels of all
// backends.
#ifndef CANDELABRA_GRID_SAMPLING_HPP
#define CANDELABRA_GRID_SAMPLING_HPP

#include <cmath>
#include <cstdint>
#include <string_view>

#include "candelabra/math.hpp"

namespace candelabra::grid_sampling {

enum class InterpolationMode : int32_t { linear, nearest, cubic };
enum class PaddingMode : int32_t { zeros, border, reflection };

inline InterpolationMode interpolation_mode_named(std::string_view name) {
  return name == "nearest"   ? InterpolationMode::nearest
         : name == "bicubic" ? InterpolationMode::cubic
                             : InterpolationMode::linear;
}
inline PaddingMode padding_mode_named(std::string_view name) {
  return name == "border" ? PaddingMode::border : name == "reflection" ? PaddingMode::reflection : PaddingMode::zeros;
}

// A coordinate after padding, and its derivative with respect to the coordinate before.
template <typename C>
struct Coordinate {
  C value, grad;
};

// Applies the padding mode to a coordinate in elements, as compute_coordinates() of ATen.
template <typename C>
CANDELABRA_FORMULA Coordinate<C> compute_coordinates(C coord, C size, PaddingMode padding_mode, bool align_corners) {
  if (padding_mode == PaddingMode::zeros) return {coord, 1};
  C grad = 1;
  if (padding_mode == PaddingMode::reflection) {
    const C low = align_corners ? C(0) : C(-0.5), whole = align_corners ? size - 1 : size,
            span = whole > 0 ? whole : C(1);
    const C distance = math::abs(coord - low), flips = math::floor(distance / span), rest = distance - flips * span;
    const bool even = flips - 2 * math::floor(flips / 2) == 0;
    grad = (coord < low) == even ? C(-1) : C(1);
    coord = even ? rest + low : span - rest + low;
    coord = whole > 0 ? coord : C(0);
  }
  // NaN becomes 0. Compilers vectorize two consecutive selections.
  const bool within = (coord > 0) & (coord < size - 1);
  const C above = coord > 0 ? coord : C(0);
  return {above < size - 1 ? above : size - 1, within ? grad : C(0)};
}

// Weights of Keys' cubic convolution (a = -0.75) for the four neighbours of a point, and their
// derivatives. t is the distance of the point from the second neighbour.
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
