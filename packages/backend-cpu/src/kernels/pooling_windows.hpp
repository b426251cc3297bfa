// Which elements of the input each output of a pooling takes. Fewer than three spatial dimensions are seen as three: what is
// missing in front has size 1.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "dtypes.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE::pooling {

// Sizes and strides of (N, C, D, H, W), without the element type. A plane is all that one channel of one sample holds.
struct Layout {
  std::array<int64_t, 5> sizes, strides;

  explicit Layout(const cb_tensor& t) {
    const int missing = 5 - t.ndim;
    for (int d = 0; d < 2; ++d) sizes[d] = t.sizes[d], strides[d] = t.strides[d];
    for (int d = 4; d >= 2; --d) {
      const bool there = d - missing >= 2;
      sizes[d] = there ? t.sizes[d - missing] : 1;
      strides[d] = there ? t.strides[d - missing] : sizes[d + 1] * strides[d + 1];
    }
  }
  int64_t planes() const { return sizes[0] * sizes[1]; }
  int64_t plane_size() const { return sizes[2] * sizes[3] * sizes[4]; }
  int64_t lines() const { return sizes[2] * sizes[3]; }
  int64_t plane(int64_t i) const {
    if (strides[0] == sizes[1] * strides[1]) return i * strides[1];
    return i / sizes[1] * strides[0] + i % sizes[1] * strides[1];
  }
  // Offset in a plane of a line, of which there are D * H.
  int64_t line(int64_t i) const {
    if (sizes[2] == 1) return i * strides[3];
    return i / sizes[3] * strides[2] + i % sizes[3] * strides[3];
  }
  bool has_contiguous_planes() const { return (strides[4] == 1 || sizes[4] == 1) && has_planes_of_step(1); }
  bool has_joined_planes() const { return has_planes_of_step(strides[4]); }
  // Channels next to each other, and more of them than would fill less than a vector.
  bool has_neighbouring_channels() const { return strides[1] == 1 && sizes[1] >= 8 && strides[4] != 1; }

 private:
  bool has_planes_of_step(int64_t step) const {
    return (sizes[3] == 1 || strides[3] == sizes[4] * step) && (sizes[2] == 1 || strides[2] == sizes[3] * sizes[4] * step);
  }
};

// What one output index takes of one dimension: `count` elements from `first` on, and how many with the padding.
struct Window {
  int64_t first, count, padded;
};

struct Axis {
  int64_t inputs;
  int64_t step;  // between the elements of a window
  std::vector<Window> windows;
  // Windows at equal distances; otherwise adaptive.
  bool regular;
  int64_t kernel, stride, padding;

  int64_t outputs() const { return static_cast<int64_t>(windows.size()); }
};

inline Axis regular_axis(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  Axis axis{inputs, dilation, {}, true, kernel, stride, padding};
  axis.windows.reserve(static_cast<size_t>(outputs));
  for (int64_t o = 0; o < outputs; ++o) {
    int64_t start = o * stride - padding;
    int64_t skipped = start < 0 ? (-start + dilation - 1) / dilation : 0;
    int64_t first = start + skipped * dilation;
    int64_t reached = first >= inputs ? 0 : (inputs - 1 - first) / dilation + 1;
    // A window may reach beyond the padding where ceil_mode added one; that part counts for nothing.
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

  // The work for one plane, in elements.
  int64_t work() const {
    int64_t kernel = 1;
    for (const Axis* axis : {&depth, &rows, &columns}) {
      int64_t largest = 1;
      for (const Window& window : axis->windows) largest = std::max(largest, window.count);
      kernel *= largest;
    }
    return lines() * columns.outputs() * kernel + depth.inputs * rows.inputs * columns.inputs;
  }
  // Lines of the result.
  int64_t lines() const { return depth.outputs() * rows.outputs(); }
};

// The lines of the input that each line of the result takes of, and how many with the padding.
struct Lines {
  std::vector<int64_t> starts, at, padded;

  explicit Lines(const Axes& axes) {
    starts.push_back(0);
    for (const Window& depth : axes.depth.windows)
      for (const Window& rows : axes.rows.windows) {
        for (int64_t i = 0; i < depth.count; ++i)
          for (int64_t j = 0; j < rows.count; ++j)
            at.push_back((depth.first + i * axes.depth.step) * axes.rows.inputs + rows.first + j * axes.rows.step);
        starts.push_back(static_cast<int64_t>(at.size()));
        padded.push_back(depth.padded * rows.padded);
      }
  }
  std::span<const int64_t> of(int64_t line) const {
    return std::span(at).subspan(static_cast<size_t>(starts[line]), static_cast<size_t>(starts[line + 1] - starts[line]));
  }
};

// kernel, stride, padding, dilation as the operator has them, an entry for each spatial dimension.
inline Axes regular_axes(const Layout& input, const Layout& output, std::span<const int64_t> kernel,
                         std::span<const int64_t> stride, std::span<const int64_t> padding, std::span<const int64_t> dilation) {
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

// The outputs [begin, end) of a regular axis to which element k of their windows is not padding, and where that is for the first.
struct Reach {
  int64_t begin, end, first;

  Reach(const Axis& axis, int64_t k) {
    const int64_t offset = k * axis.step - axis.padding, stride = axis.stride;
    begin = offset < 0 ? std::min((-offset + stride - 1) / stride, axis.outputs()) : 0;
    end = offset >= axis.inputs ? begin : std::clamp((axis.inputs - 1 - offset) / stride + 1, begin, axis.outputs());
    first = begin * stride + offset;
  }
};

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE::pooling
