// The weights of resampling along one dimension: a sparse matrix with a row for each position of
// the result. The formulas are those of candelabra/resampling.hpp.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "candelabra/resampling.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

using resampling::Filter;

inline Filter filter_named(std::string_view mode) {
  if (mode == "nearest") return Filter::nearest;
  if (mode == "nearest-exact") return Filter::nearest_exact;
  if (mode == "linear") return Filter::linear;
  return Filter::cubic;
}

// A sparse matrix in CSR form: the entries of row i are [start[i], start[i + 1]).
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
  void add(int64_t source, C factor) {
    index.push_back(static_cast<int32_t>(source));
    weight.push_back(factor);
  }
  void end_row() { start.push_back(static_cast<int32_t>(index.size())); }

  int32_t max_count() const {
    int32_t found = 0;
    for (int64_t i = 0; i < to; ++i) found = std::max(found, count(i));
    return found;
  }
  // The largest distance between the first and the last source of a row, plus one.
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
    for (int32_t source : index) ++result.start[source + 1];
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

// A `scale` of 0 means that positions follow from the sizes.
template <typename C>
Taps<C> taps_of(Filter filter, int64_t from, int64_t to, bool align_corners, double scale, bool antialias) {
  Taps<C> taps;
  const double exact_ratio = resampling::ratio_of(from, to, align_corners, scale);
  const C ratio = static_cast<C>(exact_ratio);
  taps.begin(from, to, filter == Filter::cubic ? 4 : 2);
  if (filter == Filter::nearest || filter == Filter::nearest_exact) {
    const auto step = static_cast<float>(resampling::ratio_of(from, to, false, scale));
    for (int64_t i = 0; i < to; ++i) {
      taps.add(resampling::nearest_place(i, step, filter == Filter::nearest_exact, from), 1);
      taps.end_row();
    }
    return taps;
  }
  std::vector<double> weights;
  for (int64_t i = 0; i < to; ++i) {
    if (antialias) {
      const resampling::Widened wide(i, exact_ratio, from, filter == Filter::cubic);
      weights.clear();
      double sum = 0;
      for (int64_t j = wide.first; j < wide.last; ++j) sum += weights.emplace_back(wide.weight(j));
      if (sum == 0) sum = 1;  // a scale that does not fit the sizes may point outside the input
      for (int64_t j = wide.first; j < wide.last; ++j) taps.add(j, static_cast<C>(weights[j - wide.first] / sum));
    } else if (filter == Filter::cubic) {
      const auto [first, four] = resampling::cubic_place(i, ratio, align_corners, from);
      for (int64_t k = 0; k < 4; ++k) taps.add(std::clamp<int64_t>(first + k, 0, from - 1), four[k]);
    } else if (from == to) {
      taps.add(i, 1);
    } else {
      const auto [first, part] = resampling::linear_place(i, ratio, align_corners, from);
      taps.add(first, 1 - part);
      taps.add(std::min(first + 1, from - 1), part);
    }
    taps.end_row();
  }
  return taps;
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
