// RoI align (He et al., "Mask R-CNN", 2017) and its gradient.
#include <algorithm>
#include <vector>

#include "arguments.hpp"
#include "sampling.hpp"

namespace candelabra::vision {

namespace {

// The weights of one box, which all channels share.
template <typename A>
struct Region {
  Axis<A> rows, columns;
  int64_t image;
  A scale;  // 1 / the number of samples of a bin
  // Whether whole rows are summed before columns are picked: rows are read as vectors, but also
  // where no sample is.
  bool by_rows;

  static Region of(const Box<A>& box, const Planes& input, int64_t pooled_height, int64_t pooled_width,
                   int64_t sampling_ratio, bool aligned) {
    const A offset = aligned ? A(0.5) : A(0);
    const A y = box.y1 - offset, x = box.x1 - offset;
    A height = box.y2 - offset - y, width = box.x2 - offset - x;
    if (!aligned) {
      height = std::max(height, A(1));
      width = std::max(width, A(1));
    }
    Region region{Axis<A>(y, height, pooled_height, sampling_ratio, input.height),
                  Axis<A>(x, width, pooled_width, sampling_ratio, input.width), box.image, A(1), false};
    const auto samples = static_cast<A>(region.rows.samples()) * static_cast<A>(region.columns.samples());
    region.scale = A(1) / std::max(samples, A(1));
    constexpr int64_t lanes = 8;
    const int64_t vectors = region.columns.span() / lanes + 2;
    region.by_rows = region.rows.count() * vectors + pooled_height * region.columns.count() <
                     region.rows.count() * region.columns.count();
    return region;
  }
};

template <typename T, typename A>
A sum_of_taps(const Tap<A>* begin, const Tap<A>* end, const T* row) {
  A sum = 0;
  for (const Tap<A>* tap = begin; tap != end; ++tap) sum += tap->weight * static_cast<A>(row[tap->index]);
  return sum;
}

// Adds N rows at once, so that sums are stored once for all of them.
template <int N, typename T, typename A>
void add_rows(const Tap<A>* rows, bool is_first, const T* plane, int64_t width, int64_t span, A* __restrict sums) {
  const T* from[N];
  A weights[N];
  for (int n = 0; n < N; ++n) {
    from[n] = plane + rows[n].index * width;
    weights[n] = rows[n].weight;
  }
  const auto add = [&](A& to, A sum, int64_t x) {
    for (int n = 0; n < N; ++n) sum += weights[n] * static_cast<A>(from[n][x]);
    to = sum;
  };
  if (is_first) {
    for (int64_t x = 0; x < span; ++x) add(sums[x], A(0), x);
  } else {
    for (int64_t x = 0; x < span; ++x) add(sums[x], sums[x], x);
  }
}

// The weighted sum of the rows of a bin, from the first column that is sampled.
template <typename T, typename A>
void sum_rows(const Tap<A>* row, const Tap<A>* last, const T* plane, int64_t width, int64_t span, A* sums) {
  if (row == last) std::fill_n(sums, span, A(0));
  for (bool is_first = true; row != last; is_first = false) {
    const auto left = last - row;
    if (left >= 4) {
      add_rows<4>(row, is_first, plane, width, span, sums);
      row += 4;
    } else if (left == 3) {
      add_rows<3>(row, is_first, plane, width, span, sums);
      row += 3;
    } else if (left == 2) {
      add_rows<2>(row, is_first, plane, width, span, sums);
      row += 2;
    } else {
      add_rows<1>(row, is_first, plane, width, span, sums);
      row += 1;
    }
  }
}

template <typename T, typename A>
void pool(const Region<A>& region, const T* plane, int64_t width, int64_t pooled_height, int64_t pooled_width,
          A* __restrict sums, T* output) {
  const int64_t first = region.columns.first(), span = region.columns.span();
  for (int64_t p = 0; p < pooled_height; ++p) {
    const Tap<A>*rows = region.rows.begin(p), *last = region.rows.end(p);
    T* out = output + p * pooled_width;
    if (region.by_rows) {
      sum_rows(rows, last, plane + first, width, span, sums);
      for (int64_t q = 0; q < pooled_width; ++q)
        out[q] =
            static_cast<T>(region.scale * sum_of_taps(region.columns.begin(q), region.columns.end(q), sums - first));
      continue;
    }
    for (int64_t q = 0; q < pooled_width; ++q) {
      A sum = 0;
      for (const Tap<A>* row = rows; row != last; ++row)
        sum += row->weight * sum_of_taps(region.columns.begin(q), region.columns.end(q), plane + row->index * width);
      out[q] = static_cast<T>(region.scale * sum);
    }
  }
}

// Adds the gradient of one channel of one box to its plane.
template <typename T, typename A>
void scatter(const Region<A>& region, const T* grad, int64_t width, int64_t pooled_height, int64_t pooled_width,
             A* __restrict sums, A* plane) {
  const int64_t first = region.columns.first(), span = region.columns.span();
  for (int64_t p = 0; p < pooled_height; ++p) {
    const Tap<A>*rows = region.rows.begin(p), *last = region.rows.end(p);
    const T* from = grad + p * pooled_width;
    if (region.by_rows) std::fill_n(sums, span, A(0));
    for (int64_t q = 0; q < pooled_width; ++q) {
      const A value = region.scale * static_cast<A>(from[q]);
      for (const Tap<A>* tap = region.columns.begin(q); tap != region.columns.end(q); ++tap) {
        if (region.by_rows) {
          sums[tap->index - first] += value * tap->weight;
          continue;
        }
        for (const Tap<A>* row = rows; row != last; ++row)
          plane[row->index * width + tap->index] += value * tap->weight * row->weight;
      }
    }
    if (!region.by_rows) continue;
    for (const Tap<A>* row = rows; row != last; ++row) {
      A* __restrict to = plane + row->index * width + first;
      const A weight = row->weight;
      for (int64_t x = 0; x < span; ++x) to[x] += weight * sums[x];
    }
  }
}

void roi_align(Tensor output, Tensor input, Tensor rois, double spatial_scale, int64_t pooled_height,
               int64_t pooled_width, int64_t sampling_ratio, bool aligned, cb_call* call) {
  dispatch_floating(input, [&]<typename T>() {
    using A = Accumulator<T>;
    const Planes planes(input);
    const auto boxes = read_boxes<T>(rois, spatial_scale, planes.images);
    if (output.numel() == 0) return;
    const RowMajor<T> elements(input);
    T* results = output.data<T>();
    const int64_t bins = pooled_height * pooled_width;
    constexpr int64_t block = 64;
    const int64_t blocks = (planes.channels + block - 1) / block;
    const int64_t cost = std::min(block, planes.channels) * bins * 16;
    parallel_for(call, rois.size(0) * blocks, grain_for(cost), [&](int64_t begin, int64_t end) {
      std::vector<A> sums(static_cast<size_t>(planes.width));
      for (int64_t item = begin; item < end; ++item) {
        const int64_t k = item / blocks, from = item % blocks * block;
        const auto region =
            Region<A>::of(boxes[static_cast<size_t>(k)], planes, pooled_height, pooled_width, sampling_ratio, aligned);
        for (int64_t c = from; c < std::min(from + block, planes.channels); ++c)
          pool(region, elements.data() + planes.offset(region.image, c), planes.width, pooled_height, pooled_width,
               sums.data(), results + (k * planes.channels + c) * bins);
      }
    });
  });
}

void roi_align_backward(Tensor result, Tensor grad, Tensor rois, double spatial_scale, int64_t pooled_height,
                        int64_t pooled_width, int64_t, int64_t, int64_t, int64_t, int64_t sampling_ratio, bool aligned,
                        cb_call* call) {
  dispatch_floating(grad, [&]<typename T>() {
    using A = Accumulator<T>;
    const Planes planes(result);
    const auto boxes = read_boxes<T>(rois, spatial_scale, planes.images);
    if (result.numel() == 0) return;
    const RowMajor<T> gradients(grad);
    const int64_t bins = pooled_height * pooled_width;
    std::vector<Region<A>> regions;
    regions.reserve(boxes.size());
    if (bins > 0) {
      for (const Box<A>& box : boxes)
        regions.push_back(Region<A>::of(box, planes, pooled_height, pooled_width, sampling_ratio, aligned));
    }
    // Each channel belongs to one thread, so the sums have a fixed order.
    const int64_t cost = rois.size(0) * bins * 16 + planes.images * planes.area();
    parallel_for(call, planes.channels, grain_for(cost), [&](int64_t begin, int64_t end) {
      std::vector<A> sums(static_cast<size_t>(planes.width));
      GradientPlanes<T> target(result.data<T>(), planes);
      for (int64_t c = begin; c < end; ++c) {
        target.begin(c);
        for (size_t k = 0; k < regions.size(); ++k)
          scatter(regions[k], gradients.data() + (static_cast<int64_t>(k) * planes.channels + c) * bins, planes.width,
                  pooled_height, pooled_width, sums.data(), target.plane(regions[k].image));
        target.end();
      }
    });
  });
}

}  // namespace

extern "C" CB_EXPORT int32_t candelabra_vision_roi_align(cb_call* call) {
  return extension::call<&roi_align>(call);
}
extern "C" CB_EXPORT int32_t candelabra_vision_roi_align_backward(cb_call* call) {
  return extension::call<&roi_align_backward>(call);
}

}  // namespace candelabra::vision
