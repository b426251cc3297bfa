// RoI pooling (Girshick, "Fast R-CNN", 2015): the maximum of each bin, and its gradient.
#include <algorithm>
#include <limits>
#include <vector>

#include "arguments.hpp"
#include "bins.hpp"

namespace candelabra::vision {

namespace {

// The last pixel of a box belongs to it.
int64_t extent(int64_t start, int64_t end) {
  return std::max<int64_t>(end - start + 1, 1);
}

template <typename T>
void pool_bin(const T* plane, int64_t width, Range rows, Range columns, T& maximum, int32_t& argmax) {
  using A = Accumulator<T>;
  const bool empty = rows.empty() || columns.empty();
  A best = empty ? A(0) : -std::numeric_limits<A>::max();
  int64_t found = -1;
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    for (int64_t x = columns.begin; x < columns.end; ++x) {
      const auto value = static_cast<A>(plane[y * width + x]);
      if (value > best) {
        best = value;
        found = y * width + x;
      }
    }
  }
  maximum = static_cast<T>(best);
  argmax = static_cast<int32_t>(found);
}

void roi_pool(Tensor output, Tensor argmax, Tensor input, Tensor rois, double spatial_scale, int64_t pooled_height,
              int64_t pooled_width, cb_call* call) {
  dispatch_floating(input, [&]<typename T>() {
    using A = Accumulator<T>;
    const Planes planes(input);
    check(planes.area() <= std::numeric_limits<int32_t>::max(), "roi_pool: an image has more pixels than int32 counts");
    const auto boxes = read_boxes<T>(rois, spatial_scale, planes.images);
    if (output.numel() == 0) return;
    const RowMajor<T> elements(input);
    T* maxima = output.data<T>();
    int32_t* positions = argmax.data<int32_t>();
    const int64_t bins = pooled_height * pooled_width;
    constexpr int64_t block = 32;
    const int64_t blocks = (planes.channels + block - 1) / block;
    parallel_for(call, rois.size(0) * blocks, grain_for(block * bins * 16), [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t k = item / blocks, from = item % blocks * block;
        const Box<A>& box = boxes[static_cast<size_t>(k)];
        const int64_t y = to_pixel(box.y1), x = to_pixel(box.x1);
        const auto rows = bin_ranges<A>(y, extent(y, to_pixel(box.y2)), pooled_height, planes.height);
        const auto columns = bin_ranges<A>(x, extent(x, to_pixel(box.x2)), pooled_width, planes.width);
        for (int64_t c = from; c < std::min(from + block, planes.channels); ++c) {
          const T* plane = elements.data() + planes.offset(box.image, c);
          int64_t at = (k * planes.channels + c) * bins;
          for (const Range& row : rows) {
            for (const Range& column : columns) {
              pool_bin(plane, planes.width, row, column, maxima[at], positions[at]);
              ++at;
            }
          }
        }
      }
    });
  });
}

void roi_pool_backward(Tensor result, Tensor grad, Tensor rois, Tensor argmax, double, int64_t pooled_height,
                       int64_t pooled_width, int64_t, int64_t, int64_t, int64_t, cb_call* call) {
  dispatch_floating(grad, [&]<typename T>() {
    const Planes planes(result);
    const auto boxes = read_boxes<T>(rois, 1.0, planes.images);
    if (result.numel() == 0) return;
    const RowMajor<T> gradients(grad);
    const RowMajor<int32_t> positions(argmax);
    const int64_t bins = pooled_height * pooled_width;
    const int64_t cost = rois.size(0) * bins * 2 + planes.images * planes.area();
    parallel_for(call, planes.channels, grain_for(cost), [&](int64_t begin, int64_t end) {
      GradientPlanes<T> target(result.data<T>(), planes);
      for (int64_t c = begin; c < end; ++c) {
        target.begin(c);
        for (size_t k = 0; k < boxes.size(); ++k) {
          auto* plane = target.plane(boxes[k].image);
          const int64_t first = (static_cast<int64_t>(k) * planes.channels + c) * bins;
          for (int64_t i = first; i < first + bins; ++i) {
            const int64_t at = positions.data()[i];
            if (at < -1 || at >= planes.area()) fail(CB_INDEX_ERROR, "argmax has ", at, ", outside of the image");
            if (at >= 0) plane[at] += static_cast<Accumulator<T>>(gradients.data()[i]);
          }
        }
        target.end();
      }
    });
  });
}

}  // namespace

extern "C" CB_EXPORT int32_t candelabra_vision_roi_pool(cb_call* call) {
  return extension::call<&roi_pool>(call);
}
extern "C" CB_EXPORT int32_t candelabra_vision_roi_pool_backward(cb_call* call) {
  return extension::call<&roi_pool_backward>(call);
}

}  // namespace candelabra::vision
