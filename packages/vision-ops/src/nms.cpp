// Non-maximum suppression.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "arguments.hpp"

namespace candelabra::vision {

namespace {

// The candidates that are left, in order of their scores; a structure of arrays for the vector
// units.
template <typename A>
struct Candidates {
  std::vector<A> x1, y1, x2, y2, area;
  std::vector<int64_t> index;
  std::vector<uint8_t> suppressed;

  explicit Candidates(size_t count)
      : x1(count), y1(count), x2(count), y2(count), area(count), index(count), suppressed(count) {}

  void move(size_t from, size_t to) {
    for (std::vector<A>* values : {&x1, &y1, &x2, &y2, &area}) (*values)[to] = (*values)[from];
    index[to] = index[from];
  }
  // Drops the suppressed candidates of [begin, end), and returns the new end.
  size_t compact(size_t begin, size_t end) {
    size_t kept = begin;
    for (size_t k = begin; k < end; ++k) {
      if (!suppressed[k]) move(k, kept++);
    }
    std::fill(suppressed.begin() + static_cast<std::ptrdiff_t>(begin),
              suppressed.begin() + static_cast<std::ptrdiff_t>(kept), uint8_t{0});
    return kept;
  }
  // Marks those of [begin, end) that overlap candidate `best` by more than the threshold, and
  // returns how many are marked. std::max and std::min pass over NaN as in PyTorch.
  size_t suppress(size_t best, size_t begin, size_t end, double threshold) {
    const A ix1 = x1[best], iy1 = y1[best], ix2 = x2[best], iy2 = y2[best], iarea = area[best];
    const A *px1 = x1.data(), *py1 = y1.data(), *px2 = x2.data(), *py2 = y2.data(), *parea = area.data();
    uint8_t* __restrict marks = suppressed.data();
    // A float exceeds the double threshold just where it exceeds the largest float up to it.
    const A limit = largest_up_to(threshold);
    size_t total = 0;
    for (size_t k = begin; k < end; ++k) {
      const A left = ix1 < px1[k] ? px1[k] : ix1, top = iy1 < py1[k] ? py1[k] : iy1;
      const A right = px2[k] < ix2 ? px2[k] : ix2, bottom = py2[k] < iy2 ? py2[k] : iy2;
      const A w = A(0) < right - left ? right - left : A(0), h = A(0) < bottom - top ? bottom - top : A(0);
      const A shared = w * h;
      const uint8_t mark = marks[k] | static_cast<uint8_t>(shared / (iarea + parea[k] - shared) > limit);
      marks[k] = mark;
      total += mark;
    }
    return total;
  }

 private:
  static A largest_up_to(double threshold) {
    const auto rounded = static_cast<A>(threshold);
    if (static_cast<double>(rounded) > threshold) return std::nextafter(rounded, -std::numeric_limits<A>::infinity());
    return rounded;
  }
};

// The indices by falling score; equal ones stay in order, and NaN is the greatest, as in sort().
template <typename T>
std::vector<int64_t> order_of(const T* scores, size_t count) {
  std::vector<std::pair<T, int64_t>> keyed(count);
  for (size_t k = 0; k < count; ++k) keyed[k] = {scores[k], static_cast<int64_t>(k)};
  std::sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) {
    const bool a_nan = a.first != a.first, b_nan = b.first != b.first;
    if (a_nan || b_nan) return a_nan && b_nan ? a.second < b.second : a_nan;
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  });
  std::vector<int64_t> order(count);
  for (size_t k = 0; k < count; ++k) order[k] = keyed[k].second;
  return order;
}

template <typename T>
std::vector<int64_t> kept_boxes(const T* boxes, const T* scores, size_t count, double threshold) {
  using A = Accumulator<T>;
  std::vector<A> keys(count);
  for (size_t k = 0; k < count; ++k) keys[k] = static_cast<A>(scores[k]);
  const std::vector<int64_t> order = order_of(keys.data(), count);
  Candidates<A> left(count);
  for (size_t k = 0; k < count; ++k) {
    const T* box = boxes + 4 * order[k];
    left.x1[k] = static_cast<A>(box[0]);
    left.y1[k] = static_cast<A>(box[1]);
    left.x2[k] = static_cast<A>(box[2]);
    left.y2[k] = static_cast<A>(box[3]);
    left.area[k] = (left.x2[k] - left.x1[k]) * (left.y2[k] - left.y1[k]);
    left.index[k] = order[k];
  }
  std::vector<int64_t> kept;
  size_t end = count;
  for (size_t best = 0; best < end; ++best) {
    if (left.suppressed[best]) continue;
    kept.push_back(left.index[best]);
    const size_t marked = left.suppress(best, best + 1, end, threshold);
    if (marked * 4 > end - best) end = left.compact(best + 1, end);
  }
  return kept;
}

void nms(Tensor, Tensor boxes, Tensor scores, double threshold, cb_call* call) {
  dispatch_floating(boxes, [&]<typename T>() {
    const RowMajor<T> box_elements(boxes), score_elements(scores);
    const auto kept =
        kept_boxes(box_elements.data(), score_elements.data(), static_cast<size_t>(boxes.size(0)), threshold);
    const Tensor result = allocate(call, 0, {static_cast<int64_t>(kept.size())});
    std::copy(kept.begin(), kept.end(), result.data<int64_t>());
  });
}

}  // namespace

extern "C" CB_EXPORT int32_t candelabra_vision_nms(cb_call* call) {
  return extension::call<&nms>(call);
}

}  // namespace candelabra::vision
