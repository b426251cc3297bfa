// Position-sensitive RoI pooling (Dai et al., "R-FCN", 2016): the mean of each bin, and its gradient.
// Bin (p, q) of result channel c is taken from input channel (c * pooled_height + p) * pooled_width + q.
#include <algorithm>
#include <vector>

#include "arguments.hpp"
#include "bins.hpp"

namespace candelabra::vision {

namespace {

template <typename A>
struct Bin {
  Range rows, columns;

  // As in torchvision, the last row and the last column of an image are in no bin.
  static Bin of(const Box<A>& box, const Planes& input, int64_t p, int64_t q, int64_t pooled_height,
                int64_t pooled_width) {
    const int64_t y = to_pixel(box.y1), x = to_pixel(box.x1);
    const int64_t height = std::max<int64_t>(to_pixel(box.y2) - y, 1), width = std::max<int64_t>(to_pixel(box.x2) - x, 1);
    return {bin_range<A>(p, y, height, pooled_height, input.height - 1),
            bin_range<A>(q, x, width, pooled_width, input.width - 1)};
  }
  bool empty() const { return rows.empty() || columns.empty(); }
  A area() const { return static_cast<A>(rows.size() * columns.size()); }
};

void ps_roi_pool(Tensor output, Tensor channel_mapping, Tensor input, Tensor rois, double spatial_scale,
                 int64_t pooled_height, int64_t pooled_width, cb_call* call) {
  dispatch_floating(input, [&]<typename T>() {
    using A = Accumulator<T>;
    const Planes planes(input);
    const auto boxes = read_boxes<T>(rois, spatial_scale, planes.images);
    if (output.numel() == 0) return;
    const RowMajor<T> elements(input);
    T* results = output.data<T>();
    int32_t* mapping = channel_mapping.data<int32_t>();
    // The results of a box are as many as the channels of the input.
    const int64_t count = planes.channels;
    parallel_for(call, rois.size(0), grain_for(count * 16), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const Box<A>& box = boxes[static_cast<size_t>(k)];
        for (int64_t c = 0; c < count; ++c) {
          const auto bin = Bin<A>::of(box, planes, c / pooled_width % pooled_height, c % pooled_width, pooled_height,
                                      pooled_width);
          const T* plane = elements.data() + planes.offset(box.image, c);
          A sum = 0;
          for (int64_t y = bin.rows.begin; y < bin.rows.end; ++y) {
            for (int64_t x = bin.columns.begin; x < bin.columns.end; ++x)
              sum += static_cast<A>(plane[y * planes.width + x]);
          }
          results[k * count + c] = static_cast<T>(bin.empty() ? A(0) : sum / bin.area());
          mapping[k * count + c] = static_cast<int32_t>(c);
        }
      }
    });
  });
}

void ps_roi_pool_backward(Tensor result, Tensor grad, Tensor rois, Tensor, double spatial_scale, int64_t pooled_height,
                          int64_t pooled_width, int64_t, int64_t, int64_t, int64_t, cb_call* call) {
  dispatch_floating(grad, [&]<typename T>() {
    using A = Accumulator<T>;
    const Planes planes(result);
    const auto boxes = read_boxes<T>(rois, spatial_scale, planes.images);
    if (result.numel() == 0) return;
    const RowMajor<T> gradients(grad);
    const int64_t cost = rois.size(0) * 16 + planes.images * planes.area();
    parallel_for(call, planes.channels, grain_for(cost), [&](int64_t begin, int64_t end) {
      GradientPlanes<T> target(result.data<T>(), planes);
      for (int64_t c = begin; c < end; ++c) {
        target.begin(c);
        for (size_t k = 0; k < boxes.size(); ++k) {
          const auto bin = Bin<A>::of(boxes[k], planes, c / pooled_width % pooled_height, c % pooled_width,
                                      pooled_height, pooled_width);
          if (bin.empty()) continue;
          A* plane = target.plane(boxes[k].image);
          const A value =
              static_cast<A>(gradients.data()[static_cast<int64_t>(k) * planes.channels + c]) / bin.area();
          for (int64_t y = bin.rows.begin; y < bin.rows.end; ++y) {
            for (int64_t x = bin.columns.begin; x < bin.columns.end; ++x) plane[y * planes.width + x] += value;
          }
        }
        target.end();
      }
    });
  });
}

}  // namespace

extern "C" CB_EXPORT int32_t candelabra_vision_ps_roi_pool(cb_call* call) {
  return extension::call<&ps_roi_pool>(call);
}
extern "C" CB_EXPORT int32_t candelabra_vision_ps_roi_pool_backward(cb_call* call) {
  return extension::call<&ps_roi_pool_backward>(call);
}

}  // namespace candelabra::vision
