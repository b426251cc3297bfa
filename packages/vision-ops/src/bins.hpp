// The bins of RoI pooling: boxes and bins are rounded to whole pixels.
#ifndef CANDELABRA_VISION_BINS_HPP
#define CANDELABRA_VISION_BINS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace candelabra::vision {

struct Range {
  int64_t begin, end;

  bool empty() const { return end <= begin; }
  int64_t size() const { return end - begin; }
};

// A coordinate as a pixel; huge ones are clamped and NaN is 0.
template <typename A>
int64_t to_pixel(A value) {
  constexpr A limit = 1 << 30;
  // float index: clamped
  return value == value ? static_cast<int64_t>(std::round(std::clamp(value, -limit, limit))) : 0;
}

// The pixels of the bins of a box along one dimension, clipped to [0, limit).
template <typename A>
std::vector<Range> bin_ranges(int64_t start, int64_t size, int64_t bins, int64_t limit) {
  const A bin = static_cast<A>(size) / static_cast<A>(bins);
  std::vector<Range> ranges(static_cast<size_t>(bins));
  for (size_t p = 0; p < ranges.size(); ++p) {
    // float index: at most the size of the box, which to_pixel() limits
    const auto begin = static_cast<int64_t>(std::floor(static_cast<A>(p) * bin));
    // float index: the same
    const auto end = static_cast<int64_t>(std::ceil(static_cast<A>(p + 1) * bin));
    ranges[p] = {std::clamp<int64_t>(begin + start, 0, limit), std::clamp<int64_t>(end + start, 0, limit)};
  }
  return ranges;
}

}  // namespace candelabra::vision

#endif
