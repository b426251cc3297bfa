// The sampling points of RoI align along one dimension.
//
// A bin averages bilinear samples on a grid. Bilinear weights are products of weights of the rows
// and of the columns, so each dimension has its own list of (index, weight) pairs for each bin.
#ifndef CANDELABRA_VISION_SAMPLING_HPP
#define CANDELABRA_VISION_SAMPLING_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace candelabra::vision {

template <typename A>
struct Tap {
  int64_t index;
  A weight;
};

template <typename A>
class Axis {
 public:
  // `start` and `size` are those of the box, `bins` is the pooled size and `length` that of the
  // feature map. Samples outside of [-1, length] count as zero; so do those at NaN.
  Axis(A start, A size, int64_t bins, int64_t sampling_ratio, int64_t length) {
    const A bin = size / static_cast<A>(bins);
    const A wanted = sampling_ratio > 0 ? static_cast<A>(sampling_ratio) : std::ceil(bin);
    constexpr auto most = static_cast<A>(1 << 30);
    // float index: at most 2^30, and 0 for NaN
    samples_ = wanted >= 1 ? static_cast<int64_t>(std::min(wanted, most)) : 0;
    begins_.reserve(static_cast<size_t>(bins) + 1);
    begins_.push_back(0);
    for (int64_t p = 0; p < bins; ++p) {
      add_bin(start + static_cast<A>(p) * bin, bin, length);
      begins_.push_back(taps_.size());
    }
    for (const Tap<A>& tap : taps_) {
      first_ = std::min(first_, tap.index);
      last_ = std::max(last_, tap.index);
    }
  }

  int64_t samples() const { return samples_; }
  const Tap<A>* begin(int64_t bin) const { return taps_.data() + begins_[static_cast<size_t>(bin)]; }
  const Tap<A>* end(int64_t bin) const { return begin(bin + 1); }
  int64_t count() const { return static_cast<int64_t>(taps_.size()); }
  // The range of the indices, empty if there are none.
  int64_t first() const { return first_; }
  int64_t span() const { return taps_.empty() ? 0 : last_ - first_ + 1; }

 private:
  void add_bin(A start, A bin, int64_t length) {
    if (!std::isfinite(start) || !std::isfinite(bin)) return;
    const A samples = static_cast<A>(samples_);
    int64_t from = 0, to = samples_;
    if (bin > 0 && samples_ > 64) {
      // Skip the samples of a huge box that are outside of the feature map.
      const double step = static_cast<double>(bin) / static_cast<double>(samples_);
      const double low = (-1.0 - static_cast<double>(start)) / step - 2;
      const double high = (static_cast<double>(length) - static_cast<double>(start)) / step + 2;
      // float index: clamped to the number of samples
      from = static_cast<int64_t>(std::clamp(low, 0.0, static_cast<double>(samples_)));
      // float index: the same
      to = static_cast<int64_t>(std::clamp(high, 0.0, static_cast<double>(samples_)));
    }
    const size_t own = taps_.size();
    for (int64_t i = from; i < to; ++i) {
      A at = start + (static_cast<A>(i) + A(0.5)) * bin / samples;
      if (!(at >= A(-1) && at <= static_cast<A>(length))) continue;
      at = std::max(at, A(0));
      // float index: between 0 and length
      int64_t low = static_cast<int64_t>(at);
      if (low >= length - 1) {
        add(own, length - 1, A(1));
        continue;
      }
      const A high_weight = at - static_cast<A>(low);
      add(own, low, A(1) - high_weight);
      add(own, low + 1, high_weight);
    }
  }
  // Neighbouring samples share indices.
  void add(size_t own, int64_t index, A weight) {
    for (size_t k = taps_.size(); k > own && k + 2 > taps_.size(); --k) {
      if (taps_[k - 1].index == index) {
        taps_[k - 1].weight += weight;
        return;
      }
    }
    taps_.push_back({index, weight});
  }

  std::vector<Tap<A>> taps_;
  std::vector<size_t> begins_;
  int64_t samples_ = 0;
  int64_t first_ = std::numeric_limits<int64_t>::max();
  int64_t last_ = 0;
};

}  // namespace candelabra::vision

#endif
