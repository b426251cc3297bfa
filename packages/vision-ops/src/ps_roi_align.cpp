// Position-sensitive RoI align (Li et al., "Light-Head R-CNN", 2017) and its gradient. Bin (p, q)
// of result channel c is sampled in input channel (c * pooled_height + p) * pooled_width + q.
#include <vector>

#include "arguments.hpp"
#include "sampling.hpp"

namespace candelabra::vision {

namespace {

template <typename A>
struct Region {
  Axis<A> rows, columns;
  int64_t image;
  A samples;  // of a bin

  static Region of(const Box<A>& box, const Planes& input, int64_t pooled_height, int64_t pooled_width,
                   int64_t sampling_ratio) {
    const A y = box.y1 - A(0.5), x = box.x1 - A(0.5);
    Region region{Axis<A>(y, box.y2 - A(0.5) - y, pooled_height, sampling_ratio, input.height),
                  Axis<A>(x, box.x2 - A(0.5) - x, pooled_width, sampling_ratio, input.width), box.image, A(0)};
    region.samples = static_cast<A>(region.rows.samples()) * static_cast<A>(region.columns.samples());
    return region;
  }
};

void ps_roi_align(Tensor output, Tensor channel_mapping, Tensor input, Tensor rois, double spatial_scale,
                  int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio, cb_call* call) {
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
    parallel_for(call, rois.size(0), grain_for(count * 32), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const auto region =
            Region<A>::of(boxes[static_cast<size_t>(k)], planes, pooled_height, pooled_width, sampling_ratio);
        for (int64_t c = 0; c < count; ++c) {
          const int64_t p = c / pooled_width % pooled_height, q = c % pooled_width;
          const T* plane = elements.data() + planes.offset(region.image, c);
          A sum = 0;
          for (const Tap<A>* row = region.rows.begin(p); row != region.rows.end(p); ++row) {
            const T* from = plane + row->index * planes.width;
            for (const Tap<A>* tap = region.columns.begin(q); tap != region.columns.end(q); ++tap)
              sum += row->weight * tap->weight * static_cast<A>(from[tap->index]);
          }
          results[k * count + c] = static_cast<T>(sum / region.samples);
          mapping[k * count + c] = static_cast<int32_t>(c);
        }
      }
    });
  });
}

void ps_roi_align_backward(Tensor result, Tensor grad, Tensor rois, Tensor, double spatial_scale, int64_t pooled_height,
                           int64_t pooled_width, int64_t sampling_ratio, int64_t, int64_t, int64_t, int64_t,
                           cb_call* call) {
  dispatch_floating(grad, [&]<typename T>() {
    using A = Accumulator<T>;
    const Planes planes(result);
    const auto boxes = read_boxes<T>(rois, spatial_scale, planes.images);
    if (result.numel() == 0) return;
    const RowMajor<T> gradients(grad);
    std::vector<Region<A>> regions;
    regions.reserve(boxes.size());
    for (const Box<A>& box : boxes)
      regions.push_back(Region<A>::of(box, planes, pooled_height, pooled_width, sampling_ratio));
    const int64_t cost = rois.size(0) * 32 + planes.images * planes.area();
    parallel_for(call, planes.channels, grain_for(cost), [&](int64_t begin, int64_t end) {
      GradientPlanes<T> target(result.data<T>(), planes);
      for (int64_t c = begin; c < end; ++c) {
        const int64_t p = c / pooled_width % pooled_height, q = c % pooled_width;
        target.begin(c);
        for (size_t k = 0; k < regions.size(); ++k) {
          const Region<A>& region = regions[k];
          A* plane = target.plane(region.image);
          const A value =
              static_cast<A>(gradients.data()[static_cast<int64_t>(k) * planes.channels + c]) / region.samples;
          for (const Tap<A>* row = region.rows.begin(p); row != region.rows.end(p); ++row) {
            for (const Tap<A>* tap = region.columns.begin(q); tap != region.columns.end(q); ++tap)
              plane[row->index * planes.width + tap->index] += value * row->weight * tap->weight;
          }
        }
        target.end();
      }
    });
  });
}

}  // namespace

extern "C" CB_EXPORT int32_t candelabra_vision_ps_roi_align(cb_call* call) {
  return extension::call<&ps_roi_align>(call);
}
extern "C" CB_EXPORT int32_t candelabra_vision_ps_roi_align_backward(cb_call* call) {
  return extension::call<&ps_roi_align_backward>(call);
}

}  // namespace candelabra::vision
