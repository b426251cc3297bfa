// The window of input elements of each pooling output. Input with fewer than three spatial
// dimensions is treated as 3-D: the missing leading dimensions have size 1.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "dtypes.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE::pooling {

// Sizes and strides of (N, C, D, H, W). A plane is one channel of one sample, and a row is D and H
// fixed.
struct Layout {
  std::array<int64_t, 5> sizes, strides;

  explicit Layout(const cb_tensor& t) {
    const int missing = 5 - t.ndim;
    for (int d = 0; d < 2; ++d) sizes[d] = t.sizes[d], strides[d] = t.strides[d];
    for (int d = 4; d >= 2; --d) {
      const bool exists = d - missing >= 2;
      sizes[d] = exists ? t.sizes[d - missing] : 1;
      strides[d] = exists ? t.strides[d - missing] : sizes[d + 1] * strides[d + 1];
    }
  }
  int64_t plane_count() const { return sizes[0] * sizes[1]; }
  int64_t plane_size() const { return sizes[2] * sizes[3] * sizes[4]; }
  int64_t row_count() const { return sizes[2] * sizes[3]; }
  int64_t plane_offset(int64_t i) const {
    if (strides[0] == sizes[1] * strides[1]) return i * strides[1];
    return i / sizes[1] * strides[0] + i % sizes[1] * strides[1];
  }
  // The offset of a row in its plane.
  int64_t row_offset(int64_t i) const {
    if (sizes[2] == 1) return i * strides[3];
    return i / sizes[3] * strides[2] + i % sizes[3] * strides[3];
  }
  bool has_contiguous_planes() const { return (strides[4] == 1 || sizes[4] == 1) && has_planes_of_step(1); }
  // Whether an element's index in the plane times strides[4] is its offset.
  bool has_uniform_planes() const { return has_planes_of_step(strides[4]); }
  // Channels-last, with enough channels for vectors.
  bool is_channels_last() const { return strides[1] == 1 && sizes[1] >= 8 && strides[4] != 1; }

 private:
  bool has_planes_of_step(int64_t step) const {
    return (sizes[3] == 1 || strides[3] == sizes[4] * step) &&
           (sizes[2] == 1 || strides[2] == sizes[3] * sizes[4] * step);
  }
};

// The window of one output index along one dimension: `count` elements from `first` on, and
// `padded` with the padding.
struct Window {
  int64_t first, count, padded;
};

struct Axis {
  int64_t inputs;
  int64_t step;  // between the elements of a window
  std::vector<Window> windows;
  // Whether the windows have a fixed kernel and stride; otherwise they are adaptive.
  bool regular;
  int64_t kernel, stride, padding;

  int64_t outputs() const { return static_cast<int64_t>(windows.size()); }
};

inline Axis regular_axis(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride, int64_t padding,
                         int64_t dilation) {
  Axis axis{inputs, dilation, {}, true, kernel, stride, padding};
  axis.windows.reserve(static_cast<size_t>(outputs));
  for (int64_t o = 0; o < outputs; ++o) {
    int64_t start = o * stride - padding;
    int64_t skipped = start < 0 ? (-start + dilation - 1) / dilation : 0;
    int64_t first = start + skipped * dilation;
    int64_t reached = first >= inputs ? 0 : (inputs - 1 - first) / dilation + 1;
    // With ceil_mode the last window may extend beyond the padding. That part is not counted.
    int64_t padded = std::min(start + kernel, inputs + padding) - start;
    axis.windows.push_back({first, std::clamp<int64_t>(kernel - skipped, 0, reached), padded});
  }
  return axis;
}

inline Axis adaptive_axis(int64_t inputs, int64_t outputs) {
  Axis axis{inputs, 1, {}, false, 0, 0, 0};
  axis.windows.reserve(static_cast<size_t>(outputs));
  for (int64_t o = 0; o < outputs; ++o) {
    int64_t first = o * inputs / outputs, end = ((o + 1) * inputs + outputs - 1) / outputs;
    axis.windows.push_back({first, end - first, end - first});
  }
  return axis;
}

struct Axes {
  Axis depth, rows, columns;

  // The work for one plane, in elements read.
  int64_t work() const {
    int64_t kernel = 1;
    for (const Axis* axis : {&depth, &rows, &columns}) {
      int64_t largest = 1;
      for (const Window& window : axis->windows) largest = std::max(largest, window.count);
      kernel *= largest;
    }
    return output_rows() * columns.outputs() * kernel + depth.inputs * rows.inputs * columns.inputs;
  }
  int64_t output_rows() const { return depth.outputs() * rows.outputs(); }
};

// The input rows in the windows of each output row, and how many rows there are with the padding.
struct InputRows {
  std::vector<int64_t> starts, indices, padded;

  explicit InputRows(const Axes& axes) {
    starts.push_back(0);
    for (const Window& depth : axes.depth.windows)
      for (const Window& rows : axes.rows.windows) {
        for (int64_t i = 0; i < depth.count; ++i)
          for (int64_t j = 0; j < rows.count; ++j)
            indices.push_back((depth.first + i * axes.depth.step) * axes.rows.inputs + rows.first + j * axes.rows.step);
        starts.push_back(static_cast<int64_t>(indices.size()));
        padded.push_back(depth.padded * rows.padded);
      }
  }
  std::span<const int64_t> of(int64_t output_row) const {
    const int64_t begin = starts[output_row], end = starts[output_row + 1];
    return std::span(indices).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  }
};

// The lists have one entry per spatial dimension. An empty dilation is 1.
inline Axes regular_axes(const Layout& input, const Layout& output, std::span<const int64_t> kernel,
                         std::span<const int64_t> stride, std::span<const int64_t> padding,
                         std::span<const int64_t> dilation) {
  const auto axis = [&](size_t d) {
    const size_t missing = 3 - kernel.size();
    if (d < missing) return regular_axis(1, 1, 1, 1, 0, 1);
    const size_t i = d - missing;
    return regular_axis(input.sizes[d + 2], output.sizes[d + 2], kernel[i], stride[i], padding[i],
                        dilation.empty() ? int64_t{1} : dilation[i]);
  };
  return {axis(0), axis(1), axis(2)};
}

inline Axes adaptive_axes(const Layout& input, const Layout& output) {
  const auto axis = [&](size_t d) { return adaptive_axis(input.sizes[d], output.sizes[d]); };
  return {axis(2), axis(3), axis(4)};
}

// The outputs [begin, end) of a regular axis whose window element k is not padding. `first` is the
// input index of that element for output `begin`.
struct ValidOutputs {
  int64_t begin, end, first;

  ValidOutputs(const Axis& axis, int64_t k) {
    const int64_t offset = k * axis.step - axis.padding, stride = axis.stride;
    begin = offset < 0 ? std::min((-offset + stride - 1) / stride, axis.outputs()) : 0;
    end = offset >= axis.inputs ? begin : std::clamp((axis.inputs - 1 - offset) / stride + 1, begin, axis.outputs());
    first = begin * stride + offset;
  }
};

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE::pooling
