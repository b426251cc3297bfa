// What resampling takes from where, along one dimension: a sparse matrix with a row for each position of the result.
//
// Positions are those of PyTorch: pixels are squares whose centres lie half a pixel inside or, with align_corners, points of which
// the outermost stay where they are. Cubic weights are those of Keys, "Cubic convolution interpolation for digital image
// processing", 1981, with a = -0.75, and a = -0.5 where the filter is widened against aliasing.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "../dtypes.hpp"
#include "../kernels.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

enum class Filter { nearest, nearest_exact, linear, cubic };

inline Filter filter_named(std::string_view mode) {
  if (mode == "nearest") return Filter::nearest;
  if (mode == "nearest-exact") return Filter::nearest_exact;
  if (mode == "linear") return Filter::linear;
  if (mode == "cubic") return Filter::cubic;
  throw failure(CB_VALUE_ERROR, "resample(): there is no mode \"%.*s\"", static_cast<int>(mode.size()), mode.data());
}

// Row i takes entries [start[i], start[i + 1]).
template <typename C>
struct Taps {
  int64_t from = 1, to = 1;
  std::vector<int32_t> start{0};
  std::vector<int32_t> index;
  std::vector<C> weight;

  int32_t count(int64_t i) const { return start[i + 1] - start[i]; }
  void begin(int64_t from_size, int64_t to_size, int64_t each) {
    from = from_size;
    to = to_size;
    start.assign(1, 0);
    start.reserve(to + 1);
    index.reserve(to * each);
    weight.reserve(to * each);
  }
  void take(int64_t place, C factor) {
    index.push_back(static_cast<int32_t>(place));
    weight.push_back(factor);
  }
  void end_row() { start.push_back(static_cast<int32_t>(index.size())); }

  int32_t most() const {
    int32_t found = 0;
    for (int64_t i = 0; i < to; ++i) found = std::max(found, count(i));
    return found;
  }
  // How many positions lie between the first and the last that one row takes, at most.
  int64_t span() const {
    int64_t found = 1;
    for (int64_t i = 0; i < to; ++i) {
      if (count(i) == 0) continue;
      const auto [low, high] = std::minmax_element(index.begin() + start[i], index.begin() + start[i + 1]);
      found = std::max<int64_t>(found, *high - *low + 1);
    }
    return found;
  }
  bool identity() const {
    if (from != to || static_cast<int64_t>(index.size()) != to) return false;
    for (int64_t i = 0; i < to; ++i)
      if (start[i + 1] != i + 1 || index[i] != i || weight[i] != C(1)) return false;
    return true;
  }
  Taps transposed() const {
    Taps result;
    result.from = to;
    result.to = from;
    result.start.assign(from + 1, 0);
    for (int32_t place : index) ++result.start[place + 1];
    for (int64_t i = 0; i < from; ++i) result.start[i + 1] += result.start[i];
    result.index.resize(index.size());
    result.weight.resize(index.size());
    std::vector<int32_t> next(result.start.begin(), result.start.end() - 1);
    for (int64_t i = 0; i < to; ++i)
      for (int32_t e = start[i]; e < start[i + 1]; ++e) {
        const int32_t at = next[index[e]]++;
        result.index[at] = static_cast<int32_t>(i);
        result.weight[at] = weight[e];
      }
    return result;
  }
};

namespace resampling_detail {

template <typename C>
C cubic_near(C x, C a) {  // |x| <= 1
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <typename C>
C cubic_far(C x, C a) {  // 1 <= |x| <= 2
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

// How far apart new positions are, in old ones.
inline double ratio_of(int64_t from, int64_t to, bool align_corners, double scale) {
  if (align_corners) return to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0.0;
  constexpr double largest = 1e9;  // what is further away is outside of everything, and places stay numbers
  return scale > 0 ? std::min(1 / scale, largest) : static_cast<double>(from) / static_cast<double>(to);
}

template <typename C>
void widened(Taps<C>& taps, bool cubic, double ratio) {
  const double wide = std::max(ratio, 1.0), reach = (cubic ? 2.0 : 1.0) * wide;
  std::vector<double> weights;
  for (int64_t i = 0; i < taps.to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * ratio;
    const double limit = static_cast<double>(taps.from);
    const auto first = static_cast<int64_t>(std::clamp(centre - reach + 0.5, 0.0, limit));
    const auto last = static_cast<int64_t>(std::clamp(centre + reach + 0.5, 0.0, limit));
    weights.clear();
    double sum = 0;
    for (int64_t j = first; j < last; ++j) {
      const double distance = std::abs((static_cast<double>(j) - centre + 0.5) / wide);
      double weight = 0;
      if (!cubic)
        weight = std::max(1 - distance, 0.0);
      else if (distance < 1)
        weight = cubic_near(distance, -0.5);
      else if (distance < 2)
        weight = cubic_far(distance, -0.5);
      weights.push_back(weight);
      sum += weight;
    }
    if (sum == 0) sum = 1;  // a scale that does not fit the sizes leads out of the input, where there is nothing to weigh
    for (int64_t j = first; j < last; ++j) taps.take(j, static_cast<C>(weights[j - first] / sum));
    taps.end_row();
  }
}

}  // namespace resampling_detail

// Where the nearest position is: in single precision as PyTorch, so that places exactly between two pixels go the same way.
inline int64_t nearest_place(int64_t i, float step, bool exact, int64_t from) {
  const float place = exact ? (static_cast<float>(i) + 0.5f) * step : static_cast<float>(i) * step;
  return std::min(static_cast<int64_t>(place), from - 1);
}

// `scale` 0 where positions follow from the sizes.
template <typename C>
Taps<C> taps_of(Filter filter, int64_t from, int64_t to, bool align_corners, double scale, bool antialias) {
  using namespace resampling_detail;
  Taps<C> taps;
  const double exact_ratio = ratio_of(from, to, align_corners, scale);
  const C ratio = static_cast<C>(exact_ratio);
  taps.begin(from, to, filter == Filter::cubic ? 4 : 2);
  if (filter == Filter::nearest || filter == Filter::nearest_exact) {
    const auto step = static_cast<float>(ratio_of(from, to, false, scale));
    for (int64_t i = 0; i < to; ++i) {
      taps.take(nearest_place(i, step, filter == Filter::nearest_exact, from), 1);
      taps.end_row();
    }
    return taps;
  }
  if (antialias) {
    widened(taps, filter == Filter::cubic, exact_ratio);
    return taps;
  }
  for (int64_t i = 0; i < to; ++i) {
    const C index = static_cast<C>(i);
    if (filter == Filter::linear) {
      if (from == to) {
        taps.take(i, 1);
      } else {
        const C place = align_corners ? index * ratio : std::max((index + C(0.5)) * ratio - C(0.5), C(0));
        const int64_t first = std::min(static_cast<int64_t>(place), from - 1);
        const C part = std::clamp(place - static_cast<C>(first), C(0), C(1));
        taps.take(first, 1 - part);
        taps.take(std::min(first + 1, from - 1), part);
      }
    } else {
      const C place = align_corners ? index * ratio : (index + C(0.5)) * ratio - C(0.5);
      const C low = std::floor(place), t = place - low, a = C(-0.75);
      const C weights[4] = {cubic_far(t + 1, a), cubic_near(t, a), cubic_near(1 - t, a), cubic_far(2 - t, a)};
      for (int64_t k = 0; k < 4; ++k) taps.take(std::clamp<int64_t>(static_cast<int64_t>(low) + k - 1, 0, from - 1), weights[k]);
    }
    taps.end_row();
  }
  return taps;
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
