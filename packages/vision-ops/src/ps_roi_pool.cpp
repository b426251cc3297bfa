// Position-sensitive RoI pooling (Dai et al., "R-FCN", 2016): the mean of each bin, and its
// gradient. Bin (p, q) of result channel c is taken from input channel
// (c * pooled_height + p) * pooled_width + q.
#include <algorithm>
#include <vector>

#include "arguments.hpp"
#include "bins.hpp"

namespace candelabra::vision {

namespace {

// The bins of a box. As in torchvision, the last row and the last column of an image are in no bin.
template <typename A>
struct Bins {
  std::vector<Range> rows, columns;
  int64_t image;

  Bins(const Box<A>& box, const Planes& input, int64_t pooled_height, int64_t pooled_width) : image(box.image) {
    const int64_t y = to_pixel(box.y1), x = to_pixel(box.x1);
    const int64_t height = std::max<int64_t>(to_pixel(box.y2) - y, 1);
    const int64_t width = std::max<int64_t>(to_pixel(box.x2) - x, 1);
    rows = bin_ranges<A>(y, height, pooled_height, std::max<int64_t>(input.height - 1, 0));
    columns = bin_ranges<A>(x, width, pooled_width, std::max<int64_t>(input.width - 1, 0));
  }
};

// The bin that input channel c is pooled in.
template <typename A>
struct Bin {
  Range rows, columns;

  Bin(const Bins<A>& bins, int64_t c)
      : rows(bins.rows[static_cast<size_t>(c) / bins.columns.size() % bins.rows.size()]),
        columns(bins.columns[static_cast<size_t>(c) % bins.columns.size()]) {}
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
        const Bins<A> bins(boxes[static_cast<size_t>(k)], planes, pooled_height, pooled_width);
        for (int64_t c = 0; c < count; ++c) {
          const Bin<A> bin(bins, c);
          const T* plane = elements.data() + planes.offset(bins.image, c);
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
    std::vector<Bins<A>> bins;
    bins.reserve(boxes.size());
    for (const Box<A>& box : boxes) bins.emplace_back(box, planes, pooled_height, pooled_width);
    const int64_t cost = rois.size(0) * 16 + planes.images * planes.area();
    parallel_for(call, planes.channels, grain_for(cost), [&](int64_t begin, int64_t end) {
      GradientPlanes<T> target(result.data<T>(), planes);
      for (int64_t c = begin; c < end; ++c) {
        target.begin(c);
        for (size_t k = 0; k < bins.size(); ++k) {
          const Bin<A> bin(bins[k], c);
          if (bin.empty()) continue;
          A* plane = target.plane(bins[k].image);
          const A value = static_cast<A>(gradients.data()[static_cast<int64_t>(k) * planes.channels + c]) / bin.area();
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
